"""Finds for each diagnostic the first rewrite that stands the proof, and attaches it as its fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from galint.analysis import Analysis
from galint.checks.all import CHECKS
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.config import Config
from galint.diagnosing import view_of
from galint.diagnostic import Applicability, Diagnostic, Fix, Report
from galint.engine import is_large
from galint.fixes.catalogue import REWRITES
from galint.fixes.editor import Unfixable
from galint.fixes.outline import Outline
from galint.fixes.prove import Exam, examine, proved, runs_of
from galint.fixes.situation import Candidate, Document, Situation
from galint.fixes.textedit import Lines, apply_changes, edits_of
from galint.source import Source
from galint.syntax import deep

_TRIES = 16
"""Rewrites proved for one finding at most; each is one more run of the file on paper."""
_FILE_TRIES = 96


def attach(report: Report, source: Source, config: Config, root: Path | None = None) -> Report:
    """The report of one file with a proved fix on each diagnostic that has one.

    `config` only gives the analysis' settings: the proof asks every rule, selected or not. A text with so many loops
    that it is linted in portions gets no fixes: each would have to be proved on the whole.
    """
    if is_large(source.text) or not any(d.code in REWRITES and d.fix is None for d in report.diagnostics):
        return report
    try:
        return _attached(report, source, config, root)
    except RecursionError:  # the code nests too deeply to be run here, though it did not for its findings
        return report


@deep()
def _attached(report: Report, source: Source, config: Config, root: Path | None) -> Report:
    before = examine(source, config, root)
    if before is None or before.analysis is None:
        return report
    prover = Prover(source, config, root, before)
    diagnostics = [d if d.fix is not None else replace(d, fix=prover.fix(d)) for d in report.diagnostics]
    return replace(report, diagnostics=diagnostics)


class Prover:
    """Proves rewrites of one text."""

    def __init__(self, source: Source, config: Config, root: Path | None, before: Exam) -> None:
        assert before.analysis is not None
        self.source, self.config, self.root, self.before = source, config, root, before
        self.analysis = before.analysis
        self.document = Document(Lines(source.text), Outline(self.analysis.program), self.analysis)
        self.exams: dict[str, Exam | None] = {}
        self.left = _FILE_TRIES

    def fix(self, diagnostic: Diagnostic) -> Fix | None:
        """The first rewrite that is proved; None when there is none."""
        rewrite = REWRITES.get(diagnostic.code)
        if rewrite is None or diagnostic.filename != self.source.filename:
            return None
        for finding, view, label in _made(self.analysis, diagnostic):
            tries = _TRIES
            for candidate in _candidates(Situation(self.document, diagnostic, finding, view), rewrite):
                if candidate.applicability is not Applicability.DISPLAY:
                    tries -= 1
                    if tries < 0 or not self._proved(diagnostic, candidate, label):
                        continue
                elif not self._parses(candidate):
                    continue
                edits = edits_of(candidate.changes, self.document.lines)
                return Fix(candidate.message, candidate.applicability, edits)
            break
        return None

    def _text(self, candidate: Candidate) -> str | None:
        try:
            text = apply_changes(self.source.text, candidate.changes)
        except ValueError:
            return None
        return text if text != self.source.text else None

    def _parses(self, candidate: Candidate) -> bool:
        from galint.errors import ParseError
        from galint.syntax import parse

        text = self._text(candidate)
        if text is None:
            return False
        try:
            parse(text)
        except ParseError:
            return False
        return True

    def _proved(self, diagnostic: Diagnostic, candidate: Candidate, label: tuple[str, str]) -> bool:
        text = self._text(candidate)
        if text is None:
            return False
        if text not in self.exams:
            if self.left <= 0:
                return False
            self.left -= 1
            self.exams[text] = examine(replace(self.source, text=text), self.config, self.root)
        after = self.exams[text]
        return after is not None and proved(diagnostic, label, self.before, after)


def _candidates(situation: Situation, rewrite: object) -> Iterator[Candidate]:
    """A rewrite's candidates; it may give up in the middle."""
    assert callable(rewrite)
    try:
        yield from rewrite(situation)
    except Unfixable:
        return


def _made(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[tuple[Finding, View, tuple[str, str]]]:
    """The findings behind a diagnostic, each with the run that showed it; those in its own words first."""
    found = list(_found(analysis, diagnostic))
    yield from sorted(found, key=lambda made: made[0].message != diagnostic.message)


def _found(analysis: Analysis, diagnostic: Diagnostic) -> Iterator[tuple[Finding, View, tuple[str, str]]]:
    checks = [c for c in CHECKS if c.code == diagnostic.code]
    for entry in analysis.exploration.entries:
        for label, run in runs_of(entry):
            view = view_of(analysis, run)
            for check in checks:
                main = label in {"base", "other", "tail", "other tail"}
                if main and (check.witness == "tail") != ("tail" in label):
                    continue
                for finding in check.run(view):
                    if finding.span == diagnostic.span:
                        yield finding, view, (entry.entry.name, label)
