"""Repairs that were once wrong, or missing: each beside what a person writes."""

from __future__ import annotations

import pytest
from test_fix_forms import ACC, DDP, FOR, SC, SL, SSTEP, STEP, L, check
from test_fix_shapes import HEAD

from galint.config import Config
from galint.diagnostic import Applicability
from galint.engine import lint
from galint.fixes import allowed, fix_source
from galint.source import Source

LAST = "        if (i + 1) % n == 0 or i + 1 == len(loader):\n"
LAST_STEP = LAST + "            opt.step()\n            opt.zero_grad()\n"
LD = "        loss = nn.functional.mse_loss(net(x), y) / n\n"
BACK = "        loss.backward()\n"
CLIP = "nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
TWO = "from accelerate import Accelerator\n\naccelerator = Accelerator(gradient_accumulation_steps=4)\nhead = nn.Linear(1, 1)\nnet, head, opt = accelerator.prepare(net, head, opt)\n\n\n"
IMPORT = (
    "import torch\nfrom torch import nn\n",
    "from contextlib import nullcontext\n\nimport torch\nfrom torch import nn\n",
)
SYNCED = (
    "from contextlib import nullcontext\n"
    + DDP
    + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        with {}:\n"
    "            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n"
)
DL = "        loss = nn.functional.mse_loss(model(x), y) / n\n"
LONG_TEST = "(batch_index_within_the_epoch + 1) % gradient_accumulation_steps_of_the_run == 0"
LONG_LOSS = (
    "        loss = nn.functional.mse_loss(distributed_language_model(x), y) / gradient_accumulation_steps_of_the_run\n"
)
LONG = (
    "distributed_language_model = torch.nn.parallel.DistributedDataParallel(net)\n\n\n"
    "def train(loader, gradient_accumulation_steps_of_the_run):\n    for batch_index_within_the_epoch, (x, y) in enumerate(loader):\n"
    + LONG_LOSS
)
COUNTED = "def train(loader, n):\n    k = 0\n    for x, y in loader:\n{}" + LD + BACK + "{}"
SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE

Case = tuple[str, str, list[tuple[str, str]], Applicability]

