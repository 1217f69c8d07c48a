"""A place on the command line: `file:line`, or in a notebook `file:cell` and `file:cell:line`."""

from __future__ import annotations

import re
from pathlib import Path


def split(target: str) -> tuple[str, list[int]]:
    """The file and the one or two numbers behind it; none where a file has that very name."""
    match = re.fullmatch(r"(.+?):(\d+)(?::(\d+))?:?", target)
    if match is None or Path(target).exists():
        return target, []
    return match[1], [int(n) for n in match.groups()[1:] if n is not None]
