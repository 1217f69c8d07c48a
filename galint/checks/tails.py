"""The partial last window of an epoch: where it goes, as GA402 and GA403 ask it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from galint import program as p
from galint.checks.delayed import is_delayed
from galint.checks.gradients_never_zeroed import never_cleared
from galint.checks.view import Cadence, View
from galint.checks.windows import overlap, program_nodes
from galint.ledger import OptimizerLedger, Step
from galint.run.nodes import path_terminal, terminal
from galint.source import Span

_ALL_STEPS = re.compile(r"range\((.*[^a-z])?(max|total|num_train|train)_?(steps|iter(s|ations)?|updates)\)*$", re.I)
"""A loop over all steps of a training."""
_UPDATES = re.compile(r"(^|_)(steps?|updates?|iters?|iterations?|windows?)(_|$)", re.I)


@dataclass(slots=True)
class Tail:
    """What happened to a partial window. `kind` is "leaked" or "dropped"."""

    kind: str
    ledger: OptimizerLedger
    cadence: Cadence | None
    step: Step | None
    count: int
    span: Span
    clear: Span | None = None


def tails(view: View) -> list[Tail]:
    """Partial windows of a run whose loader N does not divide."""
    out: list[Tail] = []
    if view.run.facts.get("skips"):
        return out
    for ledger in view.ledgers:
        if not (view.lone(ledger) or view.together) or not view.accumulates(ledger):
            continue
        cadence = view.cadence(ledger)
        if cadence is None or cadence.guard is None or cadence.n < 2:
            continue
        if is_delayed(view, ledger):
            continue  # a fresh gradient each, and no windows
        if never_cleared(view, ledger):
            continue  # no window of it holds its own gradients alone
        found = _leaked(view, ledger, cadence) or _dropped(view, ledger, cadence)
        if found is not None and not _whole(view, found) and not _ends_with_a_step(view, cadence.guard.span):
            out.append(found)
    return out


def _whole(view: View, tail: Tail) -> bool:
    """True where the code itself gives a number of batches that its N divides."""
    assert tail.cadence is not None
    label = tail.cadence.label
    if _drawn_in_windows(view, tail, path_terminal(label)):
        return True
    if not label.isdigit() and (label in view.run.known or label in view.scenario.values):
        return False  # a setting, or a witness's own N
    steps = [tail.step] if tail.step is not None else []
    loops = {m.loop for s in steps for t in s.window if (m := view.micro(t)) is not None}
    counted = [view.run.facts.get("batches", {}).get(loop) for loop in loops]
    return bool(counted) and all(c is not None and c % tail.cadence.n == 0 for c in counted)


def _drawn_in_windows(view: View, tail: Tail, name: str) -> bool:
    """True where the loop's loader is made with so many updates times N: `Batches(data, updates * n)`."""
    steps = [tail.step] if tail.step is not None else []
    loops = {m.loop for s in steps for t in s.window if (m := view.micro(t)) is not None}
    found = [view.static.loops.get(span) for span in loops if span is not None]
    wanted = {name for node in found if isinstance(node, p.For) for name in view.static.names_in(node.iter)}
    for _ in range(2):  # the loader, and the sampler that it is given
        made = [
            node.value
            for node in program_nodes(view)
            if isinstance(node, p.Assign) and isinstance(node.value, p.Call) and terminal(node.targets[0]) in wanted
        ]
        parts = [part for call in made for arg in call.args for part in view.static.walk(arg.value)]
        for part in parts:
            if isinstance(part, p.BinOp) and part.op == "*":
                sides = {terminal(part.left), terminal(part.right)}
                if name in sides and any(map(_UPDATES.search, sides - {name})):
                    return True
        wanted = {part.id for part in parts if isinstance(part, p.Name)}
    return False


def _ends_with_a_step(view: View, guard: Span) -> bool:
    """True where a bound of the loop's own steps too: `if full or i == last: step`, and `if i == last: break` further down."""
    ifs = [node for node in program_nodes(view) if isinstance(node, p.If)]
    gate = next((node.test for node in ifs if node.span == guard), None)
    if not isinstance(gate, p.BoolOp) or gate.op != "or":
        return False
    either = {p.text(part) for part in gate.values}
    return any(isinstance(node.body[-1], p.Break) and p.text(node.test) in either for node in ifs)


