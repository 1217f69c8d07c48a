"""The project holds itself to its rules: pages, fixtures, fixes, messages, public names, and galint clean on itself."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from marks import blocks, fixtures, pages

import galint
from galint.checks.all import CHECKS
from galint.config import Config
from galint.diagnostic import Diagnostic
from galint.engine import lint
from galint.fixes.catalogue import REWRITES
from galint.registry import RULES
from galint.rule import Fixability, Rule
from galint.source import Source

ROOT = Path(__file__).resolve().parent.parent
LOOP_RULES = [rule for rule in RULES if rule.code >= "GA1"]
TESTS = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").glob("test_*.py"))


@pytest.fixture(scope="module")
def said() -> list[Diagnostic]:
    """Everything that galint says about the fixtures and the pages."""
    sources = [Source(path.name, path.read_text("utf-8")) for path in fixtures()]
    sources += [Source(block.id, block.text) for page in pages() for block in blocks(page)]
    return [d for source in sources for d in lint(source, Config()).diagnostics]


@pytest.mark.parametrize("rule", LOOP_RULES, ids=lambda rule: rule.code)
def test_every_rule_has_its_parts(rule: Rule) -> None:
    assert (ROOT / "rules" / rule.page).is_file()
    assert list((ROOT / "fixtures" / f"{rule.code}-{rule.name}").glob("*.py"))
    assert any(check.code == rule.code for check in CHECKS)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.summary == rule.summary.strip().rstrip(".") and len(rule.summary) < 90
    if rule.fixability is not Fixability.NEVER:
        assert rule.code in REWRITES, f"galint/fixes/rewrites has no function {rule.name.replace('-', '_')}"


def test_checks_and_rules_are_one_to_one() -> None:
    assert {check.code for check in CHECKS} == {rule.code for rule in LOOP_RULES}
    assert [rule.code for rule in RULES] == sorted({rule.code for rule in RULES})
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_every_rule_speaks_somewhere(said: list[Diagnostic]) -> None:
    assert {rule.code for rule in LOOP_RULES} <= {d.code for d in said}


def test_messages_follow_one_convention(said: list[Diagnostic]) -> None:
    texts = {d.message for d in said} | {r.message for d in said for r in d.related}
    texts |= {a for d in said for a in d.assumptions} | {d.configuration for d in said if d.configuration}
    for text in texts:
        assert text == text.strip() and "\n" not in text and "  " not in text, text
        assert not text.endswith((".", "!")) or text.endswith("..."), text
        assert not re.match(r"[A-Z][a-z]+ ", text) or text.startswith("BatchNorm"), text
        assert not re.search(r"\b([a-z]+) \1\b", text), text
        assert text.count("`") % 2 == 0, text


def test_what_a_diagnostic_points_at_is_in_the_file(said: list[Diagnostic]) -> None:
    for d in said:
        for span in (d.span, *(r.span for r in d.related)):
            assert span.row >= 1 and (span.row, span.column) < (span.end_row, span.end_column), d


def test_galint_is_clean_on_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "galint", "--no-cache", "galint"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_public_names_are_listed_and_documented() -> None:
    for name in galint.__all__:
        value = getattr(galint, name)
        assert isinstance(value, str) or inspect.getdoc(value), name
    assert set(galint.__all__) <= set(dir(galint))
    with pytest.raises(AttributeError, match="nothing"):
        _ = galint.nothing  # type: ignore[attr-defined]


def test_importing_galint_is_cheap_and_its_names_work() -> None:
    code = (
        "import sys, galint\n"
        "assert not {'libcst', 'click', 'torch', 'galint.engine'} & set(sys.modules)\n"
        "text = 'import torch\\nfor i, x in enumerate(loader):\\n    model(x).backward()\\n'\n"
        "report = galint.lint(galint.Source('a.py', text), galint.Config())\n"
        "assert isinstance(report, galint.Report)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_type_checkers_see_the_public_names(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(
        "import galint\n\n\ndef count(text: str) -> int:\n"
        "    found: list[galint.Diagnostic] = galint.lint(galint.Source('a.py', text), galint.Config()).diagnostics\n"
        "    return len(found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(tmp_path / "use.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_new_rule_starts_from_the_scaffold(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "new_rule.py"), "GA999", "made-up-fault", "--root", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert made >= {"galint/checks/made_up_fault.py", "rules/GA999-made-up-fault.md"}
    assert sum(name.startswith("fixtures/GA999-made-up-fault/") for name in made) >= 2
    compile((tmp_path / "galint/checks/made_up_fault.py").read_text("utf-8"), "made_up_fault.py", "exec")
    assert "Rule(" in done.stdout and "checks/all.py" not in done.stdout


@pytest.mark.parametrize(("code", "name"), [("GA101", "new-name"), ("X1", "name"), ("GA998", "Bad_Name")])
def test_the_scaffold_refuses_what_cannot_be_a_rule(tmp_path: Path, code: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "new_rule.py"), code, name, "--root", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and not list(tmp_path.iterdir())
