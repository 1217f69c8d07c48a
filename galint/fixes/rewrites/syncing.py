"""Fixes of GA601 and GA602: forward and backward of the non-final micro-batches run under `no_sync`."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.diagnostic import Applicability
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.naming import fresh, nullcontext
from galint.fixes.rewrites.cadence import shifted
from galint.fixes.rewrites.unwrapping import body_row, unwrap
from galint.fixes.situation import ATOMS, Candidate, Situation
from galint.fixes.textedit import Change
from galint.run.facts import BackwardFact, Event
from galint.run.nodes import terminal
from galint.source import Span


def ddp_without_no_sync(s: Situation) -> Iterator[Candidate]:
    """GA601: wrap from the forward to the backward."""
    yield from wrap_window(s, s.span, None)


def no_sync_without_forward(s: Situation) -> Iterator[Candidate]:
    """GA602: let the `with` start at the forward; else take it away and wrap as for GA601."""
    inside_of = node_at(s, s.span) or s.place
    around = next((n for n in s.outline.above(inside_of) if isinstance(n, p.With)), None)
    around = around if around is not None else s.place if isinstance(s.place, p.With) else None
    if not isinstance(around, p.With):
        return
    inside = [b for b in s.view.backwards() if around.span.row <= b.span.row <= around.body[-1].span.end_row]
    if inside:
        yield from _raised(s, around, inside[0])
        others = [b for b in s.view.backwards() if b.span != inside[0].span]
        yield from wrap_window(s, inside[0].span, around)
        for other in others[:1]:
            yield from wrap_window(s, other.span, around, inside[0].span)


def node_at(s: Situation, span: Span) -> p.Node | None:
    """The node whose span this is."""
    return next(iter(s.outline.nodes(span)), None)


# --- where ---------------------------------------------------------------------------------------


def forwards(s: Situation, fact: BackwardFact) -> list[Event]:
    """The forward passes of the wrapped module that lead to a backward."""
    paths = {getattr(s.view.run.modules.get(int(i)), "path", "") for i, _ in fact.facts.synced}
    found = [e for e in s.view.run.events if e.kind == "forward" and e.seq < fact.seq and e.micro == fact.micro]
    return [e for e in found if e.text in paths] or found


def _range(s: Situation, forward: p.Node, backward: p.Node) -> tuple[p.Stmt, p.Stmt] | None:
    """The statements of one body from the forward to the backward."""
    home: list[p.Body] = []
    for node in (backward, s.loop.body[0] if s.loop is not None else backward):
        owner = s.outline.owner(node)
        while owner is not None:
            home.append(s.outline.seats[owner].body)
            holder = s.outline.seats[owner].holder
            owner = s.outline.owner(holder) if holder is not None and not isinstance(holder, p.FunctionDef) else None
    for body in home:
        first, last = s.lift(forward, body), s.lift(backward, body)
        if first is not None and last is not None and first.span <= last.span:
            return first, last
    return None


def wrap_window(s: Situation, span: Span, strip: p.With | None, second: Span | None = None) -> Iterator[Candidate]:
    """Forward and backward of all but the window's last micro-batch under `no_sync`, with `strip` taken away."""
    fact = next((b for b in s.view.backwards() if b.span == span), None)
    backward = next((n for n in s.outline.nodes(span) if isinstance(n, p.Call)), None)
    if fact is None or backward is None:
        return
    kinds = {getattr(s.view.run.modules.get(int(i)), "wrap", "") for i, _ in fact.facts.synced}
    if not kinds <= {"ddp", "fsdp"} and kinds != {"fabric"}:
        return
    for event in forwards(s, fact)[:1]:
        forward = next((n for n in s.outline.nodes(event.span) if isinstance(n, p.Call)), None)
        rows = _range(s, forward, backward) if forward is not None else None
        if forward is None or rows is None:
            continue
        if second is not None and (other := node_at(s, second)) is not None:
            last = s.outline.in_body(other, s.outline.seats[rows[0]].body)
            if last is not None and last.span > rows[1].span:
                rows = rows[0], last
        wrapped = {str(getattr(s.view.run.modules.get(int(i)), "path", "")) for i, _ in fact.facts.synced}
        made = {getattr(s.view.run.modules.get(int(i)), "made", None) for i, _ in fact.facts.synced}
        for stmt in s.outline.seats:
            if isinstance(stmt, p.Assign) and stmt.value.span in made:
                wrapped |= {p.text(target) for target in stmt.targets}
        model = _model(s, forward, rows[0], wrapped)
        if model is None:
            continue
        if kinds == {"fabric"}:
            yield from _by_fabric(s, rows, model)
            continue
        optional = _optional(s, model, rows[0])
        outer = _outer(s, rows[0])
        for condition, rename in _boundaries(s, rows[0]):
            for positive in (True, False):
                editor = s.editor()
                try:
                    _write(s, editor, rows, model, optional, condition, positive, outer)
                    if rename is not None:
                        editor.replace(rename[0].span, rename[1])
                    if strip is not None:
                        unwrap(editor, strip, rows)
                except Unfixable:
                    continue
                safety = Applicability.UNSAFE if "fsdp" in kinds else Applicability.SAFE
                yield s.done(editor, f"run all but the window's last micro-batch under `{model}.no_sync()`", safety)


