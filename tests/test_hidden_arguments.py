"""Calls whose arguments the code hides (`*given`, a list, nothing at all): galint stays calm, and accuses nobody."""

from __future__ import annotations

import pytest

from galint.config import Config
from galint.diagnostic import Severity
from galint.engine import lint
from galint.source import Source

HEAD = """\
import torch
from torch import nn

net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
ACCELERATE = "from accelerate import Accelerator\naccelerator = Accelerator(gradient_accumulation_steps=4)\n"
DEEPSPEED = "import deepspeed\nengine, *others = deepspeed.initialize(model=net, optimizer=opt)\n"
SCALER = "scaler = torch.amp.GradScaler('cuda')\n"
MMENGINE = "from mmengine.optim import OptimWrapper\nwrapper = OptimWrapper(opt, accumulative_counts=4)\n"
LOOP = "def train(loader, given, options):\n    for i, (x, y) in enumerate(loader):\n"
LOSS = "        loss = nn.functional.mse_loss(net(x), y) / 4\n"
END = "        if (i + 1) % 4 == 0 or i + 1 == len(loader):\n            opt.step()\n            opt.zero_grad()\n"
PLAIN = LOOP + "{}\n" + LOSS + "        loss.backward()\n" + END

CALLS: dict[str, str] = {
    "accelerator.backward(*given)": ACCELERATE
    + "net, opt = accelerator.prepare(net, opt)\n"
    + LOOP
    + "        with accelerator.accumulate(net):\n            loss = nn.functional.mse_loss(net(x), y)\n            accelerator.backward(*given)\n            opt.step()\n            opt.zero_grad()\n",
    "accelerator.backward()": ACCELERATE
    + "net, opt = accelerator.prepare(net, opt)\n"
    + LOOP
    + "        with accelerator.accumulate(net):\n            accelerator.backward()\n            opt.step()\n            opt.zero_grad()\n",
    "accelerator.prepare(*given)": ACCELERATE
    + "net, opt, *rest = accelerator.prepare(net, opt, *things)\n"
    + LOOP
    + "        with accelerator.accumulate(net):\n            accelerator.backward(nn.functional.mse_loss(net(x), y))\n            opt.step()\n            opt.zero_grad()\n",
    "engine.backward()": DEEPSPEED + LOOP + "        engine.backward()\n        engine.step()\n",
    "engine.backward(**options)": DEEPSPEED + LOOP + "        engine.backward(**options)\n        engine.step(*given)\n",
    "scaler.scale(*given)": SCALER
    + LOOP
    + "        scaler.scale(*given).backward()\n        if (i + 1) % 4 == 0:\n            scaler.step(*given)\n            scaler.update()\n            opt.zero_grad()\n",
    "scaler.scale of a list": SCALER
    + LOOP
    + LOSS
    + "        a, b = scaler.scale([loss, 0.5])\n        a.backward()\n        if (i + 1) % 4 == 0 or i + 1 == len(loader):\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
    "amp.scale_loss of a number": "from apex import amp\n"
    + LOOP
    + "        with amp.scale_loss(0.0, opt) as scaled:\n            pass\n"
    + LOSS
    + "        loss.backward()\n"
    + END,
    "a context entered by hand": PLAIN.format(
        "        section = torch.autocast('cuda')\n        section.__enter__()\n        section.__exit__(None, None, None)\n        given.__enter__()\n        given.__exit__(None, None, None)"
    ),
    "a stack that gives its contexts away": PLAIN.format(
        "        from contextlib import ExitStack\n        stack = ExitStack()\n        stack.enter_context(torch.autocast('cuda'))\n        kept = stack.pop_all()\n        other = given.pop_all()\n        kept.close()"
    ),
    "wrapper.update_params()": MMENGINE
    + LOOP
    + "        wrapper.update_params(nn.functional.mse_loss(net(x), y))\n        wrapper.update_params(*given)\n",
    "wrapper.scale_loss(**options)": MMENGINE
    + LOOP
    + LOSS
    + "        loss = wrapper.scale_loss(**options)\n        wrapper.backward(**options)\n        if wrapper.should_sync():\n            print(i)\n        if wrapper.should_update():\n            wrapper.step()\n            wrapper.zero_grad()\n",
    "wrapper.optim_context": MMENGINE
    + LOOP
    + "        with wrapper.optim_context(net):\n            loss = nn.functional.mse_loss(net(x), y)\n        wrapper.update_params(loss)\n        wrapper.initialize_count_status(net, 0, 100)\n",
    "torch.div(*given)": PLAIN.format("        ratio = torch.div(*given)\n        other = torch.mul(x)\n        third = x.mul()"),
    "gradients asked of nothing": PLAIN.format(
        "        given.grad.clone()\n        given.zero_()\n        torch.sum(given)\n        torch.mean(*given)\n        torch.full_like(*given)\n        torch.chunk()\n        torch.chunk(5, 2)"
    ),
    "isinstance(*given)": PLAIN.format("        if isinstance(*given):\n            print(i)"),
    "range(*given)": PLAIN.format("        for k in range(*given):\n            print(k)\n        for k in range():\n            print(k)"),
    "next(*given)": PLAIN.format(
        "        a = next(*given)\n        b = iter(*given)\n        c = list(filter(*given))\n        import itertools\n        d = itertools.islice(*given)\n        e = given.__next__()"
    ),
    "torch.compile(*given)": PLAIN.format("        made = torch.compile(*given)\n        given.requires_grad_(False)\n        given.train()\n        given.eval()"),
    "a data loader of nothing": PLAIN.format(
        "        a = torch.utils.data.DataLoader(*given)\n        b = torch.utils.data.TensorDataset(*given)\n        c = torch.utils.data.DataLoader(b, batch_sampler=given)"
    ),
    "a criterion of numbers": PLAIN.format("        nothing = nn.MSELoss()(1.0, 2.0)\n        more = nn.CrossEntropyLoss()(*given)"),
    "a namespace of a namespace": PLAIN.format(
        "        from types import SimpleNamespace\n        made = SimpleNamespace(**options)\n        print(made.n)"
    ),
    "fully_shard(*given)": "from torch.distributed.fsdp import fully_shard\n" + PLAIN.format("        fully_shard(*given)"),
    "backward of a list": LOOP + "        [nn.functional.mse_loss(net(x), y)].backward()\n" + END,
    "an engine of ignite without a function": "from ignite.engine import Engine\nengine = Engine(*things)\nengine.run()\n"
    + PLAIN.format("        pass"),
    "optimizers of a lightning module that is none": "import lightning as L\ndef optimizers(self):\n    return L.LightningModule.optimizers(self)\n"
    + PLAIN.format("        given.lr_schedulers()\n        given.optimizers()"),
    "a wrapper of an optimizer": "from horovod.torch import DistributedOptimizer\nopt = DistributedOptimizer(opt, named_parameters=net.named_parameters())\n"
    + PLAIN.format("        pass"),
}  # fmt: skip


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_hidden_arguments_are_no_fault(text: str) -> None:
    compile(text, "script", "exec")
    report = lint(Source("train.py", HEAD + text), Config())
    assert report.loops and not report.internal_errors
    assert [d for d in report.diagnostics if d.severity is not Severity.NOTE] == []
