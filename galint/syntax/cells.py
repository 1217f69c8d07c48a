"""Parses what can be parsed of a notebook: a cell that is not Python runs nothing, and the others run all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from galint.errors import ParseError, TooComplex
from galint.program import Program
from galint.source import split_lines
from galint.syntax.python2 import rewritten


def parse_cells(text: str, starts: Sequence[int], parser: Callable[[str], Program]) -> Program | None:
    """The program of the cells that are valid Python, 2 or 3, on their rows; None where no cell is left out.

    `starts` are the first rows (from 1) of the cells in `text`. Raises nothing: what cannot be parsed at all is None.
    """
    lines = split_lines(text)
    left_out = 0
    for start, end in pairwise((*starts, len(lines) + 1)):
        cell = "\n".join(lines[start - 1 : end - 1]) + "\n"
        if _parses(cell, parser):
            continue
        older = rewritten(cell)
        new = split_lines(older) if older is not None and _parses(older, parser) else [""] * (end - start)
        left_out += not any(new)
        lines[start - 1 : end - 1] = new[: end - start] + [""] * (end - start - len(new))
    try:
        return parser("\n".join(lines) + "\n") if 0 < left_out < len(starts) else None
    except (ParseError, TooComplex):
        return None


def _parses(text: str, parser: Callable[[str], Program]) -> bool:
    try:
        parser(text)
    except (ParseError, TooComplex):
        return False
    return True
