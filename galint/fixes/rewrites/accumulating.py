"""Fixes of GA701: `accumulate()` knows N and all models, and the backward inside goes through the Accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.fixes.editor import Editor
from galint.fixes.rewrites.dividing import loss_of
from galint.fixes.rewrites.unwrapping import raise_body
from galint.fixes.situation import Candidate, Situation
from galint.run.nodes import terminal

_N = re.compile(r"grad\w*_accum\w*|accum\w*_(steps|iter\w*)|accumulation\w*", re.I)


def accumulate_misused(s: Situation) -> Iterator[Candidate]:
    """GA701: unpack a list, join nested contexts, tell the Accelerator N, call `accelerator.backward`."""
    around = s.place
    calls = [n for n in s.outline.walk(around) if _is_accumulate(n)] if isinstance(around, p.With) else []
    calls = [c for c in calls if c.span.row <= around.span.end_row]
    exact = [n for n in s.outline.nodes(s.span) if _is_accumulate(n)]
    for call in exact or calls:
        assert isinstance(call, p.Call)
        if len(call.args) == 1 and not call.args[0].star:
            yield from _unpacked(s, call)
    if isinstance(around, p.With):
        yield from _joined(s, around)
    for call in exact or calls:
        assert isinstance(call, p.Call)
        assert isinstance(call.func, p.Attr)
        yield from _bare_backward(s, call, s.text(call.func.value))
    yield from _told_n(s)


def _is_accumulate(node: p.Node) -> bool:
    return isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name == "accumulate"


def _unpacked(s: Situation, call: p.Call) -> Iterator[Candidate]:
    value = call.args[0].value
    editor = s.editor()
    if isinstance(value, p.Sequence) and value.elts:
        start, end = s.lines.at(value.elts[0].span)[0], s.lines.at(value.elts[-1].span)[1]
        editor.replace(value.span, s.lines.text[start:end])
    elif isinstance(value, (p.Name, p.Attr)):
        editor.replace(value.span, f"*{s.text(value)}")
    else:
        return
    yield s.done(editor, "give `accumulate` the models, not a list of them")
    assert isinstance(call.func, p.Attr)
    if isinstance(value, p.Sequence) and _through(s, editor, call, s.text(call.func.value)):
        yield s.done(editor, "give `accumulate` the models, not a list of them, and call the Accelerator's backward")


def _joined(s: Situation, around: p.With) -> Iterator[Candidate]:
    """`with a.accumulate(x), a.accumulate(y):` → `with a.accumulate(x, y):`; also where they are two `with`s."""
    items = [i for i in around.items if _is_accumulate(i.context)]
    if len(items) < 2:
        yield from _flattened(s, around)
        return
    first, *others = items
    editor = s.editor()
    assert isinstance(first.context, p.Call)
    end = s.lines.at(first.context.span)[1]
    position = end
    given: list[str] = [s.text(a.value) for a in first.context.args]
    for item in others:
        assert isinstance(item.context, p.Call)
        given += [s.text(a.value) for a in item.context.args]
        position = max(position, s.lines.at(item.span)[1])
    span = type(around.span)(*s.lines.place(s.lines.at(first.span)[0]), *s.lines.place(position))
    editor.replace(span, f"{s.text(first.context.func)}({', '.join(given)})")
    yield s.done(editor, "give all models to one `accumulate`")


def _flattened(s: Situation, inner: p.With) -> Iterator[Candidate]:
    """`with a.accumulate(x):` with nothing but `with a.accumulate(y):` in it → `with a.accumulate(x, y):`."""
    outer = s.outline.seats[inner].holder
    if not isinstance(outer, p.With) or len(outer.body) > 1 or len(outer.items) > 1 or len(inner.items) > 1:
        return
    call, second = outer.items[0].context, inner.items[0].context
    if not _is_accumulate(call) or not isinstance(call, p.Call) or not isinstance(second, p.Call):
        return
    editor = s.editor()
    given = ", ".join(s.lines.slice(a.span) for a in (*call.args, *second.args))
    editor.replace(call.span, f"{s.text(call.func)}({given})")
    raise_body(editor, inner)
    yield s.done(editor, "give all models to one `accumulate`")


def _bare_backward(s: Situation, call: p.Call, accelerator: str) -> Iterator[Candidate]:
    editor = s.editor()
    if _through(s, editor, call, accelerator):
        yield s.done(editor, f"call `{accelerator}.backward`, which divides by N")


def _through(s: Situation, editor: Editor, call: p.Call, accelerator: str) -> bool:
    """Let each `loss.backward()` under an `accumulate` call go through the Accelerator; whether there was one."""
    around = s.outline.owner(call)
    before = len(editor.changes)
    for stmt in around.body if isinstance(around, p.With) else ():
        for node in s.outline.walk(stmt):
            if isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name == "backward":
                loss = loss_of(s, node)
                if loss is node.func.value and p.text(loss) != accelerator:
                    given = ", ".join([s.text(loss), *(s.lines.slice(a.span) for a in node.args)])
                    editor.replace(node.span, f"{accelerator}.backward({given})")
    return len(editor.changes) > before


def _told_n(s: Situation) -> Iterator[Candidate]:
    """`Accelerator(…)` → `Accelerator(gradient_accumulation_steps=N, …)`."""
    for node in s.outline.everything():
        if not isinstance(node, p.Call) or terminal(node.func) != "Accelerator":
            continue
        if any(a.keyword in {"gradient_accumulation_steps", "gradient_accumulation_plugin"} for a in node.args):
            continue
        for number in s.outline.everything():
            if isinstance(number, (p.Name, p.Attr)) and _N.fullmatch(terminal(number)) and s.visible(number, node):
                root = next((n.id for n in s.outline.walk(number) if isinstance(n, p.Name)), "")
                if not s.known(root, node):
                    continue
                start = s.lines.at(node.func.span)[1]
                start = s.lines.text.index("(", start) + 1
                more = ", " if node.args else ""
                editor = s.editor()
                span = type(node.span)(*s.lines.place(start), *s.lines.place(start))
                editor.replace(span, f"gradient_accumulation_steps={s.text(number)}{more}")
                yield s.done(editor, f"tell the Accelerator `{s.text(number)}`")
                return
