"""`confirm(targets) -> Confirmation`: lint files, run the loops behind the findings, and say what the numbers say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from galint import suppress
from galint.analysis import Analysis, analyse
from galint.config import Config
from galint.diagnosing import diagnose
from galint.diagnostic import Diagnostic
from galint.discovery import Target, may_matter
from galint.errors import ParseError, SourceError
from galint.run.project import STRIDE, located
from galint.source import Source, Span, read_bytes
from galint.syntax import parse_any
from galint.trace.concluding import Outcome, Where, conclude
from galint.trace.confirming import Job, Limits, jobs, perform
from galint.trace.model import Status

BATCH = 40
"""Slices in one child process: starting torch costs more than running them."""


@dataclass(slots=True)
class Confirmation:
    """Outcomes in the order of files and lines, the slices that ran, and files that could not be read."""

    outcomes: list[Outcome] = field(default_factory=list)
    slices: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    where: Where
    work: list[Job]


def confirm(
    targets: Sequence[Target],
    limits: Limits,
    line: int | None = None,
    codes: frozenset[str] = frozenset(),
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Confirm the findings of files, or those at a 1-based line (of a loop: all findings in it)."""
    out = Confirmation()
    files: list[_File] = []
    count = 0
    for target in targets:
        try:
            data = read_bytes(target.path, target.filename)
        except SourceError as error:
            out.problems.append(str(error))
            continue
        if target.filename.endswith(".ipynb"):
            out.problems.append(f"{target.filename}: notebooks are not confirmed; save the cells as a script")
            continue
        if not may_matter(data):
            continue
        made, left = _prepare(
            Source.from_bytes(data, target.filename, target.path), target.config, target.root, line, codes, count
        )
        out.outcomes += left
        if made is not None:
            files.append(made)
            count += len(made.work)
    work = [job for file in files for job in file.work]
    trouble: dict[int, str] = {}
    for start in range(0, len(work), BATCH):
        part = work[start : start + BATCH]
        limit = replace(limits, seconds=limits.seconds + 2.0 * len(part))
        problem = perform(part, limit)
        trouble.update({job.id: problem for job in part if problem})
        if progress is not None:
            progress(start + len(part), len(work))
    for file in files:
        for job in file.work:
            out.outcomes += conclude(job, file.where, trouble.get(job.id, ""))
            if job.source:
                out.slices.append((job.findings[0].filename, job.source))
    out.outcomes.sort(key=lambda o: (o.finding.filename, o.finding.span, o.finding.code))
    return out


def _prepare(
    source: Source, config: Config, root: Path | None, line: int | None, codes: frozenset[str], first: int
) -> tuple[_File | None, list[Outcome]]:
    try:
        program = parse_any(source.text)
    except ParseError:
        return None, []
    analysis = analyse(program, config, root, source.path)
    if analysis is None:
        return None, []
    selected = config.codes_for(source.path)
    found = [d for d in diagnose(analysis, source) if d.code in selected and d.span.row < STRIDE]
    kept = suppress.apply(found, source.text, program.comments, filename=source.filename, selected=selected)
    kept = [d for d in kept if d.code >= "GA1" and (not codes or d.code in codes)]
    if line is not None:
        kept = _at(kept, line)
    work, left = jobs(analysis, kept, first)
    lost = [
        Outcome(d, Status.INCONCLUSIVE, "the run that shows it needs another number for N", failed=False) for d in left
    ]
    return _File(_where(analysis, source), work), lost


def _at(found: Sequence[Diagnostic], line: int) -> list[Diagnostic]:
    """Findings on a line; where there is none, those that name it as a related place (the loop, the guard, the step)."""
    own = [d for d in found if d.span.row <= line <= d.span.end_row]
    return own or [d for d in found if any(r.filename is None and r.span.row == line for r in d.related)]


def _where(analysis: Analysis, source: Source) -> Where:
    """The user's file and line for a program's row."""

    def where(row: int) -> tuple[str, int]:
        if analysis.project is not None and row >= STRIDE:
            path, span = located(Span(row, 0, row, 0))
            return (str(path), span.row) if path is not None else (source.filename, span.row)
        return source.filename, row

    return where
