"""Repairs in the forms that loops are written in: mixed precision, wrappers, clipping, flags, each beside what a person writes."""

from __future__ import annotations

import pytest
from test_fix_shapes import HEAD

from galint.config import Config
from galint.diagnostic import Applicability
from galint.engine import lint
from galint.fixes import allowed, fix_source
from galint.source import Source

L = "        loss = nn.functional.mse_loss(net(x), y)\n"
FOR = "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n"
STEP = "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
SC = "scaler = torch.amp.GradScaler('cuda')\n\n\n"
SL = L + "        scaler.scale(loss / n).backward()\n"
SSTEP = "        if (i + 1) % n == 0:\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n"
ACC = "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nnet, opt = accelerator.prepare(net, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            loss = nn.functional.mse_loss(net(x), y)\n            accelerator.backward(loss)\n"
DDP = "from torch.nn.parallel import DistributedDataParallel\n\nmodel = DistributedDataParallel(net)\n\n\n"
FAB = "from lightning.fabric import Fabric\n\nfabric = Fabric()\nmodel, opt = fabric.setup(net, opt)\n\n\n"

CASES: dict[str, dict[str, tuple[str, list[tuple[str, str]]]]] = {
    "GA202": {
        "gradients divided in place": (
            FOR
            + L
            + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            for p in net.parameters():\n                p.grad.div_(n)\n            opt.step()\n            opt.zero_grad()\n",
            [("            for p in net.parameters():\n                p.grad.div_(n)\n", "")],
        ),
        "gradients divided under a test": (
            FOR
            + L
            + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            for p in net.parameters():\n                if p.grad is not None:\n                    p.grad /= n\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "            for p in net.parameters():\n                if p.grad is not None:\n                    p.grad /= n\n",
                    "",
                )
            ],
        ),
        "statement and expression": (
            FOR + L + "        loss = loss / n\n        (loss / n).backward()\n" + STEP,
            [("        loss = loss / n\n", "")],
        ),
        "augmented and expression": (
            FOR + L + "        loss /= n\n        (loss / n).backward()\n" + STEP,
            [("        loss /= n\n", "")],
        ),
        "two expressions": (
            FOR + "        loss = nn.functional.mse_loss(net(x), y) / n\n        (loss / n).backward()\n" + STEP,
            [
                (
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n",
                )
            ],
        ),
        "read later": (
            FOR + L + "        loss = loss / n\n        (loss / n).backward()\n        print(loss.item())\n" + STEP,
            [("        loss = loss / n\n", "")],
        ),
    },
    "GA204": {
        "first term": (
            FOR + L + "        loss = loss / n + net(x).abs().mean()\n        loss.backward()\n" + STEP,
            [("        loss = loss / n + net(x).abs().mean()\n", "        loss = (loss + net(x).abs().mean()) / n\n")],
        ),
        "both spelled in backward": (
            FOR + L + "        (loss / n + net(x).abs().mean()).backward()\n" + STEP,
            [
                (
                    "        (loss / n + net(x).abs().mean()).backward()\n",
                    "        ((loss + net(x).abs().mean()) / n).backward()\n",
                )
            ],
        ),
        "added after": (
            FOR
            + L
            + "        loss = loss / n\n        loss = loss + net(x).abs().mean()\n        loss.backward()\n"
            + STEP,
            [
                (
                    "        loss = loss / n\n        loss = loss + net(x).abs().mean()\n",
                    "        loss = (loss + net(x).abs().mean()) / n\n",
                )
            ],
        ),
        "plus equals after": (
            FOR + L + "        loss /= n\n        loss += net(x).abs().mean()\n        loss.backward()\n" + STEP,
            [
                ("        loss += net(x).abs().mean()\n", ""),
                (
                    "        loss = nn.functional.mse_loss(net(x), y)\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n        loss += net(x).abs().mean()\n",
                ),
            ],
        ),
        "three terms": (
            FOR + L + "        (loss / n + net(x).abs().mean() + net(x).pow(2).mean() / n).backward()\n" + STEP,
            [
                (
                    "        (loss / n + net(x).abs().mean() + net(x).pow(2).mean() / n).backward()\n",
                    "        ((loss + net(x).abs().mean() + net(x).pow(2).mean()) / n).backward()\n",
                )
            ],
        ),
    },
    "GA301": {
        "unscale alone": (
            SC + FOR + SL + "        scaler.unscale_(opt)\n" + SSTEP,
            [
                ("        scaler.unscale_(opt)\n", ""),
                ("        if (i + 1) % n == 0:\n", "        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n"),
            ],
        ),
        "unscale and clip": (
            SC
            + FOR
            + SL
            + "        scaler.unscale_(opt)\n        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
            + SSTEP,
            [
                ("        scaler.unscale_(opt)\n        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", ""),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                ),
            ],
        ),
        "in an if": (
            SC
            + "def train(loader, n, clip):\n    for i, (x, y) in enumerate(loader):\n"
            + SL
            + "        if clip:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n"
            + SSTEP,
            [
                (
                    "        if clip:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n",
                    "",
                ),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            if clip:\n                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n",
                ),
            ],
        ),
        "in nested ifs": (
            SC
            + "def train(loader, n, clip):\n    for i, (x, y) in enumerate(loader):\n"
            + SL
            + "        if scaler:\n            if clip:\n                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n"
            + SSTEP,
            [
                (
                    "        if scaler:\n            if clip:\n                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n",
                    "",
                ),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            if scaler:\n                if clip:\n                    scaler.unscale_(opt)\n                    nn.utils.clip_grad_norm_(net.parameters(), clip)\n",
                ),
            ],
        ),
        "clip is under the guard": (
            SC
            + FOR
            + SL
            + "        scaler.unscale_(opt)\n        if (i + 1) % n == 0:\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
            [
                ("        scaler.unscale_(opt)\n", ""),
                ("        if (i + 1) % n == 0:\n", "        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n"),
            ],
        ),
    },
    "GA302": {
        "unscaled too late": (
            SC
            + FOR
            + SL
            + "        if (i + 1) % n == 0:\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            scaler.unscale_(opt)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
            [
                ("            scaler.unscale_(opt)\n", ""),
                ("        if (i + 1) % n == 0:\n", "        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n"),
            ],
        ),
        "never unscaled": (
            SC
            + FOR
            + SL
            + "        if (i + 1) % n == 0:\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
            [("        if (i + 1) % n == 0:\n", "        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n")],
        ),
        "clip under a test": (
            SC
            + "def train(loader, n, clip):\n    for i, (x, y) in enumerate(loader):\n"
            + SL
            + "        if (i + 1) % n == 0:\n            if clip:\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n            scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
            [("            if clip:\n", "            if clip:\n                scaler.unscale_(opt)\n")],
        ),
        "two optimizers": (
            SC
            + "head = nn.Linear(1, 1)\nopt2 = torch.optim.SGD(head.parameters(), lr=0.1)\n\n\n"
            + FOR
            + "        loss = nn.functional.mse_loss(head(net(x)), y)\n        scaler.scale(loss / n).backward()\n        if (i + 1) % n == 0:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_([*net.parameters(), *head.parameters()], 1.0)\n            scaler.step(opt)\n            scaler.step(opt2)\n            scaler.update()\n            opt.zero_grad()\n            opt2.zero_grad()\n",
            [
                (
                    "            scaler.unscale_(opt)\n",
                    "            scaler.unscale_(opt)\n            scaler.unscale_(opt2)\n",
                )
            ],
        ),
    },
    "GA303": {
        "clip alone": (
            FOR + L + "        (loss / n).backward()\n        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n" + STEP,
            [
                ("        nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", ""),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                ),
            ],
        ),
        "clip in an if": (
            "def train(loader, n, clip):\n    for i, (x, y) in enumerate(loader):\n"
            + L
            + "        (loss / n).backward()\n        if clip:\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n"
            + STEP,
            [
                ("        if clip:\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n", ""),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            if clip:\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n",
                ),
            ],
        ),
        "clip under accelerate": (
            ACC
            + "            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                    "            if accelerator.sync_gradients:\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                )
            ],
        ),
        "accelerator clips": (
            ACC
            + "            accelerator.clip_grad_norm_(net.parameters(), 1.0)\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "            accelerator.clip_grad_norm_(net.parameters(), 1.0)\n",
                    "            if accelerator.sync_gradients:\n                accelerator.clip_grad_norm_(net.parameters(), 1.0)\n",
                )
            ],
        ),
        "norm kept unread": (
            FOR
            + L
            + "        (loss / n).backward()\n        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
            + STEP,
            [
                ("        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", ""),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                ),
            ],
        ),
        "two branches": (
            SC
            + "def train(loader, n, amp):\n    for i, (x, y) in enumerate(loader):\n"
            + L
            + "        if amp:\n            scaler.scale(loss / n).backward()\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n        else:\n            (loss / n).backward()\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n        if (i + 1) % n == 0:\n            if amp:\n                scaler.step(opt)\n                scaler.update()\n            else:\n                opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                    "            scaler.unscale_(opt)\n",
                ),
                (
                    "            (loss / n).backward()\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                    "            (loss / n).backward()\n",
                ),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            if amp:\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            else:\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                ),
            ],
        ),
        "two plain branches": (
            "def train(loader, n, big):\n    for i, (x, y) in enumerate(loader):\n"
            + L
            + "        if big:\n            (loss / n).backward()\n            nn.utils.clip_grad_norm_(net.parameters(), 9.0)\n        else:\n            (loss / n).backward()\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
            + STEP,
            [
                ("            nn.utils.clip_grad_norm_(net.parameters(), 9.0)\n", ""),
                ("            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", ""),
                (
                    "        if (i + 1) % n == 0:\n",
                    "        if (i + 1) % n == 0:\n            if big:\n                nn.utils.clip_grad_norm_(net.parameters(), 9.0)\n            else:\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n",
                ),
            ],
        ),
    },
    "GA304": {
        "update every micro-batch": (
            SC
            + FOR
            + SL
            + "        if (i + 1) % n == 0:\n            scaler.step(opt)\n            opt.zero_grad()\n        scaler.update()\n",
            [
                ("        scaler.update()\n", ""),
                ("            scaler.step(opt)\n", "            scaler.step(opt)\n            scaler.update()\n"),
            ],
        ),
        "update before": (
            SC
            + FOR
            + SL
            + "        scaler.update()\n        if (i + 1) % n == 0:\n            scaler.step(opt)\n            opt.zero_grad()\n",
            [
                ("        scaler.update()\n", ""),
                ("            scaler.step(opt)\n", "            scaler.step(opt)\n            scaler.update()\n"),
            ],
        ),
    },
    "GA101": {
        "module under accelerate": (
            ACC + "            opt.step()\n            net.zero_grad()\n",
            [("            net.zero_grad()\n", "            opt.zero_grad()\n")],
        ),
        "by hand": (
            FOR
            + "        for param in net.parameters():\n            param.grad = None\n"
            + L
            + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n",
            [
                ("        for param in net.parameters():\n            param.grad = None\n", ""),
                (
                    "            opt.step()\n",
                    "            opt.step()\n            for param in net.parameters():\n                param.grad = None\n",
                ),
            ],
        ),
        "by hand under a test": (
            FOR
            + "        for param in net.parameters():\n            if param.grad is not None:\n                param.grad.zero_()\n"
            + L
            + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n",
            [
                (
                    "        for param in net.parameters():\n            if param.grad is not None:\n                param.grad.zero_()\n",
                    "",
                ),
                (
                    "            opt.step()\n",
                    "            opt.step()\n            for param in net.parameters():\n                if param.grad is not None:\n                    param.grad.zero_()\n",
                ),
            ],
        ),
        "needless": (
            FOR + "        opt.zero_grad()\n" + L + "        (loss / n).backward()\n" + STEP,
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n        opt.zero_grad()\n",
                    "    for i, (x, y) in enumerate(loader):\n",
                )
            ],
        ),
        "amp branches": (
            SC
            + "def train(loader, n, amp):\n    for i, (x, y) in enumerate(loader):\n        opt.zero_grad()\n"
            + L
            + "        if amp:\n            scaler.scale(loss / n).backward()\n        else:\n            (loss / n).backward()\n        if (i + 1) % n == 0:\n            if amp:\n                scaler.step(opt)\n                scaler.update()\n            else:\n                opt.step()\n",
            [
                ("        opt.zero_grad()\n", ""),
                ("                opt.step()\n", "                opt.step()\n            opt.zero_grad()\n"),
            ],
        ),
    },
    "GA102": {
        "none": (
            FOR + L + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n",
            [("            opt.step()\n", "            opt.step()\n            opt.zero_grad()\n")],
        ),
        "with scaler": (
            SC + FOR + SL + "        if (i + 1) % n == 0:\n            scaler.step(opt)\n            scaler.update()\n",
            [("            scaler.update()\n", "            scaler.update()\n            opt.zero_grad()\n")],
        ),
        "other cleared": (
            "head = nn.Linear(1, 1)\nopt2 = torch.optim.SGD(head.parameters(), lr=0.1)\n\n\n"
            + FOR
            + "        loss = nn.functional.mse_loss(head(net(x)), y)\n        (loss / n).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n            opt2.step()\n            opt.zero_grad()\n",
            [("            opt.zero_grad()\n", "            opt.zero_grad()\n            opt2.zero_grad()\n")],
        ),
        "the wrong one cleared": (
            "other = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)\n\n\n"
            + FOR
            + L
            + "        (loss / n).backward()\n        if (i + 1) % n == 0:\n            opt.step()\n            other.zero_grad(set_to_none=True)\n",
            [("            other.zero_grad(set_to_none=True)\n", "            opt.zero_grad(set_to_none=True)\n")],
        ),
    },
    "GA203": {
        "scaled and logged": (
            FOR + L + "        loss.backward()\n        print(loss.item())\n        loss = loss / n\n" + STEP,
            [("        loss.backward()\n", "        (loss / n).backward()\n")],
        ),
        "two branches": (
            SC
            + "def train(loader, n, amp):\n    for i, (x, y) in enumerate(loader):\n"
            + L
            + "        if amp:\n            scaler.scale(loss).backward()\n        else:\n            loss.backward()\n        loss = loss / n\n        if (i + 1) % n == 0:\n            if amp:\n                scaler.step(opt)\n                scaler.update()\n            else:\n                opt.step()\n            opt.zero_grad()\n",
            [
                ("        loss = loss / n\n", ""),
                (
                    "        loss = nn.functional.mse_loss(net(x), y)\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n        loss = loss / n\n",
                ),
            ],
        ),
    },
    "GA201": {
        "two branches": (
            SC
            + "def train(loader, n, amp):\n    for i, (x, y) in enumerate(loader):\n"
            + L
            + "        if amp:\n            scaler.scale(loss).backward()\n        else:\n            loss.backward()\n        if (i + 1) % n == 0:\n            if amp:\n                scaler.step(opt)\n                scaler.update()\n            else:\n                opt.step()\n            opt.zero_grad()\n",
            [
                ("            scaler.scale(loss).backward()\n", "            scaler.scale(loss / n).backward()\n"),
                ("            loss.backward()\n", "            (loss / n).backward()\n"),
            ],
        ),
        "apex": (
            "from apex import amp\n\nnet, opt = amp.initialize(net, opt)\n\n\n"
            + FOR
            + L
            + "        with amp.scale_loss(loss, opt) as scaled:\n            scaled.backward()\n"
            + STEP,
            [
                (
                    "        with amp.scale_loss(loss, opt) as scaled:\n",
                    "        with amp.scale_loss(loss / n, opt) as scaled:\n",
                )
            ],
        ),
        "a method takes it": (
            "class T:\n    def back(self, loss):\n        loss.backward()\n\n    def train(self, loader, n):\n        for i, (x, y) in enumerate(loader):\n            loss = nn.functional.mse_loss(net(x), y)\n            self.back(loss)\n            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n",
            [("            self.back(loss)\n", "            self.back(loss / n)\n")],
        ),
    },
    "GA601": {
        "micro loop": (
            DDP
            + "def train(loader, n):\n    for _ in range(100):\n        for k in range(n):\n            x, y = next(loader)\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                    "            with nullcontext() if k == n - 1 else model.no_sync():\n                loss = nn.functional.mse_loss(model(x), y) / n\n                loss.backward()\n",
                ),
            ],
        ),
        "micro loop unnamed": (
            DDP
            + "def train(loader, n):\n    for _ in range(100):\n        for _ in range(n):\n            x, y = next(loader)\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                ("        for _ in range(n):\n", "        for micro_step in range(n):\n"),
                (
                    "            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                    "            with nullcontext() if micro_step == n - 1 else model.no_sync():\n                loss = nn.functional.mse_loss(model(x), y) / n\n                loss.backward()\n",
                ),
            ],
        ),
        "list of micro-batches": (
            DDP
            + "def train(loader):\n    for parts in loader:\n        for k, (x, y) in enumerate(parts):\n            loss = nn.functional.mse_loss(model(x), y) / len(parts)\n            loss.backward()\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "            loss = nn.functional.mse_loss(model(x), y) / len(parts)\n            loss.backward()\n",
                    "            with nullcontext() if k == len(parts) - 1 else model.no_sync():\n                loss = nn.functional.mse_loss(model(x), y) / len(parts)\n                loss.backward()\n",
                ),
            ],
        ),
        "a flag": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        last = (i + 1) % n == 0\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n        if last:\n            opt.step()\n            opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if last else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
        "not guard": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n        if (i + 1) % n != 0:\n            continue\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
        "or the end": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n            opt.step()\n            opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if (i + 1) % n == 0 or i + 1 == len(loader) else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
        "counted after": (
            DDP
            + "def train(loader, n):\n    count = 0\n    for x, y in loader:\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n        count += 1\n        if count % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if (count + 1) % n == 0 else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
        "compared counter": (
            DDP
            + "def train(loader, n):\n    count = 0\n    for x, y in loader:\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n        count += 1\n        if count == n:\n            opt.step()\n            opt.zero_grad()\n            count = 0\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if count + 1 == n else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
        "fabric": (
            FAB
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y)\n        fabric.backward(loss / n)\n"
            + STEP,
            [
                (
                    "        loss = nn.functional.mse_loss(model(x), y)\n        fabric.backward(loss / n)\n",
                    "        with fabric.no_backward_sync(model, enabled=(i + 1) % n != 0):\n            loss = nn.functional.mse_loss(model(x), y)\n            fabric.backward(loss / n)\n",
                )
            ],
        ),
        "fabric long": (
            FAB
            + "def train(loader, args):\n    for batch_number, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y)\n        fabric.backward(loss / args.gradient_accumulation_steps)\n        if (batch_number + 1) % args.gradient_accumulation_steps == 0 or batch_number + 1 == len(loader):\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "        loss = nn.functional.mse_loss(model(x), y)\n        fabric.backward(loss / args.gradient_accumulation_steps)\n",
                    "        boundary = (batch_number + 1) % args.gradient_accumulation_steps == 0 or batch_number + 1 == len(loader)\n        with fabric.no_backward_sync(model, enabled=not boundary):\n            loss = nn.functional.mse_loss(model(x), y)\n            fabric.backward(loss / args.gradient_accumulation_steps)\n",
                )
            ],
        ),
        "fabric micro loop": (
            FAB
            + "def train(loader, n):\n    for _ in range(100):\n        for _ in range(n):\n            x, y = next(loader)\n            loss = nn.functional.mse_loss(model(x), y)\n            fabric.backward(loss / n)\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("        for _ in range(n):\n", "        for micro_step in range(n):\n"),
                (
                    "            loss = nn.functional.mse_loss(model(x), y)\n            fabric.backward(loss / n)\n",
                    "            with fabric.no_backward_sync(model, enabled=micro_step != n - 1):\n                loss = nn.functional.mse_loss(model(x), y)\n                fabric.backward(loss / n)\n",
                ),
            ],
        ),
        "guard asked under n": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / max(n, 1)\n        loss.backward()\n        if n > 1:\n            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n        else:\n            opt.step()\n            opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / max(n, 1)\n        loss.backward()\n",
                    "        hold = n > 1 and (i + 1) % n != 0\n        with model.no_sync() if hold else nullcontext():\n            loss = nn.functional.mse_loss(model(x), y) / max(n, 1)\n            loss.backward()\n",
                ),
            ],
        ),
        "fsdp": (
            "from torch.distributed.fsdp import FullyShardedDataParallel\n\nmodel = FullyShardedDataParallel(net)\n\n\ndef train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n"
            + STEP,
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                    "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
                ),
            ],
        ),
    },
    "GA602": {
        "forward in front": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        out = model(x)\n        loss = nn.functional.mse_loss(out, y) / n\n        if (i + 1) % n == 0:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n        else:\n            with model.no_sync():\n                loss.backward()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        out = model(x)\n        loss = nn.functional.mse_loss(out, y) / n\n        if (i + 1) % n == 0:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n        else:\n            with model.no_sync():\n",
                    "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            out = model(x)\n            loss = nn.functional.mse_loss(out, y) / n\n            if (i + 1) % n == 0:\n",
                ),
                (
                    "                loss.backward()\n",
                    "                loss.backward()\n                opt.step()\n                opt.zero_grad()\n            else:\n                loss.backward()\n",
                ),
            ],
        ),
    },
    "GA603": {
        "flag after the forward": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n        model.require_backward_grad_sync = (i + 1) % n == 0\n        loss.backward()\n"
            + STEP,
            [
                ("        model.require_backward_grad_sync = (i + 1) % n == 0\n", ""),
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        model.require_backward_grad_sync = (i + 1) % n == 0\n",
                ),
            ],
        ),
        "flag out of phase": (
            DDP
            + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        model.require_backward_grad_sync = i % n == 0\n        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n"
            + STEP,
            [
                (
                    "        model.require_backward_grad_sync = i % n == 0\n",
                    "        model.require_backward_grad_sync = (i + 1) % n == 0\n",
                )
            ],
        ),
        "around the window": (
            DDP
            + "def train(loader, n):\n    for _ in range(100):\n        with model.no_sync():\n            for k in range(n):\n                x, y = next(loader)\n                loss = nn.functional.mse_loss(model(x), y) / n\n                loss.backward()\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("import torch\n", "from contextlib import nullcontext\n\nimport torch\n"),
                (
                    "        with model.no_sync():\n            for k in range(n):\n                x, y = next(loader)\n",
                    "        for k in range(n):\n            x, y = next(loader)\n            with nullcontext() if k == n - 1 else model.no_sync():\n",
                ),
            ],
        ),
    },
}