def _model(s: Situation, forward: p.Call, at: p.Stmt, paths: set[str]) -> str | None:
    """The wrapped module as text: what is called, or the argument of a function that calls it."""
    func = forward.func
    names_of = {path.rpartition(".")[2] for path in paths}
    if terminal(func) not in names_of | {"forward"}:
        func = next((a.value for a in forward.args if terminal(a.value) in names_of), func)
    if isinstance(func, p.Attr) and func.name == "forward":
        func = func.value
    names = [n.id for n in s.outline.walk(func) if isinstance(n, p.Name)]
    bound = isinstance(func, (p.Name, p.Attr, p.Subscript)) and all(s.known(n, at) or n == "self" for n in names)
    elsewhere = s.outline.function(forward) is not s.outline.function(at)
    return s.text(func) if bound and (elsewhere or s.visible(func, at)) else None


def _optional(s: Situation, model: str, at: p.Stmt) -> str | None:
    """The wrapper's class when the model is not wrapped in every configuration, as the file spells it."""
    if any(isinstance(n, p.Attr) and n.name == "no_sync" and s.text(n.value) == model for n in s.outline.everything()):
        return None  # the file calls it without asking
    made = next((q[0] for q in s.finding.related if q[1] == "wrapped here"), None)
    if made is None:
        idents = {int(i) for b in s.view.backwards() for i, _ in b.facts.synced}
        made = next((m for i in idents if (m := getattr(s.view.run.modules.get(i), "made", None)) is not None), None)
    call = next((n for n in s.outline.nodes(made) if isinstance(n, p.Call)), None) if made is not None else None
    if call is None:
        return "torch.nn.parallel.DistributedDataParallel"
    around = [n for n in s.outline.above(call) if isinstance(n, (p.If, p.IfExp, p.Try, p.Match))]
    main = [n for n in around if isinstance(n, p.If) and "__name__" in p.text(n.test)]
    if len(around) == len(main) and s.diagnostic.configuration is None:
        return None
    root = next((n.id for n in s.outline.walk(call.func) if isinstance(n, p.Name)), "")
    if root and s.known(root, at) and s.outline.function(call) is s.outline.function(at):
        return s.text(call.func)
    module = p.Pass(at.span)
    if root and s.known(root, module):
        return s.text(call.func)
    return "torch.nn.parallel.DistributedDataParallel" if s.known("torch", at) else None


# --- when ----------------------------------------------------------------------------------------


