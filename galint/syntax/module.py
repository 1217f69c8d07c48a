"""Parses text with libcst, turns its failures into ParseError, and maps spans to CST nodes."""

from __future__ import annotations

import ast
import gc
import re
import warnings
from dataclasses import dataclass
from typing import Any

import libcst as cst

from galint.errors import ParseError, TooComplex
from galint.program import Program
from galint.source import Span
from galint.syntax.comments import comments
from galint.syntax.cursor import Cursor
from galint.syntax.guard import deep, guard, row_column
from galint.syntax.statements import body

_place = re.compile(r"error at (\d+):(\d+): ?")
_last_token = re.compile(r"(\w+|\S)\s*$")


@dataclass(frozen=True, slots=True)
class CstModule:
    """A libcst module with every lowered node's span.

    `tree` is the module (its `code` is the text, without a byte order mark); `nodes` are
    (span, CST node) pairs of all expressions and statements, inner nodes before outer ones.
    """

    tree: cst.Module
    program: Program
    nodes: tuple[tuple[Span, cst.CSTNode], ...]


def cst_module(text: str) -> CstModule:
    """Parses `text` and keeps the CST. Raises ParseError."""
    record: list[tuple[Span, Any]] = []
    tree, program = _parse(text, record)
    return CstModule(tree, program, tuple(record))


def cst_program(text: str) -> Program:
    """Lowers `text` with libcst. Raises ParseError."""
    return _parse(text, None)[1]


def nodes_at(module: CstModule, span: Span) -> tuple[cst.CSTNode, ...]:
    """The CST nodes whose lowered node has exactly `span`, outermost first; empty when there is none."""
    return tuple([node for at, node in reversed(module.nodes) if at == span])


def _parse(text: str, record: list[tuple[Span, Any]] | None) -> tuple[cst.Module, Program]:
    if text.startswith("\ufeff"):
        text = text[1:]
    guard(text)
    # The tree is many small objects without garbage among them: collections in between only cost.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with deep():
            tree = cst.parse_module(text)
            cursor = Cursor(text, record)
            statements = body(cursor, tree.body)
            return tree, Program(statements, comments(cursor))
    except cst.ParserSyntaxError as error:
        raise _located(text, error) from None
    except RecursionError:
        raise TooComplex("the code is nested too deeply", 1, 1) from None
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a native panic is no Exception
        raise _located(text, error) from None
    finally:
        if collecting:
            gc.enable()


def _located(text: str, error: BaseException) -> ParseError:
    """`error` as a ParseError with the best place known."""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    row, column = getattr(error, "raw_line", 1), getattr(error, "raw_column", 0) + 1
    at = _place.search(message)
    if at is not None:
        message = "unexpected syntax"
        row, column = _offender(text, int(at[1]), int(at[2]))
    own = _python_error(text)
    # The running Python may be older than the file's grammar: believe it about the same row and about what
    # no version accepts.
    if own is not None and (at is None or own[1] == row or own[0].endswith("never closed")):
        return ParseError(*own)
    return ParseError(re.sub(r"^(tokenizer|parser) error: ", "", message).split("\n")[0], row, column)


def _offender(text: str, row: int, column: int) -> tuple[int, int]:
    """The 1-based place of the token that libcst could not use; it names the place behind that token."""
    starts = Cursor(text).starts
    end = min(starts[min(row, len(starts) - 1) - 1] + column, len(text))
    token = _last_token.search(text[:end])
    return row_column(text, token.start(1)) if token else (row, column + 1)


def _python_error(text: str) -> tuple[str, int, int] | None:
    """What the running Python says about `text`: its words are better, its grammar may be older."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error.msg, max(error.lineno or 1, 1), max(error.offset or 1, 1)
    except Exception:  # MemoryError and RecursionError for depth
        return None
    return None
