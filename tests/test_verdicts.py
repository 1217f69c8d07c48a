"""Small loops and what is to be said of them: each with the rule that accuses it, or with none where the code is right."""

from __future__ import annotations

import pytest

from galint.config import Config
from galint.engine import lint
from galint.source import Source

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
head = nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
"""
TRAIN = "def train(loader, n, updates):\n    for i in range(updates * n):\n        x, y = next(loader)\n"
LOSS = "        loss = nn.functional.mse_loss(net(x), y)\n"
STEP = "            opt.step()\n            opt.zero_grad()\n"
GUARD = "        if (i + 1) % n == 0:\n"


def guarded(guard: str, loss: str = "(loss / n).backward()", step: str = STEP) -> str:
    return f"{TRAIN}{LOSS}        {loss}\n        if {guard}:\n{step}"


def counting(start: str, body: str, *, n: str = "n") -> str:
    """A loop with a counter of its own: `body` counts, and says when to step."""
    return f"def train(loader, n):\n    count = {start}\n    while True:\n        x, y = next(loader)\n{LOSS}        (loss / {n}).backward()\n{body}"


COUNT = "        count += 1\n        if count {test}:\n            opt.step()\n            opt.zero_grad()\n            count = {reset}\n"


@pytest.mark.parametrize(
    ("text", "codes", "said"),
    [
        # the cadence
        (guarded("(i + 1) % n == 0"), set(), ""),
        (guarded("i % n == n - 1"), set(), ""),
        (guarded("i % n == 0"), {"GA401"}, "first window"),
        (guarded("i % n == 1"), {"GA401"}, "first window"),
        (guarded("(i + 1) % n == 1"), {"GA401"}, "first window"),
        (guarded("i % (n - 1) == 0"), {"GA401"}, ""),
        (guarded("i == n"), {"GA401"}, "never again"),
        (guarded("i % n != 0"), {"GA401"}, ""),
        (counting("0", COUNT.format(test="== n", reset="0")), set(), ""),
        (counting("0", COUNT.format(test=">= n", reset="0")), set(), ""),
        (counting("0", COUNT.format(test="> n", reset="0")), {"GA401"}, "every window has"),
        (counting("1", COUNT.format(test="== n", reset="0")), {"GA401"}, "first window"),
        (counting("0", COUNT.format(test="== n", reset="1")), {"GA401"}, "the first has"),
        # the loss
        (guarded("(i + 1) % n == 0", "loss.backward()"), {"GA201"}, ""),
        (guarded("(i + 1) % n == 0", "(loss / n / n).backward()"), {"GA202"}, "twice"),
        (guarded("(i + 1) % n == 0", "(loss * (1 / n)).backward()"), set(), ""),
        (guarded("(i + 1) % n == 0", "loss.backward(gradient=torch.tensor(1 / n))"), set(), ""),
        (guarded("(i + 1) % n == 0", "loss.sum().backward()"), {"GA201"}, ""),
        (guarded("(i + 1) % n == 0", "nn.functional.mse_loss(net(x), y, reduction='sum').backward()"), set(), ""),
        (guarded("(i + 1) % n == 0", "criterion(net(x), y, n).backward()"), set(), ""),
        (guarded("(i + 1) % n == 0", "(loss / n + net(x).abs().mean()).backward()"), {"GA204"}, ""),
        (guarded("(i + 1) % n == 0", "(loss + 0.1 * net(x).abs().mean()).backward()"), {"GA201"}, ""),
        (guarded("(i + 1) % n == 0", "loss.backward()  # reduction=sum is meant"), set(), ""),
        ("rate = 0.1\n\n\ndef train(loader, n, updates):\n    lr = rate / n\n    for i in range(updates * n):\n        x, y = next(loader)\n" + LOSS + "        loss.backward()\n" + GUARD + STEP, set(), ""),
        ("def train(loader, n, updates):\n    total_batch = 8 * n\n    base_lr = 0.1 * total_batch / 256\n    for i in range(updates * n):\n        x, y = next(loader)\n" + LOSS + "        loss.backward()\n" + GUARD + STEP, {"GA201"}, ""),
        (TRAIN + LOSS + "        loss.backward()\n        loss = loss / n\n" + GUARD + STEP, {"GA203"}, ""),
        (TRAIN + LOSS + "        loss.backward()\n" + GUARD + "            for p in net.parameters():\n                p.grad /= n\n" + STEP, set(), ""),
        (TRAIN + LOSS + "        loss.backward()\n" + GUARD + "            for group in opt.param_groups:\n                for p in group['params']:\n                    p.grad.div_(n)\n" + STEP, set(), ""),
        ("def train(loader, updates):\n    for _ in range(updates):\n        for k in range(4):\n            x, y = next(loader)\n            nn.functional.mse_loss(net(x), y).backward()\n        opt.step()\n        opt.zero_grad()\n", {"GA201"}, ""),
        ("def train(loader):\n    for micro_batches in loader:\n        for x, y in micro_batches:\n            nn.functional.mse_loss(net(x), y).backward()\n        opt.step()\n        opt.zero_grad()\n", {"GA201"}, ""),
        # clearing and stepping
        (TRAIN + "        opt.zero_grad()\n" + LOSS + "        (loss / n).backward()\n" + GUARD + "            opt.step()\n", {"GA101"}, ""),
        (TRAIN + LOSS + "        (loss / n).backward()\n" + GUARD + "            opt.step()\n", {"GA102"}, ""),
        (TRAIN + LOSS + "        (loss / n).backward()\n" + GUARD + "            opt.step()\n            net.zero_grad(set_to_none=True)\n", set(), ""),
        (TRAIN + LOSS + "        (loss / n).backward()\n" + GUARD + "            opt.step()\n            for p in net.parameters():\n                p.grad = None\n", set(), ""),
        # mixed precision
        (TRAIN + LOSS + "        scaler.scale(loss / n).backward()\n" + GUARD + "            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n", set(), ""),
        (TRAIN + LOSS + "        scaler.scale(loss / n).backward()\n" + GUARD + "            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n", {"GA302"}, ""),
        (TRAIN + LOSS + "        scaler.scale(loss / n).backward()\n        scaler.unscale_(opt)\n" + GUARD + "            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n", {"GA301"}, ""),
        (TRAIN + LOSS + "        scaler.scale(loss / n).backward()\n        scaler.update()\n" + GUARD + "            scaler.step(opt)\n            opt.zero_grad()\n", {"GA304"}, "another loss scale"),
        (TRAIN + LOSS + "        scaler.scale(loss / n).backward()\n        scaler.unscale_(opt)\n        scaler.update()\n" + GUARD + "            scaler.step(opt)\n            opt.zero_grad()\n", {"GA301"}, ""),
        (TRAIN + LOSS + "        (loss / n).backward()\n        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n" + GUARD + STEP, {"GA303"}, ""),
        # frameworks that divide
        ("from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nnet, opt = accelerator.prepare(net, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            accelerator.backward(nn.functional.mse_loss(net(x), y) / 4)\n            opt.step()\n            opt.zero_grad()\n", {"GA202"}, "`accelerator.backward`"),
        ("from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nnet, opt = accelerator.prepare(net, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            accelerator.backward(nn.functional.mse_loss(net(x), y))\n            opt.step()\n            opt.zero_grad()\n", set(), ""),
        ("import deepspeed\n\nengine, *_ = deepspeed.initialize(model=net)\n\n\ndef train(loader):\n    for x, y in loader:\n        engine.backward(nn.functional.mse_loss(engine(x), y))\n        engine.step()\n", set(), ""),
        ("import deepspeed\n\nengine, *_ = deepspeed.initialize(model=net)\n\n\ndef train(loader, args):\n    for x, y in loader:\n        engine.backward(nn.functional.mse_loss(engine(x), y) / args.gradient_accumulation_steps)\n        engine.step()\n", {"GA202"}, "DeepSpeed"),
        # several ranks
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        with model.no_sync():\n            (nn.functional.mse_loss(model(x), y) / n).backward()\n" + GUARD + STEP, {"GA603"}, "`no_sync` covers"),
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        model.require_backward_grad_sync = False\n        (nn.functional.mse_loss(model(x), y) / n).backward()\n" + GUARD + STEP, {"GA603"}, "synchronisation is off"),
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        loss = nn.functional.mse_loss(model(x), y) / n\n        model.require_backward_grad_sync = (i + 1) % n == 0\n        loss.backward()\n" + GUARD + STEP, {"GA603"}, "after the forward"),
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        model.require_backward_grad_sync = (i + 1) % n == 0\n        (nn.functional.mse_loss(model(x), y) / n).backward()\n" + GUARD + STEP, set(), ""),
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        model.require_backward_grad_sync = sync\n        (nn.functional.mse_loss(model(x), y) / n).backward()\n" + GUARD + STEP, set(), ""),
        ("import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        with model.no_sync():\n            (nn.functional.mse_loss(model(x), y) / n).backward()\n" + GUARD + "            for p in model.parameters():\n                dist.all_reduce(p.grad)\n" + STEP, set(), ""),
        ("from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n" + TRAIN + "        (nn.functional.mse_loss(net(x), y) / n).backward()\n" + GUARD + STEP, {"GA603"}, "the forward bypasses DDP"),
    ],
)  # fmt: skip
def test_a_loop_gets_the_verdict_it_deserves(text: str, codes: set[str], said: str) -> None:
    report = lint(Source("train.py", HEAD + text), Config())
    assert not report.internal_errors
    found = {d.code for d in report.diagnostics} - {"GA402"}
    assert found == codes, [d.message for d in report.diagnostics]
    assert any(said in d.message for d in report.diagnostics) or not codes
