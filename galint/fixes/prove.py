"""Proof of a fix: the fixed text is run again, its finding is gone, no fault is new, and the formulas are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from galint.analysis import Analysis, analyse
from galint.checks.view import View
from galint.config import Config
from galint.counting import loops_understood
from galint.diagnosing import diagnose, view_of
from galint.diagnostic import Diagnostic
from galint.errors import ParseError
from galint.ledger import Entry, Mark, OptimizerLedger, Step
from galint.program import Program
from galint.run.explore import EntryRuns
from galint.run.facts import RunResult
from galint.run.nodes import path_terminal
from galint.source import Source
from galint.syntax import deep, parse

TAIL_RULES = frozenset({"GA402", "GA403"})
"""Rules about the last, partial window: hidden while the full windows are wrong, so never brought by a fix."""
_COUNTED = {"GA101": "lost", "GA102": "carried", "GA201": "weight", "GA203": "weight", "GA401": "length"}
_WEIGHED = frozenset({"GA101", "GA102", "GA201", "GA202", "GA203", "GA204", "GA401"})
"""Rules about which gradients a window sums with which weight; while that is wrong, GA205 does not ask for its last one."""

Fault = tuple[str, str, str]
"""(entry, optimizer, kind): a way in which some step of that optimizer differs from the large batch's."""


@dataclass(slots=True)
class Exam:
    """What running a text on paper showed."""

    analysis: Analysis | None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    faults: frozenset[Fault] = frozenset()
    by_run: dict[tuple[str, str], frozenset[Fault]] = field(default_factory=dict)
    """(entry, label of its run) → the faults of that run."""
    understood: int = 0
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    """(entry, optimizer) → steps that applied something, over all runs."""

    clipped: frozenset[tuple[str, str, str]] = frozenset()
    """(entry, label of its run, optimizer) whose steps apply clipped gradients."""
    unclipped: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """… and how many of its steps apply gradients that were not clipped."""

    @property
    def counts(self) -> Counter[str]:
        """How often each rule was found."""
        return Counter(d.code for d in self.diagnostics)


@deep()
def examine(source: Source, config: Config, root: Path | None) -> Exam | None:
    """Run `source` on paper; None when it is not Python, or nests too deeply."""
    try:
        return _examined(source, parse(source.text), config, root)
    except (ParseError, RecursionError):
        return None


def _examined(source: Source, program: Program, config: Config, root: Path | None) -> Exam:
    analysis = analyse(program, config, root, source.path)
    if analysis is None:
        return Exam(None)
    exam = Exam(analysis, diagnose(analysis, source), understood=len(loops_understood(analysis)))
    for entry in analysis.exploration.entries:
        for label, run in runs_of(entry):
            view = view_of(analysis, run)
            faults = frozenset(_faults(view, entry.entry.name, label))
            exam.by_run[entry.entry.name, label] = faults
            exam.faults |= faults
            for ledger in view.ledgers:
                key = (entry.entry.name, ledger.name)
                clipped = [any(m.kind == "clip" for m in s.marks) for s in ledger.steps if s.applied]
                if any(clipped):
                    exam.clipped |= {(entry.entry.name, label, ledger.name)}
                exam.unclipped[entry.entry.name, label, ledger.name] = clipped.count(False)
                exam.steps[key] = exam.steps.get(key, 0) + sum(bool(s.applied) for s in ledger.steps)
    return exam


def runs_of(entry: EntryRuns) -> Iterator[tuple[str, RunResult]]:
    """The runs of an entry with their labels: N divides the loader, or it does not; another N; other settings."""
    yield from (("base", entry.base), ("other", entry.other), ("tail", entry.tail), ("other tail", entry.other_tail))
    yield from entry.flips


def _faults(view: View, entry: str, label: str) -> Iterator[Fault]:
    partial = "tail" in label
    for ledger in view.ledgers:
        for kind in _kinds(view, ledger, partial):
            yield entry, ledger.name, kind


def _kinds(view: View, ledger: OptimizerLedger, partial: bool) -> Iterator[str]:
    cadence = view.cadence(ledger)
    steps = view.steps(ledger)
    full = cadence.n if cadence is not None else max((len(set(step.window)) for step in steps), default=0)
    if len(steps) == 1 and any(entry.applied for entry in ledger.pending):
        yield "carried"  # a run of one step cannot show what a second one would apply again
    for step in steps:
        window = list(dict.fromkeys(step.window))
        last = len(window) < full and _ends_loop(view, window)
        if step.carried:
            yield "carried"
        if step.lost:
            yield "tail" if partial or all(_after_loop(view, *lost) for lost in step.lost) else "lost"
        if cadence is not None and len(window) != cadence.n and not last:
            runs = {m.serial for t in window if (m := view.micro(t)) is not None}
            yield "tail" if len(runs) > 1 and partial else "length"
        right = {Fraction(1, len(window))}
        if cadence is not None and len(window) != cadence.n and not (last or partial):
            right.add(Fraction(1, cadence.n))  # the length is what is wrong with this window
        weights = _numbers(view, step)
        if step.applied and not weights:
            yield "unknown"  # what the run cannot put a number to is no proof
        if any(weight not in right for weight in weights):
            yield "tail weight" if last or (partial and cadence and len(window) != cadence.n) else "weight"
        if any(m.kind == "clip" and m.scaled for m in step.marks):
            yield "clip"
        if any(m.kind == "unscale" and (m.detail == "again" or _later(step, m.seq)) for m in step.marks):
            yield "early"
        yield from _sync(step)


