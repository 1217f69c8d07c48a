"""Fixes of GA201 and GA203: divide the loss by N where its backward starts."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.situation import ATOMS, Candidate, Situation
from galint.run.nodes import terminal
from galint.source import Span

_TAKES_LOSS = {"backward", "manual_backward", "scale_loss"}


def unscaled_loss(s: Situation) -> Iterator[Candidate]:
    """GA201: `(loss / N).backward()`, `scaler.scale(loss / N).backward()`, `accelerator.backward(loss / N)`."""
    yield from divide_at(s, s.span)


def divide_at(s: Situation, span: Span) -> Iterator[Candidate]:
    """Divide what the backward at `span` starts from; where N is not visible there, what its callers pass."""
    call = next((n for n in s.outline.nodes(span) if isinstance(n, p.Call)), None)
    if call is None:
        return
    loss = loss_of(s, call)
    if loss is None:
        return
    number = s.divisor(call)
    if number is not None:
        twins = _twins(s, call, loss, number)
        if twins:
            yield _divided(s, [loss, *twins], number)
        yield _divided(s, [loss], number)
        return
    function = s.outline.function(call)
    if function is None or not isinstance(loss, p.Name):
        return
    places = [q.name for q in function.params]
    if loss.id not in places:
        return
    index = places.index(loss.id) - (1 if s.outline.owner_class(function) is not None else 0)
    passed: list[p.Expr] = []
    for node in s.outline.everything():
        if isinstance(node, p.Call) and _means(node, function):
            given = next((a.value for a in node.args if a.keyword == loss.id), None)
            if given is None and 0 <= index < len(node.args) and not node.args[index].keyword:
                given = node.args[index].value
            if given is None or (number := s.divisor(node)) is None:
                return
            passed.append(given)
    if passed and number is not None:
        yield _divided(s, passed, number)


def _twins(s: Situation, call: p.Call, loss: p.Expr, number: str) -> list[p.Expr]:
    """The same loss where the other branches of the `if`s around a backward run theirs (`if amp: … else: …`)."""
    out: list[p.Expr] = []
    for node in s.outline.above(call):
        if isinstance(node, (p.For, p.While, p.FunctionDef)):
            break
        if not isinstance(node, p.If):
            continue
        other = node.orelse if s.outline.in_body(call, node.body) is not None else node.body
        for inner in (n for stmt in other for n in s.outline.walk(stmt)):
            if isinstance(inner, p.Call) and terminal(inner.func) == "backward" and s.divisor(inner) == number:
                twin = loss_of(s, inner)
                if twin is not None and p.text(twin) == p.text(loss):
                    out.append(twin)
    return out


def _means(call: p.Call, function: p.FunctionDef) -> bool:
    return terminal(call.func) == function.name


def loss_of(s: Situation, call: p.Call) -> p.Expr | None:
    """The expression whose gradient a backward call takes, without the loss scale."""
    if not isinstance(call.func, p.Attr):
        return call.args[0].value if call.args else None
    receiver = call.func.value
    spelled = p.text(receiver)
    if call.args and not call.args[0].keyword and call.func.name in _TAKES_LOSS:
        words = ("accelerator", "fabric", "engine", "self", "optim", "model", "torch.autograd", "lightning")
        first = call.args[0].value
        is_loss = "loss" in p.text(first).lower() and "loss" not in spelled.lower()
        if is_loss or any(spelled.lower().startswith(w) or spelled.lower().endswith(w) for w in words):
            return first
    if isinstance(receiver, p.Call) and terminal(receiver.func) == "scale" and len(receiver.args) == 1:
        return receiver.args[0].value
    return _scaled_by_apex(s, receiver) or receiver


def _scaled_by_apex(s: Situation, receiver: p.Expr) -> p.Expr | None:
    """`with amp.scale_loss(loss, optimizer) as scaled: scaled.backward()` starts from `loss`."""
    for node in s.outline.above(receiver):
        if isinstance(node, p.With):
            for item in node.items:
                if item.target is not None and p.text(item.target) == p.text(receiver):
                    context = item.context
                    if isinstance(context, p.Call) and terminal(context.func) == "scale_loss" and context.args:
                        return context.args[0].value
    return None


def _divided(s: Situation, losses: list[p.Expr], number: str) -> Candidate:
    editor = s.editor()
    for loss in losses:
        divide(s, editor, loss, number)
    return s.done(editor, f"divide the loss by `{number}` for backward")


def divide(s: Situation, editor: Editor, loss: p.Expr, number: str) -> None:
    """Write `loss / N` in place of a loss, in parentheses where it is called or is no simple name."""
    start, end = s.lines.at(loss.span)
    text = s.lines.text
    inner = text[start:end]
    wrapped = text[:start].rstrip().endswith("(") and text[end:].lstrip().startswith(")")
    parent = s.outline.parent.get(loss)
    called = isinstance(parent, p.Attr)
    if not isinstance(loss, ATOMS) and not (wrapped and called):
        inner = f"({inner})"
    content = f"{inner} / {number}"
    if called and not wrapped:
        content = f"({content})"
    elif called and not isinstance(loss, ATOMS):
        content = f"({text[start:end]}) / {number}"
    editor.replace(loss.span, content)


def dead_loss_scaling(s: Situation) -> Iterator[Candidate]:
    """GA203: move the division above backward; divide in the call where the loss is read in between."""
    division = s.place
    backward = next((q[0] for q in s.finding.related if "backward" in q[1]), None)
    call = next((n for n in s.outline.nodes(backward) if isinstance(n, p.Call)), None) if backward else None
    if call is None or backward is None:
        return
    seat = s.outline.seats[division]
    if isinstance(seat.holder, p.If) and len(seat.body) == 1 and not seat.holder.orelse:
        division = seat.holder
    pair = s.outline.common(call, division)
    name = _assigned(s.place)
    if pair is not None and pair[1] is division and name is not None:
        body = s.outline.seats[division].body
        first, last = s.outline.seats[pair[0]].index, s.outline.seats[division].index
        between = body[first + 1 : last]
        if first < last and not any(_mentions(s, stmt, name) for stmt in between):
            editor = s.editor()
            try:
                lines = editor.take(division)
                editor.delete(division)
                editor.insert_before(pair[0], lines)
                yield s.done(editor, "move the division above backward")
            except Unfixable:
                pass
    yield from divide_at(s, backward)
    if pair is not None and pair[1] is division and name is not None:
        editor = s.editor()
        lines = editor.take(division)
        editor.delete(division)
        editor.insert_before(pair[0], lines)
        yield s.done(editor, "move the division above backward", Applicability.UNSAFE)


def _assigned(stmt: p.Stmt) -> str | None:
    match stmt:
        case p.Assign(targets=(target,)) | p.AugAssign(target=target):
            return p.text(target)
        case p.ExprStmt(value=p.Call(func=p.Attr(value=target))):
            return p.text(target)
    return None


def _mentions(s: Situation, stmt: p.Stmt, name: str) -> bool:
    return any(isinstance(n, p.Expr) and p.text(n) == name for n in s.outline.walk(stmt))
