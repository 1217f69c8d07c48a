"""`lint(source, config) -> Report`: parse, run on paper, check. No printing, no I/O but project imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from galint import program as p
from galint import suppress
from galint.analysis import Analysis, analyse
from galint.config import Config
from galint.counting import count, loops_understood
from galint.diagnosing import diagnose, elsewhere
from galint.diagnostic import Diagnostic, NotUnderstood, Report
from galint.errors import ParseError, TooComplex
from galint.explain import LoopView, acquitted, at_line, automatic, launched, views
from galint.registry import RULES
from galint.run.project import STRIDE
from galint.source import Source, Span
from galint.syntax import deep, parse

_UNREADABLE = next(rule for rule in RULES if rule.code == "GA000")


def lint(source: Source, config: Config, root: Path | None = None) -> Report:
    """The findings of one file, suppressed ones left out, and the counts of its loops."""
    return _linted(source, config, root)[0]


@deep()
def study(
    source: Source, config: Config, root: Path | None = None, parser: Callable[[str], p.Program] = parse
) -> tuple[Report, list[LoopView]]:
    """What `lint` and `explain` say of one file, from one analysis; no loops where it is not valid Python.

    `parser` may know an earlier text of the file and parse only what changed.
    """
    report, analysis = _linted(source, config, root, parser)
    return report, _views(analysis, source, report)


@deep()
def explain(source: Source, config: Config, root: Path | None = None, line: int | None = None) -> list[LoopView]:
    """What each training loop does, or only the loop at a 1-based `line`. Raises ParseError."""
    program = parse(source.text)
    analysis = analyse(program, config, root, source.path, launches=True)
    loops = _views(analysis, source, Report(files=1))
    loops = sorted(
        [*loops, *automatic(program, source.filename, source.lines)], key=lambda view: (view.file, view.span)
    )
    return loops if line is None else at_line(loops, line)


def _views(analysis: Analysis | None, source: Source, report: Report) -> list[LoopView]:
    if analysis is None:
        return []
    understood = count(analysis, source, report)
    missed = [(loop.span, loop.reason) for loop in report.not_understood]
    loops = views(analysis.exploration, analysis.program, source.filename, source.lines, understood, missed)
    if not loops and analysis.project is not None:
        followed = [unit.program for unit in analysis.project.order]
        others = sorted(span for span in loops_understood(analysis) if span.row >= STRIDE)
        loops = launched(analysis.exploration, analysis.program, followed, others)
    if analysis.found is None:
        diagnose(analysis, source)
    return [view if _accused(view, analysis.found or ()) else acquitted(view) for view in loops]


def _accused(view: LoopView, found: Iterable[Diagnostic]) -> bool:
    """Whether a finding about an applied gradient speaks of a loop, whether it is shown or not."""
    for d in found:
        rows = {d.span.row, *(r.span.row for r in d.related)}
        if d.applied is not None and any(row >= STRIDE or view.span.row <= row <= view.end_row for row in rows):
            return True
    return bool(view.file)


@deep()
def _linted(
    source: Source, config: Config, root: Path | None, parser: Callable[[str], p.Program] = parse
) -> tuple[Report, Analysis | None]:
    report = Report(files=1)
    selected = config.codes_for(source.path)
    try:
        program = parser(source.text)
    except TooComplex as error:
        report.followed = []
        span = Span(error.row, error.column - 1, error.row, error.column)
        report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, error.message)]
        return report, None
    except ParseError as error:
        report.followed = []
        if "GA000" in selected:
            span = Span(error.row, max(error.column - 1, 0), error.row, error.column)
            found = Diagnostic("GA000", "syntax-error", _UNREADABLE.severity, error.message, source.filename, span)
            report.diagnostics = [found]
        return report, None
    try:
        analysis = analyse(program, config, root, source.path)
    except RecursionError:
        span = program.body[0].span
        report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, "the code nests too deeply")]
        return report, None
    if analysis is not None:
        count(analysis, source, report)
        found_all = [d for d in diagnose(analysis, source) if d.code in selected]
        report.diagnostics = [d for d in found_all if d.span.row < STRIDE]
        report.elsewhere = elsewhere(analysis, [d for d in found_all if d.span.row >= STRIDE], source)
        report.internal_errors += sorted(set(analysis.broken))
        if analysis.project is not None:
            report.followed = sorted(map(str, analysis.project.touched))
    if analysis is None or analysis.project is None:
        report.followed = []
    report.diagnostics = suppress.apply(
        report.diagnostics, source.text, program.comments, filename=source.filename, selected=selected
    )
    report.diagnostics.sort(key=lambda d: (d.span, d.code))
    return report, analysis
