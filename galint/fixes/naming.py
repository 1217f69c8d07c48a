"""New names and imports that a fix needs."""

from __future__ import annotations

import re
import sys

from galint import program as p
from galint.fixes.editor import Editor
from galint.fixes.outline import Outline, last_row


def fresh(outline: Outline, *wanted: str) -> str:
    """The first of the wanted names that the file does not use yet; else the last with a number."""
    used = {n.id for n in outline.everything() if isinstance(n, p.Name)}
    used |= {q.name for n in outline.everything() if isinstance(n, p.FunctionDef) for q in n.params}
    for name in (*wanted, *(f"{wanted[-1]}_{k}" for k in range(2, 100))):
        if name not in used:
            return name
    raise AssertionError("a hundred names in use")


def nullcontext(editor: Editor) -> str:
    """How this file can say `nullcontext`; imports it where it cannot yet."""
    body = editor.outline.program.body
    for stmt in body:
        if isinstance(stmt, p.ImportFrom) and stmt.module == "contextlib":
            for name, alias in stmt.names:
                if name == "nullcontext":
                    return alias or name
        if isinstance(stmt, p.Import):
            for name, alias in stmt.names:
                if name == "contextlib":
                    return f"{alias or name}.nullcontext"
    _import(editor, body, "contextlib", "from contextlib import nullcontext")
    return "nullcontext"


def ceil(editor: Editor) -> str:
    """How this file can say `math.ceil`; imports `math` where it cannot yet."""
    body = editor.outline.program.body
    for stmt in body:
        if isinstance(stmt, p.ImportFrom) and stmt.module == "math":
            for name, alias in stmt.names:
                if name == "ceil":
                    return alias or name
        if isinstance(stmt, p.Import):
            for name, alias in stmt.names:
                if name == "math":
                    return f"{alias or name}.ceil"
    _import(editor, body, "math", "import math")
    return "math.ceil"


def _import(editor: Editor, body: p.Body, module: str, line: str) -> None:
    """Add an import where isort would have it: plain ones first, both kinds in the order of their modules."""
    blocks: list[list[p.Import | p.ImportFrom]] = []
    for stmt in body:
        if not isinstance(stmt, (p.Import, p.ImportFrom)) or not editor.alone(stmt):
            if blocks:
                break
            continue
        if isinstance(stmt, p.ImportFrom) and stmt.module == "__future__":
            continue
        if blocks and last_row(blocks[-1][-1]) + 1 == stmt.span.row:
            blocks[-1].append(stmt)
        else:
            blocks.append([stmt])
    if not blocks:
        futures = [s for s in body if isinstance(s, p.ImportFrom) and s.module == "__future__"]
        row = last_row(futures[-1]) + 1 if futures else _top(editor, body)
        editor.insert_row(row, ["", line] if futures else [line, ""])
        return
    block = next((b for b in blocks if any(map(_standard, b))), None)
    if block is None:
        editor.insert_row(blocks[0][0].span.row, [line, ""])
        return
    plain = [k for k, s in enumerate(block) if isinstance(s, p.Import) and _standard(s)]
    if line.startswith("import "):
        after = max((k for k in plain if block[k].names[0][0] < module), default=-1)
    else:
        after = plain[-1] if plain else -1
        for k, stmt in enumerate(block):
            if isinstance(stmt, p.ImportFrom) and _standard(stmt) and stmt.module < module and k > after - 1:
                after = max(after, k)
    if after < 0:
        editor.insert_row(block[0].span.row, [line])
    else:
        editor.insert_row(last_row(block[after]) + 1, [line])


def _standard(stmt: p.Import | p.ImportFrom) -> bool:
    names = [stmt.module] if isinstance(stmt, p.ImportFrom) and not stmt.level else []
    if isinstance(stmt, p.Import):
        names = [name for name, _ in stmt.names]
    return any(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _top(editor: Editor, body: p.Body) -> int:
    """The row behind the module's docstring, coding line and first comments."""
    first = body[0]
    if isinstance(first, p.ExprStmt) and isinstance(first.value, p.Const) and isinstance(first.value.value, str):
        return last_row(first) + 1
    row = 1
    while row < first.span.row and re.match(r"\s*#", editor.lines.line(row)):
        row += 1
    return row
