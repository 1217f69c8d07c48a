"""Applies proved fixes to a text until nothing more can be fixed, ten rounds at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

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


def allowed(unsafe: bool, codes: frozenset[str] | None = None) -> Allowed:
    """Whether a diagnostic's fix may be applied: a safe one, or any but display, of a rule in `codes`."""
    wanted = {Applicability.SAFE, Applicability.UNSAFE} if unsafe else {Applicability.SAFE}

    def test(diagnostic: Diagnostic) -> bool:
        fix = diagnostic.fix
        return fix is not None and fix.applicability in wanted and (codes is None or diagnostic.code in codes)

    return test


def fix_source(source: Source, config: Config, root: Path | None, may: Allowed) -> Fixed:
    """Apply every fix that `may` allows and what those make possible.

    Fixes of one round are applied errors first, then in the order of the text; one that touches what an earlier
    one touched waits for the next round. Suppressed findings and rules that do not run are left alone.
    """
    result = Fixed(source, lint(source, config, root))
    seen = {source.text}
    while result.rounds < ROUNDS:
        fixable = attach(result.report, result.source, config, root)
        result.report = fixable
        chosen = [d for d in fixable.diagnostics if may(d)]
        chosen.sort(key=lambda d: (-d.severity.rank, d.span, d.code))
        text, applied = _round(result.source, chosen, config, root)
        if not applied or text in seen:
            break
        seen.add(text)
        result.source = replace(result.source, text=text)
        result.applied += applied
        result.rounds += 1
        result.report = lint(result.source, config, root)
    return result


def _round(source: Source, chosen: list[Diagnostic], config: Config, root: Path | None) -> tuple[str, list[Diagnostic]]:
    """The text with as many of the fixes as go together; only the first where together they bring a new finding."""
    taken: list[Change] = []
    applied: list[Diagnostic] = []
    for diagnostic in chosen:
        assert diagnostic.fix is not None
        changes = changes_of(diagnostic.fix.edits, source)
        fresh = [c for c in changes if c not in taken]
        if not overlaps(fresh, taken):
            taken += fresh
            applied.append(diagnostic)
    if not applied:
        return source.text, []
    text = apply_changes(source.text, taken)
    if len(applied) > 1 and not _sound(source, text, config, root):
        assert applied[0].fix is not None
        return apply_changes(source.text, changes_of(applied[0].fix.edits, source)), applied[:1]
    return text, applied


def _sound(source: Source, text: str, config: Config, root: Path | None) -> bool:
    """Whether fixes that were proved one by one bring nothing new together."""
    before, after = examine(source, config, root), examine(replace(source, text=text), config, root)
    if before is None or after is None:
        return False
    if after.understood < before.understood:
        return False
    return all(count <= before.counts[code] or code in TAIL_RULES for code, count in after.counts.items())