CASES: dict[str, Case] = {
    # The last, partial window was as wrong before: what is now said of it must not keep a repair away.
    "cleared each time, last batch steps": (
        "GA101",
        FOR + "        opt.zero_grad()\n" + LD + BACK + LAST + "            opt.step()\n",
        [("        opt.zero_grad()\n", ""), ("            opt.step()\n", "            opt.step()\n            opt.zero_grad()\n")],
        SAFE,
    ),
    "never cleared, last batch steps": (
        "GA102",
        FOR + LD + BACK + LAST + "            opt.step()\n",
        [("            opt.step()\n", "            opt.step()\n            opt.zero_grad()\n")],
        SAFE,
    ),
    "divided twice, last batch steps": (
        "GA202",
        FOR + L + "        loss = loss / n\n        (loss / n).backward()\n" + LAST_STEP,
        [("        loss = loss / n\n", "")],
        SAFE,
    ),
    "one term divided, last batch steps": (
        "GA204",
        FOR + L + "        (loss / n + net(x).abs().mean()).backward()\n" + LAST_STEP,
        [("(loss / n + net(x).abs().mean())", "((loss + net(x).abs().mean()) / n)")],
        SAFE,
    ),
    "backward under the guard, over a loader": (
        "GA103",
        FOR + LD + "        if (i + 1) % n == 0:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
        [("        if (i", BACK + "        if (i"), ("            loss.backward()\n", "")],
        SAFE,
    ),
    "backward behind a continue": (
        "GA103",
        FOR + LD + "        if (i + 1) % n != 0:\n            continue\n" + BACK + "        opt.step()\n        opt.zero_grad()\n",
        [("            continue\n        loss.backward()\n", "            continue\n"), ("        if (i", BACK + "        if (i")],
        SAFE,
    ),
    "backward under the guard, last batch steps": (
        "GA103",
        FOR + LD + LAST + "            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
        [("        if (i", BACK + "        if (i"), ("            loss.backward()\n", "")],
        SAFE,
    ),
    "a total over the epochs": (
        "GA106",
        "def train(loader, n):\n    total = 0\n    for epoch in range(3):\n        for i, (x, y) in enumerate(loader):\n"
        "            loss = nn.functional.mse_loss(net(x), y) / n\n            total = total + loss\n"
        "            if (i + 1) % n == 0:\n                total.backward()\n                total = 0\n                opt.step()\n                opt.zero_grad()\n",
        [
            ("    total = 0\n    for", "    for"),
            ("            total = total + loss\n", "            loss.backward()\n"),
            ("                total.backward()\n                total = 0\n", ""),
        ],
        UNSAFE,
    ),
    # The guard.
    "the guard says the opposite": (
        "GA401",
        FOR + LD + BACK + "        if not (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n",
        [("if not (i", "if (i")],
        SAFE,
    ),
    "the guard is a remainder that is nothing": (
        "GA402",
        FOR + LD + BACK + "        if not (i + 1) % n:\n            opt.step()\n            opt.zero_grad()\n",
        [
            ("        loss = nn.functional.mse_loss(net(x), y) / n\n", "        window = min(n, len(loader) - i // n * n)\n        loss = nn.functional.mse_loss(net(x), y) / window\n"),
            ("if not (i + 1) % n:", "if not (i + 1) % n or i + 1 == len(loader):"),
        ],
        UNSAFE,
    ),
    "the last index is never reached": (
        "GA402",
        FOR + LD + BACK + "        if (i + 1) % n == 0 or i == len(loader):\n            opt.step()\n            opt.zero_grad()\n",
        [
            ("        loss = nn.functional.mse_loss(net(x), y) / n\n", "        window = min(n, len(loader) - i // n * n)\n        loss = nn.functional.mse_loss(net(x), y) / window\n"),
            ("i == len(loader):", "i == len(loader) - 1:"),
        ],
        UNSAFE,
    ),
    # Under Accelerate a module clears at once, wherever it stands; the prepared optimizer waits.
    "a module clears at the top of accumulate": (
        "GA101",
        ACC.replace("            loss =", "            net.zero_grad()\n            loss =") + "            opt.step()\n",
        [("            net.zero_grad()\n", ""), ("            opt.step()\n", "            opt.step()\n            opt.zero_grad()\n")],
        SAFE,
    ),
    "a module clears behind the step of accumulate": (
        "GA101",
        ACC + "            opt.step()\n            net.zero_grad(set_to_none=True)\n",
        [("net.zero_grad(", "opt.zero_grad(")],
        SAFE,
    ),
    # Two divisions.
    "the Accelerator's own N": (
        "GA202",
        ACC.replace(
            "            accelerator.back",
            "            loss = loss / accelerator.gradient_accumulation_steps\n            accelerator.back",
        )
        + "            opt.step()\n            opt.zero_grad()\n",
        [("            loss = loss / accelerator.gradient_accumulation_steps\n", "")],
        SAFE,
    ),
    "gradients by group": (
        "GA202",
        FOR + LD + BACK + "        if (i + 1) % n == 0:\n            for group in opt.param_groups:\n                for p in group['params']:\n                    p.grad /= n\n            opt.step()\n            opt.zero_grad()\n",
        [("            for group in opt.param_groups:\n                for p in group['params']:\n                    p.grad /= n\n", "")],
        SAFE,
    ),
    "gradients assigned": (
        "GA202",
        FOR + LD + BACK + "        if (i + 1) % n == 0:\n            for p in net.parameters():\n                p.grad = p.grad / n\n            opt.step()\n            opt.zero_grad()\n",
        [("            for p in net.parameters():\n                p.grad = p.grad / n\n", "")],
        SAFE,
    ),
    "gradients times 1/N": (
        "GA202",
        FOR + LD + BACK + "        if (i + 1) % n == 0:\n            for p in net.parameters():\n                p.grad.mul_(1 / n)\n            opt.step()\n            opt.zero_grad()\n",
        [("            for p in net.parameters():\n                p.grad.mul_(1 / n)\n", "")],
        SAFE,
    ),
    "loss times 1/N": (
        "GA202",
        FOR + "        loss = nn.functional.mse_loss(net(x), y) * (1 / n)\n        (loss / n).backward()\n" + STEP,
        [(" * (1 / n)", "")],
        UNSAFE,
    ),
    "1/N times a sum": (
        "GA202",
        FOR + "        a, b = nn.functional.mse_loss(net(x), y), net(x).abs().mean()\n        loss = (1.0 / n) * (a + b)\n        (loss / n).backward()\n" + STEP,
        [("(1.0 / n) * (a + b)", "(a + b)")],
        UNSAFE,
    ),
    "in place and in backward": (
        "GA202",
        FOR + L + "        loss.div_(n)\n        (loss / n).backward()\n" + STEP,
        [("        (loss / n).backward()\n", BACK)],
        UNSAFE,
    ),
    "a helper returns the quotient": (
        "GA202",
        "def scaled(loss, n):\n    return (loss / n)\n\n\n" + FOR + "        loss = scaled(nn.functional.mse_loss(net(x), y), n)\n        (loss / n).backward()\n" + STEP,
        [("return (loss / n)", "return loss")],
        UNSAFE,
    ),
    "a quotient in parentheses is a term": (
        "GA204",
        FOR + "        loss = (nn.functional.mse_loss(net(x), y) / n) + net(x).abs().mean()\n" + BACK + STEP,
        [("(nn.functional.mse_loss(net(x), y) / n) + net(x).abs().mean()", "(nn.functional.mse_loss(net(x), y) + net(x).abs().mean()) / n")],
        SAFE,
    ),
    # What moves keeps its condition.
    "two ways of clipping": (
        "GA303",
        "def train(loader, n, mode):\n    for i, (x, y) in enumerate(loader):\n"
        + LD
        + "        if mode == 'norm':\n            loss.backward()\n            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
        + "        else:\n            loss.backward()\n            nn.utils.clip_grad_value_(net.parameters(), 1.0)\n"
        + STEP,
        [
            ("            nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n", ""),
            ("            nn.utils.clip_grad_value_(net.parameters(), 1.0)\n", ""),
            (
                "        if (i + 1) % n == 0:\n",
                "        if (i + 1) % n == 0:\n            if mode == 'norm':\n                nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n            else:\n                nn.utils.clip_grad_value_(net.parameters(), 1.0)\n",
            ),
        ],
        SAFE,
    ),
    "unscaled with more than clipping under a test": (
        "GA301",
        SC
        + "def train(loader, n, clip):\n    for i, (x, y) in enumerate(loader):\n"
        + SL
        + "        if clip > 0:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n            print('clipped')\n"
        + SSTEP,
        [
            ("        if clip > 0:\n            scaler.unscale_(opt)\n            nn.utils.clip_grad_norm_(net.parameters(), clip)\n            print('clipped')\n", ""),
            (
                "        if (i + 1) % n == 0:\n",
                "        if (i + 1) % n == 0:\n            if clip > 0:\n                scaler.unscale_(opt)\n                nn.utils.clip_grad_norm_(net.parameters(), clip)\n                print('clipped')\n",
            ),
        ],
        UNSAFE,
    ),
    "the norm is read behind the step": (
        "GA303",
        FOR + LD + BACK + "        norm = " + CLIP + "        if (i + 1) % n == 0:\n            opt.step()\n            opt.zero_grad()\n            print(norm)\n",
        [("        norm = " + CLIP, ""), ("            opt.step()\n", "            norm = " + CLIP + "            opt.step()\n")],
        SAFE,
    ),
    "a list of models, and a backward of torch's": (
        "GA701",
        TWO
        + "def train(loader):\n    for x, y in loader:\n        with accelerator.accumulate([net, head]):\n"
        "            loss = nn.functional.mse_loss(head(net(x)), y)\n            loss.backward(retain_graph=True)\n            opt.step()\n            opt.zero_grad()\n",
        [("accumulate([net, head])", "accumulate(net, head)"), ("loss.backward(retain", "accelerator.backward(loss, retain")],
        SAFE,
    ),
    "a total of expressions": (
        "GA106",
        "def train(loader, n):\n    total = 0.0\n    for i, (x, y) in enumerate(loader):\n        total += nn.functional.mse_loss(net(x), y) / n\n"
        + LAST
        + "            total.backward()\n            total = 0.0\n            opt.step()\n            opt.zero_grad()\n",
        [
            ("    total = 0.0\n    for", "    for"),
            ("        total += nn", "        loss = nn"),
            ("y) / n\n", "y) / n\n        loss.backward()\n"),
            ("            total.backward()\n            total = 0.0\n", ""),
        ],
        UNSAFE,
    ),
    "a sum is scaled": (
        "GA201",
        SC + FOR + "        a, b = nn.functional.mse_loss(net(x), y), net(x).abs().mean()\n        scaler.scale(a + b).backward()\n" + SSTEP,
        [("scale(a + b)", "scale((a + b) / n)")],
        SAFE,
    ),
    "a method runs backward": (
        "GA201",
        "class Trainer:\n    def back(self, loss):\n        loss.backward()\n\n    def fit(self, loader, n):\n        for i, (x, y) in enumerate(loader):\n"
        "            self.back(nn.functional.mse_loss(net(x), y))\n            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n",
        [("mse_loss(net(x), y))", "mse_loss(net(x), y) / n)")],
        SAFE,
    ),
    "the loss is read before it is divided under a test": (
        "GA203",
        FOR + L + "        loss.backward()\n        print(loss)\n        if n > 1:\n            loss /= n\n" + STEP,
        [("        loss.backward()\n", "        (loss / n).backward()\n")],
        SAFE,
    ),
    "a clipping in one line with its test": (
        "GA302",
        SC + FOR + SL + "        if (i + 1) % n == 0:\n            if n > 2: " + CLIP + "            scaler.step(opt); scaler.update(); opt.zero_grad()\n",
        [("            if n > 2:", "            scaler.unscale_(opt)\n            if n > 2:")],
        SAFE,
    ),
    "another update behind the window's own": (
        "GA304",
        SC + FOR + SL + SSTEP + "        scaler.update()\n",
        [("            opt.zero_grad()\n        scaler.update()\n", "            opt.zero_grad()\n")],
        SAFE,
    ),
    "a horizon beside an N of one letter": (
        "GA406",
        "def train(loader, n, epochs):\n    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs * len(loader))\n"
        "    for epoch in range(epochs):\n        for i, (x, y) in enumerate(loader):\n            (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "            if (i + 1) % n == 0:\n                opt.step()\n                opt.zero_grad()\n                schedule.step()\n",
        [("T_max=epochs * len(loader)", "T_max=epochs * len(loader) // n")],
        UNSAFE,
    ),
    # A `with` that goes takes no comment along.
    "one accumulate in the other": (
        "GA701",
        TWO
        + "def train(loader):\n    for x, y in loader:\n        with accelerator.accumulate(net):\n            with accelerator.accumulate(head):\n"
        "                # the loss of both\n                loss = nn.functional.mse_loss(head(net(x)), y)\n                accelerator.backward(loss)\n                opt.step()\n                opt.zero_grad()\n",
        [
            ("        with accelerator.accumulate(net):\n            with accelerator.accumulate(head):\n", "        with accelerator.accumulate(net, head):\n"),
            ("                # the loss of both\n                loss =", "            # the loss of both\n            loss ="),
            ("                accelerator.back", "            accelerator.back"),
            ("                opt.step()\n                opt.zero", "            opt.step()\n            opt.zero"),
        ],
        SAFE,
    ),
    "no_sync around backward, explained": (
        "GA602",
        DDP
        + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n        if (i + 1) % n != 0:\n"
        "            with model.no_sync():\n                # wait\n                loss.backward()\n        else:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
        [
            IMPORT,
            (
                "        loss = nn.functional.mse_loss(model(x), y) / n\n        if (i + 1) % n != 0:\n            with model.no_sync():\n",
                "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            if (i + 1) % n != 0:\n",
            ),
            (
                "        else:\n            loss.backward()\n            opt.step()\n            opt.zero_grad()\n",
                "            else:\n                loss.backward()\n                opt.step()\n                opt.zero_grad()\n",
            ),
        ],
        SAFE,
    ),
    "no_sync raised to the forward, explained": (
        "GA602",
        "from contextlib import nullcontext\n" + DDP + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n"
        "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            # now\n            loss.backward()\n" + STEP,
        [
            ("        loss = nn.functional.mse_loss(model(x), y) / n\n", ""),
            ("            # now\n", "            loss = nn.functional.mse_loss(model(x), y) / n\n            # now\n"),
        ],
        SAFE,
    ),
    # Which micro-batches synchronise.
    "a flush behind the loop synchronises too": (
        "GA601",
        DDP + "def train(loader, n):\n    for i, (x, y) in enumerate(loader):\n        loss = nn.functional.mse_loss(model(x), y) / n\n" + BACK + STEP
        + "    if (i + 1) % n != 0:\n        opt.step()\n        opt.zero_grad()\n",
        [
            IMPORT,
            (
                "        loss = nn.functional.mse_loss(model(x), y) / n\n        loss.backward()\n",
                "        with nullcontext() if (i + 1) % n == 0 or i + 1 == len(loader) else model.no_sync():\n            loss = nn.functional.mse_loss(model(x), y) / n\n            loss.backward()\n",
            ),
        ],
        SAFE,
    ),
    "no_sync on the last micro-batch alone": (
        "GA603",
        SYNCED.format("model.no_sync() if (i + 1) % n == 0 else nullcontext()") + STEP,
        [("if (i + 1) % n == 0 else", "if (i + 1) % n != 0 else")],
        SAFE,
    ),
    "the last batch steps unsynchronised": (
        "GA603",
        SYNCED.format("nullcontext() if (i + 1) % n == 0 else model.no_sync()") + LAST_STEP,
        [("if (i + 1) % n == 0 else", "if (i + 1) % n == 0 or i + 1 == len(loader) else")],
        SAFE,
    ),
    "the last batch steps unsynchronised, said the other way": (
        "GA603",
        SYNCED.format("model.no_sync() if (i + 1) % n != 0 else nullcontext()") + LAST_STEP,
        [("if (i + 1) % n != 0 else", "if not ((i + 1) % n == 0 or i + 1 == len(loader)) else")],
        SAFE,
    ),
    "the forward goes around the wrapper": (
        "GA603",
        DDP + FOR + LD + BACK + STEP,
        [("mse_loss(net(x)", "mse_loss(model(x)")],
        SAFE,
    ),
    "a guard over several rows": (
        "GA601",
        DDP + FOR + DL + BACK + "        if (\n            (i + 1) % n == 0\n            or i + 1 == len(loader)\n        ):\n            opt.step()\n            opt.zero_grad()\n",
        [IMPORT, (DL + BACK, "        with nullcontext() if (i + 1) % n == 0 or i + 1 == len(loader) else model.no_sync():\n    " + DL + "    " + BACK)],
        SAFE,
    ),
    "a flag that says not yet": (
        "GA601",
        DDP + FOR + "        waiting = (i + 1) % n != 0\n" + DL + BACK + "        if not waiting:\n            opt.step()\n            opt.zero_grad()\n",
        [IMPORT, (DL + BACK, "        with model.no_sync() if waiting else nullcontext():\n    " + DL + "    " + BACK)],
        SAFE,
    ),
    "a condition too long for one line": (
        "GA601",
        LONG + BACK + f"        if {LONG_TEST}:\n            opt.step()\n            opt.zero_grad()\n",
        [
            IMPORT,
            (
                LONG_LOSS + BACK,
                f"        boundary = {LONG_TEST}\n        with nullcontext() if boundary else distributed_language_model.no_sync():\n    {LONG_LOSS}    {BACK}",
            ),
        ],
        SAFE,
    ),
    "both branches run backward": (
        "GA602",
        DDP + FOR + "        out = model(x)\n        if (i + 1) % n != 0:\n            with model.no_sync():\n                (out.mean() / n).backward()\n"
        "        else:\n            (out.mean() / n).backward()\n            opt.step()\n            opt.zero_grad()\n",
        [
            IMPORT,
            (
                "        out = model(x)\n        if (i + 1) % n != 0:\n            with model.no_sync():\n                (out.mean() / n).backward()\n"
                "        else:\n            (out.mean() / n).backward()\n            opt.step()\n            opt.zero_grad()\n",
                "        with nullcontext() if (i + 1) % n == 0 else model.no_sync():\n            out = model(x)\n            if (i + 1) % n != 0:\n                (out.mean() / n).backward()\n"
                "            else:\n                (out.mean() / n).backward()\n                opt.step()\n                opt.zero_grad()\n",
            ),
        ],
        SAFE,
    ),
    "a flush behind the loop that asks for the rest": (
        "GA205",
        FOR + LD + BACK + STEP + "    if (i + 1) % n:\n        opt.step()\n        opt.zero_grad()\n",
        [
            (
                "    if (i + 1) % n:\n",
                "    if (i + 1) % n:\n        for parameter in net.parameters():\n            if parameter.grad is not None:\n                parameter.grad *= n / ((i + 1) % n)\n",
            )
        ],
        UNSAFE,
    ),
    "counted twice": (
        "GA401",
        COUNTED.format("        k += 1\n", "        k = k + 1\n        if k % n == 0:\n            opt.step()\n            opt.zero_grad()\n"),
        [("        k = k + 1\n", "")],
        SAFE,
    ),
    "counted behind the guard": (
        "GA401",
        COUNTED.format("", "        if k >= n:\n            opt.step()\n            opt.zero_grad()\n            k = 0\n        k = k + 1\n"),
        [("            k = 0\n        k = k + 1\n", "            k = 0\n"), ("        if k >= n", "        k = k + 1\n        if k >= n")],
        UNSAFE,
    ),
    "counted only where nothing is stepped": (
        "GA401",
        COUNTED.format("", "        if k == n:\n            opt.step()\n            opt.zero_grad()\n            k = 0\n        else:\n            k += 1\n"),
        [("        else:\n            k += 1\n", ""), ("        if k == n", "        k += 1\n        if k == n")],
        SAFE,
    ),
    "a remainder of one": (
        "GA401",
        FOR + LD + BACK + "        if i % n == 1:\n            opt.step()\n            opt.zero_grad()\n",
        [("if i % n == 1", "if (i + 1) % n == 0")],
        SAFE,
    ),
    "a loop over gradients clears": (
        "GA101",
        FOR + "        for p in net.parameters():\n            if p.grad is not None:\n                p.grad.zero_()\n" + LD + BACK
        + "        if (i + 1) % n == 0:\n            opt.step()\n",
        [
            ("        for p in net.parameters():\n            if p.grad is not None:\n                p.grad.zero_()\n", ""),
            (
                "            opt.step()\n",
                "            opt.step()\n            for p in net.parameters():\n                if p.grad is not None:\n                    p.grad.zero_()\n",
            ),
        ],
        SAFE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "wrong", "changes", "safety"), CASES.values(), ids=CASES.keys())
