"""Every bad fixture and every page's example is repaired to its golden text: exact, idempotent, clean."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from galint.config import Config
from galint.diagnostic import Applicability
from galint.engine import lint
from galint.fixes import Fixed, allowed, attach, fix_source
from galint.fixes.catalogue import REWRITES
from galint.registry import RULES
from galint.rule import Fixability
from galint.source import Source
from tests.marks import Block, blocks, expects, fixtures, golden, pages

BAD = [p for p in fixtures() if golden(p)]
EXAMPLES = [
    (example, fixed)
    for page in pages()
    for example, fixed in zip(blocks(page), blocks(page)[1:], strict=False)
    if example.section == "Example" and fixed.fixed and page.name[:5] in REWRITES
]


def without_marks(text: str) -> str:
    """A fixture's text as its author's user would have it: no `expect` and no `observe` comments."""
    text = re.sub(r"(?m)^[ \t]*# (expect|observe):.*\n", "", text)
    return re.sub(r"  # expect:.*", "", text)


def repaired(text: str, codes: frozenset[str], unsafe: bool = True) -> Fixed:
    return fix_source(Source("train.py", text), Config(), None, allowed(unsafe, codes))


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("script", BAD, ids=_name)
def test_fixture_becomes_its_golden(script: Path) -> None:
    marked = script.read_text(encoding="utf-8")
    codes = frozenset(mark.code for mark in expects(marked))
    fixed = repaired(without_marks(marked), codes)
    wanted = golden(script)
    assert wanted is not None
    assert fixed.text == wanted.read_text(encoding="utf-8")
    assert fixed.applied
    assert not [d for d in fixed.report.diagnostics if d.code in codes]


@pytest.mark.parametrize("script", BAD, ids=_name)
def test_golden_is_left_alone(script: Path) -> None:
    wanted = golden(script)
    assert wanted is not None
    text = wanted.read_text(encoding="utf-8")
    fixed = repaired(text, frozenset({script.parent.name[:5]}))
    assert fixed.text == text
    assert not fixed.applied


@pytest.mark.parametrize(("example", "wanted"), EXAMPLES, ids=lambda block: block.id)
def test_page_example_becomes_its_fixed_block(example: Block, wanted: Block) -> None:
    fixed = repaired(without_marks(example.text), frozenset({example.page.name[:5]}))
    assert fixed.text == wanted.text


def test_registry_and_catalogue_agree() -> None:
    fixable = {rule.code for rule in RULES if rule.fixability is not Fixability.NEVER}
    shown_only = {"GA501"}
    assert set(REWRITES) - shown_only <= fixable
    assert fixable - set(REWRITES) == {"GA001"}, "an unused ignore is removed by the check itself"


def test_batchnorm_is_shown_and_never_applied() -> None:
    scripts = [p for p in fixtures() if p.parent.name.startswith("GA501") and not p.name.startswith("ok_")]
    seen = 0
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        source = Source("train.py", text)
        for diagnostic in attach(lint(source, Config()), source, Config()).diagnostics:
            if diagnostic.code == "GA501" and diagnostic.fix is not None:
                seen += 1
                assert diagnostic.fix.applicability is Applicability.DISPLAY
                assert "GroupNorm" in "".join(edit.content for edit in diagnostic.fix.edits)
        assert repaired(text, frozenset({"GA501"})).text == text
    assert seen >= 3


TWO_FAULTS = """import torch


