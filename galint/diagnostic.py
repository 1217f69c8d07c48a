"""A finding: what, where, in which numbers, under which assumptions, and how to repair it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from galint.rule import Severity
from galint.source import Span


class Applicability(StrEnum):
    """How safe a fix is.

    safe: the applied gradient becomes the large batch's and nothing else changes.
    unsafe: it also changes what the run logs, saves or costs.
    display: shown, never applied.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text of `span` by `content`."""

    span: Span
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits of one file that together repair one finding; `message` is an imperative phrase."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that explains the finding (the loop, the guard, the step)."""

    span: Span
    message: str
    filename: str | None = None
    """Only when it is not the diagnostic's own file."""
    cell: int | None = None
    """1-based code cell, only when it is not the diagnostic's own cell of the same notebook."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in one file.

    `message` is lower case without a final stop and carries the numbers. `applied` and `expected`
    are the ledger's formulas of the step that shows it best (None where a rule is not about one).
    `configuration` says under which options it holds ("when `args.fp16` is true").
    """

    code: str
    name: str
    severity: Severity
    message: str
    filename: str
    span: Span
    applied: str | None = None
    expected: str | None = None
    related: tuple[Related, ...] = ()
    assumptions: tuple[str, ...] = ()
    configuration: str | None = None
    fix: Fix | None = None
    cell: int | None = None
    """1-based code cell of a notebook; spans then count within the cell."""


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A training loop whose ledger galint could not follow, and why."""

    filename: str
    span: Span
    reason: str
    cell: int | None = None
    """1-based code cell of a notebook; the span then counts within the cell."""


@dataclass(slots=True)
class Report:
    """What linting one or more files gave. Diagnostics are sorted by file, row, column, code.

    A loop counts when it runs backward and an optimizer step belongs to it.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    files: int = 0
    loops: int = 0
    understood: int = 0
    not_understood: list[NotUnderstood] = field(default_factory=list)
    internal_errors: list[str] = field(default_factory=list)
    elsewhere: list[Diagnostic] = field(default_factory=list)
    """Findings in files that this one imports and drives; shown when those files are linted too."""
    covered: list[tuple[str, Span]] = field(default_factory=list)
    """Functions and loops of followed files whose backward calls this file's run has understood, by file and header."""
    followed: list[str] | None = None
    """Of one file's report: absolute paths of the imports that were looked for, found or not, on which
    the result depends; None where that is not known (the result is then not cached)."""

    def extend(self, other: Report) -> None:
        """Add another report's findings and counts to this one."""
        self.diagnostics += other.diagnostics
        self.files += other.files
        self.loops += other.loops
        self.understood += other.understood
        self.not_understood += other.not_understood
        self.internal_errors += other.internal_errors
        self.elsewhere += other.elsewhere
        self.covered += other.covered

    def gather(self, filenames: set[str]) -> None:
        """Take findings that other files' runs show in these files, once each, and leave out what those have understood.

        A file that drives a window finds its faults in its own lines; a launcher above it finds them again, in the
        lines of the helper that steps. Then the words are the same, and the places beside them.
        """
        known = {(d.filename, d.span, d.code) for d in self.diagnostics}
        told = {mark for d in self.diagnostics for mark in _marks(d)}
        for diagnostic in self.elsewhere:
            mark = (diagnostic.filename, diagnostic.span, diagnostic.code)
            if diagnostic.filename in filenames and mark not in known and told.isdisjoint(_marks(diagnostic)):
                known.add(mark)
                self.diagnostics.append(diagnostic)
        self.elsewhere = []
        driven = set(self.covered)
        left = [loop for loop in self.not_understood if (loop.filename, loop.span) not in driven]
        self.loops -= len(self.not_understood) - len(left)  # the loop that calls them counts in its own file
        self.not_understood, self.covered = left, []


_ENDS = frozenset({"GA205", "GA401", "GA402", "GA403"})
"""Rules about where a window ends, which shows in one place; a window can have several backwards."""


def _marks(diagnostic: Diagnostic) -> set[tuple[str, str, str, Span, str]]:
    """What two findings of one window's end share: code, message, and a place beside it."""
    d = diagnostic
    if d.code not in _ENDS:
        return set()
    return {(d.code, d.message, r.filename or d.filename, r.span, r.message) for r in d.related}
