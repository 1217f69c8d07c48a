"""Fixes of GA202 and GA204: every term of the loss is divided by N, once."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.situation import ATOMS, Candidate, Situation
from galint.fixes.textedit import with_parentheses
from galint.run.nodes import terminal


def double_scaled_loss(s: Situation) -> Iterator[Candidate]:
    """GA202: take away one of the two divisions: of the gradients, in a statement of its own, in an expression."""
    spelled = _spellings(s)
    for loop in _gradient_loops(s, spelled):
        editor = s.editor()
        editor.delete(loop)
        yield s.done(editor, "do not divide the gradients again")
    for stmt in _own_divisions(s, spelled):
        editor = s.editor()
        try:
            editor.delete(stmt)
        except Unfixable:
            continue
        safety = Applicability.UNSAFE if _read_later(s, stmt) else Applicability.SAFE
        yield s.done(editor, f"divide once: remove `{s.text(stmt)}`", safety)
    for node in s.outline.everything():
        if isinstance(node, p.BinOp) and node.op == "/" and p.text(node.right) in spelled and _near(s, node):
            editor = s.editor()
            _undivide(s, editor, node)
            yield s.done(editor, f"divide once: remove `/ {s.text(node.right)}`", Applicability.UNSAFE)


def _undivide(s: Situation, editor: Editor, node: p.BinOp) -> None:
    """`(a + b) / N` → `(a + b)`, `(a / N)` → `a`, `a * (1 / N)` → `a`."""
    factor = s.outline.parent.get(node)
    one = isinstance(node.left, p.Const) and node.left.value in (1, 1.0)
    if one and isinstance(factor, p.BinOp) and factor.op == "*":
        other = factor.left if factor.right is node else factor.right
        editor.replace(factor.span, s.text(other) if isinstance(other, ATOMS) else f"({s.text(other)})")
        return
    if isinstance(node.left, ATOMS):
        editor.replace(with_parentheses(s.lines, node.span), s.text(node.left))
        return
    end, whole, text = s.lines.at(node.left.span)[1], s.lines.at(node.span), s.lines.text
    rest = text[end : whole[1]]
    closing = rest[: rest.index("/")].rstrip() if "/" in rest else ""
    editor.replace(node.span, text[whole[0] : end] + closing)


def _spellings(s: Situation) -> set[str]:
    """How the file spells N."""
    out = {p.text(s.number)} if s.number is not None else set()
    out |= {label.lstrip("≥") for g in (s.step.guards if s.step else ()) for label, _ in g.moduli}
    out |= set(s.view.run.facts.get("window_keys", ()))
    last = {o.rpartition(".")[2] for o in out if not o.isdigit()}
    known = {p.text(n) for n in s.outline.everything() if isinstance(n, (p.Name, p.Attr)) and terminal(n) in last}
    number = s.accumulate_number()
    if number is not None:
        told = {p.text(n) for n in s.outline.everything() if isinstance(n, p.Attr)}
        known |= {p.text(number), *(t for t in told if t.endswith(".gradient_accumulation_steps"))}
    return out | known


def _near(s: Situation, node: p.Node) -> bool:
    """Whether a node belongs to a function that runs in the window."""
    function = s.outline.function(node)
    spans = [b.row for b in s.backward_spans]
    if function is None:
        loop = s.loop
        return loop is None or node.span.row >= loop.span.row
    return id(function) in s.view.run.executed or any(function.span.row <= row for row in spans)


def _gradient_loops(s: Situation, spelled: set[str]) -> Iterator[p.Stmt]:
    """The loops over parameters that do nothing but divide gradients by N, the outermost ones."""
    for stmt in s.outline.seats:
        if not _divides_gradient(stmt, spelled):
            continue
        loop, holder = None, s.outline.seats[stmt].holder
        while isinstance(holder, (p.For, p.If)) and len(holder.body) == 1 and not holder.orelse:
            loop = holder if isinstance(holder, p.For) else loop
            holder = s.outline.seats[holder].holder
        if loop is not None:
            yield loop


def _divides_gradient(stmt: p.Stmt, spelled: set[str]) -> bool:
    match stmt:
        case p.AugAssign(op="/", target=owner, value=number):
            pass
        case p.Assign(targets=(owner,), value=p.BinOp(op="/", left=left, right=number)) if p.text(owner) == p.text(
            left
        ):
            pass
        case p.ExprStmt(value=p.Call(func=p.Attr(name="div_", value=owner), args=(arg,))):
            number = arg.value
        case p.ExprStmt(value=p.Call(func=p.Attr(name="mul_", value=owner), args=(arg,))):
            if not isinstance(arg.value, p.BinOp) or arg.value.op != "/" or p.text(arg.value.left) not in ("1", "1.0"):
                return False
            number = arg.value.right
        case _:
            return False
    return p.text(number) in spelled and ".grad" in p.text(owner)


def _own_divisions(s: Situation, spelled: set[str]) -> Iterator[p.Stmt]:
    """`loss = loss / N` and `loss /= N`."""
    for stmt in s.outline.seats:
        if not _near(s, stmt):
            continue
        match stmt:
            case p.AugAssign(op="/", value=value) if p.text(value) in spelled:
                yield stmt
            case p.Assign(targets=(target,), value=p.BinOp(op="/", left=left, right=right)) if (
                p.text(target) == p.text(left) and p.text(right) in spelled
            ):
                yield stmt


def _read_later(s: Situation, stmt: p.Stmt) -> bool:
    """Whether the divided loss is read for anything but backward."""
    target = stmt.target if isinstance(stmt, p.AugAssign) else stmt.targets[0] if isinstance(stmt, p.Assign) else None
    name = p.text(target)
    function = s.outline.function(stmt)
    rows = {b.row for b in s.backward_spans}
    return any(
        isinstance(n, (p.Name, p.Attr))
        and p.text(n) == name
        and n.span.row > stmt.span.end_row
        and n.span.row not in rows
        and s.outline.function(n) is function
        for n in s.outline.everything()
    )


def partly_scaled_loss(s: Situation) -> Iterator[Candidate]:
    """GA204: `a / N + b` → `(a + b) / N`, and `loss = loss / N` followed by `loss = loss + b`."""
    spelled = _spellings(s)
    for node in s.outline.everything():
        if isinstance(node, p.BinOp) and node.op in "+-" and _near(s, node):
            parent = s.outline.parent.get(node)
            if isinstance(parent, p.BinOp) and parent.op in "+-":
                continue
            inner = [n for n in s.outline.walk(node) if isinstance(n, p.BinOp) and n.op == "/"]
            divided = [n for n in inner if p.text(n.right) in spelled and _is_term(s, n, node)]
            if divided:
                editor = s.editor()
                start, end = s.lines.at(node.span)
                text = s.lines.text
                body, position = "", start
                for term in sorted(divided, key=lambda n: n.span):
                    cut = s.lines.at(term.span)
                    left = s.lines.at(term.left.span)
                    if isinstance(term.left, ATOMS):
                        cut = s.lines.at(with_parentheses(s.lines, term.span))
                        body += text[position : cut[0]] + s.text(term.left)
                    else:
                        body += text[position : left[1]]
                    position = cut[1]
                body += text[position:end]
                editor.replace(node.span, f"({body}) / {s.text(divided[0].right)}")
                yield s.done(editor, "divide the whole loss, not one term of it", Applicability.SAFE)
    for stmt in _own_divisions(s, spelled):
        yield from _folded(s, stmt)


def _is_term(s: Situation, term: p.Node, total: p.Node) -> bool:
    here = s.outline.parent.get(term)
    while here is not None and here is not total:
        if not isinstance(here, p.BinOp) or here.op not in "+-":
            return False
        here = s.outline.parent.get(here)
    return here is total


def _folded(s: Situation, stmt: p.Stmt) -> Iterator[Candidate]:
    """`loss = loss / N` then `loss = loss + b` (or `+=`) → `loss = (loss + b) / N`."""
    seat = s.outline.seats[stmt]
    number = stmt.value if isinstance(stmt, p.AugAssign) else None
    if isinstance(stmt, p.Assign) and isinstance(stmt.value, p.BinOp):
        number = stmt.value.right
    target = stmt.target if isinstance(stmt, p.AugAssign) else stmt.targets[0] if isinstance(stmt, p.Assign) else None
    if number is None or target is None:
        return
    for follower in seat.body[seat.index + 1 : seat.index + 4]:
        editor = s.editor()
        match follower:
            case p.Assign(targets=(name,), value=p.BinOp(op="+") as total) if p.text(name) == p.text(target):
                editor.delete(stmt)
                editor.replace(total.span, f"({s.text(total)}) / {s.text(number)}")
                yield s.done(editor, "divide the whole loss, not one term of it")
            case p.AugAssign(op="+", target=name) if p.text(name) == p.text(target):
                lines = editor.take(stmt)
                editor.delete(stmt)
                editor.insert_after(follower, lines)
                yield s.done(editor, "divide the loss when all its terms are in it")
