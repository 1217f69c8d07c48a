"""Unknown settings get a number by their role: the runs take N to be 4, then 3, whatever the code calls it."""

from __future__ import annotations

import pytest

from galint.analysis import analyse
from galint.checks.view import View
from galint.config import Config
from galint.run.facts import RunResult
from galint.run.static import Static
from galint.syntax import parse

HEAD = """\
import argparse, math, os, itertools
from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import islice, repeat, cycle, count, chain
from functools import partial
import torch
from torch import nn
from tqdm import tqdm, trange
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""


def formulas(text: str) -> tuple[list[str], list[str]]:
    """The distinct gradients applied in the base run (N = 4) and in the other witness (N = 3), in order."""
    analysis = analyse(parse(HEAD + text), Config())
    assert analysis is not None and analysis.exploration.entries, "nothing was run"
    first = analysis.exploration.entries[0]

    def applied(run: RunResult) -> list[str]:
        view = View(run, analysis.static if analysis else Static([]), analysis.program)  # type: ignore[union-attr]
        return [view.applied(s) for ledger in view.ledgers for s in view.steps(ledger)]

    return applied(first.base), applied(first.other)


FOUR, THREE = "(g1 + g2 + g3 + g4)/4", "(g1 + g2 + g3)/3"
LOSS = "nn.functional.mse_loss(net(x), y)"
NESTED = """\
{before}
def train(loader, args, config, n, updates):
    for update in range(updates):
        for {header}:
            x, y = torch.randn(8, 4), torch.randn(8, 1)
            ({loss} / {n}).backward()
        opt.step()
        opt.zero_grad()
"""
GUARDED = """\
{before}
def train(loader, args, config, n):
    {setup}
    for i, (x, y) in enumerate(loader):
        ({loss} / {n}).backward()
        if {test}:
            opt.step()
            opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("header", "n"),
    [
        ("k in range(n)", "n"),
        ("k in range(0, n)", "n"),
        ("k in range(1, n + 1)", "n"),
        ("k in range(args.accum)", "args.accum"),
        ("k in trange(n)", "n"),
        ("k in tqdm(range(n))", "n"),
        ("k in repeat(None, n)", "n"),
        ("k in list(range(n))", "n"),
        ("k, batch in zip(range(n), loader)", "n"),
        ("batch in islice(loader, n)", "n"),
        ("k in reversed(range(n))", "n"),
        ("k in range(n - 1, -1, -1)", "n"),
        ("k, _ in enumerate(range(n), 1)", "n"),
        ("k in [j for j in range(n)]", "n"),
        ("k in range(int(n))", "n"),
        ("k in range(config['accum'])", "config['accum']"),
    ],
)
def test_an_inner_loop_of_unknown_length_is_the_window(header: str, n: str) -> None:
    text = NESTED.format(before="", header=header, n=n, loss=LOSS)
    base, other = formulas(text)
    assert len(base) >= 2 and set(base) == {FOUR}
    assert len(other) >= 2 and set(other) == {THREE}


@pytest.mark.parametrize(
    ("test", "n"),
    [
        ("(i + 1) % n == 0", "n"),
        ("(i + 1) % args.accum == 0", "args.accum"),
        ("(i + 1) % max(1, n) == 0", "n"),
        ("(i + 1) % max(n, 1) == 0", "max(n, 1)"),
        ("divmod(i, n)[1] == n - 1", "n"),
        ("bool((i + 1) % n == 0)", "n"),
        ("all([(i + 1) % n == 0, i >= 0])", "n"),
        ("any([(i + 1) % n == 0, i < 0])", "n"),
        ("(i + 1) // n > i // n", "n"),
        ("(i + 1) % config['accum'] == 0", "config['accum']"),
        ("(i + 1) % config.get('accum', 4) == 0", "config.get('accum', 4)"),
        ("(i + 1) % getattr(args, 'accum', 1) == 0", "getattr(args, 'accum', 1)"),
        ("(i + 1) % int(args.accum) == 0", "int(args.accum)"),
        ("abs(i % n - (n - 1)) == 0", "n"),
        ("i % n in (n - 1,)", "n"),
        ("not (i + 1) % n", "n"),
        ("min((i + 1) % n, 1) == 0", "n"),
    ],
)
def test_what_divides_the_counter_of_a_guard_is_the_window(test: str, n: str) -> None:
    text = GUARDED.format(before="", setup="pass", test=test, n=n, loss=LOSS)
    base, other = formulas(text)
    assert len(base) >= 2 and set(base) == {FOUR}
    assert len(other) >= 2 and set(other) == {THREE}


@pytest.mark.parametrize(
    ("before", "n"),
    [
        ("accum = 1", "accum"),
        ("class cfg:\n    accum = 1", "cfg.accum"),
        ("@dataclass\nclass C:\n    accum: int = 1\ncfg = C()", "cfg.accum"),
        ("cfg = argparse.Namespace(accum=1)", "cfg.accum"),
        ("p = argparse.ArgumentParser()\np.add_argument('--accum', default=1)\ncfg = p.parse_args()", "cfg.accum"),
        (
            "p = argparse.ArgumentParser()\np.add_argument('--accum', type=int)\ncfg, _ = p.parse_known_args()",
            "cfg.accum",
        ),
        ("accum = int(os.environ.get('ACCUM', 1))", "accum"),
    ],
)
def test_a_default_of_one_is_read_as_if_accumulation_were_on(before: str, n: str) -> None:
    text = GUARDED.format(before=before, setup="pass", test=f"(i + 1) % {n} == 0", n=n, loss=LOSS)
    base, other = formulas(text)
    assert len(base) >= 2 and set(base) == {FOUR}, base
    assert len(other) >= 2 and set(other) == {THREE}, other


CHUNKS = """\
def train(batch, {params}, updates=3):
    for update in range(updates):
        for s in range({bounds}):
            x, y = batch[s : s + {size}]
            ({loss} * {size} / {total}).backward()
        opt.step()
        opt.zero_grad()
"""


@pytest.mark.parametrize(
    ("params", "bounds", "size", "total"),
    [
        ("total, size", "0, total, size", "size", "total"),
        ("total", "0, total, 8", "8", "total"),
        ("size", "0, 32, size", "size", "32"),
        ("size", "0, len(batch), size", "size", "len(batch)"),
    ],
)
def test_a_range_with_a_step_cuts_a_batch_into_micro_batches(params: str, bounds: str, size: str, total: str) -> None:
    base, _ = formulas(CHUNKS.format(params=params, bounds=bounds, size=size, total=total, loss=LOSS))
    assert base and set(base) == {FOUR}


def test_known_chunks_keep_their_numbers() -> None:
    base, _ = formulas(CHUNKS.format(params="k", bounds="0, 24, 8", size="8", total="24", loss=LOSS))
    assert base and set(base) == {THREE}
