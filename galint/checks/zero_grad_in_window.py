"""GA101: gradients are cleared between a micro-batch's backward and the step that should apply it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.delayed import is_delayed
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.ledger import Entry, Mark, OptimizerLedger, Step, formula
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP
from galint.source import Span

CODE = "GA101"
WITNESS = "even"
_RESTORES = re.compile(r"^(restore|recover|reload|put_back)_?grad(s|ient|ients)?$", re.I)
"""What puts gradients back that were set aside, as adversarial passes over a micro-batch do."""


def check(view: View) -> Iterator[Finding]:
    """A clear that runs while the loop of the micro-batches it wipes is still running."""
    if any("register_post_accumulate_grad_hook" in uses for uses in view.static.uses.values()):
        return  # the optimizer steps inside the backward
    if view.static.calls_any(_RESTORES):
        return
    if view.run.facts.get("manual_grad") or _engine_only(view):
        return
    for ledger in view.ledgers:
        if is_delayed(view, ledger):
            continue
        seen: set[Span] = set()
        for step, wiped, total in _windows(view, ledger):
            for span, entries in wiped.items():
                if span in seen:
                    continue
                seen.add(span)
                lost = len({e.micro for e, _ in entries})
                mark = entries[0][1]
                shifted = total != len(dict.fromkeys(step.window))  # the turn before began in another window
                applied = formula({total: view.coefficient(step.applied[0])}) if shifted else None
                yield Finding(
                    CODE,
                    span,
                    f"`{mark.owner}` discards {lost} of {total} micro-batch gradients before the optimizer step applies them",
                    step=step,
                    window=total,
                    related=((entries[0][0].span, "this backward's gradient is lost"), *view.places(step)),
                    applied=applied,
                )


def _windows(view: View, ledger: OptimizerLedger) -> Iterator[tuple[Step, dict[Span, list[tuple[Entry, Mark]]], int]]:
    """Steps, what was wiped before them and where, and how many micro-batches they stand for."""
    used: set[int] = set()
    # With several optimizers, a loss that this one never applies is another network's, which it only passes through.
    own = {e.span for s in ledger.steps for e in s.applied} if len(view.ledgers) > 1 else None
    for step in view.steps(ledger):
        if not view.repeats(step):
            continue
        applied = {e.micro for e in step.applied}
        wiped: dict[Span, list[tuple[Entry, Mark]]] = {}
        given_up = view.given_up(step)
        sure = view.lone(ledger)
        counted = 0 if sure else _counted(view, ledger, step, own)
        for entry, mark in step.lost:
            covered = (
                entry.micro in given_up
                or entry.span in view.shared(ledger)
                or (own is not None and entry.span not in own)
                or entry.micro in applied
                or entry.micro in used
                or not _same_loop(view, entry, applied)
            )
            if covered or not _inside(view, entry, mark):
                continue
            if not (entry.sure or sure or counted or _gathered(view, entry, step)):
                continue
            wiped.setdefault(mark.span, []).append((entry, mark))
        used |= applied
        if wiped and len(dict.fromkeys(step.window)) > 1:
            yield step, wiped, counted or len(dict.fromkeys(step.window))


def _counted(view: View, ledger: OptimizerLedger, step: Step, own: set[Span] | None) -> int:
    """N, where one of N micro-batches is left at a step that comes after N of them, as every other optimizer's does, else 0.

    Whatever parameters the other optimizers have, this one's gradients of the other micro-batches are gone.
    """
    cadence = view.cadence(ledger)
    applied = {e.micro for e in step.applied}
    met = applied | {e.micro for e, _ in step.lost if own is None or e.span in own}
    if cadence is None or cadence.guard is None or len(applied) != 1 or not len(met) == cadence.n > 1:
        return 0
    others = [view.cadence(other) for other in view.ledgers]
    return cadence.n if all(c is not None and c.n == cadence.n for c in others) else 0


def _gathered(view: View, entry: Entry, step: Step) -> bool:
    """Whether the step applies what the same backward left in the last pass of a loop in which no optimizer steps.

    Whoever's parameters the backward reaches, the loop's other passes were for this step too.
    """
    micro = view.micro(entry.micro)
    loop = view.static.loops.get(micro.loop) if micro is not None and micro.loop is not None else None
    return (
        loop is not None
        and STEP not in view.static.body_tags(loop.body)
        and any(e.span == entry.span and _same_pass(view, e.micro, entry.micro) for e in step.applied)
    )


def _same_pass(view: View, one: int, other: int) -> bool:
    first, second = view.micro(one), view.micro(other)
    return first is not None and second is not None and first.serial == second.serial


def _same_loop(view: View, entry: Entry, applied: set[int]) -> bool:
    """Whether the lost micro-batch belongs to the loop whose gradients the step applies (a probe's does not)."""
    return not applied or view.loop_of(entry.micro) in {view.loop_of(t) for t in applied}


def _inside(view: View, entry: Entry, mark: Mark) -> bool:
    """Whether the clear ran inside the same run of the loop that the micro-batch belongs to."""
    micro = view.micro(entry.micro)
    if micro is None or micro.loop is None:
        return False
    return any(span == micro.loop and serial == micro.serial for span, serial, _ in mark.where)


def _engine_only(view: View) -> bool:
    """True where the program asks its model for what only a DeepSpeed engine has, without asking first whether it is one.

    Accelerate's `DeepSpeedOptimizerWrapper.zero_grad` does nothing: the engine clears at its own step.
    """
    if "get_global_grad_norm" not in view.static.called:
        return False
    asked: set[p.Node] = set()
    for branch in (n for n in view.static.everything() if isinstance(n, p.If)):
        if "deepspeed" in p.text(branch.test).lower() or _trains_without(view, branch):
            asked.update(view.static.walk(branch))
    calls = (c for c in view.static.calls if terminal(c.func) == "get_global_grad_norm" and c not in asked)
    return any(isinstance(c.func, p.Attr) for c in calls)


def _trains_without(view: View, branch: p.If) -> bool:
    """Whether one side asks the engine and the other one runs a backward of its own."""
    for side, other in ((branch.body, branch.orelse), (branch.orelse, branch.body)):
        asks = any(
            isinstance(n, p.Attr) and n.name == "get_global_grad_norm" for s in side for n in view.static.walk(s)
        )
        if asks and BACKWARD in view.static.body_tags(other):
            return True
    return False
