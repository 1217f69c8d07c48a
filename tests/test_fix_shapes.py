"""Repairs in shapes that no golden has: each case is a wrong script and the lines that a person would change."""

from __future__ import annotations

from itertools import pairwise

import pytest

from galint.config import Config
from galint.engine import lint
from galint.fixes import allowed, fix_source
from galint.source import Source

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

UNDIVIDED = {
    "a helper takes the loss": (
        "def back(loss):\n    loss.backward()\n\n\n"
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(net(x), y)\n        back(loss)\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("back(loss)\n        if", "back(loss / n)\n        if")],
    ),
    "a helper takes the loss by keyword": (
        "def back(loss, log=False):\n    loss.backward()\n\n\n"
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(net(x), y)\n        back(log=True, loss=loss)\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("loss=loss", "loss=loss / n")],
    ),
    "the loss is an expression": (
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        (net(x) - y).pow(2).mean().backward()\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("(net(x) - y).pow(2).mean().backward()", "((net(x) - y).pow(2).mean() / n).backward()")],
    ),
    "the loss is in an output": (
        "def train(loader, args):\n    for i, batch in enumerate(loader):\n        out = net(**batch)\n        out['loss'].backward()\n"
        "        if (i + 1) % args.accum == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("out['loss'].backward()", "(out['loss'] / args.accum).backward()")],
    ),
    "the loss goes to autograd": (
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        torch.autograd.backward(nn.functional.mse_loss(net(x), y))\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("backward(nn.functional.mse_loss(net(x), y))", "backward(nn.functional.mse_loss(net(x), y) / n)")],
    ),
    "the loss is scaled": (
        "scaler = torch.amp.GradScaler('cuda')\n\n\ndef train(loader, n):\n    for i, (x, y) in enumerate(loader):\n"
        "        loss = nn.functional.mse_loss(net(x), y)\n        scaler.scale(loss).backward()\n"
        "        if (i + 1) % n == 0:\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
        [("scaler.scale(loss)", "scaler.scale(loss / n)")],
    ),
    "an inner loop": (
        "def train(loader, micro, updates):\n    for _ in range(updates):\n        for _ in range(micro):\n            x, y = next(loader)\n"
        "            nn.functional.mse_loss(net(x), y).backward()\n        opt.step()\n        opt.zero_grad()\n",
        [("nn.functional.mse_loss(net(x), y).backward()", "(nn.functional.mse_loss(net(x), y) / micro).backward()")],
    ),
    "a literal window": (
        "def train(loader):\n    for i, (x, y) in enumerate(loader, 1):\n        loss = nn.functional.mse_loss(net(x), y)\n        loss.backward()\n"
        "        if not i % 8:\n            opt.step()\n            opt.zero_grad()\n",
        [("loss.backward()", "(loss / 8).backward()")],
    ),
    "a sum in parentheses": (
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        a = nn.functional.mse_loss(net(x), y)\n        b = net(x).abs().mean()\n"
        "        (a + b).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("(a + b).backward()", "((a + b) / n).backward()")],
    ),
}  # fmt: skip

GUARD = (
    "def train(loader, n):\n    opt.zero_grad()\n    for i, (x, y) in enumerate(loader):\n        (nn.functional.mse_loss(net(x), y) / n).backward()\n"
    "        if {guard}:\n            opt.step()\n            opt.zero_grad()\n"
)
CADENCES = {
    guard: (GUARD.format(guard=guard), [(f"if {guard}:", f"if {fixed}:")])
    for guard, fixed in [
        ("i % n == 0", "(i + 1) % n == 0"),
        ("not i % n", "(i + 1) % n == 0"),
        ("i % n == 0 and i != 0", "(i + 1) % n == 0"),
        ("i > 0 and i % n == 0", "(i + 1) % n == 0"),
        ("i and i % n == 0", "(i + 1) % n == 0"),
        ("(i + 2) % n == 0", "(i + 1) % n == 0"),
        ("(i + 1) % n != 0", "(i + 1) % n == 0"),
        ("(i + 1) % n", "(i + 1) % n == 0"),
        ("(i + 1) % n > 0", "(i + 1) % n == 0"),
    ]
}
COUNTED = {
    "a counter that starts at one": (
        "def train(loader, n):\n    count = 1\n    for x, y in loader:\n        (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "        count += 1\n        if count % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("count = 1\n", "count = 0\n")],
    ),
    "a counter compared with one too many": (
        "def train(loader, n):\n    count = 0\n    for x, y in loader:\n        (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "        count += 1\n        if count > n:\n            opt.step()\n            opt.zero_grad()\n            count = 0\n",
        [("count > n", "count >= n")],
    ),
    "a distance that is one too long": (
        "def train(loader, n):\n    last = -1\n    for i, (x, y) in enumerate(loader):\n        (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "        if i - last > n:\n            opt.step()\n            opt.zero_grad()\n            last = i\n",
        [("i - last > n", "i - last >= n")],
    ),
}  # fmt: skip