def _leaked(view: View, ledger: OptimizerLedger, cadence: Cadence) -> Tail | None:
    assert cadence.guard is not None
    steps = view.steps(ledger)
    for before, step in zip([None, *steps], steps, strict=False):
        twice = overlap(step, before)
        tokens = [t for t in dict.fromkeys(step.window) if t not in twice]
        serials = [m.serial for t in tokens if (m := view.micro(t)) is not None]
        loops = {m.loop for t in tokens if (m := view.micro(t)) is not None}
        if len(set(serials)) < 2 or len(loops) != 1 or len(tokens) <= cadence.n:
            continue
        if any(mark.kind == "clear" and mark.pending for mark in step.marks) or _whole_training(view, tokens):
            continue
        applied = {e.micro for e in step.applied}
        older = [t for t, s in zip(tokens, serials, strict=False) if s != serials[-1] and t in applied]
        if older and len(older) < cadence.n:
            return Tail("leaked", ledger, cadence, step, len(older), cadence.guard.span)
    return None


def _whole_training(view: View, tokens: list[int]) -> bool:
    """True for a loop that counts up to a number of steps with no loop around it: it is the training, no epoch of it, and
    a second run of it is a second training.
    """
    paths = {m.path[0] for t in tokens if (m := view.micro(t)) is not None and len(m.path) == 1}
    headers = {span for span, _, _ in paths}
    if len(headers) != 1 or len({serial for _, serial, _ in paths}) < 2:
        return False
    node = view.static.loops.get(headers.pop())
    if isinstance(node, p.While):
        asked = {p.text(n) for n in view.static.walk(node.test) if isinstance(n, (p.Name, p.Attr))}
        body = (n for s in node.body for n in view.static.walk(s))
        return any(isinstance(n, p.AugAssign) and p.text(n.target) in asked for n in body)
    return isinstance(node, p.For) and _ALL_STEPS.search(p.text(node.iter)) is not None


def _dropped(view: View, ledger: OptimizerLedger, cadence: Cadence) -> Tail | None:
    assert cadence.guard is not None
    for step in view.steps(ledger):
        for _, mark in step.lost:
            wiped = {e.micro for e, m in step.lost if m is mark}
            micro = view.micro(min(wiped))
            if micro is None or micro.loop is None or len(wiped) >= cadence.n:
                continue
            running = any(span == micro.loop and serial == micro.serial for span, serial, _ in mark.where)
            if not running:
                return Tail("dropped", ledger, cadence, step, len(wiped), cadence.guard.span, mark.span)
    return _left_over(view, ledger, cadence)


def _left_over(view: View, ledger: OptimizerLedger, cadence: Cadence) -> Tail | None:
    """A single pass over the data that ends inside a window."""
    pending = {e.micro for e in ledger.pending if not e.applied}
    if not view.run.facts.get("from_module"):
        return None
    if not 0 < len(pending) < cadence.n or view.run.truncated or cadence.guard is None:
        return None
    micro = view.micro(min(pending))
    if micro is None or len({m.serial for m in view.run.micros.values() if m.loop == micro.loop}) != 1:
        return None
    if _is_left(view, micro.loop) and not view.run.facts.get("fixed_bound"):
        return None  # its end may be that `break`, at a number of updates, over endless data
    step = view.steps(ledger)[-1]
    # Of loops that train one after the other it is the last one's guard.
    guard = next((g for g in reversed(step.guards) if g.moduli == cadence.guard.moduli), cadence.guard)
    return Tail("dropped", ledger, cadence, step, len(pending), guard.span)


def _is_left(view: View, loop: Span | None) -> bool:
    """Whether a `break` or `return` leaves the loop."""
    for stmt in view.program.body:
        for node in view.static.walk(stmt):
            if isinstance(node, (p.For, p.While)) and node.span == loop:
                return any(isinstance(n, (p.Break, p.Return)) for s in node.body for n in view.static.walk(s))
    return False
