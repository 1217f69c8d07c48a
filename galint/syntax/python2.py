"""Rewrites what Python 3 refuses of Python 2 (`print x`, `except E, e`, `raise E, x`, `exec x`, `<>`, `10L`), row by row;
and `async` where it is a name, as it was before Python 3.7: `x.cuda(async=True)`.

Such a file is a syntax error and is reported as one. Its loops train all the same, and so are read. Rows stay where
they are, and columns up to the first rewritten word of a row.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from galint.errors import ParseError, TooComplex
from galint.program import Program

Token = tokenize.TokenInfo
Edit = tuple[tuple[int, int], int, str]
"""Where (row from 1, column), how many characters go, and what comes instead."""

_IGNORED = {tokenize.COMMENT, tokenize.NL}
_LAYOUT = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}


def parse_older(text: str, parser: Callable[[str], Program]) -> Program | None:
    """The program of a file of an older Python, parsed by `parser` once it is rewritten; None for any other text."""
    words = rewritten(text.removeprefix("\ufeff"))
    try:
        return parser(words) if words is not None else None
    except (ParseError, TooComplex):
        return None


def rewritten(text: str) -> str | None:
    """`text` in the words of Python 3; None where nothing was to be rewritten or the text cannot be told apart."""
    try:
        tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in _IGNORED]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    edits = [edit for statement in _statements(tokens) for edit in _edits(statement)]
    edits += _words(tokens)
    if not edits:
        return None
    lines = text.splitlines(keepends=True)
    for (row, column), gone, new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + gone :]
    return "".join(lines)


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The simple statements and headers, without the `;` or `:` that ends them."""
    depth, out = 0, list[Token]()
    for token in tokens:
        depth += _opens(token)
        ends = token.type in _LAYOUT or (depth == 0 and token.type == tokenize.OP and token.string in {";", ":"})
        if not ends:
            out.append(token)
        elif out:
            yield out
            out = []
    if out:
        yield out


def _opens(token: Token) -> int:
    """By how much a token changes the depth of brackets."""
    if token.type != tokenize.OP:
        return 0
    return (token.string in {"(", "[", "{"}) - (token.string in {")", "]", "}"})


def _edits(statement: list[Token]) -> Iterator[Edit]:
    first, rest = statement[0], statement[1:]
    if first.type != tokenize.NAME or not rest:
        return
    word, last = first.string, rest[-1]
    if word in {"print", "exec"} and _is_operand(rest[0]):
        gap = rest[0].start[1] - first.end[1] if rest[0].start[0] == first.end[0] else 0
        yield first.end, min(gap, 1), "("
        if word == "print" and rest[0].string == ">>":
            yield rest[0].start, 2, "  "
        yield last.end, 0, ")"
    elif word in {"except", "raise"}:
        comma = _comma(rest)
        if comma is not None and word == "except":
            yield comma.start, 1, " as"
        elif comma is not None:
            yield comma.start, 1, "("
            yield last.end, 0, ")"


def _is_operand(token: Token) -> bool:
    """Whether a word before this is a statement of its own, and no name: `print x` and not `print = x`, `print(x)`."""
    if token.type == tokenize.OP:
        return token.string in {">>", "[", "{", "~", "-"}
    return token.type in {tokenize.NAME, tokenize.NUMBER, tokenize.STRING} and token.string not in {"in", "is", "if"}


def _comma(tokens: list[Token]) -> Token | None:
    """The first comma outside of brackets."""
    depth = 0
    for token in tokens:
        depth += _opens(token)
        if depth == 0 and token.string == ",":
            return token
    return None


def _words(tokens: Sequence[Token]) -> Iterator[Edit]:
    """`<>`, `10L`, and `async` before nothing that it can be the keyword of."""
    for token, after in pairwise(tokens):
        if token.type == tokenize.OP and (token.string, after.string) == ("<", ">") and token.end == after.start:
            yield token.start, 2, "!="
        elif token.type == tokenize.OP and token.string == "<>":
            yield token.start, 2, "!="
        elif token.type == tokenize.NUMBER and after.string in {"L", "l"} and token.end == after.start:
            yield after.start, 1, ""
        elif token.string == "async" and after.string not in {"def", "for", "with"}:
            yield token.start, len("async"), "Async"