DEAD = {
    "an assignment": ("loss.backward()\n        loss = loss / n\n", "loss = loss / n\n        loss.backward()\n"),
    "in place": ("loss.backward()\n        loss /= n\n", "loss /= n\n        loss.backward()\n"),
    "a method": ("loss.backward()\n        loss.div_(n)\n", "loss.div_(n)\n        loss.backward()\n"),
    "under a condition of its own": (
        "loss.backward()\n        if n > 1:\n            loss = loss / n\n",
        "if n > 1:\n            loss = loss / n\n        loss.backward()\n",
    ),
}
DEADLY = {
    name: (
        f"def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(net(x), y)\n        {wrong}"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [(wrong, right)],
    )
    for name, (wrong, right) in DEAD.items()
}

WRAPPED = (
    "from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n"
    "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        {body}"
    "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
)
IMPORTED = ("import torch\nfrom torch", "from contextlib import nullcontext\n\nimport torch\nfrom torch")
LOSS = "loss = nn.functional.mse_loss(model(x), y) / n\n"
HEADER = "with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n"
SYNCED = {
    "forward and backward follow each other": (
        WRAPPED.format(body=f"{LOSS}        loss.backward()\n"),
        [IMPORTED, (f"{LOSS}        loss.backward()\n", f"{HEADER}            {LOSS}            loss.backward()\n")],
    ),
    "the context is around backward only": (
        WRAPPED.format(body=f"{LOSS}        {HEADER}            loss.backward()\n").replace("from torch.nn.p", "from contextlib import nullcontext\nfrom torch.nn.p"),
        [(f"{LOSS}        {HEADER}", f"{HEADER}            {LOSS}")],
    ),
}  # fmt: skip

CASES = (
    [("GA201", name, case) for name, case in UNDIVIDED.items()]
    + [("GA401", name, case) for name, case in (CADENCES | COUNTED).items()]
    + [("GA203", name, case) for name, case in DEADLY.items()]
    + [("GA601,GA602", name, case) for name, case in SYNCED.items()]
)


@pytest.mark.parametrize(
    ("codes", "wrong", "changes"), [(c, *case) for c, _, case in CASES], ids=[f"{c}-{n}" for c, n, _ in CASES]
)
def test_a_repair_changes_what_a_person_would(codes: str, wrong: str, changes: list[tuple[str, str]]) -> None:
    text = wanted = HEAD + wrong
    for old, new in changes:
        assert wanted.count(old) == 1, old
        wanted = wanted.replace(old, new)
    chosen = frozenset(codes.split(","))
    assert any(d.code in chosen for d in lint(Source("train.py", text), Config()).diagnostics), "nothing to repair"
    fixed = fix_source(Source("train.py", text), Config(), None, allowed(True, chosen))
    assert fixed.text == wanted
    assert not [d for d in fixed.report.diagnostics if d.code in chosen]


NOT_OFFERED = {
    "N is not visible in the caller": (
        "GA201",
        "def back(loss):\n    loss.backward()\n\n\ndef one(x, y):\n    back(nn.functional.mse_loss(net(x), y))\n\n\n"
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        one(x, y)\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
    ),
    "the loss is made in the helper": (
        "GA201",
        "def back(x, y):\n    loss = nn.functional.mse_loss(net(x), y)\n    loss.backward()\n\n\n"
        "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        back(x, y)\n"
        "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
    ),
}


@pytest.mark.parametrize(("code", "wrong"), NOT_OFFERED.values(), ids=NOT_OFFERED.keys())
def test_what_cannot_be_repaired_is_left_alone(code: str, wrong: str) -> None:
    text = HEAD + wrong
    assert any(d.code == code for d in lint(Source("train.py", text), Config()).diagnostics)
    assert fix_source(Source("train.py", text), Config(), None, allowed(True, frozenset({code}))).text == text


def test_cases_have_names_of_their_own() -> None:
    names = sorted(f"{c} {n}" for c, n, _ in CASES)
    assert all(a != b for a, b in pairwise(names))
