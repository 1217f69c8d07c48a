"""File patterns of the configuration: which paths an exclude or per-file-ignores entry means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


def anchor(pattern: str, root: Path) -> str:
    """A pattern with a slash is relative to the folder of the file that states it; others match a name anywhere."""
    pattern = pattern.removeprefix("./").rstrip("/")
    if "/" not in pattern:
        return pattern
    return re.sub(r"([\[*?])", r"[\1]", root.as_posix()).rstrip("/") + "/" + pattern.lstrip("/")


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stop at a slash, `**` does not, `[…]` and `[!…]` are character sets."""
    out, i = "", 0
    while i < len(pattern):
        char = pattern[i]
        i += 1
        if pattern.startswith("**/", i - 1):
            out += "(?:.*/)?"
            i += 2
        elif pattern.startswith("**", i - 1):
            out += ".*"
            i += 1
        elif char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif char == "[" and (end := pattern.find("]", i + 1)) > 0:
            negated = pattern[i] == "!"
            inner = "".join(c if c == "-" else re.escape(c) for c in pattern[i + negated : end])
            inner = re.sub("-{2,}", r"\\-", inner)  # `--` has a meaning of its own in Python's sets
            out += f"[{'^' if negated else ''}{inner}]"
            i = end + 1
        else:
            out += re.escape(char)
    try:
        return re.compile(out + r"\Z")
    except re.error:  # a malformed set such as `[z-a]` is then meant literally
        return re.compile(re.escape(pattern) + r"\Z")


@lru_cache(maxsize=256)
def _names_only(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """One pattern for them all, where none of them asks for more than a name."""
    if any("/" in pattern for pattern in patterns):
        return None
    return re.compile("|".join(f"(?:{compile_pattern(pattern).pattern})" for pattern in patterns) or r"(?!)")


def names(path: Path, patterns: Iterable[str]) -> str | None:
    """The first pattern that names this very entry (by its name, or by its whole absolute path), or None."""
    known = tuple(patterns)
    by_name = _names_only(known)
    if by_name is not None and not by_name.match(path.name):
        return None
    text = path.as_posix()
    for pattern in known:
        if compile_pattern(pattern).match(text if "/" in pattern else path.name):
            return pattern
    return None


def names_above(path: Path, patterns: Iterable[str], top: Path | None) -> str | None:
    """As `names`, for the absolute `path` or a folder above it, up to but without `top`."""
    known = tuple(patterns)
    for entry in (path, *path.parents):
        if entry == top or entry == entry.parent:
            return None
        if pattern := names(entry, known):
            return pattern
        if top is None or top not in entry.parents:
            return None
    return None
