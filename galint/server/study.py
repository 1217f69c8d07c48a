"""What one analysis of an open document said, and how long it stays true while the text changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path

from galint.collecting import with_room
from galint.config import Config
from galint.diagnostic import Diagnostic, Related, Report
from galint.discovery import may_matter
from galint.explain import LoopView
from galint.program import Program
from galint.server.documents import Page
from galint.source import Source, Span


@dataclass
class Study:
    """The findings and loops of a page. Spans are of the page's whole text (cells joined)."""

    page: Page
    config: Config
    root: Path | None
    report: Report = field(default_factory=Report)
    views: list[LoopView] = field(default_factory=list)
    broken: bool = False
    """The text is not valid Python: the report holds only that."""
    fixed: bool = False
    """Fixes have been looked for."""
    confirmed: dict[tuple[str, Span], str] = field(default_factory=dict)
    """(code, span) → what a run of the script measured."""


def study(page: Page, config: Config, root: Path | None, parser: Callable[[str], Program]) -> Study:
    """Analyse a page. Raises whatever a fault inside galint raises."""
    result = Study(page, config, root)
    if not may_matter(page.source.text.encode("utf-8", "replace")):
        result.fixed = True
        return result
    from galint.driver import with_severities
    from galint.engine import study as engine_study

    report, result.views = with_room(engine_study, page.source, config, root, parser)
    result.report = with_severities(report, config)
    result.broken = any(d.code == "GA000" for d in report.diagnostics)
    return result


def add_fixes(result: Study) -> None:
    """Look for the proved fixes of a study's findings, once."""
    if result.fixed or result.broken:
        return
    from galint.fixes import attach

    result.report = attach(result.report, result.page.source, result.config, result.root)
    result.fixed = True


def carried(last: Study, page: Page) -> Study:
    """The last understood study as seen from a newer text: what lies in the changed lines is left out.

    Rows before the change stay, rows behind it move with it; fixes are dropped, because they were
    proved for another text.
    """
    move = _mover(last.page.source, page.source)
    diagnostics = [moved for d in last.report.diagnostics if (moved := _moved(d, move)) is not None]
    views = [view for v in last.views if (view := _moved_view(v, move)) is not None]
    out = Study(page, last.config, last.root, replace(last.report, diagnostics=diagnostics), views, fixed=True)
    for (code, span), text in last.confirmed.items():
        where = move(span)
        if where is not None:
            out.confirmed[code, where] = text
    return out


Mover = Callable[[Span], Span | None]


def _mover(old: Source, new: Source) -> Mover:
    """Old span → its place in the new text, None when it is in the lines that changed."""
    a, b = old.lines, new.lines
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    shift = len(b) - len(a)

    def move(span: Span) -> Span | None:
        if span.end_row <= head:
            return span
        if span.row > len(a) - tail:
            return Span(span.row + shift, span.column, span.end_row + shift, span.end_column)
        return None

    return move


def _moved(d: Diagnostic, move: Mover) -> Diagnostic | None:
    span = move(d.span)
    if span is None:
        return None
    related = []
    for r in d.related:
        if r.filename in (None, d.filename):
            where = move(r.span)
            if where is not None:
                related.append(Related(where, r.message, r.filename, r.cell))
        else:
            related.append(r)
    return replace(d, span=span, related=tuple(related), fix=None)


def _moved_view(view: LoopView, move: Mover) -> LoopView | None:
    """A loop whose every row moved alike, with its rows moved; one in which something changed is left out."""
    whole = move(Span(view.span.row, view.span.column, view.end_row, 0))
    if whole is None:
        return None
    by = whole.row - view.span.row
    return view if by == 0 else shifted(view, by)


def shifted(view: LoopView, rows: int) -> LoopView:
    """A view with every place of its own file moved down by `rows`."""

    def down(span: Span) -> Span:
        return Span(span.row + rows, span.column, span.end_row + rows, span.end_column)

    def walk(value: object) -> object:
        if isinstance(value, Span):
            return down(value)
        if type(value) is tuple:
            return tuple(walk(item) for item in value)
        if not is_dataclass(value) or isinstance(value, type):
            return value
        if any(f.name == "file" and getattr(value, f.name) for f in fields(value)):
            return value  # a place of another file
        return replace(value, **{f.name: walk(getattr(value, f.name)) for f in fields(value) if f.init})

    out = walk(replace(view, end_row=view.end_row + rows))
    assert isinstance(out, LoopView)
    return out
