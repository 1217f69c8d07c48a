"""Finds the comments of a file from its text and the places of its string literals."""

from __future__ import annotations

import re
from bisect import bisect_right

from galint.syntax.cursor import Cursor

_hash = re.compile(r"#([^\r\n]*)")


def comments(c: Cursor) -> dict[int, str]:
    """Row → comment text without '#', stripped; `c` must have lowered the whole file.

    Only a '#' outside every string literal starts a comment, and `c.literals` lists the literals
    that hold one, so files need no second tokenising.
    """
    out: dict[int, str] = {}
    text = c.text
    literals = iter(sorted(c.literals))
    begin, end = next(literals, (len(text), len(text)))
    position = text.find("#")
    while position >= 0:
        while end <= position:
            begin, end = next(literals, (len(text), len(text) + 1))
        if begin <= position:
            position = text.find("#", end)
            continue
        match = _hash.match(text, position)
        assert match is not None
        out[bisect_right(c.starts, position)] = match.group(1).strip()
        position = text.find("#", match.end())
    return out
