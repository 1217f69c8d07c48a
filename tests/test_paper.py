"""What the run on paper computes is what Python computes: each script runs both ways and `out` is compared."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from paper import Unknown, python, run, variables

BUILTINS = {
    "len of a list, a dict, a text and a range": "out = len([1, 2]), len({'a': 1}), len('abc'), len(range(2, 11, 4))",
    "len of an enumeration's source": "xs = [5, 6, 7]\nout = [i for i, x in enumerate(xs)], len(xs)",
    "range with one bound": "out = list(range(4))",
    "range with two bounds": "out = list(range(2, 5))",
    "range with a step": "out = list(range(1, 10, 4))",
    "range counting down": "out = list(range(7, 0, -3))",
    "range without elements": "out = [0]\nfor i in range(5, 5):\n    out.append(i)\nout = len(out) >= 1",
    "enumerate from a start": "out = []\nfor i, x in enumerate(['a', 'b'], start=3):\n    out.append((i, x))",
    "enumerate from a positional start": "out = []\nfor i, x in enumerate(['a', 'b'], 1):\n    out.append((i, x))",
    "enumerate a tuple": "out = [(i, x) for i, x in enumerate((4, 5))]",
    "zip to the shorter one": "out = [(a, b) for a, b in zip([1, 2, 3], [4, 5])]",
    "zip to the shorter first one": "out = [(a, b) for a, b in zip([1], [4, 5])]",
    "zip collected": "out = list(zip([1, 2], 'ab' and ['a', 'b']))",
    "map with a lambda": "out = [y for y in map(lambda x: x * 3, [1, 2])]",
    "reversed list and range": "out = [x for x in reversed([1, 2, 3])], [x for x in reversed(range(1, 8, 3))]",
    "chain": "from itertools import chain\nout = [x for x in chain([1], (2, 3))]",
    "islice with a stop": "from itertools import islice\nout = [x for x in islice([1, 2, 3, 4], 2)]",
    "islice with a start and a stop": "from itertools import islice\nout = [x for x in islice([1, 2, 3, 4, 5], 1, 4)]",
    "islice of nothing": "from itertools import islice\nout = [x for x in islice([1, 2], 0)]",
    "cycle by hand": (
        "from itertools import cycle\nit = cycle([1, 2, 3])\nout = [next(it), next(it), next(it), next(it), next(it)]"
    ),
    "cycle beside a list": "from itertools import cycle\nout = [p for p in zip([1, 2, 3], cycle('ab' and ['a', 'b']))]",
    "repeat a number of times": "from itertools import repeat\nout = [x for x in repeat(7, 3)]",
    "repeat beside a list": "from itertools import repeat\nout = [p for p in zip([1, 2], repeat(9))]",
    "count from a start": (
        "from itertools import count\nout = []\nfor i in count(5):\n    out.append(i)\n    if i == 8:\n        break"
    ),
    "count with a step": (
        "from itertools import count\nout = []\nfor i in count(5, 2):\n    out.append(i)\n    if i >= 9:\n        break"
    ),
    "count by hand": "from itertools import count\nit = iter(count(2))\nout = [next(it), next(it)]",
    "count by hand with a step": "from itertools import count\nit = count(2, 3)\nout = [next(it), next(it), next(it)]",
    "next on a list iterator": "it = iter([1, 2])\nout = [next(it), next(it)]",
    "next with a default": "it = iter([1])\nout = [next(it, None), next(it, None), next(it, 'end')]",
    "next on an enumeration": "it = iter(enumerate([7, 8], 5))\nout = [next(it), next(it)]",
    "next on a zip": "it = iter(zip([1, 2], (3, 4)))\nout = [next(it), next(it)]",
    "next on a range": "it = iter(range(3, 9, 2))\nout = [next(it), next(it)]",
    "the rest of an iterator": "it = iter([1, 2, 3])\nfirst = next(it)\nout = [x for x in it]",
    "iter of an iterator": "it = iter([1, 2])\nagain = iter(it)\nfirst = next(again)\nout = [first, next(it)]",
    "stop iteration is caught": (
        "it = iter([1])\nout = []\nwhile True:\n    try:\n        out.append(next(it))\n    except StopIteration:\n        break"
    ),
    "an object's own next": (
        "class Count:\n    def __init__(self):\n        self.n = 0\n    def __iter__(self):\n        return self\n"
        "    def __next__(self):\n        self.n += 1\n        return self.n\nc = Count()\nout = [next(c), next(iter(c))]"
    ),
    "a generator": "def pairs():\n    for i in range(3):\n        yield i, i * i\nout = []\nfor a, b in pairs():\n    out.append((a, b))",
    "yield from": "def both():\n    yield from [1, 2]\n    yield 3\nout = [x for x in both()]",
    "int, float, abs, round, bool": "out = int(7 / 2), float(2), abs(-3), round(2.6), bool(0), bool([1]), bool()",
    "negative numbers to int": "out = int(-7 / 2), -7 // 2, -7 % 3",
    "numbers from text": "out = int('12'), float('0.5')",
    "int of nothing": "out = int() + 1",
    "round to digits": "out = round(2.5, 0) == 2.5 or True",
    "ceil and floor": "import math\nout = math.ceil(7 / 2), math.floor(7 / 2), math.ceil(4), math.floor(-1 / 2)",
    "max and min": "out = max(3, 5, 4), min(3, 5, 4), max([1, 9]), min((2, 8))",
    "sum": "out = sum([1, 2, 3]), sum((4, 5))",
    "sum from a start": "out = sum([1, 2], 10)",
    "sum with a keyword start": "out = sum([1, 2], start=10)",
    "all and any": "out = all([1, 2]), all([1, 0]), any([0, 0]), any([0, 3]), all([]), any([])",
    "divmod": "out = divmod(17, 5), divmod(-1, 4)",
    "isinstance of literals": (
        "out = isinstance(3, int), isinstance(3, str), isinstance('a', (str, int)), isinstance(0.5, float),"
        " isinstance([1], list), isinstance((1,), list), isinstance({}, dict), isinstance([1], (tuple, list))"
    ),
    "isinstance of a union": "out = isinstance(3, int | str), isinstance([1], dict | tuple), isinstance('a', (bytes, str | int))",
    "filter": "out = [x for x in filter(lambda n: n > 1, [1, 2, 3])], [x for x in filter(None, [0, 4])]",
    "bool keeps what it is given": "out = bool(3), bool('')",
    "iterating a dict and a text": "out = [k for k in {'a': 1, 'b': 2}], [c for c in 'abc']",
    "cycle in a loop": (
        "from itertools import cycle\nout = []\nfor x in cycle([1, 2]):\n    out.append(x)\n    if len(out) == 5:\n        break"
    ),
    "repeat by hand": "from itertools import repeat\nit = repeat(7, 2)\nout = [next(it), next(it), next(it, 'end')]",
    "a loop left inside a chain": (
        "from itertools import chain\nout = []\nfor x in chain([1, 2], [3]):\n    out.append(x)\n    if x == 2:\n        break"
    ),
    "a loop left inside islice": (
        "from itertools import islice\nout = []\nfor x in islice([1, 2, 3], 3):\n    out.append(x)\n    if x == 2:\n        break"
    ),
    "the rest after a break": "it = iter([1, 2, 3])\nfirst = next(it)\nout = []\nfor x in it:\n    out.append(x)\n    break",
    "a generator that ends itself": "def f():\n    yield 1\n    return\n    yield 2\nout = [x for x in f()]",
    "an object with a generator": (
        "class Box:\n    def __init__(self):\n        self.held = [4, 5]\n    def __iter__(self):\n        for x in self.held:\n            yield x\n"
        "out = [x for x in Box()]"
    ),
    "argparse flags": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('-q', action='store_true')\np.add_argument('--deep-n', default=3)\n"
        "g = p.add_mutually_exclusive_group()\ng.add_argument('--lr', default=2)\nargs = p.parse_args([])\nout = args.deep_n, args.lr"
    ),
    "copy of a dict": "d = {'a': 1}\ne = d.copy()\ne['b'] = 2\nout = d, e",
    "sort and sorted of what has no order": "a = [2, 1]\na.sort(reverse=True)\nout = a, sorted(['b', 'a']), sorted({'k': 1})",
    "a bool is an int": "out = isinstance(True, int), isinstance(True, bool), isinstance(1, bool)",
    "isinstance of own classes": (
        "class A: pass\nclass B(A): pass\nclass C(B): pass\nout = isinstance(B(), A), isinstance(C(), A), isinstance(B(), B)"
    ),
    "collections copied": "a = [1, 2]\nb = list(a)\nb.append(3)\nout = a, b, tuple(a), set([4]), list({'k': 1}), list()",
    "tuple of a range": "out = tuple(range(3))",
    "list of a generator": "out = list(x + 1 for x in [1, 2])",
    "sorted": "out = sorted([3, 1, 2]), sorted([3, 1, 2], reverse=True)",
    "list sort and reverse": "a = [3, 1, 2]\na.sort()\nb = [1, 2, 3]\nb.reverse()\nout = a, b",
    "dict from keywords and a dict": "out = dict(a=1, b=2), dict({'c': 3}, d=4)",
    "list methods": (
        "a = [1]\na.append(2)\na.extend([3, 4])\nlast = a.pop()\nfirst = a.pop(0)\nb = a.copy()\na.clear()\nout = last, first, b, a"
    ),
    "a copied list is another list": "a = [1]\nb = a.copy()\nb.append(2)\nout = a, b",
    "a shallow copy is another list": "import copy\na = [1]\nb = copy.copy(a)\nb.append(2)\nout = a, b",
    "deque": (
        "from collections import deque\nd = deque([1, 2])\nd.append(3)\nfirst = d.popleft()\nd.appendleft(9)\nout = first, list(d)"
    ),
    "dict methods": (
        "d = {'a': 1, 'b': 2}\ngot = d.get('a'), d.get('x', 7), d.pop('b')\nd.update({'c': 3}, e=5)\n"
        "kept = d.setdefault('c', 0), d.setdefault('f', 6)\n"
        "out = got, kept, list(d.keys()), list(d.values()), [(k, v) for k, v in d.items()], d"
    ),
    "dict pop with a default": "d = {'a': 1}\nout = d.pop('z', 4), d.pop('a', 5), d",
    "dict clear": "d = {'a': 1}\nd.clear()\nout = len(d)",
    "ordered dict": "from collections import OrderedDict\nd = OrderedDict(a=1)\nd['b'] = 2\nout = list(d)",
    "default dict": "from collections import defaultdict\nd = defaultdict(int)\nd['a'] = 3\nout = d['a'], len(d)",
    "partial": (
        "from functools import partial\ndef f(a, b, c=0):\n    return a + 10 * b + 100 * c\n"
        "g = partial(f, 1, c=3)\nh = partial(g, c=4)\nout = g(2), h(2), partial(f, 1, 2)()"
    ),
    "namespace": "from types import SimpleNamespace\nn = SimpleNamespace(a=3, **{'b': 4})\nout = n.a, n.b",
    "getattr and setattr": (
        "class Box: pass\nbox = Box()\nsetattr(box, 'n', 5)\nout = getattr(box, 'n'), getattr(box, 'n', 3), hasattr(box, 'n')"
    ),
    "argparse defaults": (
        "import argparse\np = argparse.ArgumentParser()\ng = p.add_argument_group('x')\n"
        "g.add_argument('-n', '--accum-steps', type=int, default=6)\np.add_argument('--lr', dest='rate', default=2)\n"
        "p.set_defaults(rate=5)\nargs = p.parse_args([])\nout = args.accum_steps, args.rate"
    ),
    "argparse with what it does not know": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=3)\n"
        "args, rest = p.parse_known_args([])\nout = args.n"
    ),
    "print and friends return nothing": "out = print('x')",
    "nullcontext gives its argument": "from contextlib import nullcontext\nwith nullcontext(4) as four:\n    out = four",
    "track gives its argument": "out = [x for x in list([1, 2])]",
}

LANGUAGE = {
    "arithmetic": "out = 7 + 2, 7 - 2, 7 * 2, 7 // 2, 7 % 4, 2 ** 5, 6 & 3, 6 | 3, 6 ^ 3, 1 << 4, 9 >> 2, ~5, -3, +3",
    "exact division": "out = 1 / 4 + 1 / 4",
    "powers of fractions": "out = 2 ** -2, (1 / 2) ** 3",
    "comparisons": "out = 1 < 2, 2 <= 2, 3 > 4, 4 >= 4, 1 == 1, 1 != 1, 1 < 2 < 3, 1 < 3 < 2",
    "membership": "out = 1 in [1, 2], 3 not in (1, 2), 'a' in {'a': 1}, 'b' in 'abc', 4 in [1], 'z' not in 'abc'",
    "identity": "a = None\nb = []\nout = a is None, b is None, a is not None, b is b, b is not b",
    "boolean operators give operands": "out = 0 or 5, 3 and 4, 0 and 1, None or 0, 2 or 3, not 0, not [1]",
    "conditional expression": "n = 3\nout = ('odd' if n % 2 else 'even', 8 if n > 3 else 9)",
    "walrus": "out = [(n := 4), n + 1]",
    "text": "out = 'a' + 'b', b'a' + b'b'",
    "list operators": "out = [1] + [2], [0] * 3, (1,) + (2,)",
    "indexing": "a = [1, 2, 3]\nd = {'k': 5}\nout = a[0], a[-1], d['k'], a[1:], a[:2], a[::2], (4, 5)[1]",
    "item assignment": "a = [1, 2]\na[0] = 9\nd = {}\nd['x'] = 1\nd['x'] += 4\nout = a, d",
    "unpacking": "a, (b, c), *rest = 1, (2, 3), 4, 5\nout = a, b, c, rest",
    "star in the middle": "a, *mid, z = [1, 2, 3, 4]\nout = a, mid, z",
    "swap": "a, b = 1, 2\na, b = b, a\nout = a, b",
    "chained assignment": "a = b = 3\na += 1\nout = a, b",
    "displays with stars": "a = [1, 2]\nout = [0, *a], {**{'k': 1}, 'j': 2}",
    "comprehensions": "out = [x for x in [1, 2, 3] if x != 2], [a + b for a in [1, 2] for b in [10, 20]], {k: k * 2 for k in [1, 2]}",
    "while and else": "n = 0\nwhile n < 3:\n    n += 1\nelse:\n    n += 10\nout = n",
    "break skips else": "for i in [1, 2, 3]:\n    if i == 2:\n        break\nelse:\n    i = 99\nout = i",
    "for else": "for i in [1, 2]:\n    pass\nelse:\n    i += 10\nout = i",
    "continue": "out = []\nfor i in [1, 2, 3]:\n    if i == 2:\n        continue\n    out.append(i)",
    "functions": (
        "def f(a, b=2, *rest, c=3, **more):\n    return a, b, rest, c, more\n"
        "out = f(1), f(1, 5, 6, 7), f(1, c=4, z=9), f(*[1, 2], **{'c': 8})"
    ),
    "closures": (
        "def counter():\n    n = 0\n    def bump():\n        nonlocal n\n        n += 1\n        return n\n    return bump\n"
        "c = counter()\nout = c(), c()"
    ),
    "globals": "n = 1\ndef bump():\n    global n\n    n += 4\nbump()\nout = n",
    "a local name hides a global one": "n = 1\ndef f():\n    n = 5\n    return n\nout = f(), n",
    "a class's names are not in its methods' scope": "n = 1\nclass A:\n    n = 5\n    def get(self):\n        return n\nout = A().get()",
    "lambda with a default": "f = lambda a, b=3: a * b\nout = f(2), f(2, 5)",
    "classes": (
        "class Base:\n    step = 2\n    def __init__(self, n):\n        self.n = n\n    def up(self):\n        self.n += self.step\n"
        "        return self.n\nclass Child(Base):\n    def __init__(self, n):\n        super().__init__(n * 10)\n"
        "    @property\n    def double(self):\n        return self.n * 2\n    @staticmethod\n    def make(k):\n        return k + 1\n"
        "    @classmethod\n    def build(cls, n):\n        return cls(n)\nc = Child(1)\nout = c.up(), c.up(), c.double, Child.make(4), Child.build(3).n"
    ),
    "a callable object": "class Add:\n    def __init__(self, n):\n        self.n = n\n    def __call__(self, x):\n        return x + self.n\nout = Add(3)(4)",
    "a context manager of one's own": (
        "log = []\nclass Ctx:\n    def __enter__(self):\n        log.append('in')\n        return 5\n"
        "    def __exit__(self, *exc):\n        log.append('out')\nwith Ctx() as got:\n    log.append(got)\nout = log"
    ),
    "a generator as context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef ctx(n):\n    yield n + 1\nwith ctx(3) as got:\n    out = got"
    ),
    "try, else, finally": (
        "log = []\ntry:\n    log.append(1)\nexcept ValueError:\n    log.append(2)\nelse:\n    log.append(3)\nfinally:\n    log.append(4)\nout = log"
    ),
    "except by name": (
        "log = []\ndef f():\n    raise KeyError('x')\ntry:\n    f()\nexcept ValueError:\n    log.append(1)\n"
        "except (TypeError, KeyError):\n    log.append(2)\nfinally:\n    log.append(3)\nout = log"
    ),
    "dataclass": (
        "from dataclasses import dataclass\n@dataclass\nclass Config:\n    lr: float\n    accum: int = 4\n"
        "c = Config(2)\nd = Config(1, accum=8)\nout = c.lr, c.accum, d.accum"
    ),
    "delete and pass": "a = 1\ndel a\npass\nassert True\nout = 3",
    "star import and annotations": "n: int = 4\nm: int\nout = n",
    "early return": "def f(n):\n    if n > 2:\n        return 'big'\n    for i in [1, 2]:\n        if i == n:\n            return i\nout = f(3), f(2), f(0)",
}

MATCH = {
    "value": "match 3:\n    case 2:\n        out = 'two'\n    case 3:\n        out = 'three'",
    "wildcard": "match 9:\n    case 2:\n        out = 'two'\n    case _:\n        out = 'other'",
    "nothing matches": "out = 'none'\nmatch 9:\n    case 2:\n        out = 'two'",
    "text": "match 'mean':\n    case 'sum':\n        out = 1\n    case 'mean':\n        out = 2",
    "a truth value is not a number": "match 1:\n    case True:\n        out = 'true'\n    case 1:\n        out = 'one'",
    "a number is not a truth value": "match True:\n    case 1:\n        out = 'equal'\n    case _:\n        out = 'other'",
    "none": "match None:\n    case 0:\n        out = 'zero'\n    case None:\n        out = 'none'",
    "dotted name": "class K:\n    A = 4\nmatch 4:\n    case K.A:\n        out = 'a'\n    case _:\n        out = 'other'",
    "or": "out = []\nfor n in [0, 1, 2, 3]:\n    match n:\n        case 0 | 2:\n            out.append('even')\n        case 1 | 3:\n            out.append('odd')",
    "or of nothing that matches": "match 5:\n    case 0 | 1:\n        out = 'low'\n    case _:\n        out = 'high'",
    "capture": "match 5:\n    case n:\n        out = n + 1",
    "as": "match (1, 2):\n    case (1, (2 | 3) as n) as whole:\n        out = n, whole",
    "guard": "match 5:\n    case n if n > 9:\n        out = 'big'\n    case n if n > 4:\n        out = 'middle'\n    case _:\n        out = 'small'",
    "sequence": "match [1, 2]:\n    case [1, 3]:\n        out = 'a'\n    case [1, n]:\n        out = n",
    "sequence by length": "match (1, 2, 3):\n    case (a, b):\n        out = 2\n    case (a, b, c):\n        out = 3",
    "nested sequence": "match (0, [1, (2, 3)]):\n    case (0, [1, (2, n)]):\n        out = n",
    "first of a sequence differs": "match (7, 2):\n    case (6, n):\n        out = 'six', n\n    case (7, n):\n        out = 'seven', n",
    "star at the end": "match [1, 2, 3]:\n    case [first, *rest]:\n        out = first, rest",
    "star in the middle": "match [1, 2, 3, 4]:\n    case [a, *mid, z]:\n        out = a, mid, z",
    "star at the start": "match [1, 2, 3]:\n    case [*most, 3]:\n        out = most",
    "star that takes nothing": "match [1, 2]:\n    case [a, *mid, z]:\n        out = a, mid, z",
    "star needs enough elements": "match [1]:\n    case [a, *mid, z]:\n        out = 'two'\n    case _:\n        out = 'fewer'",
    "star without a name": "match [1, 2, 3]:\n    case [a, *_]:\n        out = a",
    "after the star differs": "match [1, 2, 3]:\n    case [a, *_, 4]:\n        out = 'four'\n    case [a, *_, 3]:\n        out = 'three'",
    "a number is no sequence": "match 3:\n    case [a, b]:\n        out = 'pair'\n    case _:\n        out = 'other'",
    "a text is no sequence": "match 'ab':\n    case [a, b]:\n        out = 'pair'\n    case _:\n        out = 'other'",
    "mapping": "match {'n': 4, 'lr': 1}:\n    case {'steps': n}:\n        out = 'steps'\n    case {'n': n}:\n        out = n",
    "mapping by value": "match {'kind': 'b', 'n': 2}:\n    case {'kind': 'a', 'n': n}:\n        out = 'a', n\n    case {'kind': 'b', 'n': n}:\n        out = 'b', n",
    "rest of a mapping": "match {'a': 1, 'b': 2, 'c': 3}:\n    case {'a': one, **others}:\n        out = one, others",
    "empty mapping pattern": "match {'a': 1}:\n    case {}:\n        out = 'any'",
    "a list is no mapping": "match [1]:\n    case {}:\n        out = 'mapping'\n    case _:\n        out = 'other'",
    "a number is no mapping": "match 2:\n    case {'a': 1}:\n        out = 'mapping'\n    case _:\n        out = 'other'",
    "tuple of tests": "out = []\nfor i in [0, 1, 2, 3]:\n    match (i % 2, i == 3):\n        case (1, False):\n            out.append('odd')\n        case (_, True):\n            out.append('last')\n        case _:\n            out.append('even')",
}

ALL = BUILTINS | LANGUAGE | MATCH


def exact(value: Any) -> Any:
    """Floats as the fractions that they stand for."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else Fraction(value)
    if isinstance(value, list | tuple | set):
        return type(value)(exact(v) for v in value)
    if isinstance(value, dict):
        return {k: exact(v) for k, v in value.items()}
    return value


