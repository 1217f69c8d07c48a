"""Fixes of GA402 and GA403: step with the last batch, and divide the last window by its own length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.naming import ceil, fresh
from galint.fixes.rewrites.clearing import optimizer_text
from galint.fixes.situation import ATOMS, Candidate, Situation, moduli
from galint.fixes.textedit import with_parentheses
from galint.run.nodes import terminal

_BARS = {"tqdm", "log_every", "trange", "track", "progress_bar", "prange", "rich_progress"}


@dataclass(slots=True)
class Walk:
    """How the loop goes over its batches."""

    loop: p.For
    index: str
    first: int
    """What the index starts with."""
    length: str
    """How many batches there are, as text."""
    anchor: p.Stmt
    """The first statement that works on the batch."""
    target: p.Expr | None = None
    """The loop's target, when the index is still to be added there."""
    source: p.Expr | None = None


def leaked_tail_window(s: Situation) -> Iterator[Candidate]:
    """GA402: correct a last-batch clause, or add one and scale the last window by its length."""
    yield from _stepped(s)


def dropped_tail_window(s: Situation) -> Iterator[Candidate]:
    """GA403: as GA402; what is thrown away and what leaks into the next epoch both want their own step."""
    yield from _stepped(s)


def _stepped(s: Situation) -> Iterator[Candidate]:
    yield from _never_true(s)
    walk = _walk(s)
    number = s.number
    if walk is None or number is None or not s.visible(number, walk.anchor):
        return
    counts = _counted_steps(s, walk, number)
    for scaled, counted in dict.fromkeys(((True, bool(counts)), (True, False), (False, bool(counts)), (False, False))):
        editor = s.editor()
        if not _last_clause(s, editor, walk):
            return
        if walk.target is not None and walk.source is not None:
            editor.replace(walk.target.span, f"{walk.index}, {_target(s, walk.target)}")
            editor.replace(walk.source.span, f"enumerate({s.text(walk.source)})")
        if scaled and not _scale(s, editor, walk, number):
            continue
        rounded = ceil(editor) if counted else ""
        for node in counts if counted else ():
            editor.replace(
                with_parentheses(s.lines, node.span), f"{rounded}({s.text(node.left)} / {s.text(node.right)})"
            )
        message = "step with the last batch too" + (", and divide its window by its own length" if scaled else "")
        yield s.done(editor, message, Applicability.UNSAFE)


def _counted_steps(s: Situation, walk: Walk, number: p.Expr) -> list[p.BinOp]:
    """`len(loader) // N` in the loop's function: how many steps an epoch has, which the last window's step adds to."""
    function, spelled = s.outline.function(walk.loop), p.text(number)
    return [
        n
        for n in s.outline.everything()
        if isinstance(n, p.BinOp)
        and n.op == "//"
        and s.text(n.left) == walk.length
        and p.text(n.right) == spelled
        and s.outline.function(n) is function
    ]


def tail_window_scale(s: Situation) -> Iterator[Candidate]:
    """GA205: divide by `min(N, what is left of the epoch)`; behind the loop, rescale what the window has summed."""
    yield from _rescaled(s)
    walk, number = _walk(s), s.number
    if walk is None or number is None or not s.visible(number, walk.anchor):
        return
    editor = s.editor()
    if walk.target is not None and walk.source is not None:
        editor.replace(walk.target.span, f"{walk.index}, {_target(s, walk.target)}")
        editor.replace(walk.source.span, f"enumerate({s.text(walk.source)})")
    if _scale(s, editor, walk, number):
        yield s.done(editor, "divide the last window by its own length", Applicability.UNSAFE)


def _rescaled(s: Situation) -> Iterator[Candidate]:
    """`if pending > 0: step()` behind the loop: multiply the gradients by N / pending first."""
    step, loop = s.step_statement, s.loop
    if step is None or loop is None or loop in s.outline.above(step):
        return
    number = next((n for n in _numbers(s) if s.visible(n, step)), None)
    guard = next((n for n in s.outline.above(step) if isinstance(n, p.If)), None)
    if number is None or guard is None:
        return
    n = s.text(number) if isinstance(number, ATOMS) else f"({s.text(number)})"
    one = s.editor().step()
    optimizer = optimizer_text(s)
    loops = [[f"for parameter in {model}.parameters():"] for model in _models(s, step)]
    if optimizer is not None:
        loops.append([f"for group in {optimizer}.param_groups:", f'{one}for parameter in group["params"]:'])
    for length in _lengths(s, guard.test):
        for header in loops:
            deep = one * len(header)
            lines = [*header, f"{deep}if parameter.grad is not None:", f"{deep}{one}parameter.grad *= {n} / {length}"]
            editor = s.editor()
            try:
                editor.insert_before(guard.body[0], lines)
            except Unfixable:
                return
            yield s.done(editor, "divide the last window by its own length", Applicability.UNSAFE)


