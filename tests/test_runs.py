"""The abstract run on its own, before any rule: `# event:` marks say what each backward adds and each step applies."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from galint.analysis import Analysis, analyse
from galint.checks.view import View
from galint.config import Config
from galint.run.facts import RunResult
from galint.syntax import parse
from tests.marks import FIXTURES, events

SCRIPTS = sorted((FIXTURES / "runs").glob("*.py"))
MARKED = [path for path in SCRIPTS if events(path.read_text("utf-8"))]


def analysed(path: Path) -> Analysis:
    analysis = analyse(parse(path.read_text("utf-8")), Config())
    assert analysis is not None, "the file trains nothing"
    return analysis


def runs(analysis: Analysis) -> list[RunResult]:
    """The runs with the settings that the file itself gives."""
    return [entry.base for entry in analysis.exploration.entries if entry.base.backwards]


def shares(analysis: Analysis) -> dict[int, set[Fraction]]:
    """Row of a backward → the coefficients that it ever had."""
    out: dict[int, set[Fraction]] = {}
    for run in runs(analysis):
        view = View(run, analysis.static, analysis.program)
        for backward in run.backwards:
            term = backward.facts.terms[0].substitute(view.known)
            assert not term.symbols, f"line {backward.span.row}: {term} has an unknown factor"
            out.setdefault(backward.span.row, set()).add(term.value)
    return out


def applied(analysis: Analysis) -> dict[int, list[list[Fraction]]]:
    """Row of a step → the coefficients of the micro-batches in each gradient that it applied."""
    out: dict[int, list[list[Fraction]]] = {}
    for run in runs(analysis):
        view = View(run, analysis.static, analysis.program)
        for ledger in view.ledgers:
            for step in view.steps(ledger):
                assert not step.carried and not step.lost
                weights = view.weights(step).values()
                assert not any(w.symbols for w in weights)
                out.setdefault(step.span.row, []).append([w.value for w in weights])
    return out


def test_most_run_fixtures_carry_marks() -> None:
    assert len(MARKED) >= 12


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_backward_adds_its_marked_share(path: Path) -> None:
    wanted = {e.row: {e.coefficient} for e in events(path.read_text("utf-8")) if e.kind == "backward"}
    assert wanted, "no backward is marked"
    assert shares(analysed(path)) == wanted


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_step_applies_its_marked_gradient(path: Path) -> None:
    wanted = {e.row: e.weights for e in events(path.read_text("utf-8")) if e.kind == "step"}
    seen = applied(analysed(path))
    assert set(seen) == set(wanted)
    for row, gradients in seen.items():
        assert len(gradients) >= 2, f"line {row} steps only {len(gradients)} times"
        assert all(g == wanted[row] for g in gradients), f"line {row}: {gradients}"


@pytest.mark.parametrize("path", [p for p in SCRIPTS if p not in MARKED], ids=lambda path: path.stem)
def test_share_of_unknown_numbers_is_a_symbol_or_one(path: Path) -> None:
    """Where no number can be marked, the run still sees whole windows and claims no fraction."""
    analysis = analysed(path)
    steps = [s for run in runs(analysis) for ledger in run.ledgers.values() for s in ledger.steps]
    assert any(len(s.micros()) > 1 for s in steps)
