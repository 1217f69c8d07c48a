"""Parses text: with CPython's own parser where it serves, else with libcst, which is not even imported before."""

from __future__ import annotations

import gc

from galint.program import Program
from galint.syntax.guard import MAX_LINES, MAX_MARKS, admit, deep, guard
from galint.syntax.native import parse as native


def parse(text: str, lines: int = MAX_LINES) -> Program:
    """Lowers `text` to the loop program.

    Rows are counted over \\n, \\r\\n and \\r; a leading byte order mark belongs to no column. `lines` limits their number.
    Raises ParseError, and nothing else, when the text is not Python; TooComplex when it is too deep or too large.
    """
    if text.startswith("\ufeff"):
        text = text[1:]
    # The marks of a short text need no count, and the depth of CPython's tree is counted as it is lowered.
    (guard if len(text) > 2 * MAX_MARKS else admit)(text, lines)
    # The tree is many small objects without garbage among them: collections in between only cost.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with deep():
            program = native(text)
    finally:
        if collecting:
            gc.enable()
    if program is None:
        from galint.syntax.module import cst_program

        return cst_program(text)
    return program
