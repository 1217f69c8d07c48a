"""Fixes of GA106: run backward on each micro-batch's loss instead of once on their sum."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Unfixable
from galint.fixes.naming import fresh
from galint.fixes.situation import Candidate, Situation


def graph_kept_in_window(s: Situation) -> Iterator[Candidate]:
    """GA106: `total = total + loss / N` and a late `total.backward()` → `loss.backward()` for each micro-batch.

    Only where nothing else reads the total.
    """
    late = s.place
    call = late.value if isinstance(late, p.ExprStmt) else None
    if late is None or not isinstance(call, p.Call) or not isinstance(call.func, p.Attr):
        return
    total = call.func.value
    if not isinstance(total, p.Name | p.Attr):
        return
    name, function = p.text(total), s.outline.function(late)
    sums: list[tuple[p.Stmt, p.Expr]] = []
    starts: list[p.Stmt] = []
    for stmt in s.outline.seats:
        if s.outline.function(stmt) is not function:
            continue
        match stmt:
            case p.AugAssign(op="+", target=target, value=value) if p.text(target) == name:
                sums.append((stmt, value))
            case p.Assign(targets=(target,), value=p.BinOp(op="+", left=left, right=right)) if (
                p.text(target) == name == p.text(left)
            ):
                sums.append((stmt, right))
            case p.Assign(targets=(target,)) if p.text(target) == name:
                starts.append(stmt)
    mine = {id(n) for stmt in (late, *starts, *(q[0] for q in sums)) for n in s.outline.walk(stmt)}
    read = [n for n in s.outline.everything() if isinstance(n, p.Expr) and p.text(n) == name and id(n) not in mine]
    if len(sums) != 1 or read:
        return
    statement, value = sums[0]
    loss = fresh(s.outline, "loss", "micro_loss")
    editor = s.editor()
    editor.replace(statement.span, f"{loss} = {s.text(value)}")
    editor.insert_after(statement, [f"{loss}{s.lines.slice(call.span)[len(s.text(total)) :]}"])
    try:
        for stmt in (late, *starts):
            editor.delete(stmt)
    except Unfixable:
        return
    yield s.done(editor, "run backward on each micro-batch, which frees its graph", Applicability.UNSAFE)
