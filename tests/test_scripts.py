"""Small whole scripts, each in a shape that public loops have, and the gradient that each of its steps applies."""

from __future__ import annotations

import pytest
from test_witnesses import FOUR, THREE, formulas

SUM = "g1 + g2 + g3 + g4"
HALVES = "(g1 + g2)/2"

GUARDS = {
    "N that may be zero": ("n", "if n and (i + 1) % n == 0:"),
    "an unknown flag flushes earlier": ("n, flush", "if flush or (i + 1) % n == 0:"),
    "two unknown flags allow it": ("n, ready, main", "if ready and main and (i + 1) % n == 0:"),
    "two unknown flags forbid it": ("n, dry, off", "if not (dry or off) and (i + 1) % n == 0:"),
    "the number stands left": ("n", "if 0 == (i + 1) % n:"),
    "the optimizer is there": ("n", "if opt is not None and (i + 1) % n == 0:"),
    "N is there": ("n", "if n is not None and (i + 1) % n == 0:"),
    "a flag of the configuration": ("n, args", "if not args.dry_run and (i + 1) % n == 0:"),
    "a chained comparison": ("n", "if -1 < (i + 1) % n < 1:"),
    "a negated condition with else": ("n", "if (i + 1) % n:\n            pass\n        else:"),
    "elif": ("n, args", "if i < 0:\n            print(i)\n        elif (i + 1) % n == 0:"),
    "an argument check first": ("n", "if n < 1:\n            raise ValueError(n)\n        if (i + 1) % n == 0:"),
    "a rank prints": ("n, args", "if args.local_rank in [-1, 0]:\n            print(i)\n        if (i + 1) % n == 0:"),
    "a match on the place": ("n", "match i % n:\n          case place if place == n - 1:"),
    "a match on something unknown": ("n, mode", "if (i + 1) % n == 0:\n         match mode:\n          case 'skip':\n            pass\n          case _:"),
    "an unseen helper decides nothing": ("n", "log_step(i)\n        if (i + 1) % n == 0:"),
}  # fmt: skip


@pytest.mark.parametrize(("params", "guard"), GUARDS.values(), ids=GUARDS.keys())
def test_a_guard_of_a_real_loop_keeps_its_windows(params: str, guard: str) -> None:
    base, other = formulas(
        f"def train(loader, {params}):\n    for i, (x, y) in enumerate(loader):\n"
        f"        (nn.functional.mse_loss(net(x), y) / n).backward()\n        {guard}\n"
        "            opt.step()\n            opt.zero_grad()\n"
    )
    assert len(base) >= 2 and set(base) == {FOUR}
    assert len(other) >= 2 and set(other) == {THREE}


