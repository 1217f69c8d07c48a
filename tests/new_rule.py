"""Starts a new rule: its check, its page and its fixtures, and prints the line for the registry.

usage: python tests/new_rule.py GA999 the-fault [--root FOLDER]

Every file it writes says in capitals what is left to do, and the tests fail until that is done.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from galint.registry import RULES

CHECK = '''"""{code}: WHAT IS WRONG, IN ONE LINE."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import full_windows

CODE = "{code}"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """WHICH WINDOWS ARE REPORTED."""
    for window in full_windows(view):
        if WHAT_IS_WRONG(window):
            yield Finding(
                CODE,
                window.step.span,
                "WHAT HAPPENS, LOWER CASE, IN NUMBERS, WITHOUT A FINAL STOP",
                step=window.step,
                related=view.places(window.step),
            )
'''

LOOP = """\
import torch
from torch import nn

ACCUM = 4
torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for i in range(3 * ACCUM):
    x = torch.randn(16, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(dim=1)) / ACCUM
    loss.backward(){mark}
    if (i + 1) % ACCUM == 0:
        optimizer.step()
        optimizer.zero_grad()
"""

PAGE = """\
# {name} ({code})

## What it does

Reports THE FAULT.

## Why is this bad?

WHAT THE RUN COSTS, IN NUMBERS.

## Example

```python
{bad}```

## Not reported

CODE THAT LOOKS ALIKE AND IS RIGHT:

```python
{good}```

ANOTHER ONE:

```python
{good}```

## Limits

WHAT GALINT CANNOT SEE.

## References

- THE DOCUMENTATION THAT SAYS SO
"""


def main() -> int:
    """Write the files; 2 when the code or the name cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("code")
    parser.add_argument("name")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args()
    code, name, root = args.code, args.name, args.root
    if not re.fullmatch(r"GA[1-9]\d\d", code) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name):
        parser.error(
            "a rule is GA and three digits from 100 on, and a lower-case name with hyphens that states the fault"
        )
    if any(rule.code == code or rule.name == name for rule in RULES):
        parser.error(f"{code} or {name} is taken")
    bad, good = LOOP.format(mark=f"  # expect: {code}"), LOOP.format(mark="")
    files = {
        root / "galint" / "checks" / f"{name.replace('-', '_')}.py": CHECK.format(code=code),
        root / "rules" / f"{code}-{name}.md": PAGE.format(code=code, name=name, bad=bad, good=good),
    }
    for number in range(1, 4):
        folder = root / "fixtures" / f"{code}-{name}"
        files[folder / f"bad_shape_{number}.py"] = f"# observe: params\n{bad}"
        files[folder / f"ok_shape_{number}.py"] = good
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {path}")
    print("add to galint/registry.py, in the order of the codes, and run tests/regenerate.py:")
    print(f'    Rule("{code}", "{name}", _W, _NEVER, "what is wrong in one line"),')
    return 0


if __name__ == "__main__":
    sys.exit(main())