def _numbers(s: Situation) -> Iterator[p.Expr]:
    """N as the file spells it, the run's own word for it first."""
    cadences = [s.view.cadence(ledger) for ledger in s.view.ledgers if s.step in ledger.steps]
    labels = {cadence.label for cadence in cadences if cadence is not None}
    yield from (n for n in s.outline.everything() if isinstance(n, (p.Name, p.Attr)) and p.text(n) in labels)
    if s.number is not None:
        yield s.number


def _lengths(s: Situation, test: p.Expr) -> Iterator[str]:
    """What a flush's condition says about the length of the window: `pending > 0`, `i % N != 0`, `pending`."""
    for node in test.values if isinstance(test, p.BoolOp) and test.op == "and" else (test,):
        counted = node.left if isinstance(node, p.Compare) and len(node.ops) == 1 else node
        if isinstance(counted, p.BinOp) and counted.op == "%":
            yield f"({s.text(counted)})"
        elif isinstance(counted, (p.Name, p.Attr)):
            yield s.text(counted)


def _models(s: Situation, at: p.Stmt) -> list[str]:
    """The module that the loop runs, as it can be spelled at the step; empty where there are several."""
    micros = set(s.step.window) if s.step is not None else set()
    found: set[str] = set()
    for event in s.view.run.events:
        if event.kind == "forward" and event.micro in micros:
            call = next((c for c in s.outline.nodes(event.span) if isinstance(c, p.Call)), None)
            if call is None or not isinstance(call.func, (p.Name, p.Attr)) or not s.visible(call.func, at):
                return []
            found.add(s.text(call.func))
    return list(found) if len(found) == 1 else []


def _target(s: Situation, target: p.Expr) -> str:
    text = s.text(target)
    return f"({text})" if isinstance(target, p.Sequence) and not text.startswith(("(", "[")) else text


def _never_true(s: Situation) -> Iterator[Candidate]:
    """`i == len(loader)` → `i == len(loader) - 1`."""
    for end in _ends(s):
        editor = s.editor()
        editor.replace(end.span, f"{s.text(end)} - 1")
        yield s.done(editor, "compare with the last index", Applicability.UNSAFE)


def _ends(s: Situation, counter: str = "") -> list[p.Call]:
    """The lengths that the guard compares a counter with."""
    return [
        end
        for test in s.guard_tests
        for node in s.outline.walk(test)
        if isinstance(node, p.Compare) and node.ops == ("==",) and counter in ("", p.text(node.left))
        if isinstance(end := node.comparators[0], p.Call) and terminal(end.func) == "len"
    ]


# --- the loop ------------------------------------------------------------------------------------


def _walk(s: Situation) -> Walk | None:
    loop = s.loop
    if not isinstance(loop, p.For) or not loop.body:
        return None
    capped = _cap(s, loop)
    anchor = loop.body[0] if capped is None else capped[1]
    source = _plain(_made(s, loop, loop.iter))
    if isinstance(source, p.Call) and terminal(source.func) == "enumerate" and isinstance(loop.target, p.Sequence):
        index = loop.target.elts[0]
        start = next((a.value for a in source.args[1:]), None)
        if not isinstance(index, p.Name) or not isinstance(start, p.Const | None):
            return None
        first = start.value if start is not None else 0
        if type(first) is not int:
            return None
        data = _plain(source.args[0].value)
        length = capped[0] if capped is not None else _length(s, data)
        if length is None or first not in (0, 1):
            return None
        return Walk(loop, index.id, first, length, anchor)
    if isinstance(source, p.Call) and terminal(source.func) == "range" and isinstance(loop.target, p.Name):
        if len(source.args) != 1 or loop.target.id == "_":
            return None
        end = source.args[0].value
        plain = isinstance(end, ATOMS) or (isinstance(end, p.BinOp) and end.op in {"+", "-", "*", "/", "//", "%"})
        length = s.text(end) if plain else f"({s.text(end)})"
        return Walk(loop, loop.target.id, 0, capped[0] if capped is not None else length, anchor)
    if source is not loop.iter and not _within(s, source, loop):
        source = loop.iter  # what the loop goes over has a name
    if capped is None and isinstance(source, (p.Name, p.Attr)) and isinstance(loop.target, (p.Name, p.Sequence)):
        index_name = fresh(s.outline, "i", "batch_index")
        return Walk(loop, index_name, 0, f"len({s.text(source)})", anchor, loop.target, source)
    return None


def _plain(source: p.Expr) -> p.Expr:
    """What a progress bar goes over; itself where there is no bar, or the bar is not given it first."""
    while isinstance(source, p.Call) and source.args and not source.args[0].keyword:
        if terminal(source.func) not in _BARS and "bar" not in terminal(source.func).lower():
            break
        source = source.args[0].value
    return source


