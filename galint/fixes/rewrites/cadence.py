"""Fixes of GA401: step when N micro-batches are in the window, neither sooner nor later."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.outline import last_row
from galint.fixes.situation import ATOMS, Candidate, Situation
from galint.run.nodes import terminal

_LESS = "count one micro-batch less"


def step_cadence(s: Situation) -> Iterator[Candidate]:
    """GA401: the guard's arithmetic, the counter's increment, its start, the loop's range, in this order."""
    names = list(dict.fromkeys(_counters(s)))
    for name in names:
        yield from _increment_in_guard(s, name)
    changes = [change for test in s.guard_tests for change in arithmetic(s, test)]
    for old, new, message in changes:
        if message != _LESS:
            yield from _mutations(s, old, new, message)
    for name in names:
        yield from _moved_increment(s, name)
    starts = [candidate for name in names for candidate in _other_start(s, name)]
    yield from (c for c in starts if c.applicability is Applicability.SAFE)
    for old, new, message in changes:
        if message == _LESS:
            yield from _mutations(s, old, new, message)
    yield from (c for c in starts if c.applicability is not Applicability.SAFE)
    yield from _range(s)


def _mutations(s: Situation, old: p.Expr, new: str, message: str) -> Iterator[Candidate]:
    """The change where the guard is, and in the same condition further down in the loop."""
    after = max((span.row for span in s.backward_spans), default=0)
    twins = [t for t in _twins(s, old) if t is not old]
    later = [t for t in twins if t.span.row > min(after, old.span.row - 1)]
    tried: list[list[p.Expr]] = []
    for places in (later, [], twins):
        if places not in tried:
            tried.append(places)
            editor = s.editor()
            for node in (old, *places):
                editor.replace(node.span, new)
            yield s.done(editor, message, Applicability.UNSAFE if places else Applicability.SAFE)


def _twins(s: Situation, old: p.Expr) -> list[p.Expr]:
    """The same arithmetic in the same loop."""
    function, spelled = s.outline.function(old), p.text(old)
    return [
        n
        for n in s.outline.everything()
        if isinstance(n, p.Expr)
        and p.text(n) == spelled
        and s.outline.function(n) is function
        and _same_loop(s, n, old)
    ]


def _same_loop(s: Situation, one: p.Node, other: p.Node) -> bool:
    def loops(node: p.Node) -> p.Node | None:
        return next((n for n in s.outline.above(node) if isinstance(n, (p.For, p.While))), None)

    return loops(one) is loops(other)


# --- the guard -----------------------------------------------------------------------------------


def arithmetic(s: Situation, test: p.Expr) -> Iterator[tuple[p.Expr, str, str]]:
    """(node, its new text, message) for each way in which a guard is commonly wrong."""
    yield from _excluded_zero(s, test)
    for node in s.outline.walk(test):
        if isinstance(node, p.Compare) and len(node.ops) == 1:
            # a person corrects by one: never `i + 2`, which only fits what the run knew
            yield from (c for c in _compared(s, node) if not re.search(r"[-+] 2\)", c[1]) or "2)" in s.text(node))
    if isinstance(test, p.BinOp) and test.op == "%":
        yield test, f"{s.text(test)} == 0", "step when the remainder is zero"
    if isinstance(test, p.Unary) and test.op == "not" and isinstance(test.operand, p.Compare):
        yield test, s.text(test.operand), "step when the remainder is zero, not when it is not"
    if isinstance(test, p.Unary) and test.op == "not" and isinstance(test.operand, p.BinOp):
        inner = test.operand
        if isinstance(inner, p.BinOp) and inner.op == "%":
            new = f"{shifted(s, inner.left, 1)} % {s.text(inner.right)} == 0"
            yield test, new, "count the micro-batch that just ran"


def _excluded_zero(s: Situation, test: p.Expr) -> Iterator[tuple[p.Expr, str, str]]:
    """`i % N == 0 and i != 0` → `(i + 1) % N == 0`."""
    if not isinstance(test, p.BoolOp) or test.op != "and" or len(test.values) != 2:
        return
    for remainder, other in (test.values, test.values[::-1]):
        if not (isinstance(remainder, p.Compare) and isinstance(remainder.left, p.BinOp) and remainder.left.op == "%"):
            continue
        counter = remainder.left.left
        same = isinstance(other, p.Compare) and p.text(other.left) == p.text(counter)
        excludes = same and isinstance(other, p.Compare) and other.ops[0] in {"!=", ">", ">="}
        if excludes or p.text(other) == p.text(counter):
            new = f"{shifted(s, counter, 1)} % {s.text(remainder.left.right)} == 0"
            yield test, new, "count the micro-batch that just ran"


