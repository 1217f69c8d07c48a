"""The rules' Markdown pages: where they are, and the address that diagnostics carry."""

from __future__ import annotations

from pathlib import Path

from galint.rule import Rule

PAGE_BASE = "rules/"
"""Where a rule's page is, relative to the project: the pages ship in the package as `galint/rules`."""


def url(code: str, name: str) -> str:
    """The stable address of a rule's page."""
    return f"{PAGE_BASE}{code}-{name}.md"


def folder() -> Path | None:
    """The folder of the pages: the installed one, else the source tree's; None when neither is there."""
    from importlib.resources import files

    packaged = Path(str(files("galint") / "rules"))
    source = Path(__file__).resolve().parent.parent / "rules"
    return next((path for path in (packaged, source) if path.is_dir()), None)


def page(rule: Rule) -> str:
    """The text of a rule's page for a reader; a page of its metadata alone where none is installed.

    The marks by which the tests run a page become words: the line that is reported, and the code to write instead.
    """
    where = folder()
    if where is not None:
        try:
            text = (where / rule.page).read_text("utf-8")
            return text.replace("  # expect: ", "  # <-- ").replace("```python fixed\n", "Use instead:\n\n```python\n")
        except OSError:
            pass
    return f"# {rule.name} ({rule.code})\n\n## What it does\n\n{rule.summary[:1].upper()}{rule.summary[1:]}.\n"