def _boundaries(s: Situation, at: p.Stmt) -> Iterator[tuple[p.Expr | str, tuple[p.Expr, str] | None]]:
    """Conditions that are true on the window's last micro-batch, and a loop target to rename for them."""
    for test in s.guard_tests:
        if isinstance(test, (p.Name, p.Attr)):
            flag = s.flag_value(test)
            if flag is None or flag.span.row >= at.span.row:
                continue
        if s.visible(test, at) and _bound(s, test, at):
            yield test, None
            for node in s.outline.walk(test):
                if isinstance(node, p.BinOp) and node.op == "%":
                    start, end = s.lines.at(test.span)
                    left, right = s.lines.at(node.left.span)
                    text = s.lines.text
                    yield text[start:left] + shifted(s, node.left, 1) + text[right:end], None
                    break
            else:
                if isinstance(test, p.Compare) and test.ops[0] in {"==", ">="}:
                    right_text = s.text(test.comparators[0])
                    yield f"{shifted(s, test.left, 1, bare=True)} {test.ops[0]} {right_text}", None
    loop = s.loop
    if not isinstance(loop, p.For) or not isinstance(loop.iter, p.Call):
        return
    name = terminal(loop.iter.func)
    if name in {"range", "trange"} and len(loop.iter.args) == 1 and isinstance(loop.target, p.Name):
        number = loop.iter.args[0].value
        n = s.text(number) if isinstance(number, ATOMS) else f"({s.text(number)})"
        if loop.target.id == "_":
            fresh_name = fresh(s.outline, "micro_step", "micro")
            yield f"{fresh_name} == {n} - 1", (loop.target, fresh_name)
        else:
            yield f"{loop.target.id} == {n} - 1", None
    if name == "enumerate" and len(loop.iter.args) == 1 and isinstance(loop.target, p.Sequence):
        index, data = loop.target.elts[0], loop.iter.args[0].value
        if isinstance(index, p.Name) and isinstance(data, (p.Name, p.Attr)):
            for test in s.guard_tests:  # what is left of the epoch is stepped behind the loop
                if isinstance(test, p.Compare) and s.visible(test, at) and _bound(s, test, at):
                    yield f"{s.text(test)} or {index.id} + 1 == len({s.text(data)})", None
            yield f"{index.id} == len({s.text(data)}) - 1", None


def _outer(s: Situation, at: p.Stmt) -> str | None:
    """`N > 1`, where the guard is only asked under it: with N = 0 the remainder would raise."""
    around = {id(n) for n in s.outline.above(at)}
    number = p.text(s.number)
    for test in s.guard_tests[:1]:
        for node in s.outline.above(test):
            if not isinstance(node, p.If) or id(node) in around or node.test is test:
                continue
            if any(isinstance(n, p.Expr) and p.text(n) == number for n in s.outline.walk(node.test)):
                return s.text(node.test)
    return None


def _bound(s: Situation, test: p.Expr, at: p.Stmt) -> bool:
    """Whether every name of a condition has its value before the statement runs."""
    function = s.outline.function(at)
    if function is None:
        return True
    params = {q.name for q in function.params}
    for node in s.outline.walk(test):
        if not isinstance(node, p.Name) or node.id in params or node.id not in s.locals(function):
            continue
        rows = [
            stmt.span.row
            for stmt in s.outline.seats
            if s.outline.function(stmt) is function
            and isinstance(stmt, (p.Assign, p.AnnAssign, p.For, p.With))
            and node.id in _targets(s, stmt)
        ]
        if not any(row < at.span.row for row in rows):
            return False
    return True


def _targets(s: Situation, stmt: p.Stmt) -> set[str]:
    found: list[p.Expr] = []
    match stmt:
        case p.Assign(targets=targets):
            found = list(targets)
        case p.AnnAssign(target=target) | p.For(target=target):
            found = [target]
        case p.With(items=items):
            found = [i.target for i in items if i.target is not None]
    return {n.id for t in found for n in s.outline.walk(t) if isinstance(n, p.Name)}


# --- how -----------------------------------------------------------------------------------------


def _write(
    s: Situation,
    editor: Editor,
    rows: tuple[p.Stmt, p.Stmt],
    model: str,
    optional: str | None,
    condition: p.Expr | str,
    positive: bool,
    outer: str | None,
) -> None:
    """Wrap the rows; `positive` says that the condition is true on the last micro-batch."""
    last = said_as(s, condition, positive)
    null = nullcontext(editor)
    indent = s.lines.indent(rows[0].span.row)
    if optional is not None or outer is not None:
        first = " and ".join([*([f"isinstance({model}, {optional})"] if optional else []), *([outer] if outer else [])])
        hold = fresh(s.outline, "hold", "hold_sync")
        negative = said_as(s, condition, not positive, operand=True)
        said = [f"{hold} = {first} and {negative}"]
        if not editor.fits(indent, said[0]):
            name = fresh(s.outline, "boundary", "is_boundary")
            said = [f"{name} = {last}", f"{hold} = {first} and not {name}"]
            if outer is not None and optional is not None:
                inside = fresh(s.outline, "inside_window", "mid_window")
                said = [f"{inside} = {outer} and {negative}", f"{hold} = isinstance({model}, {optional}) and {inside}"]
        editor.insert_before(rows[0], said)
        editor.wrap(*rows, f"with {model}.no_sync() if {hold} else {null}():")
        return
    header = f"with {null}() if {last} else {model}.no_sync():"
    if last.startswith("not "):
        header = f"with {model}.no_sync() if {said_as(s, condition, not positive)} else {null}():"
    if not editor.fits(indent, header):
        name = fresh(s.outline, "boundary", "is_boundary")
        editor.insert_before(rows[0], [f"{name} = {last}"])
        header = f"with {null}() if {name} else {model}.no_sync():"
    editor.wrap(*rows, header)


