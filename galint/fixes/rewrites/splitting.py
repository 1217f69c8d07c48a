"""Fixes of GA106: run backward on each micro-batch's loss instead of once on their sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.naming import fresh
from galint.fixes.situation import ATOMS, Candidate, Situation
from galint.run.nodes import terminal

_MESSAGE = "run backward on each micro-batch, which frees its graph"


@dataclass(frozen=True, slots=True)
class _Joined:
    """A list of losses and how one loss is made of it: their mean, or their sum over a divisor."""

    losses: p.Expr
    mean: bool
    divisor: p.Expr | None


def graph_kept_in_window(s: Situation) -> Iterator[Candidate]:
    """GA106: `loss.backward()` for each micro-batch, where its loss was added to a total or appended to a list.

    Only where nothing else reads the total; a list of losses stays, as a list of numbers.
    """
    late = s.place
    call = late.value if isinstance(late, p.ExprStmt) else None
    if not isinstance(call, p.Call) or not isinstance(call.func, p.Attr):
        return
    yield from _total(s, late, call, call.func)
    yield from _listed(s, late, call, call.func)


def _total(s: Situation, late: p.Stmt, call: p.Call, func: p.Attr) -> Iterator[Candidate]:
    """`total = total + loss / N` and a late `total.backward()`."""
    total = func.value
    if not isinstance(total, (p.Name, p.Attr)):
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
    if len(sums) != 1 or _reads(s, name, late, *starts, sums[0][0]):
        return
    statement, value = sums[0]
    editor = s.editor()
    _backward_here(s, editor, statement, value, call, None)
    for stmt in (late, *starts):
        editor.delete(stmt)
    yield s.done(editor, _MESSAGE, Applicability.UNSAFE)


def _listed(s: Situation, late: p.Stmt, call: p.Call, func: p.Attr) -> Iterator[Candidate]:
    """`losses.append(loss)` and a late `torch.stack(losses).mean().backward()`, with or without a name in between."""
    made, joined = _joined(s, late, func.value)
    if joined is None:
        return
    name = p.text(joined.losses)
    appends = [
        (stmt, stmt.value.args[0].value)
        for stmt in s.outline.seats
        if isinstance(stmt, p.ExprStmt)
        and isinstance(stmt.value, p.Call)
        and isinstance(stmt.value.func, p.Attr)
        and stmt.value.func.name == "append"
        and p.text(stmt.value.func.value) == name
        and len(stmt.value.args) == 1
    ]
    if len(appends) != 1:
        return
    statement, value = appends[0]
    number: str | None = None
    if joined.mean:
        number = _full(s, late, statement, name)
    elif joined.divisor is not None and s.visible(joined.divisor, statement):
        number = s.text(joined.divisor) if isinstance(joined.divisor, ATOMS) else f"({s.text(joined.divisor)})"
    if number is None and (joined.mean or joined.divisor is not None):
        return
    editor = s.editor()
    _backward_here(s, editor, statement, value, call, number, f"{name}.append({{}}.item())")
    editor.delete(late)
    if made is not None:
        editor.delete(made)
    yield s.done(editor, _MESSAGE, Applicability.UNSAFE)


def _full(s: Situation, late: p.Stmt, at: p.Stmt, name: str) -> str | None:
    """How many losses a full list has: what `len(losses)` is compared with around the late backward, else N."""
    for node in s.outline.above(late):
        if isinstance(node, p.If) and isinstance(node.test, p.Compare) and len(node.test.ops) == 1:
            length, full = node.test.left, node.test.comparators[0]
            match length:
                case p.BinOp(op="%", left=counted, right=n):
                    length, full = counted, n
            if p.text(length) == f"len({name})" and s.visible(full, at):
                return s.text(full) if isinstance(full, ATOMS) else f"({s.text(full)})"
    return s.divisor(at)


def _backward_here(
    s: Situation, editor: Editor, at: p.Stmt, value: p.Expr, call: p.Call, number: str | None, keep: str = ""
) -> None:
    """Write the micro-batch's own backward in place of `at`."""
    assert isinstance(call.func, p.Attr)
    rest = s.lines.text[s.lines.at(call.func.value.span)[1] : s.lines.at(call.span)[1]].lstrip(") ")
    lines: list[str] = []
    if isinstance(value, p.Name):
        loss = value.id
    else:
        loss = fresh(s.outline, "loss", "micro_loss") if not keep else _own_name(s, at, call)
        lines.append(f"{loss} = {s.text(value)}")
    lines.append(f"{f'({loss} / {number})' if number is not None else loss}{rest}")
    if keep:
        lines.append(keep.format(loss))
    if keep and not editor.alone(at):
        raise Unfixable
    editor.replace(at.span, lines[0])
    if len(lines) > 1:
        editor.insert_after(at, lines[1:])


def _own_name(s: Situation, at: p.Stmt, call: p.Call) -> str:
    """The name that the joined loss had, which is free now, where nothing else of the function uses it."""
    assert isinstance(call.func, p.Attr)
    joined = call.func.value
    if isinstance(joined, p.Name):
        function = s.outline.function(at)
        uses = [n for n in s.outline.everything() if isinstance(n, p.Name) and n.id == joined.id]
        if sum(s.outline.function(n) is function for n in uses) == 2:
            return joined.id
    return fresh(s.outline, "loss", "micro_loss")


def _joined(s: Situation, late: p.Stmt, value: p.Expr) -> tuple[p.Assign | None, _Joined | None]:
    """(the statement that names the joined loss, how it is joined) of what a backward starts from."""
    if not isinstance(value, (p.Name, p.Attr)):
        return None, _list_of(s, value)
    name, seat = p.text(value), s.outline.seats[late]
    for stmt in reversed(seat.body[: seat.index]):
        if isinstance(stmt, p.Assign) and len(stmt.targets) == 1 and p.text(stmt.targets[0]) == name:
            if _reads(s, name, stmt, late):
                return None, None
            return stmt, _list_of(s, stmt.value)
    return None, None


def _list_of(s: Situation, value: p.Expr) -> _Joined | None:
    """What `torch.stack(L).mean()`, `sum(L) / len(L)`, `sum(L) / N`, `sum(L)` and the like join."""
    divisor: p.Expr | None = None
    if isinstance(value, p.BinOp) and value.op == "/":
        divisor, value = value.right, value.left
    if not isinstance(value, p.Call):
        return None
    if isinstance(value.func, p.Attr) and isinstance(value.func.value, p.Call) and not value.args:
        inner, outer = value.func.value, value.func.name  # `torch.stack(L).mean()`
    elif value.args and isinstance(value.args[0].value, p.Call):
        inner, outer = value.args[0].value, terminal(value.func)  # `torch.mean(torch.stack(L))`
    else:
        inner, outer = value, terminal(value.func)
    if outer not in {"mean", "sum"} or (inner is not value and terminal(inner.func) != "stack") or not inner.args:
        return None
    losses = inner.args[0].value
    if not isinstance(losses, ATOMS) or (outer == "mean" and divisor is not None):
        return None
    counted = isinstance(divisor, p.Call) and p.text(divisor) == f"len({p.text(losses)})"
    return _Joined(losses, outer == "mean" or counted, None if counted else divisor)


def _reads(s: Situation, name: str, *but: p.Stmt) -> list[p.Node]:
    """Where a value is read outside the given statements."""
    mine = {id(n) for stmt in but for n in s.outline.walk(stmt)}
    return [n for n in s.outline.everything() if isinstance(n, p.Expr) and p.text(n) == name and id(n) not in mine]