UNSAFE = {("GA202", "two expressions"), ("GA202", "read later"), ("GA601", "fsdp")}
"""What a program may notice: a loss that is logged, FSDP's memory."""
ALL = [(code, name) for code, cases in CASES.items() for name in cases]


def check(code: str, wrong: str, changes: list[tuple[str, str]], safety: Applicability) -> None:
    """The repairs of a rule's findings change the text just so, leave none of them, and are as safe as they say."""
    text = wanted = HEAD + wrong
    for old, new in changes:
        assert wanted.count(old) == 1, old
        wanted = wanted.replace(old, new)
    assert any(d.code == code for d in lint(Source("train.py", text), Config()).diagnostics), "nothing to repair"
    fixed = fix_source(Source("train.py", text), Config(), None, allowed(True, frozenset({code})))
    assert fixed.text == wanted
    assert {d.fix.applicability for d in fixed.applied if d.fix is not None} == {safety}
    assert code not in [d.code for d in fixed.report.diagnostics]


@pytest.mark.parametrize(("code", "name"), ALL, ids=[f"{code}-{name}" for code, name in ALL])
def test_a_repair_is_what_a_person_writes(code: str, name: str) -> None:
    check(code, *CASES[code][name], Applicability.UNSAFE if (code, name) in UNSAFE else Applicability.SAFE)