def _compared(s: Situation, node: p.Compare) -> Iterator[tuple[p.Expr, str, str]]:
    left, op, right = node.left, node.ops[0], node.comparators[0]
    if isinstance(left, p.BinOp) and left.op == "%":
        n = s.text(left.right)
        if op == "==":
            target = s.text(right)
            yield node, f"{shifted(s, left.left, 1)} % {n} == {target}", "count the micro-batch that just ran"
            yield node, f"{shifted(s, left.left, -1)} % {n} == {target}", _LESS
            if target != "0":
                yield node, f"{s.text(left)} == 0", "step when the remainder is zero"
                yield node, f"{shifted(s, left.left, 1)} % {n} == 0", "count the micro-batch that just ran"
        if op in {"!=", ">"} and s.text(right) == "0":
            yield node, f"{s.text(left)} == 0", "step when the remainder is zero, not when it is not"
            yield node, f"{shifted(s, left.left, 1)} % {n} {op} 0", "count the micro-batch that just ran"
            yield node, f"{shifted(s, left.left, -1)} % {n} {op} 0", _LESS
        return
    between = s.lines.text[s.lines.at(left.span)[1] : s.lines.at(right.span)[0]]
    swap = {">": ">=", "<": "<=", ">=": ">", "<=": "<", "==": ">="}
    if op in swap:
        new = s.text(left) + between.replace(op, swap[op], 1) + s.text(right)
        yield node, new, "step when N micro-batches are in the window"
    if op in {"==", ">=", ">"}:
        yield node, shifted(s, left, 1, bare=True) + between + s.text(right), "count the micro-batch that just ran"


def shifted(s: Situation, counter: p.Expr, by: int, bare: bool = False) -> str:
    """`counter + by` as an operand, without a useless `+ 1 - 1`."""
    if isinstance(counter, p.BinOp) and isinstance(counter.right, p.Const) and isinstance(counter.right.value, int):
        inner = counter.right.value * {"+": 1, "-": -1}.get(counter.op, 0)
        if counter.op in "+-" and inner:
            total = inner + by
            text = s.text(counter.left)
            if total == 0:
                return text if isinstance(counter.left, ATOMS) else f"({text})"
            return f"({text} {'+' if total > 0 else '-'} {abs(total)})"
    text = s.text(counter)
    out = f"{text if isinstance(counter, (*ATOMS, p.BinOp)) else f'({text})'} {'+' if by > 0 else '-'} {abs(by)}"
    return out if bare else f"({out})"


# --- the counter ---------------------------------------------------------------------------------


def _counters(s: Situation) -> Iterator[str]:
    """Names in the guard that something in the file adds to or assigns a number."""
    for test in s.guard_tests:
        for node in s.outline.walk(test):
            if isinstance(node, (p.Name, p.Attr)) and (_increments(s, p.text(node)) or _starts(s, p.text(node))):
                yield p.text(node)


def _increments(s: Situation, name: str) -> list[p.Stmt]:
    out: list[p.Stmt] = []
    for stmt in s.outline.seats:
        match stmt:
            case p.AugAssign(target=target, op="+", value=p.Const(value=1)) if p.text(target) == name:
                out.append(stmt)
            case p.Assign(targets=(target,), value=p.BinOp(left=left, op="+", right=p.Const(value=1))) if (
                p.text(target) == name == p.text(left)
            ):
                out.append(stmt)
    return out


def _increment_in_guard(s: Situation, name: str) -> Iterator[Candidate]:
    """A counter that moves only with a step, or only without one, moves with every micro-batch."""
    guard = s.outline.statement(s.span)
    for one in _increments(s, name):
        seat = s.outline.seats[one]
        if not isinstance(guard, p.If) or seat.holder is not guard:
            continue
        editor = s.editor()
        try:
            lines = editor.take(one)
            editor.delete(one)
            if seat.body is guard.orelse:
                editor.insert_before(guard, lines)
                message = f"count the micro-batch before the guard asks for `{name}`"
            else:
                _insert_behind(editor, guard, lines)
                message = f"count every micro-batch in `{name}`, not every step"
        except Unfixable:
            continue
        yield s.done(editor, message)


