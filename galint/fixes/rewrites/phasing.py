"""Fixes of GA603: the window's last micro-batch is synchronised, through the wrapped module."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.fixes.rewrites.cadence import arithmetic
from galint.fixes.rewrites.syncing import forwards, node_at, said_as, wrap_window
from galint.fixes.situation import Candidate, Situation


def _opened(s: Situation, around: p.With) -> Iterator[Candidate]:
    """`with no_sync()` around the whole window: into the loop, around all but the last micro-batch."""
    for span in s.backward_spans[:1]:
        yield from wrap_window(s, span, around)


def unsynchronised_step(s: Situation) -> Iterator[Candidate]:
    """GA603: set the flag before the forward, in phase with the step, and call the wrapped module."""
    stmt = s.place
    if isinstance(stmt, p.With) and s.loop is not None and stmt in s.outline.above(s.loop):
        yield from _opened(s, stmt)
    for fact in s.view.backwards()[:1]:
        for event in forwards(s, fact)[:1]:
            forward = node_at(s, event.span)
            pair = s.outline.common(forward, stmt) if forward is not None else None
            if pair is not None and pair[1] is stmt and pair[0].span < stmt.span and isinstance(stmt, p.Assign):
                editor = s.editor()
                lines = editor.take(stmt)
                editor.delete(stmt)
                editor.insert_before(pair[0], lines)
                yield s.done(editor, "set the flag before the forward, where DDP reads it")
    yield from _as_the_guard(s, stmt)
    for node in s.outline.walk(stmt):
        if isinstance(node, p.Compare) and node.span.row <= stmt.span.end_row:
            if isinstance(stmt, p.With) and node.ops[0] in {"==", "!="}:
                editor = s.editor()
                editor.replace(node.span, said_as(s, node, False))
                yield s.done(editor, "run all but the window's last micro-batch without synchronisation")
            for old, new, message in arithmetic(s, node):
                editor = s.editor()
                editor.replace(old.span, new)
                yield s.done(editor, message)
    call = next((n for n in s.outline.nodes(s.span) if isinstance(n, p.Call)), None)
    for path in _wrapped(s):
        if call is not None and (s.known(path.split(".")[0], stmt) or path.startswith("self.")):
            editor = s.editor()
            editor.replace(call.func.span, path)
            yield s.done(editor, f"run the forward through `{path}`, which synchronises")


def _as_the_guard(s: Situation, stmt: p.Stmt) -> Iterator[Candidate]:
    """`(i + 1) % N == 0`, where the step asks for more: `(i + 1) % N == 0 or i + 1 == len(loader)`."""
    for test in s.guard_tests:
        if not isinstance(test, p.BoolOp) or test.op != "or" or not s.visible(test, stmt):
            continue
        parts = {p.text(value): True for value in test.values}
        parts |= {p.text(value).replace(" == ", " != "): False for value in test.values if isinstance(value, p.Compare)}
        for node in s.outline.walk(stmt):
            if isinstance(node, p.Compare) and p.text(node) in parts and node.span.row <= stmt.span.end_row:
                text = said_as(s, test, True)
                inner = isinstance(s.outline.parent.get(node), (p.BoolOp, p.Unary))
                text = text if parts[p.text(node)] and not inner else f"({text})"
                editor = s.editor()
                editor.replace(node.span, text if parts[p.text(node)] else f"not {text}")
                yield s.done(editor, "synchronise whenever the optimizer steps")


def _wrapped(s: Situation) -> list[str]:
    """The names of wrapped modules: what they are assigned to where they are made, then as the run knows them."""
    found: list[str] = []
    for module in s.view.run.modules.values():
        if getattr(module, "wrap", ""):
            made = [
                a for a in s.outline.seats if isinstance(a, p.Assign) and a.value.span == getattr(module, "made", None)
            ]
            found += [p.text(t) for a in made for t in a.targets] + [str(getattr(module, "path", ""))]
    return [path for path in dict.fromkeys(found) if all(part.isidentifier() for part in path.split("."))]
