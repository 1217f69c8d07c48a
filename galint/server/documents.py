"""Open documents: their text under incremental edits, notebooks as one text, and places in the client's units."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lsprotocol import types

from galint import notebook
from galint.diagnostic import Edit
from galint.errors import SourceError
from galint.source import (
    Source,
    Span,
    byte_column,
    column_from_bytes,
    column_from_utf16,
    split_lines,
    utf16_column,
)

Encoding = types.PositionEncodingKind | str


def to_column(line: str, units: int, encoding: Encoding) -> int:
    """A client's character offset as a code-point column; past the line's end is its end."""
    if encoding == types.PositionEncodingKind.Utf8:
        return column_from_bytes(line, units)
    if encoding == types.PositionEncodingKind.Utf32:
        return min(units, len(line))
    return column_from_utf16(line, units)


def from_column(line: str, column: int, encoding: Encoding) -> int:
    """A code-point column as the client counts characters."""
    if encoding == types.PositionEncodingKind.Utf8:
        return byte_column(line, column)
    if encoding == types.PositionEncodingKind.Utf32:
        return min(column, len(line))
    return utf16_column(line, column)


def to_range(span: Span, lines: list[str], encoding: Encoding) -> types.Range:
    """A span as a protocol range, clamped to the text."""

    def position(row: int, column: int) -> types.Position:
        if row > len(lines):
            return types.Position(max(len(lines) - 1, 0), from_column(lines[-1], len(lines[-1]), encoding))
        line = lines[max(row, 1) - 1]
        return types.Position(max(row, 1) - 1, from_column(line, column, encoding))

    return types.Range(position(span.row, span.column), position(span.end_row, span.end_column))


def changed(text: str, change: types.TextDocumentContentChangeEvent, encoding: Encoding) -> str:
    """`text` after one content change; places outside the text are clamped, so no client can break it."""
    if not isinstance(change, types.TextDocumentContentChangePartial):
        return change.text
    source = Source("", text)

    def offset(position: types.Position) -> int:
        if position.line >= len(source.lines):
            return len(text)
        return source.offset(position.line + 1, to_column(source.lines[position.line], position.character, encoding))

    start = offset(change.range.start)
    end = max(start, offset(change.range.end))
    return text[:start] + change.text + text[end:]


@dataclass(slots=True)
class Part:
    """A text document as the client has it: a file, an unsaved buffer, or one code cell of a notebook."""

    uri: str
    text: str
    version: int | None = None


@dataclass(frozen=True)
class Page:
    """What is analysed as one text: a document, or all code cells of a notebook. It never changes."""

    uri: str
    filename: str
    path: Path | None
    parts: tuple[tuple[str, str, int | None], ...]
    """(uri, text, version) of the document or of each code cell."""
    is_notebook: bool = False

    @cached_property
    def book(self) -> notebook.Notebook | None:
        """The cells as one text; None for a plain document."""
        if not self.is_notebook:
            return None
        cells = [{"cell_type": "code", "source": text} for _, text, _ in self.parts]
        try:
            return notebook.load(json.dumps({"cells": cells}).encode(), self.filename)
        except SourceError:
            return None

    @cached_property
    def source(self) -> Source:
        """The text that is analysed. A NUL, which Python does not allow, counts as a blank."""
        if self.is_notebook:
            return replace(self.book.source, path=self.path) if self.book is not None else Source(self.filename, "")
        return Source(self.filename, self.parts[0][1].replace("\0", " "), self.path)

    @cached_property
    def lines(self) -> dict[str, list[str]]:
        """Document or cell → its lines."""
        return {uri: split_lines(text) for uri, text, _ in self.parts}

    def locate(self, span: Span) -> tuple[str, Span]:
        """The document or cell that a span of the whole text lies in, and the span within it."""
        if self.book is None:
            return self.parts[0][0], span
        number, inner = self.book.locate(span)
        return self.parts[number - 1][0], inner

    def locate_edit(self, edit: Edit) -> tuple[str, Edit]:
        """The document or cell that an edit of the whole text belongs to, and the edit within it."""
        if self.book is None:
            return self.parts[0][0], edit
        number, inner = self.book.locate_edit(edit)
        return self.parts[number - 1][0], inner

    def row_of(self, uri: str, row: int) -> int | None:
        """A 1-based row of a document or cell as a row of the whole text."""
        if self.book is None:
            return row
        for cell in self.book.cells:
            if self.parts[cell.number - 1][0] == uri:
                return cell.first_row + row - 1
        return None

    def version(self, uri: str) -> int | None:
        """The version of a document or cell that was analysed."""
        return next((version for known, _, version in self.parts if known == uri), None)


@dataclass(slots=True)
class Desk:
    """One open file or notebook: its parts in order."""

    uri: str
    path: Path | None
    filename: str
    parts: list[Part] = field(default_factory=list)
    is_notebook: bool = False

    def page(self) -> Page:
        """The text as it is now."""
        parts = tuple((p.uri, p.text, p.version) for p in self.parts)
        return Page(self.uri, self.filename, self.path, parts, self.is_notebook)

    def part(self, uri: str) -> Part | None:
        """The document or cell with this address."""
        return next((p for p in self.parts if p.uri == uri), None)


def path_of(uri: str) -> Path | None:
    """The file behind a URI; None for untitled buffers and other schemes."""
    from pygls.uris import to_fs_path, urlparse

    if urlparse(uri)[0] not in ("file", "vscode-notebook-cell"):
        return None
    found = to_fs_path("file:" + uri.split(":", 1)[1])
    return Path(found.split("#", 1)[0]) if found else None
