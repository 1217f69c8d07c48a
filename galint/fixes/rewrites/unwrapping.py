"""Takes a `with` away from around statements: its header goes, its body moves out by one step."""

from __future__ import annotations

from galint import program as p
from galint.fixes.editor import Editor, Unfixable
from galint.fixes.outline import first_row, last_row
from galint.fixes.textedit import Change


def unwrap(editor: Editor, around: p.With, rows: tuple[p.Stmt, p.Stmt]) -> None:
    """Remove the header of a `with` and dedent its body; rows that were just indented stay where they are.

    Where an `if` around it then does the same in both branches, the `if` goes as well.
    """
    if len(around.items) != 1 or not editor.alone(around) or around is rows[0]:
        raise Unfixable
    lines = editor.lines
    if around.body[0].span.row <= rows[0].span.row and last_row(rows[1]) <= last_row(around):
        return raise_body(editor, around)
    inside = rows[0].span.row <= around.span.row <= last_row(rows[1])
    if inside and _collapsed(editor, around):
        return
    first = body_row(editor, around)
    header, body = range(around.span.row, first), range(first, last_row(around) + 1)
    starts = {lines.offset(row, 0) for row in (*header, *body)}
    editor.changes = [c for c in editor.changes if not (c.start == c.end and c.start in starts)]
    editor.changes.append(Change(lines.offset(header.start, 0), lines.offset(header.stop, 0), ""))
    step = len(lines.indent(around.body[0].span.row)) - len(lines.indent(header.start))
    for row in body:
        if not inside and len(lines.indent(row)) >= step and row not in editor.string_rows():
            editor.changes.append(Change(lines.offset(row, 0), lines.offset(row, step), ""))


def raise_body(editor: Editor, around: p.With) -> None:
    """Remove the header of a `with` and dedent its body, which has just got a `with` of its own further in."""
    lines, step = editor.lines, editor.step()
    body = range(body_row(editor, around), last_row(around) + 1)
    put = {c.start: c for c in editor.changes if c.start == c.end}
    editor.changes.append(Change(lines.offset(around.span.row, 0), lines.offset(body.start, 0), ""))
    for row in body:
        place, inserted = lines.offset(row, 0), put.get(lines.offset(row, 0))
        if not lines.line(row).strip() or row in editor.string_rows():
            continue
        if not lines.indent(row).startswith(step):
            raise Unfixable
        content, deep = "", len(step)
        if inserted is not None:
            editor.changes.remove(inserted)
            kept = inserted.content
            if kept.endswith(step):
                kept, deep = kept.removesuffix(step), 0  # one step in, one step out
            content = "".join(line.removeprefix(step) for line in kept.splitlines(keepends=True))
        if content or deep:
            editor.changes.append(Change(place, place + deep, content))


def body_row(editor: Editor, around: p.With) -> int:
    """The row in which what a `with` holds begins, the comments on top of it included."""
    row = first_row(around.body[0])
    while row - 1 > around.items[-1].span.end_row and editor.lines.line(row - 1).lstrip().startswith("#"):
        row -= 1
    return row


def _collapsed(editor: Editor, around: p.With) -> bool:
    """`if last: x else: with …: x`, the `with` taken away, is `x`."""
    holder = editor.outline.seats[around].holder
    if not isinstance(holder, p.If) or editor.source(holder).startswith("elif"):
        return False
    other = holder.orelse if around in holder.body else holder.body
    mine = [line for stmt in around.body for line in editor.take(stmt)]
    if len(editor.outline.seats[around].body) > 1 or mine != [line for stmt in other for line in editor.take(stmt)]:
        return False
    lines = editor.lines
    start, end = lines.offset(holder.span.row, 0), lines.offset(last_row(holder) + 1, 0)
    editor.changes = [c for c in editor.changes if not start <= c.start < end]
    indent = lines.indent(holder.span.row) + editor.step()
    editor.changes.append(Change(start, end, "".join(indent + line + lines.ending(holder.span.row) for line in mine)))
    return True
