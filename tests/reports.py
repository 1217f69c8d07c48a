"""A report made by hand, for the tests of output formats and baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from galint.diagnostic import Applicability, Diagnostic, Edit, Fix, NotUnderstood, Related, Report
from galint.render import Context
from galint.rule import Severity
from galint.source import Span

TRAIN = """\
import torch

for i, (x, y) in enumerate(loader):
    loss = criterion(model(x), y) / 4
    optimizer.zero_grad()
    loss.backward()

    if (i + 1) % 4 == 0:
        optimizer.step()
"""
WIDE = "\tläss😀 = f(x).backward()  # 日本\n"

FIX = Fix(
    "move `zero_grad` below the step", Applicability.SAFE, (Edit(Span(5, 4, 6, 4), ""), Edit(Span(9, 24, 9, 24), "\n"))
)


def train_finding() -> Diagnostic:
    """An error with everything that a diagnostic can carry."""
    return Diagnostic(
        "GA101", "zero-grad-in-window", Severity.ERROR, "3 of 4 micro-batch gradients are discarded", "pkg/train.py",
        Span(5, 4, 5, 25), applied="g4/4", expected="(g1 + g2 + g3 + g4)/4",
        related=(
            Related(Span(9, 8, 9, 24), "the step applies what is left"),
            Related(Span(1, 0, 1, 6), "the helper", filename="pkg/wide.py"),
        ),
        assumptions=("`criterion` averages over the micro-batch",),
        configuration="when `args.fp16` is true",
        fix=FIX,
    )  # fmt: skip


def wide_finding() -> Diagnostic:
    """A warning on a line with a tab, an umlaut, an emoji and wide characters."""
    return Diagnostic(
        "GA601", "ddp-without-no-sync", Severity.WARNING, "gradients are all-reduced 4 times, <1> & \"more\", 100%",
        "pkg/wide.py", Span(1, 9, 1, 24),
    )  # fmt: skip


def notebook_finding() -> Diagnostic:
    """A note in the third cell of a notebook."""
    return Diagnostic(
        "GA403", "dropped-tail-window", Severity.NOTE, "the last 2 of 10 micro-batches are thrown away", "run.ipynb",
        Span(1, 0, 1, 5), cell=3,
    )  # fmt: skip


def report() -> Report:
    """Two Python findings and one in a notebook, in the order of a real run."""
    missed = NotUnderstood("pkg/wide.py", Span(7, 0, 7, 9), "the optimizer goes into `train_one`")
    return Report([train_finding(), wide_finding(), notebook_finding()], 12, 3, 2, [missed])


def lines(filename: str, cell: int | None) -> Sequence[str]:
    """The texts that the findings speak of."""
    texts = {"pkg/train.py": TRAIN, "pkg/wide.py": WIDE, "run.ipynb": "train(x)\n"}
    return texts[filename].splitlines() if (cell is None) != filename.endswith(".ipynb") else ()


def context(color: bool = False, lines: Callable[[str, int | None], Sequence[str]] = lines) -> Context:
    """What the renderers get besides the report."""
    return Context(lines=lines, color=color, version="1.2.3")
