"""Scripts whose Python is unusual and whose windows are right: each step applies the mean of four micro-batches."""

from __future__ import annotations

import pytest
from test_scripts import BODY, DIVIDED
from test_witnesses import FOUR, formulas

GUARD = "        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
BACK = f"        {DIVIDED}.backward()\n"
FOR = "    for i, (x, y) in enumerate(loader):\n"


def inside(text: str, before: str = "") -> str:
    """A training function with statements in front of the backward."""
    lines = "".join(f"        {line}\n" for line in text.splitlines())
    return f"{before}def train(loader, args, mode):\n{FOR}{lines}{BACK}{GUARD}"


ODD = {
    # Control flow.
    "awaits a batch": f"import asyncio\nasync def train(loader):\n{FOR}        await asyncio.sleep(0)\n{BACK}{GUARD}",
    "a bare except around the batch": inside("try:\n    x = next(stream)\nexcept:\n    continue"),
    "an exception of its own that another handler would catch": inside(
        "try:\n    try:\n        if i < 0:\n            raise KeyError(i)\n    except ValueError:\n        pass\nexcept KeyError:\n    pass"
    ),
    "a raised and caught exception": inside("try:\n    raise RuntimeError('again')\nexcept:\n    pass"),
    "an exception that only the outer try catches": inside(
        "try:\n    try:\n        raise KeyError(i)\n    except ValueError:\n        opt.step()\nexcept KeyError:\n    pass"
    ),
    "a finally that leaves by itself": inside("try:\n    pass\nfinally:\n    print(i)"),
    "an elif chain that always leaves": inside(
        "if mode == 'a':\n    raise ValueError(mode)\nelif mode == 'b':\n    raise KeyError(mode)"
    ),
    "match on a number": inside("match i % 2:\n    case 0:\n        print('even')\n    case 1 | 3:\n        print('odd')"),
    "match on a setting": inside("match args.every:\n    case 1:\n        pass\n    case n:\n        print(n)"),
    "match on a class and a mapping": inside(
        "match mode:\n    case str(name):\n        print(name)\n    case {'kind': 'x', **rest}:\n        print(rest)\n    case [first, *_]:\n        print(first)"
    ),
    "a while loop with a countdown": (
        "def train(loader):\n    left = 40\n    batches = iter(loader)\n    i = 0\n    while left:\n        left -= 1\n        x, y = next(batches)\n"
        + BACK + GUARD + "        i += 1\n"
    ),
    # Data.
    "repeat beside the loader": (
        f"import itertools\ndef train(loader):\n    for i, (tag, (x, y)) in enumerate(zip(itertools.repeat('a'), loader)):\n{BACK}{GUARD}"
    ),
    "a starred target": f"def train(loader):\n    for i, (x, *rest, y) in enumerate(loader):\n{BACK}{GUARD}",
    "a starred literal": inside("first, *others, last = ['a', 'b', 'c', 'd']\nprint(last, others)"),
    "swapped names": inside("a, *b = x, y\nx, y = (a, b[0])"),
    "bytes and text joined": inside("tag = b'a' + b'b'\nname = 'run' + '-' + str(i)\nname += '.pt'"),
    "a slice of lists and data": inside("parts = [1, 2, 3, 4][1::2]\nhead = x[:2]\nnames = args.names[1:]"),
    "lists that change": inside(
        "held = [1]\nheld.extend([2, 3])\nheld.extend(args.more)\nheld.insert(0, 0)\nheld.pop(0)\nheld.pop()\nheld.clear()\nd = {'a': 1}\nd.update({'b': 2})\nd.update(c=3)\nd.pop('a', None)\nd.clear()"
    ),
    "a dict filled by pairs": inside("made = dict(zip(['a', 'b'], [1, 2]))\nfor key, value in made.items():\n    print(key, value)"),
    "sets, ranges and filters": inside(
        "seen = set(range(3)) | {i}\nkept = list(filter(lambda k: k > 1, [1, 2, 3]))\neven = list(range(8, 0, -2))\nnone = list(range(0))\nodd = sorted({3, 1})"
    ),
    "a length of a repeat": inside("import itertools\nwindow = list(itertools.islice(itertools.count(), 3))"),
    # Functions and classes.
    "a static method of an object": inside(
        "helper.show(i)", "class Helper:\n    @staticmethod\n    def show(k):\n        print(k)\nhelper = Helper()\n"
    ),
    "a class method and a property": inside(
        "print(Helper.make().size)",
        "class Helper:\n    def __init__(self):\n        self._size = 3\n    @classmethod\n    def make(cls):\n        return cls()\n    @property\n    def size(self):\n        return self._size\n",
    ),
    "super outside of a class": inside("shown = show(i)", "def show(k):\n    try:\n        return super().show(k)\n    except RuntimeError:\n        return k\n"),
    "a lambda that calls itself": inside("depth(2)", "depth = lambda k: 0 if k == 0 else depth(k - 1)\n"),
    "an object that is called": inside("meter(i)", "class Meter:\n    def __call__(self, k):\n        self.last = k\nmeter = Meter()\n"),
    "a context manager that raises when it ends": inside(
        "try:\n    with Section():\n        pass\nexcept RuntimeError:\n    pass",
        "class Section:\n    def __enter__(self):\n        return self\n    def __exit__(self, *args):\n        raise RuntimeError('end')\n",
    ),
    "partial": inside("show(i)", "from functools import partial\nshow = partial(print, 'step', end='')\n"),
    # Settings.
    "a namespace of a dict": (
        "from types import SimpleNamespace\nargs = SimpleNamespace(**{'n': 4, 'lr': 0.1})\n"
        f"def train(loader):\n{BODY.replace('% 4', '% args.n')}"
    ),
    "vars of the arguments": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=4)\nargs = vars(p.parse_args())\ndef train(loader):\n" + BODY.replace('% 4', '% args["n"]').replace('/ 4', '/ args["n"]')
    ),
    "getattr with a default": (
        f"def train(loader, args):\n    n = getattr(args, 'n', 4)\n{BODY.replace('% 4', '% n').replace('/ 4', '/ n')}"
    ),
    "a setting that is a huge float": inside("limit = 1e400\nif i > limit:\n    print('never')"),
    # Tensors.
    "the loss is logged through its data": f"def train(loader):\n{FOR}        loss = {DIVIDED}\n        print(loss.data, loss.item(), loss.detach().cpu().numpy())\n        loss.backward()\n{GUARD}",
    "the output's loss is divided in place": (
        f"def train(loader):\n{FOR}        out = Out()\n        out.loss = nn.functional.mse_loss(net(x), y)\n        out.loss = out.loss / 4\n        out.loss.backward()\n{GUARD}"
    ).replace("def train", "class Out:\n    pass\ndef train", 1),
    "torch's own division": f"def train(loader):\n{FOR}        torch.div(nn.functional.mse_loss(net(x), y), 4).backward()\n{GUARD}",
    "torch's own product of data": inside("x = torch.mul(x, 2)\nx = x.mul(0.5)\nx = x / x.norm()"),
    "the mean of unreduced losses": f"def train(loader):\n{FOR}        losses = nn.functional.mse_loss(net(x), y, reduction='none')\n        (torch.mean(losses) / 4).backward()\n{GUARD}",
    "a constant tensor weighs nothing": f"def train(loader):\n{FOR}        loss = {DIVIDED} + torch.zeros(1).sum() * torch.ones(())\n        loss.backward()\n{GUARD}",
    "parameters are frozen by hand": inside("for p in list(net.parameters())[:1]:\n    p.requires_grad = True"),
}  # fmt: skip


@pytest.mark.parametrize("text", ODD.values(), ids=ODD.keys())
def test_an_odd_script_applies_the_mean_of_four(text: str) -> None:
    compile(text, "script", "exec")
    base, _ = formulas(text)
    assert base and set(base) == {FOUR}