def _ends_loop(view: View, window: list[int]) -> bool:
    """Whether a window's last micro-batch is the last one of its loop's run."""
    mine = view.micro(window[-1]) if window else None
    if mine is None:
        return False
    return not any(
        m.serial == mine.serial and m.loop == mine.loop and m.iteration > mine.iteration
        for m in view.run.micros.values()
    )


def _after_loop(view: View, entry: Entry, mark: Mark) -> bool:
    """Whether a micro-batch was cleared away once its loop had ended."""
    micro = view.micro(entry.micro)
    return micro is not None and not any(span == micro.loop and run == micro.serial for span, run, _ in mark.where)


def _numbers(view: View, step: Step) -> list[Fraction]:
    """The known weights of a step, the micro-batch's several losses taken together as one."""
    weights = view.weights(step)
    if any(w.symbols for w in weights.values()) or any(e.facts.summed or _may_hide(view, e) for e in step.applied):
        return []
    return [w.value for w in weights.values()]


def _may_hide(view: View, entry: Entry) -> bool:
    """Whether a division by N may hide in a call that the run could not see into."""
    words = {path_terminal(key) for ledger in view.ledgers for key in view.n_keys(ledger)}
    return any(text == "?" or words & set(re.findall(r"\w+", text)) for text in entry.facts.hidden)


def _later(step: Step, seq: int) -> bool:
    return any(e.seq > seq and e.facts.scale_span is not None for e in step.applied)


def _sync(step: Step) -> Iterator[str]:
    micros: dict[str, set[int]] = {}
    last: dict[str, bool] = {}
    for entry in sorted([*step.applied, *(e for e, _ in step.lost)], key=lambda e: e.seq):
        for ident, on in entry.facts.synced:
            last[ident] = on
            if on:
                micros.setdefault(ident, set()).add(entry.micro)
    if any(not on for on in last.values()):
        yield "unsynchronised"
    if any(entry.facts.bypassed for entry in step.applied):
        yield "bypassed"
    if any(len(m) > 1 for m in micros.values()):
        yield "traffic"


def proved(diagnostic: Diagnostic, label: tuple[str, str], before: Exam, after: Exam) -> bool:
    """Whether `after` shows the finding gone, nothing new, and the formula of the steps repaired.

    `label` is the (entry, run) in which the finding was made. A step may still differ from the large batch
    only in a way that it did before and that remaining findings report.
    """
    old, new = before.counts, after.counts
    if new[diagnostic.code] >= old[diagnostic.code]:
        return False
    if any(count > old[code] and not _unmasked(code, diagnostic.code, before) for code, count in new.items()):
        return False
    if any(d.code == diagnostic.code and d.message == diagnostic.message and d.span == diagnostic.span
           for d in after.diagnostics):  # fmt: skip
        return False
    if after.understood < before.understood:
        return False
    if any(count and not after.steps.get(key) for key, count in before.steps.items()):
        return False
    if before.clipped - after.clipped or any(after.unclipped[k] > before.unclipped[k] for k in before.clipped):
        return False
    kind = _COUNTED.get(diagnostic.code)
    if kind is not None and any(k == kind for _, _, k in after.by_run.get(label, ())):
        others = {d.code for d in after.diagnostics}
        if not any(_COUNTED.get(code) == kind for code in others):
            return False
    if diagnostic.code in TAIL_RULES and any(k in {"tail", "tail weight"} for _, _, k in after.by_run.get(label, ())):
        return False
    return all(f in before.faults or _excused(f, diagnostic.code, before) for f in after.faults)


def _unmasked(code: str, fixed: str, before: Exam) -> bool:
    """Whether a finding was hidden by the one that is fixed: what it speaks of was as wrong before."""
    kinds = {kind for _, _, kind in before.faults}
    if code in TAIL_RULES:
        return fixed not in TAIL_RULES and bool(kinds & {"tail", "length"} or _untold(fixed, before))
    if code == "GA205":
        return fixed in _WEIGHED or _untold(fixed, before)
    if code == "GA601":
        return fixed == "GA603" and "bypassed" in kinds  # nothing was all-reduced at all
    if code == "GA201":
        return fixed == "GA101"  # what was cleared was not summed
    return code == "GA104" and fixed == "GA401"


def _excused(fault: Fault, fixed: str, before: Exam) -> bool:
    """The last window's faults show only once full windows are stepped; they were as wrong before."""
    entry, _, kind = fault
    if fixed in TAIL_RULES:
        return False
    drifted = any((e, k) == (entry, "length") for e, _, k in before.faults)
    if kind == "traffic":
        return _unmasked("GA601", fixed, before)
    return kind == "tail weight" or (kind == "tail" and (drifted or _untold(fixed, before)))


def _untold(fixed: str, before: Exam) -> bool:
    """Whether the last, partial window was wrong without a finding of its own: it had no backward, or shared the next one's.

    A mean over a list of losses is right for each length, and its weights are not known: there the full windows tell.
    """
    if fixed != "GA106":
        return fixed == "GA103"
    full = {kind for (_, label), faults in before.by_run.items() if "tail" not in label for _, _, kind in faults}
    kinds = {kind for _, _, kind in before.faults}
    return bool(kinds & {"weight", "tail weight"}) and "weight" not in full