def _by_fabric(s: Situation, rows: tuple[p.Stmt, p.Stmt], model: str) -> Iterator[Candidate]:
    """`with fabric.no_backward_sync(model, enabled=…)`."""
    fabric = _fabric(s, rows[0])
    for condition, rename in _boundaries(s, rows[0]) if fabric is not None else ():
        for positive in (True, False):
            editor = s.editor()
            try:
                header = f"with {fabric}.no_backward_sync({model}, enabled={said_as(s, condition, not positive)}):"
                if not editor.fits(s.lines.indent(rows[0].span.row), header):
                    name = fresh(s.outline, "boundary", "is_boundary")
                    editor.insert_before(rows[0], [f"{name} = {said_as(s, condition, positive)}"])
                    header = f"with {fabric}.no_backward_sync({model}, enabled=not {name}):"
                editor.wrap(*rows, header)
                if rename is not None:
                    editor.replace(rename[0].span, rename[1])
            except Unfixable:
                continue
            yield s.done(editor, f"run all but the window's last micro-batch under `{fabric}.no_backward_sync`")


def _fabric(s: Situation, at: p.Stmt) -> str | None:
    """The Fabric whose `setup` wrapped the model, as it can be spelled at a statement."""
    made = next((q[0] for q in s.finding.related if q[1] == "wrapped here"), None)
    call = next((n for n in s.outline.nodes(made) if isinstance(n, p.Call)), None) if made is not None else None
    if call is None or not isinstance(call.func, p.Attr) or not s.visible(call.func.value, at):
        return None
    return s.text(call.func.value)


def said_as(s: Situation, condition: p.Expr | str, positive: bool, operand: bool = False) -> str:
    """The condition or its opposite as text on one line; `operand` of an `and`."""
    text = condition if isinstance(condition, str) else s.text(condition)
    if "\n" in text or "\r" in text:
        if "#" in text or '"""' in text or "'''" in text:
            raise Unfixable
        text = " ".join(line.strip() for line in text.splitlines())
    plain = isinstance(condition, (p.Name, p.Attr, p.Call, p.Compare))
    simple = plain or (isinstance(condition, str) and " and " not in text and " or " not in text)
    if positive:
        return f"({text})" if operand and " or " in text else text
    for op, opposite in ((" == ", " != "), (" != ", " == "), (" >= ", " < "), (" > ", " <= ")):
        if simple and text.count(op) == 1 and not isinstance(condition, (p.Name, p.Attr, p.Call)):
            return text.replace(op, opposite)
    if isinstance(condition, p.Unary) and condition.op == "not":
        return s.text(condition.operand)
    return f"not {text}" if isinstance(condition, (p.Name, p.Attr, p.Call)) else f"not ({text})"


def _raised(s: Situation, around: p.With, fact: BackwardFact) -> Iterator[Candidate]:
    """Move the `with` line up to the forward, when both stand in one body."""
    if len(around.items) != 1 or around.items[0].target is not None:
        return
    for event in forwards(s, fact)[:1]:
        forward = node_at(s, event.span)
        first = s.outline.in_body(forward, s.outline.seats[around].body) if forward is not None else None
        if first is None or first is around or not s.editor().alone(around):
            continue
        if not _bound(s, around.items[0].context, first):
            continue
        seat = s.outline.seats[around]
        previous = seat.body[seat.index - 1]
        editor = s.editor()
        header = " ".join(s.lines.slice(around.span).split()).rstrip()
        header = header if header.endswith(":") else f"{header}:"
        try:
            editor.wrap(first, previous, header)
            rows = s.lines.offset(around.span.row, 0), s.lines.offset(body_row(editor, around), 0)
            editor.changes.append(Change(*rows, ""))  # its body stays as deep as it is
        except Unfixable:
            continue
        yield s.done(editor, "let `no_sync` start at the forward")
