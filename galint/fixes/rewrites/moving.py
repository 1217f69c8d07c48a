"""Fixes of GA103, GA303, GA304, GA404 to GA406: what belongs to the step runs, and is counted, once a window."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Unfixable
from galint.fixes.rewrites.clearing import behind_step, whole_step
from galint.fixes.rewrites.unscaling import clipping_block, clips, missed
from galint.fixes.situation import Candidate, Situation
from galint.run.nodes import terminal

_FOLLOWERS = {"step", "update", "zero_grad"}


def clip_in_window(s: Situation) -> Iterator[Candidate]:
    """GA303: clip in front of the step; under Accelerate, only when it synchronises."""
    clip, step = s.place, s.stepping
    stmt = _alone_in_if(s, clip)
    accelerator = _accelerator(s, clip)
    if accelerator is not None and not missed(s, [clip], clip):
        editor = s.editor()
        editor.wrap(stmt, stmt, f"if {accelerator}.sync_gradients:")
        yield s.done(editor, "clip only when the gradients are synchronised")
    message = "move the clipping in front of the optimizer step"
    whole, block = whole_step(s, step), clipping_block(s, clip)
    for moved, target in dict.fromkeys(((block, whole), (stmt, whole), (stmt, step))):
        if not missed(s, [moved], target):
            yield from _moved(s, [moved], target, message, before=True)


def scaler_update_in_window(s: Situation) -> Iterator[Candidate]:
    """GA304: `scaler.update()` behind `scaler.step`; where one is there already, the other one goes."""
    seat = s.outline.seats[s.stepping]
    if any(s.text(stmt) == s.text(s.place) for stmt in seat.body[seat.index :]) and s.place not in seat.body:
        editor = s.editor()
        editor.delete(s.place)
        yield s.done(editor, "remove the other `update()`")
    yield from _moved(s, [s.place], s.stepping, "move `update()` behind the optimizer step")


def scheduler_per_micro_batch(s: Situation) -> Iterator[Candidate]:
    """GA404: the scheduler advances with the step; under Accelerate it is prepared with the rest."""
    stmt, step = s.place, s.stepping
    yield from _prepared(s, stmt)
    stmt = _alone_in_if(s, stmt)
    yield from _moved(s, [stmt], _end(s, stmt, step), "let the scheduler advance with the optimizer step", unsafe=True)


def update_side_effect_in_window(s: Situation) -> Iterator[Candidate]:
    """GA405: the average of the weights, or what is done every so many updates, follows the step."""
    stmt, step = s.place, s.stepping
    if isinstance(stmt, p.If):  # saving or evaluating: behind all that goes with the step, the counter too
        last = s.outline.seats[step].body[-1]
        if stmt is not last and not isinstance(last, (p.Continue, p.Break, p.Return)):
            yield from _moved(s, [stmt], last, "ask only where the optimizer has stepped", unsafe=True)
        return
    stmt = _alone_in_if(s, stmt)
    yield from _moved(s, [stmt], _end(s, stmt, step), "update the average with the optimizer step", unsafe=True)


def scheduler_horizon(s: Situation) -> Iterator[Candidate]:
    """GA406: `len(loader)` micro-batches are `len(loader) // N` optimizer steps."""
    stmt = s.place
    names = {p.text(n) for n in s.outline.walk(stmt) if isinstance(n, (p.Name, p.Attr))}
    function = s.outline.function(stmt)
    above = [
        a
        for a in s.outline.seats
        if isinstance(a, p.Assign) and p.text(a.targets[0]) in names and s.outline.function(a) is function
    ]
    # One that raises when it is advanced beyond its end must hold an epoch's short last window, too.
    strict = any(isinstance(n, p.Call) and terminal(n.func) == "OneCycleLR" for n in s.outline.walk(stmt))
    for place in (stmt, *above):
        for node in s.outline.walk(place):
            if isinstance(node, p.Call) and p.text(node.func) == "len" and (number := s.divisor(node)) is not None:
                editor = s.editor()
                count = f"-(-{s.text(node)} // {number})" if strict else f"{s.text(node)} // {number}"
                editor.replace(node.span, count)
                yield s.done(editor, "count the schedule in optimizer steps", Applicability.UNSAFE)


def backward_outside_window(s: Situation) -> Iterator[Candidate]:
    """GA103: every micro-batch runs backward: in front of the guard, behind the condition about N, or inside the loop."""
    stmt = s.place
    for guard in s.outline.above(stmt):
        if isinstance(guard, p.If) and stmt in guard.orelse:
            yield from _out(s, stmt, guard, behind=True)
        if isinstance(guard, p.If):
            yield from _out(s, stmt, guard)
        if isinstance(guard, (p.For, p.While, p.FunctionDef)):
            break
    seat = s.outline.seats[stmt]
    for former in reversed(seat.body[: seat.index]):
        if isinstance(former, p.If) and isinstance(former.body[-1], (p.Return, p.Continue)):
            yield from _out(s, stmt, former)
        if isinstance(former, (p.For, p.While)):
            editor = s.editor()
            lines = editor.take(stmt)
            editor.delete(stmt)
            editor.insert_after(former.body[-1], lines)
            yield s.done(editor, "run backward inside the loop, on every micro-batch")
            return


def _out(s: Situation, stmt: p.Stmt, holder: p.Stmt, *, behind: bool = False) -> Iterator[Candidate]:
    """The backward in front of, or behind, the condition that holds it."""
    editor = s.editor()
    try:
        lines = editor.take(stmt)
        editor.delete(stmt)
        (editor.insert_after if behind else editor.insert_before)(holder, lines)
    except Unfixable:
        return
    yield s.done(
        editor, "run backward whatever N is" if behind else "run backward on every micro-batch, in front of the guard"
    )


def _moved(
    s: Situation, stmts: list[p.Stmt], target: p.Stmt, message: str, before: bool = False, unsafe: bool = False
) -> Iterator[Candidate]:
    if target in stmts or any(target is n for stmt in stmts for n in s.outline.walk(stmt)):
        return
    if not before:
        target = behind_step(s, target) if target is s.step_statement else target
    names = {n.id for stmt in stmts for n in s.outline.walk(stmt) if isinstance(n, p.Name)}
    if not all(s.known(name, target) or not s.known(name, stmts[0]) for name in names):
        return
    editor = s.editor()
    conditions = s.conditions(stmts[0], target)
    both = _branches(s, stmts[0]) if conditions and before else None
    if both is not None:
        holder, other = both
        first, second = (stmts[0], other) if stmts[0] in holder.body else (other, stmts[0])
        step = editor.step()
        lines = [f"if {s.text(holder.test)}:", *(step + line for line in editor.take(first))]
        lines += ["else:", *(step + line for line in editor.take(second))]
        editor.delete(first)
        editor.delete(second)
    else:
        lines = editor.under(conditions, [line for stmt in stmts for line in editor.take(stmt)])
        editor.delete_all(stmts)
    if before:
        editor.insert_before(target, lines)
    else:
        editor.insert_after(target, lines)
    yield s.done(editor, message, Applicability.UNSAFE if unsafe else Applicability.SAFE)


def _branches(s: Situation, stmt: p.Stmt) -> tuple[p.If, p.Stmt] | None:
    """An `if` with a clipping in both of its branches, and the other one."""
    holder = s.outline.seats[stmt].holder
    if not isinstance(holder, p.If) or s.lines.slice(holder.span).startswith("elif"):
        return None
    other = holder.orelse if stmt in holder.body else holder.body
    found = [b for b in other if clips(s, b) and isinstance(b, p.ExprStmt)]
    if len(found) != 1 or len(other) < 2 or len(holder.body) < 2 or "\n" in s.text(holder.test):
        return None
    return holder, found[0]


def _end(s: Situation, stmt: p.Stmt, step: p.Stmt) -> p.Stmt:
    """Behind what follows the step, for a statement that stood behind it all; else behind the step itself."""
    pair = s.outline.common(step, stmt)
    last = behind_step(s, step)
    if pair is None or pair[0].span > pair[1].span:
        return last
    seat = s.outline.seats[last]
    for follower in seat.body[seat.index + 1 :]:
        call = follower.value if isinstance(follower, p.ExprStmt) else None
        if not isinstance(call, p.Call) or terminal(call.func) not in _FOLLOWERS or follower is stmt:
            break
        last = follower
    return last


def _alone_in_if(s: Situation, stmt: p.Stmt) -> p.Stmt:
    """The `if max_norm:` around a statement that has nothing else in it."""
    holder = s.outline.seats[stmt].holder
    alone = isinstance(holder, p.If) and not holder.orelse and len(holder.body) == 1
    if isinstance(holder, p.If) and alone and not s.lines.slice(holder.span).startswith("elif"):
        return holder
    return stmt


def _accelerator(s: Situation, clip: p.Stmt) -> str | None:
    """The Accelerator whose `accumulate` the clipping runs under."""
    for node in s.outline.above(clip):
        if isinstance(node, p.With):
            for item in node.items:
                call = item.context
                if isinstance(call, p.Call) and isinstance(call.func, p.Attr) and call.func.name == "accumulate":
                    return s.text(call.func.value)
    return None


def _prepared(s: Situation, stmt: p.Stmt) -> Iterator[Candidate]:
    """`a, b = accelerator.prepare(a, b)` → the scheduler as well."""
    call = stmt.value if isinstance(stmt, p.ExprStmt) else None
    if not isinstance(call, p.Call) or not isinstance(call.func, p.Attr) or not isinstance(call.func.value, p.Name):
        return
    name = call.func.value.id
    for other in s.outline.seats:
        if not isinstance(other, p.Assign) or not isinstance(other.value, p.Call):
            continue
        target = other.targets[0]
        if terminal(other.value.func) == "prepare" and isinstance(target, p.Sequence) and other.value.args:
            editor = s.editor()
            for last in (target.elts[-1], other.value.args[-1]):
                editor.replace(last.span, f"{s.text(last)}, {name}")
            yield s.done(editor, f"let the Accelerator prepare `{name}`", Applicability.UNSAFE)
