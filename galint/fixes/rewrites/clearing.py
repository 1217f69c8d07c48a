"""Fixes of GA101 and GA102: clear the gradients once a window, behind the step that applied them."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.fixes.editor import Unfixable
from galint.fixes.situation import Candidate, Situation
from galint.run.nodes import terminal


def zero_grad_in_window(s: Situation) -> Iterator[Candidate]:
    """GA101: drop a clear that another one makes needless, else move it behind the step."""
    clear = _clear_statement(s)
    if s.loop is None or s.lift(clear, s.loop.body) is None:
        return  # a clear outside the window's loop has another purpose
    editor = s.editor()
    editor.delete(clear)
    yield s.done(editor, f"remove `{_short(s, clear)}`")
    step = s.stepping
    if step is clear:
        return
    target = behind_step(s, step)
    yield from _through_optimizer(s, clear, target)
    names = [n.id for n in s.outline.walk(clear) if isinstance(n, p.Name)]
    bound = {n.id for n in s.outline.walk(clear.target) if isinstance(n, p.Name)} if isinstance(clear, p.For) else set()
    if all(name in bound or s.known(name, target) or name in {"None", "set"} for name in names):
        editor = s.editor()
        lines = editor.under(s.conditions(clear, target), editor.take(clear))
        editor.delete(clear)
        editor.insert_after(target, lines)
        yield s.done(editor, f"move `{_short(s, clear)}` behind the optimizer step")


def _through_optimizer(s: Situation, clear: p.Stmt, target: p.Stmt) -> Iterator[Candidate]:
    """Under `accelerator.accumulate`, the prepared optimizer clears at the window's end only; a module always does."""
    optimizer = optimizer_text(s)
    call = clear.value if isinstance(clear, p.ExprStmt) else None
    if optimizer is None or not isinstance(call, p.Call) or not isinstance(call.func, p.Attr):
        return
    contexts = [item.context for n in s.outline.above(clear) if isinstance(n, p.With) for item in n.items]
    gated = any(isinstance(c, p.Call) and terminal(c.func) == "accumulate" for c in contexts)
    if gated and s.text(call.func.value) != optimizer:
        editor = s.editor()
        editor.replace(call.func.value.span, optimizer)
        yield s.done(editor, f"clear through `{optimizer}`, which waits for the end of the window")
        editor = s.editor()
        editor.delete(clear)
        editor.insert_after(target, [optimizer + s.text(call)[len(s.text(call.func.value)) :]])
        yield s.done(editor, f"clear through `{optimizer}`, behind its step")


def _clear_statement(s: Situation) -> p.Stmt:
    """The statement that clears, with the loop over parameters around it."""
    stmt = s.place
    seat = s.outline.seats[stmt]
    while isinstance(seat.holder, (p.For, p.If)) and len(seat.body) == 1 and "param" in s.text(seat.holder):
        stmt = seat.holder
        seat = s.outline.seats[stmt]
    if isinstance(seat.holder, p.If) and len(seat.body) == 1 and "grad" in s.text(seat.holder):
        above = s.outline.seats[seat.holder]
        if isinstance(above.holder, p.For) and len(above.body) == 1:
            return above.holder
    return stmt


def behind_step(s: Situation, step: p.Stmt) -> p.Stmt:
    """The last statement of the step's group: `scaler.update()` and the end of its `if scaler` / `else`."""
    step = whole_step(s, step)
    seat = s.outline.seats[step]
    best = step
    for follower in seat.body[seat.index + 1 :]:
        if _calls(follower) not in {"update", "step"}:
            break
        owner = follower.value.func.value  # type: ignore[attr-defined]
        if "scaler" in p.text(owner) or _is_step(s, follower):
            best = follower
        elif _calls(follower) == "update":
            break
    return best


def whole_step(s: Situation, step: p.Stmt) -> p.Stmt:
    """The `if scaler` that steps in both of its branches, around one of these steps; else the step."""
    holder = s.outline.seats[step].holder
    while isinstance(holder, p.If) and _steps(s, holder.body) and _steps(s, holder.orelse):
        step, holder = holder, s.outline.seats[holder].holder
    return step


