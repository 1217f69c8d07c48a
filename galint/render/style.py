"""Colours and safe text for the formats that people read."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping

from galint.rule import Severity

_CODES = {
    "bold": "1",
    "dim": "2",
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "frame": "1;34",
    "related": "34",
    "good": "32",
}
TAB = 4
"""Columns that a tab takes in an excerpt."""


class Style:
    """Wraps text in ANSI colours, or does not."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, name: str, text: str) -> str:
        """`text` in the named style; unchanged without colour."""
        return f"\x1b[{_CODES[name]}m{text}\x1b[0m" if self.color and text else text

    def severity(self, severity: Severity, text: str) -> str:
        """`text` in the colour of a severity."""
        return self(str(severity), text)


def wants_color(environment: Mapping[str, str], is_terminal: bool) -> bool:
    """Colour on a terminal, never with NO_COLOR, always with FORCE_COLOR (NO_COLOR wins)."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return is_terminal and environment.get("TERM") != "dumb"


def plain(text: str) -> str:
    """`text` without control characters, so that no file name or source line can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _visible(char) for char in text)


def _visible(char: str) -> str:
    if char == "\t":
        return " " * TAB
    return char if unicodedata.category(char) in ("Zs", "Mn", "Mc", "Me") else "\ufffd"


def width(text: str) -> int:
    """Terminal cells that `text` takes: wide characters count two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) == "Mn":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def counted(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
