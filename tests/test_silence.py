"""Loops on the edge of a rule, each with exactly what galint says of it; most are right, and it says nothing."""

from __future__ import annotations

import pytest

from galint.config import Config
from galint.engine import lint
from galint.source import Source

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
FOR = "def train(loader, n, given):\n    for i, (x, y) in enumerate(loader):\n"
LOSS = "        loss = nn.functional.mse_loss(net(x), y) / n\n"
BACK = "        loss.backward()\n"
STEP = "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
NORM = "class Net(nn.Module):\n    def __init__(self{0}):\n        super().__init__()\n        {1}\n\n    def forward(self, x):\n        return self.layer(x)\n\nnet = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
SMALL = (
    "loader = torch.utils.data.DataLoader(data, batch_size=2)\ndef train(n):\n    for i, (x, y) in enumerate(loader):\n"
)
DDP = "from contextlib import nullcontext\nmodel = torch.nn.parallel.DistributedDataParallel(net)\n"
EMA = "average = torch.optim.swa_utils.AveragedModel(net)\n"
SC = "scaler = torch.amp.GradScaler('cuda')\n"
TAIL = ["GA402"]

CASES: dict[str, tuple[str, list[str]]] = {
    # GA105
    "a hook in a lambda steps": (
        FOR.replace("    for", "    for p in net.parameters():\n        p.register_post_accumulate_grad_hook(lambda p: opt.step())\n    for")
        + "        for _ in range(4):\n            (nn.functional.mse_loss(net(x), y) / 4).backward()\n        opt.zero_grad()\n",
        ["GA105"],
    ),
    "a hook in a lambda looks only": (
        FOR.replace("    for", "    for p in net.parameters():\n        p.register_post_accumulate_grad_hook(lambda p: print(p.grad))\n    for")
        + LOSS + BACK + STEP,
        TAIL,
    ),
    # GA202
    "N of an Accelerator that was told none": (
        "from accelerate import Accelerator\naccelerator = Accelerator()\nnet, opt = accelerator.prepare(net, opt)\n"
        "def train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            loss = nn.functional.mse_loss(net(x), y)\n"
        "            accelerator.backward(loss / accelerator.gradient_accumulation_steps)\n            opt.step()\n            opt.zero_grad()\n",
        ["GA701"],
    ),
    # GA204
    "a term that may be divided elsewhere": (
        FOR + "        loss = nn.functional.mse_loss(net(x), y) / n + given(net(x), n)\n" + BACK + STEP,
        TAIL,
    ),
    # GA302, GA304
    "an update of a scaler that scales nothing": (SC + FOR + LOSS + BACK + STEP + "        scaler.update()\n", TAIL),
    # GA401
    "a counter that a caller moves": (
        "class Trainer:\n    def run(self, loader, n):\n        for x, y in loader:\n            (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "            if (self.count + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n",
        [],
    ),
    "a guard that never lets a step through": (
        "def train(loader):\n    k = 0\n    for x, y in loader:\n        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        k = k + 2\n"
        "        if k % 4 == 1:\n            opt.step()\n            opt.zero_grad()\n",
        ["GA401"],
    ),
    # GA405
    "an average with an interval of its own": (
        EMA + FOR + LOSS + BACK + STEP + "        if i % 100 == 0:\n            average.update_parameters(net)\n",
        TAIL,
    ),
    "an average updated on every micro-batch of many": (
        EMA + FOR + LOSS + BACK + STEP + "        average.update_parameters(net)\n",
        [*TAIL, "GA405"],
    ),
    # GA501
    "BatchNorm by a partial": (
        NORM.format("", "make = functools.partial(nn.BatchNorm2d, eps=1e-3)\n        self.layer = make(8)") + "import functools\n"
        + SMALL + LOSS + BACK + STEP,
        ["GA402", "GA501"],
    ),
    "BatchNorm by a name": (
        NORM.format("", "norm = nn.BatchNorm2d\n        self.layer = norm(8)") + SMALL + LOSS + BACK + STEP,
        ["GA402", "GA501"],
    ),
    "BatchNorm by a default": (
        NORM.format(", norm=nn.BatchNorm2d", "self.layer = norm(8)") + SMALL + LOSS + BACK + STEP,
        ["GA402", "GA501"],
    ),
    "BatchNorm that is frozen by its name": (
        NORM.format("", "self.layer = nn.BatchNorm2d(8)")
        + "for part in net.modules():\n    if type(part).__name__ == 'BatchNorm2d':\n        part.eval()\n" + SMALL + LOSS + BACK + STEP,
        TAIL,
    ),
    # GA601, GA603
    "synchronised once in four of a window of eight": (
        DDP + FOR
        + "        with nullcontext() if (i + 1) % 4 == 0 else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / 8\n            loss.backward()\n"
        + STEP.replace("% n", "% 8"),
        TAIL,
    ),
    "switched by something unseen": (
        DDP + FOR + "        model.require_backward_grad_sync = given(i)\n        loss = nn.functional.mse_loss(model(x), y) / n\n" + BACK + STEP,
        TAIL,
    ),
    "half of the forwards around the wrapper": (
        DDP + FOR
        + "        loss = nn.functional.mse_loss(model(x), y) / n + net(x).mean() / n\n" + BACK + STEP,
        TAIL,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "codes"), CASES.values(), ids=CASES.keys())
def test_the_edge_of_a_rule(text: str, codes: list[str]) -> None:
    compile(text, "script", "exec")
    report = lint(Source("train.py", HEAD + text), Config())
    assert not report.internal_errors
    assert sorted(d.code for d in report.diagnostics) == codes
