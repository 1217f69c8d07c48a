"""Values of Python literals from their spelling, without evaluating code."""

from __future__ import annotations

import re
import unicodedata

_escape = re.compile(r"\\(\r\n?|\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|.)", re.DOTALL)
_SIMPLE = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f",
    "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\n": "", "\r": "", "\r\n": "",
}  # fmt: skip
_PREFIX = re.compile(r"[a-zA-Z]*")


def integer(spelling: str) -> int:
    """The value of `0x1_F`, `0b1`, `1_000` …; ValueError when it is no integer."""
    return int(spelling.replace("_", ""), 0)


def imaginary(spelling: str) -> complex:
    """The value of `2j`."""
    return complex(0.0, float(spelling[:-1].replace("_", "")))


def string(spelling: str) -> str | bytes:
    """The value of a string or bytes literal with its prefix and quotes; ValueError when malformed."""
    match = _PREFIX.match(spelling)
    assert match is not None
    prefix = match.group().lower()
    body = spelling[len(prefix) :]
    quotes = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[quotes:-quotes]
    if "\r" in body:
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    is_bytes = "b" in prefix
    if is_bytes and not body.isascii():
        raise ValueError("bytes can only contain ASCII literal characters")
    if "\\" in body and "r" not in prefix:
        body = _escape.sub(_byte if is_bytes else _character, body)
    return body.encode("latin-1") if is_bytes else body


def _byte(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uUN":
        return match.group()
    return _character(match) if code[0] not in "01234567" else chr(int(code, 8) & 0xFF)


def _character(match: re.Match[str]) -> str:
    code = match.group(1)
    simple = _SIMPLE.get(code)
    if simple is not None:
        return simple
    if code[0] in "01234567":
        return chr(int(code, 8))
    if len(code) == 1:
        return match.group()
    if code[0] == "N":
        try:
            return unicodedata.lookup(code[2:-1])
        except KeyError:
            raise ValueError(f"unknown Unicode character name {code[2:-1]!r}") from None
    return chr(int(code[1:], 16))
