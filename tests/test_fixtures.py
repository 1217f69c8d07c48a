"""Every fixture is linted both ways: each mark is reported on its line, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from marks import differences, expects, fixtures, golden, note

from galint.config import Config
from galint.engine import lint
from galint.registry import RULES
from galint.rule import Fixability, Rule
from galint.source import Source

SCRIPTS = fixtures()
FIRST = {"GA101", "GA102", "GA201", "GA203", "GA301", "GA302", "GA401", "GA402", "GA403", "GA501", "GA601"}
"""The rules that were there first have four shapes each way."""
OBSERVABLES = {"params", "allreduces", "ranks", "raises", "rate", "steps", "idle", "tokens", "none"}


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_fixture_gets_exactly_its_marks(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    report = lint(Source(script.name, text), Config())
    assert not report.internal_errors
    found = [(d.span.row, d.code, d.message) for d in report.diagnostics]
    problems = differences(expects(text), found)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("script", [p for p in SCRIPTS if p.parent.name != "not-ours"], ids=_name)
def test_fixture_loop_is_understood(script: Path) -> None:
    report = lint(Source(script.name, script.read_text(encoding="utf-8")), Config())
    assert report.loops > 0
    assert not report.not_understood, report.not_understood[0].reason


@pytest.mark.parametrize("script", SCRIPTS, ids=_name)
def test_name_and_marks_of_a_fixture_agree(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    marks = expects(text)
    calm = script.name.startswith("ok_") or script.name.endswith(".fixed.py") or script.parent.name == "runs"
    assert bool(marks) != calm
    assert (note(text, "observe") in OBSERVABLES) != calm
    if marks:
        assert any(mark.code == script.parent.name[:5] for mark in marks)
    if script.name.endswith(".fixed.py"):
        assert script.with_name(script.name.replace(".fixed.py", ".py")).exists()


@pytest.mark.parametrize("rule", [r for r in RULES if r.code >= "GA1"], ids=lambda rule: rule.code)
def test_rule_has_its_bad_and_good_shapes(rule: Rule) -> None:
    code, folder = rule.code, f"{rule.code}-{rule.name}"
    mine = [p for p in SCRIPTS if p.parent.name == folder]
    good = [p for p in mine if p.name.startswith("ok_")]
    bad = [p for p in mine if p not in good and not p.name.endswith(".fixed.py")]
    needed = 4 if rule.code in FIRST else 3
    assert len(bad) >= needed, f"{code} needs {needed} bad shapes"
    assert len(good) >= needed, f"{code} needs {needed} shapes that look alike"
    if rule.fixability is not Fixability.NEVER:
        assert all(golden(p) for p in bad), "each bad shape has its repaired version"