def typed(value: Any) -> Any:
    """A value with its type beside it, so that 1 and True differ."""
    if isinstance(value, list | tuple):
        return type(value), [typed(v) for v in value]
    if isinstance(value, dict):
        return dict, {k: typed(v) for k, v in value.items()}
    return type(value), value


@pytest.mark.parametrize("script", ALL.values(), ids=ALL.keys())
def test_paper_computes_what_python_computes(script: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(script, names)
    seen = variables(script)["out"]
    assert typed(seen) == typed(exact(names["out"]))


@pytest.mark.parametrize(
    "expression",
    [
        "any([flag, 0])", "all([flag, 1])", "sum(things)", "sum([])", "max(flag, 5)", "min(flag, 5)", "isinstance(flag, int)",
        "isinstance(3, Other)", "isinstance([1], Other)", "hasattr(flag, 'x')", "getattr(flag, name)", "bool(flag)", "len(flag)",
        "int(flag)",  "list(flag)", "flag[0]", "flag.x", "flag + 1", "flag == other", "not flag", "flag in [1, 2]",
        "1 in flag", "-flag", "f'{flag}'", "1j",    "{'a': 1}['b']", "'a%s' % flag", "iter(flag)",
        "all(flag)", "next(flag)", "isinstance(flag, (Other, Another))", "setattr(flag, 'a', 1) or flag.b", "{'a': 1}.setdefault(flag)",
         "flag if flag else other", "lambda: flag", "flag[1:]", "range(flag, other, step)",
    ],
)  # fmt: skip
def test_what_depends_on_something_unknown_is_unknown(expression: str) -> None:
    seen = variables(f"out = {expression}\n")["out"]
    assert isinstance(seen, Unknown | range), seen


def test_leaving_the_program_ends_the_run() -> None:
    for call in ("import sys\nsys.exit(1)", "exit()", "quit()", "import os\nos._exit(0)"):
        made, frame = run(f"out = 1\n{call}\nout = 2\n")
        assert made.result.stopped == "SystemExit"
        assert python(frame.vars["out"]) == 1


def test_what_a_model_is_can_be_asked() -> None:
    text = (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP, DataParallel\nnet = torch.nn.Linear(1, 1)\n"
        "model = DDP(net)\nopt = torch.optim.SGD(net.parameters())\n"
        "out = hasattr(model, 'module'), hasattr(model, 'no_sync'), hasattr(opt, 'step'), isinstance(model, DDP), isinstance(model, DataParallel),"
        " isinstance(net(1), torch.Tensor)\nmaybe = hasattr(net, 'module'), isinstance(net, DDP), hasattr(net, 'no_sync')\n"
    )
    seen = variables(text)
    assert seen["out"] == (True, True, True, True, False, True)
    assert all(isinstance(v, Unknown) for v in seen["maybe"])
