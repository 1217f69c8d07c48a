"""`confirm(targets) -> Confirmation`: lint files, run the loops behind the findings, and say what the numbers say."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from galint import notebook, suppress
from galint.analysis import Analysis, analyse
from galint.diagnosing import diagnose
from galint.diagnostic import Diagnostic
from galint.discovery import Target, may_matter
from galint.errors import ParseError, SourceError
from galint.notebook import Notebook
from galint.render.full import where
from galint.run.project import STRIDE, located
from galint.source import Source, Span, read_bytes
from galint.syntax import parse_any
from galint.trace.concluding import Outcome, Where, conclude
from galint.trace.confirming import Job, Limits, jobs, perform
from galint.trace.model import Status

BATCH = 40
"""Slices in one child process: starting torch costs more than running them."""
_LINE = re.compile(r"\bline (\d+)\b")


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
    lost: list[Outcome]
    book: Notebook | None


def confirm(
    targets: Sequence[Target],
    limits: Limits,
    at: Sequence[int] = (),
    codes: frozenset[str] = frozenset(),
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Confirm the findings of files, or those `at` a 1-based line (of a loop: all findings in it).

    In a notebook, `at` is a code cell, or a code cell and the line in it.
    """
    out = Confirmation()
    files: list[_File] = []
    count = 0
    for target in targets:
        try:
            made = _prepare(target, at, codes, count)
        except SourceError as error:
            out.problems.append(str(error))
        else:
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
        told = list(file.lost)
        for job in file.work:
            told += conclude(job, file.where, trouble.get(job.id, ""))
            if job.source:
                out.slices.append((job.findings[0].filename, job.source))
        out.outcomes += told if file.book is None else (_in_its_cell(o, file.book) for o in told)
    out.outcomes.sort(key=lambda o: (o.finding.filename, o.finding.cell or 0, o.finding.span, o.finding.code))
    return out


def _prepare(target: Target, at: Sequence[int], codes: frozenset[str], first: int) -> _File | None:
    """The work on one file; None where there is none. Raises SourceError."""
    data = read_bytes(target.path, target.filename)
    is_notebook = target.filename.endswith(".ipynb")
    book = notebook.load(data, target.filename) if is_notebook else None
    if not may_matter(data) or (is_notebook and book is None):
        return None
    source = Source.from_bytes(data, target.filename, target.path) if book is None else book.source
    config = target.config
    try:
        program = parse_any(source.text, source.cells)
    except ParseError as error:
        cell, row = (None, error.row) if book is None else _cell_of(book, error.row)
        raise SourceError(f"{where(target.filename, cell, row, error.column - 1)}: {error.message}") from None
    analysis = analyse(program, config, target.root, source.path)
    if analysis is None:
        return None
    selected = config.codes_for(source.path)
    found = [d for d in diagnose(analysis, source) if d.code in selected and d.span.row < STRIDE]
    kept = suppress.apply(found, source.text, program.comments, filename=source.filename, selected=selected)
    kept = [d for d in kept if d.code >= "GA1" and (not codes or d.code in codes)]
    if at:
        kept = _at(kept, at[0]) if book is None else _at_cell(kept, at, book)
    work, left = jobs(analysis, kept, first)
    lost = [
        Outcome(d, Status.INCONCLUSIVE, "the run that shows it needs another number for N", failed=False) for d in left
    ]
    return _File(_where(analysis, source), work, lost, book)


def _in_its_cell(out: Outcome, book: Notebook) -> Outcome:
    """An outcome of a notebook's text, with its places counted within their cells."""

    def placed(text: str) -> str:
        return _LINE.sub(lambda m: "cell {}:{}".format(*_cell_of(book, int(m[1]))), text)

    out.finding = book.place(out.finding)
    out.reason, out.notes = placed(out.reason), [placed(note) for note in out.notes]
    return out


def _cell_of(book: Notebook, row: int) -> tuple[int, int]:
    cell, span = book.locate(Span(row, 0, row, 0))
    return cell, span.row


def _at_cell(found: Sequence[Diagnostic], at: Sequence[int], book: Notebook) -> list[Diagnostic]:
    """Findings in a code cell, or on a line of it."""
    if len(at) == 1:
        return [d for d in found if book.locate(d.span)[0] == at[0]]
    row = book.row_of(*at)
    return _at(found, row) if row is not None else []


def _at(found: Sequence[Diagnostic], line: int) -> list[Diagnostic]:
    """Findings on a line; where there is none, those that name it as a related place (the loop, the guard, the step)."""
    own = [d for d in found if d.span.row <= line <= d.span.end_row]
    return own or [d for d in found if any(r.filename is None and r.span.row == line for r in d.related)]


def _where(analysis: Analysis, source: Source) -> Where:
    """The user's file and line for a program's row."""

    def place(row: int) -> tuple[str, int]:
        if analysis.project is not None and row >= STRIDE:
            path, span = located(Span(row, 0, row, 0))
            return (str(path), span.row) if path is not None else (source.filename, span.row)
        return source.filename, row

    return place