def _steps(s: Situation, body: p.Body) -> bool:
    return any(_calls(n) == "step" for stmt in body for n in s.outline.walk(stmt) if isinstance(n, p.Stmt))


def _is_step(s: Situation, stmt: p.Stmt) -> bool:
    spans = {t.span for ledger in s.view.ledgers for t in ledger.steps}
    return any(isinstance(n, p.Call) and n.span in spans for n in s.outline.walk(stmt))


def _calls(stmt: p.Stmt) -> str:
    """The method that a bare call statement calls."""
    if isinstance(stmt, p.ExprStmt) and isinstance(stmt.value, p.Call) and isinstance(stmt.value.func, p.Attr):
        return stmt.value.func.name
    return ""


def optimizer_text(s: Situation) -> str | None:
    """The optimizer as the step statement spells it."""
    step = s.step
    call = next((n for n in s.outline.nodes(step.span) if isinstance(n, p.Call)), None) if step is not None else None
    if call is None and s.step_statement is not None:
        call = next(
            (n for n in s.outline.walk(s.step_statement) if isinstance(n, p.Call) and terminal(n.func) == "step"), None
        )
    if call is None or not isinstance(call.func, p.Attr) or call.func.name != "step":
        return None
    first = call.args[0] if call.args else None
    if first is not None and first.keyword is None and isinstance(first.value, (p.Name, p.Attr)):
        owner = p.text(call.func.value)
        return s.text(first.value) if "scal" in owner.lower() or owner.startswith("xm") else s.text(call.func.value)
    return s.text(call.func.value)


def gradients_never_zeroed(s: Situation) -> Iterator[Candidate]:
    """GA102: clear beside the other optimizer's clear, in place of one that clears nothing, or behind the step."""
    step, optimizer = s.stepping, optimizer_text(s)
    if optimizer is None:
        return
    for other in _other_clears(s, step):
        call = other.value
        assert isinstance(call, p.Call)
        assert isinstance(call.func, p.Attr)
        rest = s.text(other)[len(s.text(call.func.value)) :]
        mine = f"{optimizer}{rest}"
        editor = s.editor()
        if _clears_something(s, call):
            try:
                editor.insert_after(other, [mine])
            except Unfixable:
                continue
            yield s.done(editor, f"also clear `{optimizer}`")
        else:
            editor.replace(call.func.value.span, optimizer)
            yield s.done(editor, f"clear `{optimizer}` instead of `{s.text(call.func.value)}`")
    editor = s.editor()
    editor.insert_after(behind_step(s, step), [f"{optimizer}.zero_grad()"])
    yield s.done(editor, f"call `{optimizer}.zero_grad()` behind the step")


def _other_clears(s: Situation, step: p.Stmt) -> list[p.ExprStmt]:
    function = s.outline.function(step)
    loop = next((n for n in s.outline.above(step) if isinstance(n, (p.For, p.While))), None)
    out: list[p.ExprStmt] = []
    for stmt in s.outline.seats:
        if isinstance(stmt, p.ExprStmt) and _calls(stmt) == "zero_grad" and s.outline.function(stmt) is function:
            inside = next((n for n in s.outline.above(stmt) if isinstance(n, (p.For, p.While))), None)
            if inside is loop and stmt.span.row != step.span.row:
                out.append(stmt)
    return out


def _clears_something(s: Situation, call: p.Call) -> bool:
    marks = [m for ledger in s.view.ledgers for t in ledger.steps for m in t.marks if m.kind == "clear"]
    return any(m.span == call.span for m in marks)


def _short(s: Situation, stmt: p.Stmt) -> str:
    text = s.text(stmt if not isinstance(stmt, p.For) else stmt.body[-1]).split("\n")[0].strip()
    return text if len(text) <= 50 else f"{text[:47]}…"
