"""The program of a file that is not Python 3 as a whole: of an older Python, or a notebook with a cell that is no Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from galint.errors import ParseError
from galint.program import Program
from galint.syntax.cells import parse_cells
from galint.syntax.parsing import parse
from galint.syntax.python2 import parse_older


def parse_any(text: str, starts: Sequence[int] = ()) -> Program:
    """The program of a file, of what can be read of it at least. Raises ParseError.

    `starts` are the first rows (from 1) of a notebook's cells in `text`.
    """
    try:
        return parse(text)
    except ParseError:
        program = recovered(text, starts, parse)
        if program is None:
            raise
        return program


def recovered(text: str, starts: Sequence[int], parser: Callable[[str], Program]) -> Program | None:
    """What can be read of a text that `parser` refuses; None where nothing can."""
    return parse_older(text, parser) or parse_cells(text, starts, parser)
