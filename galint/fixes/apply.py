"""Applies proved fixes to a text until nothing more can be fixed, ten rounds at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from galint.config import Config
from galint.diagnostic import Applicability, Diagnostic, Report
from galint.engine import lint
from galint.fixes.attach import attach
from galint.fixes.prove import TAIL_RULES, examine
from galint.fixes.textedit import Change, apply_changes, changes_of, overlaps
from galint.source import Source

ROUNDS = 10
Allowed = Callable[[Diagnostic], bool]


@dataclass(slots=True)
class Fixed:
    """What fixing gave: the text, what was applied in order, and the report of what remains."""

    source: Source
    report: Report
    applied: list[Diagnostic] = field(default_factory=list)
    rounds: int = 0

    @property
    def text(self) -> str:
        """The text after all fixes."""
        return self.source.text


class Draft(Protocol):
    """Where a text comes from, when it is not a file's own: a notebook's cells."""

    def takes(self, changes: Sequence[Change]) -> bool:
        """Whether it can say the changes."""

    def make(self, changes: Sequence[Change]) -> str:
        """Carry them out; the new text."""

    def place(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic as it is shown, before the next change."""


def allowed(unsafe: bool, codes: frozenset[str] | None = None) -> Allowed:
    """Whether a diagnostic's fix may be applied: a safe one, or any but display, of a rule in `codes`."""
    wanted = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}

    def test(diagnostic: Diagnostic) -> bool:
        fix = diagnostic.fix
        return fix is not None and fix.applicability in wanted and (codes is None or diagnostic.code in codes)

    return test


def fix_source(source: Source, config: Config, root: Path | None, may: Allowed, draft: Draft | None = None) -> Fixed:
    """Apply every fix that `may` allows and what those make possible.

    Fixes of one round are applied errors first, then in the order of the text; one that touches what an earlier
    one touched waits for the next round. Suppressed findings and rules that do not run are left alone. With a
    `draft`, only what it takes is applied, there as well.
    """
    result = Fixed(source, lint(source, config, root))
    seen = {source.text}
    while result.rounds < ROUNDS:
        fixable = attach(result.report, result.source, config, root)
        result.report = fixable
        chosen = [d for d in fixable.diagnostics if may(d) and (draft is None or draft.takes(_changes(d, result)))]
        chosen.sort(key=lambda d: (-d.severity.rank, d.span, d.code))
        changes, applied = _round(result.source, chosen, config, root, draft)
        text = apply_changes(result.source.text, changes)
        if not applied or text in seen:
            break
        if draft is not None:
            applied = [draft.place(d) for d in applied]
            assert draft.make(changes) == text
        seen.add(text)
        result.source = replace(result.source, text=text)
        result.applied += applied
        result.rounds += 1
        result.report = lint(result.source, config, root)
    return result


def _changes(diagnostic: Diagnostic, result: Fixed) -> list[Change]:
    assert diagnostic.fix is not None
    return changes_of(diagnostic.fix.edits, result.source)


def _round(
    source: Source, chosen: list[Diagnostic], config: Config, root: Path | None, draft: Draft | None
) -> tuple[list[Change], list[Diagnostic]]:
    """As many of the fixes as go together; only the first where together they bring a new finding."""
    taken: list[Change] = []
    applied: list[Diagnostic] = []
    for diagnostic in chosen:
        assert diagnostic.fix is not None
        changes = changes_of(diagnostic.fix.edits, source)
        fresh = [c for c in changes if c not in taken]
        if not overlaps(fresh, taken):
            taken += fresh
            applied.append(diagnostic)
    if len(applied) > 1:
        together = draft is None or draft.takes(taken)
        if not together or not _sound(source, apply_changes(source.text, taken), config, root):
            assert applied[0].fix is not None
            return changes_of(applied[0].fix.edits, source), applied[:1]
    return taken, applied


def _sound(source: Source, text: str, config: Config, root: Path | None) -> bool:
    """Whether fixes that were proved one by one bring nothing new together."""
    before, after = examine(source, config, root), examine(replace(source, text=text), config, root)
    if before is None or after is None:
        return False
    if after.understood < before.understood:
        return False
    return all(count <= before.counts[code] or code in TAIL_RULES for code, count in after.counts.items())