def test_a_repair_is_what_a_person_writes(
    code: str, wrong: str, changes: list[tuple[str, str]], safety: Applicability
) -> None:
    check(code, wrong, changes, safety)


KEPT: dict[str, tuple[str, str]] = {
    "a mean over a list is right for a short window, N is not": (
        "GA106",
        "def train(loader, n):\n    losses = []\n    for i, (x, y) in enumerate(loader):\n"
        + L
        + "        losses.append(loss)\n"
        + LAST
        + "            torch.stack(losses).mean().backward()\n            losses = []\n            opt.step()\n            opt.zero_grad()\n",
    ),
    "an epoch starts its total anew, gradients would go on into the next": (
        "GA106",
        "def train(loader, n):\n    for epoch in range(3):\n        total = 0\n        for i, (x, y) in enumerate(loader):\n            loss = nn.functional.mse_loss(net(x), y) / n\n"
        "            total = total + loss\n            if (i + 1) % n == 0:\n                total.backward()\n                total = 0\n                opt.step()\n                opt.zero_grad()\n",
    ),
    "a loss is made and kept in one line": (
        "GA106",
        "def train(loader, n):\n    losses = []\n    for i, (x, y) in enumerate(loader):\n"
        "        loss = nn.functional.mse_loss(net(x), y) / n; losses.append(loss)\n"
        + LAST
        + "            sum(losses).backward()\n            losses = []\n            opt.step()\n            opt.zero_grad()\n",
    ),
    "the total is logged": (
        "GA106",
        "def train(loader, n):\n    total = 0\n    for i, (x, y) in enumerate(loader):\n        total = total + nn.functional.mse_loss(net(x), y) / n\n"
        + LAST
        + "            total.backward()\n            print(total)\n            total = 0\n            opt.step()\n            opt.zero_grad()\n",
    ),
    "the step shares its line": (
        "GA303",
        FOR + LD + BACK + "        print(i); " + CLIP + "        if (i + 1) % n == 0: opt.step(); opt.zero_grad()\n",
    ),
    "everything in two lines": (
        "GA301",
        SC + FOR + LD + "        scaler.scale(loss).backward(); scaler.unscale_(opt); " + CLIP
        + "        if (i + 1) % n == 0: scaler.step(opt); scaler.update(); opt.zero_grad()\n",
    ),
    "the clipping shares its line with the step": (
        "GA302",
        SC + FOR + SL + "        if (i + 1) % n == 0:\n            " + CLIP.rstrip() + "; scaler.step(opt)\n            scaler.update()\n            opt.zero_grad()\n",
    ),
    "a guard over several rows with comments": (
        "GA601",
        DDP + FOR + DL + BACK + "        if (\n            (i + 1) % n == 0  # full\n            or i + 1 == len(loader)  # last\n        ):\n            opt.step()\n            opt.zero_grad()\n",
    ),
    "several losses at once": (
        "GA201",
        FOR + "        a, b = nn.functional.mse_loss(net(x), y), net(x).abs().mean()\n        torch.autograd.backward([a, b])\n" + STEP,
    ),
    "the norm is read on every micro-batch": (
        "GA303",
        FOR + LD + BACK + "        norm = " + CLIP + "        print(norm)\n" + STEP,
    ),
    "the norm is read on every micro-batch, unscaled": (
        "GA301",
        SC + FOR + SL + "        scaler.unscale_(opt)\n        norm = " + CLIP + "        print(norm)\n" + SSTEP,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "wrong"), KEPT.values(), ids=KEPT.keys())
def test_a_repair_that_would_do_harm_is_not_offered(code: str, wrong: str) -> None:
    text = HEAD + wrong
    assert code in [d.code for d in lint(Source("train.py", text), Config()).diagnostics]
    assert fix_source(Source("train.py", text), Config(), None, allowed(True, frozenset({code}))).text == text