def _moved_increment(s: Situation, name: str) -> Iterator[Candidate]:
    """A second increment is one too many; one behind the guard comes too late for it."""
    increments = _increments(s, name)
    guard = s.outline.statement(s.span)
    if guard is None:
        return
    if len(increments) > 1:
        for one in reversed(increments):
            editor = s.editor()
            editor.delete(one)
            yield s.done(editor, f"count each micro-batch once: remove `{s.text(one)}`")
    seats = s.outline.seats
    for one in increments:
        if seats[one].body is seats[guard].body and seats[one].index > seats[guard].index:
            editor = s.editor()
            lines = editor.take(one)
            editor.delete(one)
            editor.insert_before(guard, lines)
            yield s.done(editor, f"count the micro-batch before the guard asks for `{name}`", Applicability.UNSAFE)


def _insert_behind(editor: Editor, guard: p.Stmt, lines: list[str]) -> None:
    indent = editor.lines.indent(guard.span.row)
    editor.insert_row(last_row(guard) + 1, [indent + line for line in lines])


def _starts(s: Situation, name: str) -> list[p.Assign]:
    return [
        stmt
        for stmt in s.outline.seats
        if isinstance(stmt, p.Assign)
        and any(p.text(t) == name for t in stmt.targets)
        and isinstance(stmt.value, (p.Const, p.Unary))
    ]


def _other_start(s: Situation, name: str) -> Iterator[Candidate]:
    """Let the counter start elsewhere; unsafe where other code reads it."""
    resets = [a for a in _starts(s, name) if isinstance(a.value, p.Const) and type(a.value.value) is int]
    fresh = [a for a in resets if not any(isinstance(n, p.If) for n in s.outline.above(a))]
    for start in fresh or resets:
        for value in ("0", "1", "-1"):
            if s.text(start.value) != value:
                editor = s.editor()
                editor.replace(start.value.span, value)
                safety = Applicability.UNSAFE if _read_elsewhere(s, name) else Applicability.SAFE
                yield s.done(editor, f"let `{name}` start at {value}", safety)


def _read_elsewhere(s: Situation, name: str) -> bool:
    guard = {n for test in s.guard_tests for n in s.outline.walk(test)}
    return any(
        isinstance(n, p.Expr)
        and n not in guard
        and p.text(n) == name
        and not isinstance(s.outline.parent.get(n), (p.Assign, p.AugAssign))
        for n in s.outline.everything()
    )


def _range(s: Situation) -> Iterator[Candidate]:
    """`range(1, N)`, `range(N - 1)` and `range(N + 1)` around the micro-batches → `range(N)`."""
    stmt = s.outline.statement(s.span)
    if not isinstance(stmt, p.For):
        stmt = s.loop
    if not isinstance(stmt, p.For):
        return
    for node in s.outline.walk(stmt.iter):
        if isinstance(node, p.Call) and terminal(node.func) in {"range", "trange"} and 1 <= len(node.args) <= 2:
            end = node.args[-1].value
            shifted_end = isinstance(end, p.BinOp) and end.op in "+-" and isinstance(end.right, p.Const)
            if shifted_end and len(node.args) == 2:
                continue  # `range(1, N + 1)` has N turns
            bare = end.left if isinstance(end, p.BinOp) and shifted_end else end
            texts = [s.text(bare), f"1, {s.text(bare)} + 1"] if len(node.args) == 2 else [s.text(bare)]
            for text in texts:
                editor = s.editor()
                first, last = node.args[0].span, node.args[-1].span
                start, stop = s.lines.at(first)[0], s.lines.at(last)[1]
                if s.lines.text[start:stop] == text:
                    continue
                row, column = s.lines.place(start)
                end_row, end_column = s.lines.place(stop)
                editor.replace(type(first)(row, column, end_row, end_column), text)
                read = isinstance(stmt.target, p.Name) and any(
                    isinstance(n, p.Name) and n.id == stmt.target.id for b in stmt.body for n in s.outline.walk(b)
                )
                safety = Applicability.UNSAFE if read else Applicability.SAFE
                yield s.done(editor, f"run over `range({text})`", safety)
