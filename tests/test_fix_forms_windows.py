"""Repairs of windows in the forms that loops are written in: short last windows, sums of losses, schedules, `accumulate`."""

from __future__ import annotations

import pytest
from test_fix_forms import check

from galint.diagnostic import Applicability

L = "        loss = nn.functional.mse_loss(net(x), y)\n"
FOR = "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n"
ROUND = "def train(loader, n, updates):\n    for i in range(updates * n):\n        x, y = next(loader)\n"
STEP = "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n"
DIVIDED = L + "        (loss / n).backward()\n"
MODEL = "from torch.optim.swa_utils import AveragedModel\n\nema = AveragedModel(net)\n\n\n"
EPOCHS = "def train(loader, n):\n    {made}for epoch in range(3):\n        for i, (x, y) in enumerate(loader):\n            loss = nn.functional.mse_loss(net(x), y)\n            (loss / n).backward()\n            if (i + 1) % n == 0:\n                opt.step()\n                sched.step()\n                opt.zero_grad()\n"

CASES: dict[str, dict[str, tuple[str, list[tuple[str, str]]]]] = {
    "GA402": {
        "counted from zero": (
            FOR + DIVIDED + STEP,
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "counted from one": (
            "def train(loader, n):\n    for i, (x, y) in enumerate(loader, 1):\n"
            + DIVIDED
            + "        if i % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "    for i, (x, y) in enumerate(loader, 1):\n",
                    "    for i, (x, y) in enumerate(loader, 1):\n        window = min(n, len(loader) - (i - 1) // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if i % n == 0:\n",
                    "        (loss / window).backward()\n        if i % n == 0 or i == len(loader):\n",
                ),
            ],
        ),
        "a progress bar": (
            "from tqdm import tqdm\n\n\ndef train(loader, n):\n    for i, (x, y) in enumerate(tqdm(loader)):\n"
            + DIVIDED
            + STEP,
            [
                (
                    "    for i, (x, y) in enumerate(tqdm(loader)):\n",
                    "    for i, (x, y) in enumerate(tqdm(loader)):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "a named bar": (
            "from tqdm import tqdm\n\n\ndef train(loader, n):\n    bar = tqdm(enumerate(loader))\n    for i, (x, y) in bar:\n"
            + DIVIDED
            + STEP,
            [
                (
                    "    for i, (x, y) in bar:\n",
                    "    for i, (x, y) in bar:\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "an index only": (
            "def train(loader, n, batches):\n    feed = iter(loader)\n    for i in range(batches):\n        x, y = next(feed)\n"
            + DIVIDED
            + STEP,
            [
                (
                    "    for i in range(batches):\n",
                    "    for i in range(batches):\n        window = min(n, batches - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == batches:\n",
                ),
            ],
        ),
        "a range of a sum": (
            "def train(loader, n, batches):\n    feed = iter(loader)\n    for i in range(batches + 1):\n        x, y = next(feed)\n"
            + DIVIDED
            + STEP,
            [
                (
                    "    for i in range(batches + 1):\n",
                    "    for i in range(batches + 1):\n        window = min(n, batches + 1 - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == batches + 1:\n",
                ),
            ],
        ),
        "no index": (
            "def train(loader, n):\n    count = 0\n    for x, y in loader:\n"
            + DIVIDED
            + "        count += 1\n        if count % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "    for x, y in loader:\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                ("        (loss / n).backward()\n", "        (loss / window).backward()\n"),
                ("        if count % n == 0:\n", "        if count % n == 0 or i + 1 == len(loader):\n"),
            ],
        ),
        "no index, one name": (
            "def train(loader, n):\n    count = 0\n    for batch in loader:\n        x, y = batch\n"
            + DIVIDED
            + "        count += 1\n        if count % n == 0:\n            opt.step()\n            opt.zero_grad()\n            count = 0\n",
            [
                (
                    "    for batch in loader:\n",
                    "    for i, batch in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                ("        (loss / n).backward()\n", "        (loss / window).backward()\n"),
                ("        if count % n == 0:\n", "        if count % n == 0 or i + 1 == len(loader):\n"),
            ],
        ),
        "guard turned round": (
            FOR
            + DIVIDED
            + "        if (i + 1) % n != 0:\n            continue\n        opt.step()\n        opt.zero_grad()\n",
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n != 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n != 0 and i + 1 != len(loader):\n",
                ),
            ],
        ),
        "steps counted": (
            "def train(loader, n):\n    steps = len(loader) // n\n    for i, (x, y) in enumerate(loader):\n"
            + DIVIDED
            + STEP
            + "    return steps\n",
            [
                ("import torch\n", "import math\n\nimport torch\n"),
                ("    steps = len(loader) // n\n", "    steps = math.ceil(len(loader) / n)\n"),
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "steps counted in parentheses": (
            "def train(loader, n):\n    total = 3 * (len(loader) // n)\n    for i, (x, y) in enumerate(loader):\n"
            + DIVIDED
            + STEP
            + "    return total\n",
            [
                ("import torch\n", "import math\n\nimport torch\n"),
                ("    total = 3 * (len(loader) // n)\n", "    total = 3 * math.ceil(len(loader) / n)\n"),
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "a long name for n": (
            "def train(loader, args):\n    for batch_index, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(net(x), y)\n        (loss / args.gradient_accumulation_steps).backward()\n        if (batch_index + 1) % args.gradient_accumulation_steps == 0:\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "    for batch_index, (x, y) in enumerate(loader):\n",
                    "    for batch_index, (x, y) in enumerate(loader):\n        window_start = batch_index // args.gradient_accumulation_steps * args.gradient_accumulation_steps\n        window = min(args.gradient_accumulation_steps, len(loader) - window_start)\n",
                ),
                (
                    "        (loss / args.gradient_accumulation_steps).backward()\n        if (batch_index + 1) % args.gradient_accumulation_steps == 0:\n",
                    "        (loss / window).backward()\n        if (batch_index + 1) % args.gradient_accumulation_steps == 0 or batch_index + 1 == len(loader):\n",
                ),
            ],
        ),
        "logged loss": (
            FOR
            + "        loss = nn.functional.mse_loss(net(x), y) / n\n        loss.backward()\n        print(loss.item() * n)\n"
            + STEP,
            [
                (
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n",
                    "        window = min(n, len(loader) - i // n * n)\n        loss = nn.functional.mse_loss(net(x), y) / window\n",
                ),
                (
                    "        print(loss.item() * n)\n        if (i + 1) % n == 0:\n",
                    "        print(loss.item() * window)\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "a flag twice": (
            "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n"
            + DIVIDED
            + STEP
            + "        if (i + 1) % n == 0:\n            print(i)\n",
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
                (
                    "            opt.zero_grad()\n        if (i + 1) % n == 0:\n",
                    "            opt.zero_grad()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
        "an item of loaders": (
            "def train(loaders, n):\n    for i, (x, y) in enumerate(loaders['train']):\n" + DIVIDED + STEP,
            [
                (
                    "    for i, (x, y) in enumerate(loaders['train']):\n",
                    "    for i, (x, y) in enumerate(loaders['train']):\n        window = min(n, len(loaders['train']) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loaders['train']):\n",
                ),
            ],
        ),
    },
    "GA403": {
        "cleared at the start": (
            "def train(loader, n):\n    opt.zero_grad()\n    for i, (x, y) in enumerate(loader):\n" + DIVIDED + STEP,
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                (
                    "        (loss / n).backward()\n        if (i + 1) % n == 0:\n",
                    "        (loss / window).backward()\n        if (i + 1) % n == 0 or i + 1 == len(loader):\n",
                ),
            ],
        ),
    },
    "GA205": {
        "last batch": (
            FOR
            + DIVIDED
            + "        if (i + 1) % n == 0 or i + 1 == len(loader):\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "    for i, (x, y) in enumerate(loader):\n",
                    "    for i, (x, y) in enumerate(loader):\n        window = min(n, len(loader) - i // n * n)\n",
                ),
                ("        (loss / n).backward()\n", "        (loss / window).backward()\n"),
            ],
        ),
        "flushed by a counter": (
            "def train(loader, n):\n    pending = 0\n    for x, y in loader:\n"
            + DIVIDED
            + "        pending += 1\n        if pending == n:\n            opt.step()\n            opt.zero_grad()\n            pending = 0\n    if pending > 0:\n        opt.step()\n        opt.zero_grad()\n",
            [
                (
                    "    if pending > 0:\n",
                    "    if pending > 0:\n        for parameter in net.parameters():\n            if parameter.grad is not None:\n                parameter.grad *= n / pending\n",
                )
            ],
        ),
        "flushed by a remainder": (
            "def train(loader, n):\n    for i, (x, y) in enumerate(loader, 1):\n"
            + DIVIDED
            + "        if i % n == 0:\n            opt.step()\n            opt.zero_grad()\n    if i % n != 0:\n        opt.step()\n        opt.zero_grad()\n",
            [
                (
                    "    if i % n != 0:\n",
                    "    if i % n != 0:\n        for parameter in net.parameters():\n            if parameter.grad is not None:\n                parameter.grad *= n / (i % n)\n",
                )
            ],
        ),
        "flushed by truth": (
            "def train(loader, n):\n    pending = 0\n    for x, y in loader:\n"
            + DIVIDED
            + "        pending += 1\n        if pending == n:\n            opt.step()\n            opt.zero_grad()\n            pending = 0\n    if pending:\n        opt.step()\n        opt.zero_grad()\n",
            [
                (
                    "    if pending:\n",
                    "    if pending:\n        for parameter in net.parameters():\n            if parameter.grad is not None:\n                parameter.grad *= n / pending\n",
                )
            ],
        ),
    },
    "GA106": {
        "plus equals": (
            "def train(loader, n, updates):\n    total = 0\n    for i in range(updates * n):\n        x, y = next(loader)\n        total += nn.functional.mse_loss(net(x), y) / n\n        if (i + 1) % n == 0:\n            total.backward()\n            opt.step()\n            opt.zero_grad()\n            total = 0\n",
            [
                ("def train(loader, n, updates):\n    total = 0\n", "def train(loader, n, updates):\n"),
                (
                    "        total += nn.functional.mse_loss(net(x), y) / n\n",
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n        loss.backward()\n",
                ),
                ("            total.backward()\n", ""),
                ("            total = 0\n", ""),
            ],
        ),
        "total plus": (
            "def train(loader, n, updates):\n    total = 0\n    for i in range(updates * n):\n        x, y = next(loader)\n        loss = nn.functional.mse_loss(net(x), y)\n        total = total + loss / n\n        if (i + 1) % n == 0:\n            total.backward()\n            opt.step()\n            opt.zero_grad()\n            total = 0\n",
            [
                ("def train(loader, n, updates):\n    total = 0\n", "def train(loader, n, updates):\n"),
                (
                    "        total = total + loss / n\n",
                    "        micro_loss = loss / n\n        micro_loss.backward()\n",
                ),
                ("            total.backward()\n", ""),
                ("            total = 0\n", ""),
            ],
        ),
        "stacked": (
            "def train(loader, n, updates):\n    losses = []\n    for i in range(updates * n):\n        x, y = next(loader)\n        losses.append(nn.functional.mse_loss(net(x), y))\n        if (i + 1) % n == 0:\n            torch.stack(losses).mean().backward()\n            opt.step()\n            opt.zero_grad()\n            losses = []\n",
            [
                (
                    "        losses.append(nn.functional.mse_loss(net(x), y))\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n        (loss / n).backward()\n        losses.append(loss.item())\n",
                ),
                ("            torch.stack(losses).mean().backward()\n", ""),
            ],
        ),
        "stacked, length": (
            "def train(loader, n, updates):\n    losses = []\n    for _ in range(updates * n):\n        x, y = next(loader)\n        loss = nn.functional.mse_loss(net(x), y)\n        losses.append(loss)\n        if len(losses) == n:\n            torch.mean(torch.stack(losses)).backward()\n            opt.step()\n            opt.zero_grad()\n            losses = []\n",
            [
                (
                    "        losses.append(loss)\n",
                    "        (loss / n).backward()\n        losses.append(loss.item())\n",
                ),
                ("            torch.mean(torch.stack(losses)).backward()\n", ""),
            ],
        ),
        "summed and divided": (
            "def train(loader, n, updates):\n    losses = []\n    for i in range(updates * n):\n        x, y = next(loader)\n        losses.append(nn.functional.mse_loss(net(x), y))\n        if (i + 1) % n == 0:\n            loss = sum(losses) / len(losses)\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n            losses = []\n",
            [
                (
                    "        losses.append(nn.functional.mse_loss(net(x), y))\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n        (loss / n).backward()\n        losses.append(loss.item())\n",
                ),
                ("            loss = sum(losses) / len(losses)\n            loss.backward()\n", ""),
            ],
        ),
        "divided by n": (
            "def train(loader, n, updates):\n    losses = []\n    for i in range(updates * n):\n        x, y = next(loader)\n        losses.append(nn.functional.mse_loss(net(x), y))\n        if (i + 1) % n == 0:\n            loss = sum(losses) / n\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n            losses = []\n",
            [
                (
                    "        losses.append(nn.functional.mse_loss(net(x), y))\n",
                    "        loss = nn.functional.mse_loss(net(x), y)\n        (loss / n).backward()\n        losses.append(loss.item())\n",
                ),
                ("            loss = sum(losses) / n\n            loss.backward()\n", ""),
            ],
        ),
    },
    "GA103": {
        "under the guard": (
            ROUND
            + "        loss = nn.functional.mse_loss(net(x), y) / n\n        if (i + 1) % n == 0:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n",
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n        loss.backward()\n",
                ),
                ("            loss.backward()\n", ""),
            ],
        ),
        "after a continue": (
            ROUND
            + "        loss = nn.functional.mse_loss(net(x), y) / n\n        if (i + 1) % n != 0:\n            continue\n        loss.backward()\n        opt.step()\n        opt.zero_grad()\n",
            [
                ("        loss.backward()\n", ""),
                (
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n",
                    "        loss = nn.functional.mse_loss(net(x), y) / n\n        loss.backward()\n",
                ),
            ],
        ),
    },
    "GA404": {
        "cosine behind": (
            "def train(loader, n, epochs):\n    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs * len(loader) // n)\n    for epoch in range(epochs):\n        for i, (x, y) in enumerate(loader):\n            loss = nn.functional.mse_loss(net(x), y)\n            (loss / n).backward()\n            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n            sched.step()\n",
            [("            sched.step()\n", "                sched.step()\n")],
        ),
        "cosine in front": (
            "def train(loader, n, epochs):\n    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs * len(loader) // n)\n    for epoch in range(epochs):\n        for i, (x, y) in enumerate(loader):\n            loss = nn.functional.mse_loss(net(x), y)\n            (loss / n).backward()\n            sched.step()\n            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n",
            [
                ("            sched.step()\n", ""),
                ("                opt.step()\n", "                opt.step()\n                sched.step()\n"),
            ],
        ),
    },
    "GA405": {
        "behind": (
            MODEL + FOR + DIVIDED + STEP + "        ema.update_parameters(net)\n",
            [("        ema.update_parameters(net)\n", "            ema.update_parameters(net)\n")],
        ),
        "in front": (
            MODEL + FOR + DIVIDED + "        ema.update_parameters(net)\n" + STEP,
            [
                ("        ema.update_parameters(net)\n", ""),
                ("            opt.step()\n", "            opt.step()\n            ema.update_parameters(net)\n"),
            ],
        ),
        "under a test": (
            MODEL
            + "def train(loader, n, late):\n    for i, (x, y) in enumerate(loader):\n"
            + DIVIDED
            + STEP
            + "        if late:\n            ema.update_parameters(net)\n",
            [
                (
                    "        if late:\n            ema.update_parameters(net)\n",
                    "            if late:\n                ema.update_parameters(net)\n",
                )
            ],
        ),
    },
    "GA701": {
        "a list": (
            "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nhead = nn.Linear(1, 1)\nnet, head, opt = accelerator.prepare(net, head, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate([net, head]):\n            loss = nn.functional.mse_loss(head(net(x)), y)\n            accelerator.backward(loss)\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "        with accelerator.accumulate([net, head]):\n",
                    "        with accelerator.accumulate(net, head):\n",
                )
            ],
        ),
        "two contexts": (
            "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nhead = nn.Linear(1, 1)\nnet, head, opt = accelerator.prepare(net, head, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net), accelerator.accumulate(head):\n            loss = nn.functional.mse_loss(head(net(x)), y)\n            accelerator.backward(loss)\n            opt.step()\n            opt.zero_grad()\n",
            [
                (
                    "        with accelerator.accumulate(net), accelerator.accumulate(head):\n",
                    "        with accelerator.accumulate(net, head):\n",
                )
            ],
        ),
        "bare backward": (
            "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nnet, opt = accelerator.prepare(net, opt)\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            loss = nn.functional.mse_loss(net(x), y)\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
            [("            loss.backward()\n", "            accelerator.backward(loss)\n")],
        ),
        "a named list": (
            "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nhead = nn.Linear(1, 1)\nnet, head, opt = accelerator.prepare(net, head, opt)\nmodels = [net, head]\n\n\ndef train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(models):\n            loss = nn.functional.mse_loss(head(net(x)), y)\n            accelerator.backward(loss)\n            opt.step()\n            opt.zero_grad()\n",
            [("        with accelerator.accumulate(models):\n", "        with accelerator.accumulate(*models):\n")],
        ),
    },
}

SAFE = {"GA103", "GA701"}
"""The others change how often something happens, which a program may count."""
ALL = [(code, name) for code, cases in CASES.items() for name in cases]


@pytest.mark.parametrize(("code", "name"), ALL, ids=[f"{code}-{name}" for code, name in ALL])
def test_a_repair_of_a_window_is_what_a_person_writes(code: str, name: str) -> None:
    check(code, *CASES[code][name], Applicability.SAFE if code in SAFE else Applicability.UNSAFE)