BODY = """\
    for i, (x, y) in enumerate(loader):
        (nn.functional.mse_loss(net(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            opt.step()
            opt.zero_grad()
"""
TRIED = "try:\n            x = x.to(0)\n        except RuntimeError:\n            raise\n        "
DIVIDED = "(nn.functional.mse_loss(net(x), y) / 4)"
STEPS = {
    "keyword-only parameters": f"def train(loader, *, debug=False, log_every=10, name=None):\n{BODY}",
    "a generator that trains": f"def train(loader):\n{BODY}        yield i\n",
    "a coroutine that trains": f"async def train(loader):\n{BODY}",
    "a method of a class": (
        "class Trainer:\n    def __init__(self, loader, n=4):\n        self.n, self.loader = n, loader\n    def fit(self):\n"
        "        for i, (x, y) in enumerate(self.loader):\n            (nn.functional.mse_loss(net(x), y) / self.n).backward()\n"
        "            if (i + 1) % self.n == 0:\n                self.update()\n    def update(self):\n        opt.step()\n        opt.zero_grad()\n"
    ),
    "a class that fills its fields from keywords": (
        "class Opts:\n    pass\n" f"o = Opts()\no.n = 4\ndef train(loader):\n{BODY.replace('% 4', '% o.n')}"
    ),
    "a dataclass with a factory and a post-init": (
        "from dataclasses import field\n@dataclass\nclass C:\n    n: int\n    names: list = field(default_factory=list)\n    total: int = 0\n"
        f"    def __post_init__(self):\n        self.total = self.n * 2\nc = C(2)\ndef train(loader):\n{BODY.replace('% 4', '% c.total')}"
    ),
    "a named tuple": (
        f"from typing import NamedTuple\nclass C(NamedTuple):\n    n: int = 2\n    k: int = 4\nc = C(n=3)\ndef train(loader):\n{BODY.replace('% 4', '% c.k')}"
    ),
    "an optimizer class of its own": (
        "class Mine(torch.optim.SGD):\n    pass\nopt = Mine(net.parameters(), lr=0.1)\n" f"def train(loader):\n{BODY}"
    ),
    "an optimizer class with its own step": (
        "class Mine(torch.optim.Optimizer):\n    def step(self, closure=None):\n        for p in self.params:\n            p.data.add_(p.grad, alpha=-1)\n"
        f"opt = Mine(net.parameters(), {{}})\ndef train(loader):\n{BODY}"
    ),
    "a dataset class of its own": (
        "class Set(torch.utils.data.Dataset):\n    def __getitem__(self, k):\n        return k\n"
        f"loader = torch.utils.data.DataLoader(Set(), batch_size=2)\ndef train():\n{BODY}"
    ),
    "a loader that is wrapped out of sight": f"def train(loader):\n    loader = wrap_loader(loader)\n{BODY}",
    "a loader behind a progress helper": f"def train(loader):\n{BODY.replace('enumerate(loader)', 'enumerate(track_progress(loader))')}",
    "an unseen progress helper around a range": (
        "def train(loader):\n    for u in range(3):\n        for k in progress(range(4)):\n            x, y = next(loader)\n"
        "            (nn.functional.mse_loss(net(x), y) / 4).backward()\n        opt.step()\n        opt.zero_grad()\n"
    ),
    "a model that computes its own loss": (
        f"def train(loader):\n{BODY.replace('nn.functional.mse_loss(net(x), y)', 'net.training_step((x, y))')}"
    ),
    "a helper that runs the model": f"def train(loader):\n{BODY.replace('nn.functional.mse_loss(net(x), y)', 'compute(net, x, y)')}",
    "an average of the weights": f"ema = ModelEma(net)\ndef train(loader):\n{BODY}            ema.update(net)\n",
    "an unseen optimizer builder": f"opt = build_optimizer(net)\ndef train(loader):\n{BODY}",
    "xla's step": f"import torch_xla.core.xla_model as xm\ndef train(loader):\n{BODY.replace('opt.step()', 'xm.optimizer_step(opt)')}",
    "a step with a closure that is None": f"def train(loader):\n{BODY.replace('opt.step()', 'opt.step(None)')}",
    "a loop that is left at a bound": f"def train(loader, max_steps):\n{BODY}        if i >= max_steps:\n            break\n",
    "an endless loop with next": (
        "def train(loader, total):\n    it = iter(loader)\n    i = 0\n    while True:\n        try:\n            x, y = next(it)\n"
        "        except StopIteration:\n            it = iter(loader)\n            x, y = next(it)\n"
        "        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        i += 1\n        if i % 4 == 0:\n            opt.step()\n"
        "            opt.zero_grad()\n        if i >= total:\n            break\n"
    ),
    "a while loop over a counter": (
        "def train(loader, total):\n    i = 0\n    while i < total:\n        x, y = next(loader)\n"
        "        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        i += 1\n        if i % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "a try around the batch": "def train(loader):\n" + BODY.replace("(nn", TRIED + "(nn"),
    "a nested function": (
        "def train(loader):\n    def one(x, y, n=4):\n        (nn.functional.mse_loss(net(x), y) / n).backward()\n"
        "    for i, batch in enumerate(loader):\n        one(*batch)\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "a partial": (
        "def one(n, x, y):\n    (nn.functional.mse_loss(net(x), y) / n).backward()\ngo = partial(one, 4)\n"
        "def train(loader):\n    for i, (x, y) in enumerate(loader):\n        go(x, y)\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "a decorated function": f"@torch.enable_grad()\ndef train(loader):\n{BODY}",
    "a loss of several parts": (
        f"def train(loader):\n{BODY.replace('nn.functional.mse_loss(net(x), y) / 4', '(nn.functional.mse_loss(net(x), y) + net(x).abs().mean()) / 4')}"
    ),
    "a loss in a dict of outputs": "def train(loader):\n" + BODY.replace(DIVIDED, "out = net(x, labels=y)\n        (out.loss / 4)"),
    "a list that is filled out of sight": (
        "batches = []\nfill(batches)\ndef train():\n" + BODY.replace("enumerate(loader)", "enumerate(batches)")
    ),
    "a list that a loop filled": (
        "def train(loader):\n    kept = []\n    for x in loader:\n        kept.append(x)\n" + BODY.replace("enumerate(loader)", "enumerate(kept)")
    ),
    "an object with a generator": (
        "class Feed:\n    def __iter__(self):\n        while True:\n            yield fetch(), fetch()\n"
        "def train():\n" + BODY.replace("enumerate(loader)", "enumerate(Feed())")
        + "        if i == 11:\n            break\n"
    ),
    "an object that gives an iterator": (
        "class Feed:\n    def __iter__(self):\n        return iter(self.files)\n    def __len__(self):\n        return 8\n"
        "def train():\n" + BODY.replace("enumerate(loader)", "enumerate(Feed())")
    ),
    "batches from next on a generator": (
        "def feed():\n    while True:\n        yield {'x': load()}, 'name'\n"
        "def train(total):\n    it = feed()\n    for i in range(total):\n        batch, name = next(it)\n"
        "        (net(batch['x']).mean() / 4).backward()\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "batches from next on an enumeration": (
        "def train(loader, total):\n    it = enumerate(loader)\n    while True:\n        i, (x, y) = next(it)\n"
        "        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
        "        if i >= total:\n            break\n"
    ),
    "batches from next on a cycle": (
        "def train(loader, total):\n    it = cycle(loader)\n    for i in range(total):\n        x, y = next(it)\n"
        "        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "a chain of loaders": "def train(a, b):\n" + BODY.replace("enumerate(loader)", "enumerate(chain(a, b))"),
    "a loader without its first batches": "def train(loader, skip):\n" + BODY.replace("enumerate(loader)", "enumerate(islice(loader, skip, None))"),
    "one epoch by default": f"def train(loader, epochs=1):\n    for epoch in range(epochs):\n        run(loader)\ndef run(loader):\n{BODY}train(load())\n",
    "a run that goes on from a checkpoint": (
        "def train(loader, start, total):\n    for i in range(0, total):\n        x, y = next(loader)\n"
        "        (nn.functional.mse_loss(net(x), y) / 4).backward()\n        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "a spawned worker": f"import torch.multiprocessing as mp\ndef work(rank, loader):\n{BODY}if __name__ == '__main__':\n    mp.spawn(work, args=(load(),), nprocs=2)\n",
    "a model that is asked what it is": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        f"core = net.module if isinstance(net, DDP) else net\ncore = net.module if hasattr(net, 'module') else net\n"
        f"assert hasattr(opt, 'step') and not isinstance(net, (list, dict))\ndef train(loader):\n{BODY}"
    ),
    "settings from a namespace of a dict": (
        "from types import SimpleNamespace\nraw = {'every': 4}\ncfg = SimpleNamespace(**raw)\n"
        "def train(loader):\n" + BODY.replace("% 4", "% cfg.every")
    ),
    "settings by name": (
        "class Cfg:\n    every = 4\ncfg = Cfg()\nsetattr(cfg, 'lr', 1)\nhalf = getattr(torch, 'float16')\n"
        "def train(loader):\n" + BODY.replace("% 4", "% getattr(cfg, 'every', 1)")
    ),
    "a dict of loaders": (
        "def train(loaders):\n    for name in {'a': 1, 'b': 2}:\n        print(name)\n    for i, (x, y) in enumerate(loaders['train']):\n"
        + BODY.split("\n", 1)[1]
    ),
    "an exit for wrong arguments": f"import sys\ndef train(loader, name):\n    if name is None:\n        sys.exit(1)\n{BODY}",
    "clipping through named parameters": (
        f"def train(loader):\n{BODY.replace('            opt.step()', '            for name, p in net.named_parameters():{0}                print(name, p.grad.norm()){0}            opt.step()'.format(chr(10)))}"
    ),
    "gradients read through the data": (
        "def train(loader):\n" + BODY.replace("            opt.step()", "            for p in net.parameters():\n                print(p.grad.data.norm(), p.shape)\n            opt.step()")
    ),
    "a deleted and a global name": f"count = 0\ndef train(loader):\n    global count\n{BODY}        count += 1\n        del x, y\n",
}  # fmt: skip


@pytest.mark.parametrize("text", STEPS.values(), ids=STEPS.keys())
def test_a_script_applies_the_mean_of_four(text: str) -> None:
    base, _ = formulas(text)
    assert base and set(base) == {FOUR}


def test_a_sample_counter_is_filled_by_a_window() -> None:
    base, _ = formulas(
        "def train(loader, target=64):\n    seen = 0\n    for x, y in loader:\n        nn.functional.mse_loss(net(x), y).backward()\n"
        "        seen += len(x)\n        if seen >= target:\n            opt.step()\n            opt.zero_grad()\n            seen = 0\n"
    )
    assert base and set(base) == {SUM}


def test_a_call_of_the_script_decides_what_is_run() -> None:
    base, other = formulas(f"def train(loader, n):\n{BODY.replace('4', 'n')}train(load(), 2)\ntrain(load(), n=2)\n")
    assert base and set(base) == set(other) == {HALVES}