def train(model, loader, criterion, accumulate: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            if i % accumulate == 0:
                optimizer.step()
"""


def test_several_fixes_go_together() -> None:
    before = lint(Source("train.py", TWO_FAULTS), Config())
    assert {"GA101", "GA401"} <= {d.code for d in before.diagnostics}
    fixed = repaired(TWO_FAULTS, frozenset(REWRITES), unsafe=True)
    assert Counter(d.code for d in fixed.report.diagnostics if d.code < "GA5") == Counter()
    assert 1 <= fixed.rounds <= 10
    assert "loss / " in fixed.text


def test_safe_fixes_leave_the_number_of_steps() -> None:
    """The last-batch clause changes how often the optimizer steps, so it is not applied unasked."""
    script = next(p for p in BAD if p.name == "index_restarts_each_epoch.py")
    text = without_marks(script.read_text(encoding="utf-8"))
    assert repaired(text, frozenset(REWRITES), unsafe=False).text == text


def test_the_proof_rejects_what_only_silences() -> None:
    """A guard that never lets the step run has no wrong step, and is no fix."""
    from galint.fixes.prove import examine, proved

    script = next(p for p in BAD if p.name == "modulo_from_zero.py")
    source = Source("train.py", without_marks(script.read_text(encoding="utf-8")))
    diagnostic = lint(source, Config()).diagnostics[0]
    before = examine(source, Config(), None)
    assert before is not None
    for guard in ("False", "i % args.accumulation_steps == 1", "(i + 2) % args.accumulation_steps == 0"):
        text = source.text.replace("i % args.accumulation_steps == 0", guard)
        after = examine(Source("train.py", text), Config(), None)
        assert after is not None
        assert not proved(diagnostic, ("the module", "base"), before, after), guard
    right = source.text.replace("i % args.accumulation_steps == 0", "(i + 1) % args.accumulation_steps == 0")
    after = examine(Source("train.py", right), Config(), None)
    assert after is not None
    assert proved(diagnostic, ("the module", "base"), before, after)


LISTED = """import torch
from torch import nn


def train(model, batches, optimizer, n: int):
    losses = []
    for _ in range(n * 8):
        x, y = next(batches)
        loss = nn.functional.mse_loss(model(x), y)
        losses.append(loss)
        if len(losses) == n:
            {late}
            optimizer.step()
            optimizer.zero_grad()
            losses = []
"""
EACH = """        (loss / n).backward()
        losses.append(loss.item())
        if len(losses) == n:
            optimizer.step()
"""


@pytest.mark.parametrize(
    "late",
    [
        "torch.stack(losses).mean().backward()",
        "torch.mean(torch.stack(losses)).backward()",
        "(sum(losses) / n).backward()",
        "(sum(losses) / len(losses)).backward()",
        "total = sum(losses) / n\n            total.backward()",
    ],
)
def test_a_list_of_losses_becomes_a_list_of_numbers(late: str) -> None:
    text = LISTED.replace("{late}", late)
    assert [d.code for d in lint(Source("train.py", text), Config()).diagnostics] == ["GA106"]
    before, after = LISTED.split("        losses.append")[0], LISTED.split("{late}\n            optimizer.step()\n")[1]
    assert repaired(text, frozenset({"GA106"})).text == before + EACH + after
    assert repaired(text, frozenset({"GA106"}), unsafe=False).text == text


def test_a_joined_loss_that_is_read_again_is_left() -> None:
    text = LISTED.replace("{late}", "total = sum(losses) / n\n            total.backward()\n            print(total)")
    assert repaired(text, frozenset({"GA106"})).text == text


FLUSHED = """import torch


def train(model, other, loader, criterion):
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
    for epoch in range(3):
        for i, (x, y) in enumerate(loader):
            loss = criterion({forward}, y) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        if (i + 1) % 4 != 0:
            optimizer.step()
            optimizer.zero_grad()
"""


def test_the_flush_is_scaled_by_the_length_that_its_condition_tells() -> None:
    for forward, loop in (
        ("model(x)", "            for parameter in model.parameters():\n"),
        (
            "other(model(x))",
            '            for group in optimizer.param_groups:\n                for parameter in group["params"]:\n',
        ),
    ):
        text = FLUSHED.replace("{forward}", forward)
        deep = " " * (4 * loop.count("for ") + 12)
        scale = f"{deep}if parameter.grad is not None:\n{deep}    parameter.grad *= 4 / ((i + 1) % 4)\n"
        guard = "        if (i + 1) % 4 != 0:\n"
        assert repaired(text, frozenset({"GA205"})).text == text.replace(guard, guard + loop + scale)


def test_a_fix_may_not_hide_the_weights_from_the_proof() -> None:
    """What the run cannot put a number to was not shown to be right."""
    from galint.fixes.prove import examine, proved

    source = Source("train.py", TWO_FAULTS.replace("            optimizer.zero_grad()\n", "").rstrip("\n") + (
        "\n                optimizer.zero_grad()\n"))  # fmt: skip
    diagnostic = next(d for d in lint(source, Config()).diagnostics if d.code == "GA201")
    before = examine(source, Config(), None)
    hidden = source.text.replace("loss.backward()", "(loss / undefined(model)).backward()")
    after = examine(Source("train.py", hidden), Config(), None)
    assert before is not None and after is not None
    assert not proved(diagnostic, ("the module", "base"), before, after)


SCHEDULED = """{imports}import torch
from torch.optim.lr_scheduler import LinearLR


def train(model, loader, criterion, accum: int, epochs: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = LinearLR(optimizer, total_iters={steps} * epochs)
    every = max(1, {ended})
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
{window}            loss = criterion(model(x), y) / {divisor}
            loss.backward()
            if (i + 1) % accum == 0{clause}:
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("imports", "added", "rounded"),
    [
        ("", "import math\n\n", "math.ceil(len(loader) / accum)"),
        ("import abc\nimport os\nfrom re import sub\n\n", "", "math.ceil(len(loader) / accum)"),
        ("import math as m\n\n", "import math as m\n\n", "m.ceil(len(loader) / accum)"),
        ("from math import ceil\n\n", "from math import ceil\n\n", "ceil(len(loader) / accum)"),
    ],
)
def test_a_step_for_the_last_window_is_counted_in_the_schedule(imports: str, added: str, rounded: str) -> None:
    bad = SCHEDULED.format(
        imports=imports,
        steps="len(loader) // accum",
        ended="100 // (len(loader) // accum)",
        window="",
        divisor="accum",
        clause="",
    )
    window = "            window = min(accum, len(loader) - i // accum * accum)\n"
    clause = " or i + 1 == len(loader)"
    added = added or imports.replace("import os", "import math\nimport os")
    good = SCHEDULED.format(
        imports=added, steps=rounded, ended=f"100 // {rounded}", window=window, divisor="window", clause=clause
    )
    assert [d.code for d in lint(Source("train.py", bad), Config()).diagnostics] == ["GA402"]
    assert repaired(bad, frozenset({"GA402"})).text == good


FABRIC = """import torch
from lightning.fabric import Fabric


def train(loader, criterion, args):
    fabric = Fabric(devices=4, strategy="ddp")
    model = torch.nn.Linear(4, 4)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for {index} in range({count}):
        x, y = next(loader)
{wrapped}
        if ({index} + 1) % {n} == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("index", "n", "head"),
    [
        ("i", "args.n", "with fabric.no_backward_sync(model, enabled=(i + 1) % args.n != 0):"),
        (
            "micro_batch_index",
            "args.gradient_accumulation_steps",
            "boundary = (micro_batch_index + 1) % args.gradient_accumulation_steps == 0\n"
            "        with fabric.no_backward_sync(model, enabled=not boundary):",
        ),
    ],
)
def test_fabric_has_its_own_spelling(index: str, n: str, head: str) -> None:
    deep = " " * 8
    bad = FABRIC.format(
        index=index, count=f"{n} * 8", n=n,
        wrapped=f"{deep}loss = criterion(model(x), y)\n{deep}fabric.backward(loss / {n})",
    )  # fmt: skip
    good = FABRIC.format(
        index=index, count=f"{n} * 8", n=n,
        wrapped=f"{deep}{head}\n{deep}    loss = criterion(model(x), y)\n{deep}    fabric.backward(loss / {n})",
    )  # fmt: skip
    assert [d.code for d in lint(Source("train.py", bad), Config()).diagnostics] == ["GA601"]
    assert repaired(bad, frozenset({"GA601"}), unsafe=False).text == good


WALKED = """import torch
from tqdm import tqdm


def train(model, loader, criterion, batches: int, logger):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        bar = {bar}
        for i{rest} in {over}:
            loss = criterion(model({batch})) / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("bar", "rest", "over", "batch", "length"),
    [
        ("None", ", x", "enumerate(logger.log_every(loader, 10))", "x", "len(loader)"),
        ("tqdm(range(batches), desc='a')", "", "bar", "next(loader)", "batches"),
        ("tqdm(enumerate(loader), total=9)", ", x", "bar", "x", "len(loader)"),
        ("tqdm(loader)", ", x", "enumerate(bar)", "x", "len(bar)"),
        ("None", "", "range(batches // 2)", "next(loader)", "batches // 2"),
    ],
)
def test_the_length_of_the_epoch_is_found_behind_its_bar(
    bar: str, rest: str, over: str, batch: str, length: str
) -> None:
    text = WALKED.format(bar=bar, rest=rest, over=over, batch=batch)
    assert "GA402" in {d.code for d in lint(Source("train.py", text), Config()).diagnostics}
    good = text.replace("(i + 1) % 4 == 0:", f"(i + 1) % 4 == 0 or i + 1 == {length}:").replace(") / 4", ") / window")
    indent = "            loss ="
    good = good.replace(indent, f"            window = min(4, {length} - i // 4 * 4)\n{indent}")
    assert repaired(text, frozenset({"GA402"})).text == good


