"""Every rule has its page, and every block of a page is linted: the example is reported, the rest is silent."""

from __future__ import annotations

import re

import pytest
from marks import Block, blocks, differences, expects, pages

from galint.config import Config
from galint.engine import lint
from galint.registry import RULES
from galint.rule import Fixability, Rule
from galint.source import Source

DOCUMENTED = [rule for rule in RULES if rule.code >= "GA1"]
"""Rules about training loops; the GA0 codes speak of files and comments."""
BLOCKS = [block for page in pages() for block in blocks(page)]
SECTIONS = ["What it does", "Why is this bad?", "Example", "Not reported", "Limits", "References"]


def test_pages_and_registry_are_one_to_one() -> None:
    assert {page.name for page in pages()} == {rule.page for rule in RULES}


@pytest.mark.parametrize("rule", DOCUMENTED, ids=lambda rule: rule.code)
def test_page_has_its_sections_in_order(rule: Rule) -> None:
    page = next(p for p in pages() if p.name == rule.page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {rule.name} ({rule.code})\n")
    assert re.findall(r"^## (.+)$", text, flags=re.M) == SECTIONS
    mine = [b for b in BLOCKS if b.page == page]
    example = [b for b in mine if b.section == "Example"]
    assert [mark.code for mark in expects(example[0].text)] == [rule.code]
    assert sum(b.section == "Not reported" for b in mine) >= 2
    if rule.fixability is not Fixability.NEVER:
        assert [b.fixed for b in example] == [False, True]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.id)
def test_block_gets_exactly_its_marks(block: Block) -> None:
    report = lint(Source(f"{block.page.stem}.py", block.text), Config())
    assert not report.internal_errors
    found = [(d.span.row, d.code, d.message) for d in report.diagnostics]
    problems = differences(expects(block.text), found)
    assert not problems, "\n".join(problems)
