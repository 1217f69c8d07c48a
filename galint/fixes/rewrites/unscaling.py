"""Fixes of GA301 and GA302: unscale once a window, under the step's guard and before clipping."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Unfixable
from galint.fixes.rewrites.clearing import optimizer_text, whole_step
from galint.fixes.situation import Candidate, Situation
from galint.run.nodes import terminal

_CLIPS = {"clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_gradients", "clip_grads_with_norm_"}


def early_unscale(s: Situation) -> Iterator[Candidate]:
    """GA301: move `unscale_`, with the clipping that follows it, in front of the step."""
    unscale, step = s.place, s.stepping
    block = clipping_block(s, unscale)
    if block is not unscale and clips(s, block):
        yield from _in_front_of(s, [block], whole_step(s, step))
    for group in _groups(s, unscale):
        yield from _in_front_of(s, group, _in_front(s, step, group))


def _in_front_of(s: Situation, group: list[p.Stmt], target: p.Stmt | None) -> Iterator[Candidate]:
    if target is None or any(target is n for member in group for n in s.outline.walk(member)):
        return
    names = {n.id for stmt in group for n in s.outline.walk(stmt) if isinstance(n, p.Name)}
    if not all(s.known(name, target) or not s.known(name, group[0]) for name in names) or missed(s, group, target):
        return
    editor = s.editor()
    try:
        lines = editor.under(s.conditions(group[0], target), [row for g in group for row in editor.take(g)])
        editor.delete_all(group)
        editor.insert_before(target, lines)
    except Unfixable:
        return
    extra = any(not _is_unscale(stmt) and not clips(s, stmt) for stmt in group)
    safety = Applicability.UNSAFE if extra else Applicability.SAFE
    what = "`unscale_`" if len(group) == 1 and not clips(s, group[0]) else "`unscale_` and what follows it"
    yield s.done(editor, f"move {what} in front of the optimizer step", safety)


def missed(s: Situation, stmts: list[p.Stmt], target: p.Stmt) -> bool:
    """Whether a name that statements bind is read where it has no value once they stand beside `target`."""
    nodes = [n for stmt in stmts for n in s.outline.walk(stmt)]
    targets = [t for n in nodes if isinstance(n, p.Assign) for t in n.targets]
    bound = {n.id for t in targets for n in s.outline.walk(t) if isinstance(n, p.Name)}
    seat = s.outline.seats[target]
    known = {id(n) for stmt in seat.body[seat.index :] for n in s.outline.walk(stmt)} | set(map(id, nodes))
    function = s.outline.function(stmts[0])
    return any(
        isinstance(n, p.Name)
        and n.id in bound
        and id(n) not in known
        and (function is None or function in s.outline.above(n))
        for n in s.outline.everything()
    )


def clipping_block(s: Situation, stmt: p.Stmt) -> p.Stmt:
    """The `if max_norm:` around an unscaling or clipping that has nothing but these in it, the outermost one."""
    holder = s.outline.seats[stmt].holder
    while isinstance(holder, p.If) and not holder.orelse and all(_serves(s, inner) for inner in holder.body):
        if s.lines.slice(holder.span).startswith("elif"):
            break
        stmt, holder = holder, s.outline.seats[holder].holder
    return stmt


def _serves(s: Situation, stmt: p.Stmt) -> bool:
    """Whether a statement unscales or clips and does nothing else."""
    if isinstance(stmt, p.If):
        return not stmt.orelse and all(_serves(s, inner) for inner in stmt.body)
    return _is_unscale(stmt) or (isinstance(stmt, p.ExprStmt) and clips(s, stmt))


def _groups(s: Situation, unscale: p.Stmt) -> Iterator[list[p.Stmt]]:
    """Which statements move: the block of an `if` that only serves unscaling, the calls that follow, or one call."""
    seat = s.outline.seats[unscale]
    run = [unscale]
    for follower in seat.body[seat.index + 1 :]:
        if not clips(s, follower):
            break
        run.append(follower)
    holder = seat.holder
    alone = isinstance(holder, p.If) and not holder.orelse and seat.index == 0
    if alone and len(run) == len(seat.body) and len(run) > 1 and isinstance(holder, p.If):
        yield [holder]
    if alone and len(seat.body) > 1 and len(run) < len(seat.body) and not _holds_step(s, seat.body):
        yield list(seat.body)
    if len(run) > 1:
        yield run
    yield [unscale]


def _holds_step(s: Situation, body: p.Body) -> bool:
    names = {"step", "backward"}
    return any(isinstance(n, p.Call) and terminal(n.func) in names for stmt in body for n in s.outline.walk(stmt))


def _in_front(s: Situation, step: p.Stmt, group: list[p.Stmt]) -> p.Stmt | None:
    """The first statement of the step's body that reads gradients, or the step itself."""
    seat = s.outline.seats[step]
    outer = s.outline.seats.get(seat.holder) if isinstance(seat.holder, p.If) else None
    for body, index in ((seat.body, seat.index), (outer.body, outer.index) if outer is not None else ((), 0)):
        moving = s.outline.in_body(group[0], body)
        for stmt in body[:index]:
            if clips(s, stmt) and stmt is not moving and stmt not in group:
                return stmt
    return step


