"""Every exception that galint raises on purpose.

GalintError
├── ConfigError        a setting or flag that cannot be understood (exit 2)
│   └── UnknownRule    a rule code or name that does not exist, with the nearest one
├── ParseError         a file whose text is not Python (reported as GA000)
│   └── TooComplex     … or too deep for galint; TooLarge has too many lines or marks
└── SourceError        a file that cannot be read or decoded
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GalintError(Exception):
    """Base of all expected failures; its text is one line fit for a user."""


class ConfigError(GalintError):
    """A configuration value or a command-line flag is wrong."""


class UnknownRule(ConfigError):
    """A selector names no rule.

    `known` are the valid codes, prefixes and names; the nearest one is suggested, though never all rules.
    """

    def __init__(self, selector: str, known: Iterable[str]) -> None:
        near = difflib.get_close_matches(selector, [k for k in known if k not in ("GA", "ALL")], n=1, cutoff=0.5)
        hint = f"; did you mean `{near[0]}`?" if near else ""
        super().__init__(f"unknown rule `{selector}`{hint}")
        self.selector = selector
        self.suggestion = near[0] if near else None


class ParseError(GalintError):
    """The text is not valid Python. `row` and `column` are 1-based."""

    def __init__(self, message: str, row: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.row = row
        self.column = column


class TooComplex(ParseError):
    """The text may be valid Python, but is nested too deeply or too large to be analysed."""


class TooLarge(TooComplex):
    """The text has too many lines or marks to be analysed in one piece."""


class SourceError(GalintError):
    """A file cannot be read, or its bytes do not decode."""