OPTIONAL = """import torch

try:
    from apex import amp

    half = True
except ImportError:
    half = False


def train(model, loader, criterion, clip, scaler, n: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(n * 8):
        loss = criterion(model(next(loader)))
        if half:
            with amp.scale_loss({loss}, optimizer) as scaled:
                scaled.backward()
        else:
            {backward}
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


def test_both_branches_of_a_backward_are_divided() -> None:
    text = OPTIONAL.format(loss="loss", backward="loss.backward()")
    found = [d for d in lint(Source("train.py", text), Config()).diagnostics if d.code == "GA201"]
    assert found
    good = OPTIONAL.format(loss="loss / n", backward="(loss / n).backward()")
    assert repaired(text, frozenset({"GA201"})).text == good


CLIPPED = """import torch


def train(model, loader, criterion, clip, n: int, half: bool):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler() if half else None
    for i in range(n * 8):
        loss = criterion(model(next(loader))) / n
        if scaler:
            scaler.scale(loss).backward()
        else:
            loss.backward()
{before}        if (i + 1) % n == 0:
{inside}            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
"""
BLOCK = """        if clip:
            # the scale has to go first
            if scaler:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
"""


def test_clipping_moves_as_a_block_and_serves_both_kinds_of_step() -> None:
    text = CLIPPED.format(before=BLOCK, inside="")
    assert {d.code for d in lint(Source("train.py", text), Config()).diagnostics} >= {"GA301"}
    moved = "".join(f"    {line}\n" for line in BLOCK.splitlines())
    assert repaired(text, frozenset({"GA301", "GA303"})).text == CLIPPED.format(before="", inside=moved)


def test_a_fix_may_not_lose_the_clipping() -> None:
    """In the branch with a scaler alone, it would not serve the other kind of step."""
    from galint.fixes.prove import examine, proved

    source = Source("train.py", CLIPPED.format(before=BLOCK, inside=""))
    diagnostic = next(d for d in lint(source, Config()).diagnostics if d.code == "GA301")
    before = examine(source, Config(), None)
    good = CLIPPED.format(before="", inside="".join(f"    {line}\n" for line in BLOCK.splitlines()))
    lost = CLIPPED.format(before="", inside="").replace(
        "                scaler.step",
        "                scaler.unscale_(optimizer)\n"
        "                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)\n                scaler.step",
    )
    assert before is not None
    for text, right in ((good, True), (lost, False)):
        after = examine(Source("train.py", text), Config(), None)
        assert after is not None
        label = next(key for key in before.by_run if key[0].endswith("train"))
        assert proved(diagnostic, label, before, after) is right, text
