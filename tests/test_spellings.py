"""Every spelling of a correct loop gives the same windows; a loop with one known fault gives exactly its rule."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from galint.analysis import analyse
from galint.config import Config
from galint.engine import lint
from galint.source import Source
from galint.syntax import parse


@dataclass(frozen=True)
class Guard:
    """How a loop decides to step: code before the loop, at the top of the body, and the condition."""

    before: str
    top: str
    test: str
    after: str = ""


GUARDS = (
    Guard("", "", "(i + 1) % N == 0"),
    Guard("", "", "i % N == N - 1"),
    Guard("", "", "not (i + 1) % N"),
    Guard("", "", "(i + 1) % N < 1"),
    Guard("count = 0", "count += 1", "count % N == 0"),
    Guard("count = 0", "count += 1", "count == N", "count = 0"),
    Guard("count = 0", "count = (count + 1) % N", "count == 0"),
    Guard("left = N", "left -= 1", "left == 0", "left = N"),
    Guard("last = -1", "", "i - last >= N", "last = i"),
    Guard("seen = []", "seen.append(i)", "len(seen) % N == 0"),
    Guard("", "boundary = (i + 1) % N == 0", "boundary"),
    Guard("", "accumulating = (i + 1) % N != 0", "not accumulating"),
    Guard("", "quotient, rest = divmod(i + 1, N)", "rest == 0"),
)
SCALINGS = (
    "(loss / N).backward()",
    "loss = loss / N\n        loss.backward()",
    "loss /= N\n        loss.backward()",
    "(loss * (1 / N)).backward()",
    "loss.div_(N)\n        loss.backward()",
    "torch.div(loss, N).backward()",
    "loss.mul(1.0 / N).backward()",
    "loss.backward(gradient=torch.tensor(1 / N))",
    "torch.autograd.backward(loss / N)",
)
LOOPS = (
    "for i, x in enumerate(loader):",
    "for i, x in zip(range(len(loader)), loader):",
    "for i, x in enumerate(tqdm(loader)):",
)
HEAD = """
import argparse
import torch
from torch import nn
from tqdm import tqdm

{n}


def main(loader):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    {before}
    {loop}
        {top}
        {clear}
        loss = nn.functional.mse_loss(model(x), x)
        {backward}
        if {test}:
            optimizer.step()
            {zero}
            {after}


main([torch.randn(2, 4) for _ in range({length})])
"""


def program(
    guard: Guard,
    scaling: str,
    loop: str,
    n: int,
    *,
    clear: str = "pass",
    zero: str = "optimizer.zero_grad()",
    test: str = "",
) -> str:
    """A complete script; N is a module-level constant and the loader holds whole windows."""
    return HEAD.format(
        n=f"N = {n}",
        before=guard.before or "pass",
        loop=loop,
        top=guard.top or "pass",
        clear=clear,
        backward=scaling,
        test=test or guard.test,
        zero=zero,
        after=guard.after or "pass",
        length=4 * n,
    )


def errors(text: str) -> set[str]:
    report = lint(Source("train.py", text), Config())
    assert report.loops == report.understood == 1, report.not_understood
    return {d.code for d in report.diagnostics if d.severity != "note"}


GUARD = st.sampled_from(GUARDS)
SCALING = st.sampled_from(SCALINGS)
LOOP = st.sampled_from(LOOPS)
N = st.integers(2, 6)


@settings(max_examples=60, deadline=None)
@given(GUARD, SCALING, LOOP, N)
def test_every_spelling_of_a_correct_loop_has_windows_of_n_and_no_finding(
    guard: Guard, scaling: str, loop: str, n: int
) -> None:
    text = program(guard, scaling, loop, n)
    assert errors(text) == set()
    analysis = analyse(parse(text), Config())
    assert analysis is not None
    base = analysis.exploration.entries[0].base
    (ledger,) = base.ledgers.values()
    assert [len(set(step.window)) for step in ledger.steps] == [n] * 4
    weights = {entry.coefficient.substitute({}).value * n for step in ledger.steps for entry in step.applied}
    assert weights == {1}


@settings(max_examples=40, deadline=None)
@given(GUARD, LOOP, N)
def test_a_loss_that_nobody_divides_is_unscaled(guard: Guard, loop: str, n: int) -> None:
    assert errors(program(guard, "loss.backward()", loop, n)) == {"GA201"}


@settings(max_examples=40, deadline=None)
@given(GUARD, SCALING, LOOP, N)
def test_a_clear_on_every_micro_batch_discards_the_others(guard: Guard, scaling: str, loop: str, n: int) -> None:
    assert errors(program(guard, scaling, loop, n, clear="optimizer.zero_grad()", zero="pass")) == {"GA101"}


@settings(max_examples=40, deadline=None)
@given(SCALING, LOOP, st.integers(3, 6))
def test_a_guard_that_starts_at_zero_has_a_short_first_window(scaling: str, loop: str, n: int) -> None:
    found = errors(program(GUARDS[0], scaling, loop, n, test="i % N == 0"))
    assert "GA401" in found and found <= {"GA401", "GA402"}


@settings(max_examples=40, deadline=None)
@given(GUARD, SCALING, LOOP, N)
def test_a_step_without_any_clear_applies_old_gradients(guard: Guard, scaling: str, loop: str, n: int) -> None:
    text = program(guard, scaling, loop, n, zero="pass").replace("    optimizer.zero_grad()\n    ", "    ", 1)
    assert errors(text) == {"GA102"}


LAST = """
import torch
from torch import nn


def train(model, loader, config, optimizer):
    {length}
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / config.{n}
        loss.backward()
        if {test}:
            optimizer.step()
            optimizer.zero_grad()
"""
LENGTHS = ("num_batches", "n_batches", "len_loader", "total", "steps_per_epoch", "num_iters")
LAST_BATCH = (
    "(i + 1) % N == 0 or i + 1 == L",
    "(i + 1) % N == 0 or (i + 1) >= L",
    "(i + 1) % N == 0 or i == L - 1",
    "i % N == N - 1 or i == (L - 1)",
    "not (i + 1) % N or not i + 1 < L",
    "not ((i + 1) % N and (i + 1) < L)",
)


@pytest.mark.parametrize("test", LAST_BATCH)
@pytest.mark.parametrize("name", LENGTHS)
def test_the_name_of_a_loaders_length_says_nothing(name: str, test: str) -> None:
    """The last window may be short and is divided by N (GA205), and that is all, whatever `len(loader)` is called."""
    for n in ("accum_iter", "gradient_accumulation_steps"):
        guard = test.replace("N", f"config.{n}").replace("L", name)
        report = lint(Source("train.py", LAST.format(length=f"{name} = len(loader)", n=n, test=guard)), Config())
        assert report.loops == report.understood == 1, report.not_understood
        assert [d.code for d in report.diagnostics] == ["GA205"]