def clips(s: Situation, stmt: p.Stmt) -> bool:
    """Whether a statement clips, or is an `if` around clipping."""
    return any(isinstance(n, p.Call) and terminal(n.func) in _CLIPS for n in s.outline.walk(stmt)) and not any(
        isinstance(n, p.Call) and terminal(n.func) in {"step", "backward"} for n in s.outline.walk(stmt)
    )


def _is_unscale(stmt: p.Stmt) -> bool:
    return isinstance(stmt, p.ExprStmt) and isinstance(stmt.value, p.Call) and terminal(stmt.value.func) == "unscale_"


def clip_scaled_gradients(s: Situation) -> Iterator[Candidate]:
    """GA302: move the `unscale_` that comes too late, or add one in front of the clipping."""
    clip, optimizer = s.place, optimizer_text(s)
    function = s.outline.function(clip)
    seat = s.outline.seats[clip]
    unscales = [u for u in s.outline.seats if _is_unscale(u) and s.outline.function(u) is function]
    for late in unscales:
        if late in seat.body and s.outline.seats[late].index > seat.index:
            editor = s.editor()
            try:
                lines = editor.take(late)
                editor.delete(late)
                editor.insert_before(clip, lines)
                yield s.done(editor, "move `unscale_` in front of the clipping")
            except Unfixable:
                pass
    scaler = _scaler_text(s, clip)
    if scaler is None or optimizer is None:
        return
    call = f"{scaler}.unscale_({optimizer})"
    for early in unscales:
        if early in seat.body and s.outline.seats[early].index < seat.index:
            editor = s.editor()
            editor.insert_after(early, [call])
            yield s.done(editor, f"call `{call}` before clipping")
    condition = _condition(s, clip)
    outer = _outermost_clip(s, clip)
    for lines in ([call],) if condition is None else ([call], [f"if {condition}:", f"{s.editor().step()}{call}"]):
        for target in dict.fromkeys([clip, outer]):
            editor = s.editor()
            try:
                editor.insert_before(target, lines)
            except Unfixable:
                continue
            yield s.done(editor, f"call `{call}` before clipping")


def _scaler_text(s: Situation, at: p.Stmt) -> str | None:
    """The scaler as a step or backward near the clipping spells it."""
    for node in s.outline.everything():
        if isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name in {"step", "scale", "update"}:
            owner = node.func.value
            if "scaler" in p.text(owner).lower() and s.visible(owner, at) and "sched" not in p.text(owner):
                return s.text(owner)
    return None


def _condition(s: Situation, clip: p.Stmt) -> str | None:
    """The test under which the scaler steps, when the clipping runs without it as well."""
    step = s.step_statement
    if step is None:
        return None
    around = {id(n) for n in s.outline.above(clip)}
    for node in s.outline.above(step):
        if isinstance(node, p.If) and id(node) not in around and step in node.body and s.visible(node.test, clip):
            return s.text(node.test)
    return None


def _outermost_clip(s: Situation, clip: p.Stmt) -> p.Stmt:
    """The `if max_norm:` around a clipping, or the clipping."""
    holder = s.outline.seats[clip].holder
    return holder if isinstance(holder, p.If) and len(holder.body) == 1 else clip