def _made(s: Situation, loop: p.For, source: p.Expr) -> p.Expr:
    """The call that a name was last given above the loop: `bar = tqdm(range(n))` or `enumerate(loader)`."""
    if not isinstance(source, p.Name):
        return source
    values = [
        stmt.value
        for stmt in s.outline.seats
        if isinstance(stmt, p.Assign)
        and s.outline.function(stmt) is s.outline.function(loop)
        and any(p.text(t) == source.id for t in stmt.targets)
    ]
    if len(values) == 1 and isinstance(values[0], p.Call):
        made = _plain(values[0])
        if isinstance(made, p.Call) and terminal(made.func) in {"range", "enumerate"}:
            return made
    return source


def _within(s: Situation, node: p.Node, loop: p.For) -> bool:
    return any(n is node for n in s.outline.walk(loop.iter))


def _length(s: Situation, data: p.Expr) -> str | None:
    return f"len({s.text(data)})" if isinstance(data, (p.Name, p.Attr, p.Subscript)) else None


def _cap(s: Situation, loop: p.For) -> tuple[str, p.Stmt] | None:
    """`if i == MAX: break` at the top: (MAX, the statement behind it)."""
    first = loop.body[0]
    if isinstance(first, p.If) and isinstance(first.body[0], p.Break) and not first.orelse and len(loop.body) > 1:
        test = first.test
        if isinstance(test, p.Compare) and test.ops[0] in {"==", ">="} and isinstance(test.comparators[0], ATOMS):
            return s.text(test.comparators[0]), loop.body[1]
    return None


# --- the changes ---------------------------------------------------------------------------------


def _last_clause(s: Situation, editor: Editor, walk: Walk) -> bool:
    """Add the last batch to the guard, and to the same condition elsewhere in the loop."""
    tests = [t for t in s.guard_tests if moduli(t)]
    if not tests:
        return False
    test = tests[-1]
    late = [end for end in _ends(s, walk.index) if s.text(end) == walk.length and not walk.first]
    for end in late:
        editor.replace(end.span, f"{walk.length} - 1")
    if late:
        return True
    count = walk.index if walk.first else f"{walk.index} + 1"
    places = [
        n
        for n in s.outline.walk(walk.loop)
        if isinstance(n, p.Expr) and p.text(n) == p.text(test) and s.outline.in_body(n, walk.loop.body)
    ]
    if test not in places:
        return False
    for node in places:
        text = s.text(node)
        whole = isinstance(node, p.Unary) and isinstance(node.operand, p.BinOp)  # `not (i + 1) % N`
        if (isinstance(node, p.Compare) and node.ops[0] == "!=") or not (
            whole or isinstance(node, (p.Compare, p.BoolOp))
        ):
            new = f"{text} and {count} != {walk.length}"
        else:
            plain = whole or isinstance(node, p.Compare) or (isinstance(node, p.BoolOp) and node.op == "or")
            new = f"{text if plain else f'({text})'} or {count} == {walk.length}"
        parent = s.outline.parent.get(node)
        if isinstance(parent, (p.BoolOp, p.Unary, p.Compare, p.BinOp)):
            new = f"({new})"
        editor.replace(node.span, new)
    return True


def _scale(s: Situation, editor: Editor, walk: Walk, number: p.Expr) -> bool:
    """Divide by the window's own length; False when no division by N is in the loop."""
    name = fresh(s.outline, "window", "group", "window_size")
    spelled = p.text(number)
    found = False
    for stmt in walk.loop.body:
        for node in s.outline.walk(stmt):
            match node:
                case p.BinOp(op="/", right=right) | p.AugAssign(op="/", value=right) if p.text(right) == spelled:
                    editor.replace(right.span, name)
                    found = True
    if not found:
        return False
    for node in s.outline.everything():
        match node:
            case p.BinOp(op="*", left=left, right=right) if p.text(right) == spelled and "loss" in p.text(left):
                if s.outline.function(node) is s.outline.function(walk.loop) and node.span.row > walk.loop.span.row:
                    editor.replace(right.span, name)
    n = s.text(number) if isinstance(number, ATOMS) else f"({s.text(number)})"
    index = walk.index if not walk.first else f"({walk.index} - {walk.first})"
    lines = [f"{name} = min({n}, {walk.length} - {index} // {n} * {n})"]
    if not editor.fits(s.lines.indent(walk.anchor.span.row), lines[0]):
        start = fresh(s.outline, "window_start", "first_of_window")
        lines = [f"{start} = {index} // {n} * {n}", f"{name} = min({n}, {walk.length} - {start})"]
    editor.insert_before(walk.anchor, lines)
    return True
