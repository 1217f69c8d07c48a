"""Which loops of an analysis are understood, and why the others are not."""

from __future__ import annotations

from galint import program as p
from galint.analysis import Analysis, backward_sites
from galint.checks.all import CHECKS
from galint.diagnosing import checked, shown
from galint.diagnostic import NotUnderstood, Report
from galint.run.facts import RunResult
from galint.run.project import STRIDE, located
from galint.run.reach import BACKWARD, STEP
from galint.source import Source, Span


def _loop_nodes(analysis: Analysis) -> dict[Span, p.Node]:
    out: dict[Span, p.Node] = {}
    for stmt in analysis.program.body:
        for node in analysis.static.walk(stmt):
            if isinstance(node, (p.For, p.While)):
                out[node.span] = node
    return out


def _runs(analysis: Analysis) -> list[RunResult]:
    return [run for e in analysis.exploration.entries for run in (e.base, *(r for _, r in e.flips))]


def loops_understood(analysis: Analysis) -> dict[Span, set[Span]]:
    """Loop header → the backward calls whose gradients an optimizer step was seen to apply."""
    out: dict[Span, set[Span]] = {}
    for run in _runs(analysis):
        for ledger in run.ledgers.values():
            for step in ledger.steps:
                for entry in [*step.applied, *(e for e, _ in step.lost)]:
                    micro = run.micros.get(entry.micro)
                    if micro is not None and micro.loop is not None:
                        out.setdefault(micro.loop, set()).add(entry.span)
                    else:
                        out.setdefault(entry.span, set()).add(entry.span)
    return out


def _called_from(analysis: Analysis, understood: dict[Span, set[Span]]) -> set[Span]:
    """The functions that understood loops call, on any of their branches."""
    loops = [node for span, node in _loop_nodes(analysis).items() if span in understood]
    return {func.span for func in analysis.static.run_by(loops)}


def count(analysis: Analysis, source: Source, report: Report) -> set[Span]:
    """Fills the report's counts and returns the loops that are understood."""
    understood = loops_understood(analysis)
    covered = {span for spans in understood.values() for span in spans}
    executed = {b.span for run in _runs(analysis) for b in run.backwards}
    steps = any(STEP in analysis.static.tags(s) for s in analysis.program.body) or any(
        STEP in analysis.static.tags(f) for group in analysis.static.functions.values() for f in group
    )
    wiped = {m.span for run in _runs(analysis) for ledger in run.ledgers.values() for m, _ in ledger.lost} | {
        e.span for run in _runs(analysis) for ledger in run.ledgers.values() for s in ledger.steps for e, _ in s.lost
    }
    for run in _runs(analysis):
        wiped |= run.facts.get("wiped", set())
    stuck, idle = (
        {
            f.span
            for e in analysis.exploration.entries
            for c in CHECKS
            if c.code == code
            for f in checked(analysis, e.base, c)
        }
        for code in ("GA401", "GA103")
    )
    missed: dict[Span, str] = {}
    escapes = [e for run in _runs(analysis) for e in run.escapes]
    stopped = {run.stopped for run in _runs(analysis) if run.stopped}
    loops = _loop_nodes(analysis)
    functions = {func.span for group in analysis.static.functions.values() for func in group}
    wrappers = {func.span for func in analysis.static.functions.get("backward", ())}
    halves = {s.holder for s in analysis.sites if s.span in covered} | _called_from(analysis, understood)
    for site in analysis.sites:
        if site.span in covered or not steps:
            continue
        node = loops.get(site.holder)
        if site.span in executed and (node is None or site.span in wiped) and understood:
            continue  # a probe whose gradient is cleared unused
        if node is None and understood and site.holder not in functions:
            continue  # a statement of its own, outside any loop
        if node is None and site.span not in executed and site.holder in halves:
            continue  # the other branch of a function that an understood loop runs
        if node is None and site.span not in executed and site.holder in wrappers:
            continue  # a library's own `backward`, which other files call
        if node is not None and any(n.span in understood for n in analysis.static.walk(node)):
            continue  # another branch of a loop that is understood
        if (site.span in executed and stuck and not covered) or site.span in idle:
            understood.setdefault(site.holder, set()).add(site.span)  # understood: it never steps, or steps in vain
            continue
        if site.span in executed:
            reason = escapes[0][1] if escapes else "its gradients reach no optimizer step that galint can see"
        else:
            reason = next(iter(stopped), "the run does not reach it")
        missed.setdefault(site.holder, reason)
    missed = {span: reason for span, reason in missed.items() if span not in understood}
    own = {span for span in understood if span.row < STRIDE}
    report.loops = len(own) + len(missed)
    report.understood = len(own)
    report.not_understood = [NotUnderstood(source.filename, span, reason) for span, reason in missed.items()]
    return own


def covered(analysis: Analysis, source: Source) -> list[tuple[str, Span]]:
    """The functions and loops of followed files whose backward calls an understood loop of this file runs."""
    if analysis.project is None:
        return []
    ran = {f for run in _runs(analysis) if any(led.steps for led in run.ledgers.values()) for f in run.executed}
    functions = [
        f for group in analysis.static.functions.values() for f in group if id(f) in ran and f.span.row >= STRIDE
    ]
    seen = {n.span for f in functions if BACKWARD in analysis.static.tags(f) for n in analysis.static.walk(f)}
    out: list[tuple[str, Span]] = []
    for unit in analysis.project.order if seen else ():
        for site in backward_sites(unit.program, analysis.static):
            if site.span in seen:
                path, holder = located(site.holder)
                assert path is not None
                out.append((shown(path, source), holder))
    return out
