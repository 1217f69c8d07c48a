"""`lint(source, config) -> Report`: parse, run on paper, check. No printing, no I/O but project imports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from galint import program as p
from galint import suppress
from galint.analysis import Analysis, analyse
from galint.config import Config
from galint.counting import count, covered, loops_understood
from galint.diagnosing import diagnose, elsewhere
from galint.diagnostic import Diagnostic, NotUnderstood, Report
from galint.errors import ParseError, TooComplex, TooLarge
from galint.explain import LoopView, acquitted, at_line, automatic, launched, views
from galint.registry import RULES
from galint.run.project import STRIDE
from galint.source import Source, Span
from galint.syntax import MANY_BACKWARDS, deep, parse, parse_any, portions, recovered

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
    program = parse_any(source.text, source.cells)
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
    invalid: list[Diagnostic] = []
    try:
        program = parser(source.text)
    except TooLarge as error:
        whole = _by_portions(source, config, root)
        return (whole, None) if whole is not None else (_refused(report, source, error), None)
    except TooComplex as error:
        return _refused(report, source, error), None
    except ParseError as error:
        invalid = [_invalid(source, error)] if "GA000" in selected else []
        valid = recovered(source.text, source.cells, parser)
        if valid is None:
            report.diagnostics, report.followed = invalid, []
            return report, None
        program = valid
    if is_large(source.text) and (whole := _by_portions(source, config, root)) is not None:
        return whole, None
    try:
        analysis = analyse(program, config, root, source.path)
    except RecursionError:
        report.diagnostics = invalid
        span = program.body[0].span
        report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, "the code nests too deeply")]
        return report, None
    if analysis is not None:
        _tell(report, analysis, source, selected)
    report.diagnostics += invalid
    if analysis is None or analysis.project is None:
        report.followed = []
    _suppress(report, source, program.comments, selected)
    return report, analysis


def _invalid(source: Source, error: ParseError) -> Diagnostic:
    span = Span(error.row, max(error.column - 1, 0), error.row, error.column)
    return Diagnostic("GA000", "syntax-error", _UNREADABLE.severity, error.message, source.filename, span)


def is_large(text: str) -> bool:
    """Whether a text has so much training code that it is better taken in portions."""
    return text.count("backward(") > MANY_BACKWARDS


def _refused(report: Report, source: Source, error: TooComplex) -> Report:
    report.followed = []
    span = Span(error.row, error.column - 1, error.row, error.column)
    report.loops, report.not_understood = 1, [NotUnderstood(source.filename, span, error.message)]
    return report


def _tell(report: Report, analysis: Analysis, source: Source, selected: Collection[str]) -> set[Span]:
    """Fill a report with what an analysis shows; the loops that are understood."""
    own = count(analysis, source, report)
    found_all = [d for d in diagnose(analysis, source) if d.code in selected]
    report.diagnostics = [d for d in found_all if d.span.row < STRIDE]
    report.elsewhere = elsewhere(analysis, [d for d in found_all if d.span.row >= STRIDE], source)
    report.covered = covered(analysis, source)
    report.internal_errors += sorted(set(analysis.broken))
    if analysis.project is not None:
        report.followed = sorted(map(str, analysis.project.touched))
    return own


def _suppress(report: Report, source: Source, comments: dict[int, str], selected: Collection[str]) -> None:
    report.diagnostics = suppress.apply(
        report.diagnostics, source.text, comments, filename=source.filename, selected=selected
    )
    report.diagnostics.sort(key=lambda d: (d.span, d.code))


def _by_portions(source: Source, config: Config, root: Path | None) -> Report | None:
    """The report of a large text, made portion by portion; None where that does not serve.

    What is in no portion is not parsed: in a text that is too large to be, a syntax error there goes unseen.
    """
    text = source.text.removeprefix("\ufeff")
    parts = portions(text)
    if not parts or (len(parts) == 1 and is_large(parts[0].text)):
        return None
    report = Report(files=1)
    selected = config.codes_for(source.path)
    understood: set[Span] = set()
    missed: dict[Span, NotUnderstood] = {}
    found: dict[tuple[str, Span], Diagnostic] = {}
    followed: set[str] = set()
    comments: dict[int, str] = {}
    for part in parts:
        try:
            program = parse(part.text, len(text) + 1)
            analysis = analyse(program, config, root, source.path)
        except (ParseError, RecursionError):
            return None
        comments |= program.comments
        if analysis is None:
            continue
        one = Report(files=1)
        own = _tell(one, analysis, source, selected)
        beside = {row for rows in part.beside for row in rows}
        understood |= {span for span in own if span.row not in beside}
        missed |= {loop.span: loop for loop in one.not_understood if loop.span.row not in beside}
        found |= {(d.code, d.span): d for d in reversed(one.diagnostics) if d.span.row not in beside}
        report.elsewhere += one.elsewhere
        report.covered += one.covered
        report.internal_errors += one.internal_errors
        followed |= set(one.followed or ())
    report.diagnostics = list(found.values())
    report.not_understood = [loop for span, loop in missed.items() if span not in understood]
    report.understood = len(understood)
    report.loops = report.understood + len(report.not_understood)
    report.followed = sorted(followed)
    _suppress(report, source, comments, selected)
    return report
