"""Puts a notebook's fixed cells back into its JSON: only their source changes, every other byte stays."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from galint import notebook
from galint.diagnostic import Diagnostic
from galint.fixes.textedit import Change, Lines, apply_changes
from galint.notebook import Notebook

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_BOM = "\ufeff"


@dataclass(slots=True)
class CellDraft:
    """The draft of a notebook: changes of its one text, carried to the cells that they touch.

    `fix_source` works on `book.source`; `data` is the notebook as it is to be written.
    """

    data: bytes
    filename: str
    book: Notebook
    touched: dict[int, str] = field(default_factory=dict)
    """Number of each changed cell → its source before the first change."""

    def takes(self, changes: Sequence[Change]) -> bool:
        """Whether the cells can say the changes: none is in a magic, and the text comes out as it was proved."""
        return self._made(changes) is not None

    def make(self, changes: Sequence[Change]) -> str:
        """Carry out changes that `takes` has agreed to; the new text of the whole notebook."""
        made = self._made(changes)
        assert made is not None
        self.data, self.book, before = made
        self.touched = before | self.touched
        return self.book.source.text

    def place(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic of the current text, counted within its cell; its fix may reach into others."""
        return replace(self.book.place(diagnostic), fix=diagnostic.fix)

    def differences(self) -> Iterator[tuple[int, str, str]]:
        """(number, source before, source now) of each cell that was changed."""
        now = dict(enumerate(cell_sources(self.data), 1))
        for number, before in sorted(self.touched.items()):
            yield number, before, now[number]

    def _made(self, changes: Sequence[Change]) -> tuple[bytes, Notebook, dict[int, str]] | None:
        sources = dict(enumerate(_sources(self.data), 1))
        try:
            wanted = apply_changes(self.book.source.text, changes)
            new = _cells_after(self.book, {number: text for number, (_, text) in sources.items()}, changes)
        except (ValueError, LookupError):
            return None
        data = _rewritten(self.data, [(sources[number][0], text) for number, text in new.items()])
        book = notebook.load(data, self.filename)
        if book is None or book.source.text != wanted:
            return None
        return data, book, {number: sources[number][1] for number in new}


def draft(data: bytes, filename: str) -> CellDraft | None:
    """The draft of a notebook; None where it is not Python. Raises SourceError."""
    book = notebook.load(data, filename)
    return CellDraft(data, filename, book) if book is not None else None


def cell_sources(data: bytes) -> list[str]:
    """The source of every code cell, in their order. `data` is a notebook that could be loaded."""
    return [text for _, text in _sources(data)]


# --- changes of the whole text, cell by cell ----------------------------------------------------------


def _cells_after(book: Notebook, sources: dict[int, str], changes: Sequence[Change]) -> dict[int, str]:
    """Number → new source of each cell that changes. Raises ValueError where a cell cannot say a change."""
    whole = Lines(book.source.text)
    starts = [whole.offset(cell.first_row, 0) for cell in book.cells]
    ends = [*starts[1:], len(whole.text)]
    mine: dict[int, list[Change]] = {}
    for change in changes:
        index = max(0, bisect_right(starts, change.start) - 1)
        if change.start == change.end == starts[index] and index and _belongs_above(book, index, change.content):
            index -= 1
        if change.end > ends[index]:
            raise ValueError("a change reaches over the end of a cell")
        mine.setdefault(index, []).append(change)
    return {
        book.cells[index].number: _cell_after(book, whole, index, sources[book.cells[index].number], cell_changes)
        for index, cell_changes in mine.items()
    }


def _belongs_above(book: Notebook, index: int, content: str) -> bool:
    """Whether lines put between two cells end the upper one: they are indented, or the lower one starts with a magic."""
    first = next((line for line in book.cells[index].lines if line.strip()), "")
    return content[:1] in " \t" or first.lstrip().startswith(("%", "!", "?"))


def _cell_after(book: Notebook, whole: Lines, index: int, source: str, changes: list[Change]) -> str:
    """A cell's source with changes of the whole text in it."""
    cell, raw = book.cells[index], Lines(source)
    if "\0" in source or len(raw) != len(cell.lines):
        raise ValueError("not the cell's own text")
    ended = source + raw.newline  # so that a line can be put behind the last one, or that one be taken away
    lines = Lines(ended)

    def offset(place: int) -> int:
        row, column = whole.place(place)
        row -= cell.first_row - 1
        same = row > len(raw) or raw.line(row) == whole.line(row + cell.first_row - 1)
        if column and not same:
            raise ValueError("in a magic")
        return lines.offset(row, column)

    moved: list[Change] = []
    for change in changes:
        first, last = whole.place(change.start)[0], whole.place(max(change.end - 1, change.start))[0]
        if change.end > change.start:
            for row in range(first, last + 1):
                if raw.line(row - cell.first_row + 1) != whole.line(row):
                    raise ValueError("a magic would go")
        content = change.content.replace("\n", raw.newline)
        moved.append(Change(offset(change.start), offset(change.end), content))
    return apply_changes(ended, moved).removesuffix(raw.newline)


# --- the JSON -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a cell's source stands in the notebook's text, as code points."""

    start: int
    end: int


def _sources(data: bytes) -> list[tuple[_Value, str]]:
    """Each code cell's source: its place in the JSON and what it says, joined."""
    text = data.decode("utf-8-sig")
    top = _members(text, _space(text, 0))
    cells = [top["cells"]] if "cells" in top else []
    if not cells and "worksheets" in top:  # nbformat 3
        sheets = (_members(text, v.start) for v in _elements(text, top["worksheets"].start) if text[v.start] == "{")
        cells = [sheet["cells"] for sheet in sheets if "cells" in sheet]
    out: list[tuple[_Value, str]] = []
    for place in (v for listed in cells for v in _elements(text, listed.start)):
        if text[place.start] != "{":
            continue
        members = _members(text, place.start)
        kind = members.get("cell_type")
        value = members.get("source", members.get("input"))
        if kind is not None and json.loads(text[kind.start : kind.end]) == "code":
            said = json.loads(text[value.start : value.end]) if value is not None else ""
            parts = said if isinstance(said, list) else [said]
            joined = "".join(part for part in parts if isinstance(part, str))
            out.append((value or _Value(0, 0), joined))
    return out


def _space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()


def _value_end(text: str, place: int) -> int:
    return int(_DECODER.raw_decode(text, place)[1])


def _members(text: str, place: int) -> dict[str, _Value]:
    """The members of the object at a place; of members with the same name the last, as `json` has it."""
    out: dict[str, _Value] = {}
    place = _space(text, place + 1)
    while text[place] != "}":
        key, place = _DECODER.raw_decode(text, place)
        place = _space(text, _space(text, place) + 1)  # behind the colon
        end = _value_end(text, place)
        out[key] = _Value(place, end)
        place = _space(text, end)
        place = _space(text, place + 1) if text[place] == "," else place
    return out


def _elements(text: str, place: int) -> Iterator[_Value]:
    """The elements of the array at a place."""
    place = _space(text, place + 1)
    while text[place] != "]":
        end = _value_end(text, place)
        yield _Value(place, end)
        place = _space(text, end)
        place = _space(text, place + 1) if text[place] == "," else place


def _rewritten(data: bytes, new: list[tuple[_Value, str]]) -> bytes:
    """The notebook's bytes with other sources in some cells, written as the notebook writes them."""
    text = data.decode("utf-8-sig")
    changes = [Change(value.start, value.end, _written(text, value, source)) for value, source in new]
    head = _BOM if data.startswith(_BOM.encode()) else ""
    return (head + apply_changes(text, changes)).encode()


def _written(text: str, value: _Value, source: str) -> str:
    """A source as JSON: a string, or a list of lines with the brackets, separators and known lines of the old one."""
    plain = not text.isascii()
    if text[value.start] != "[":
        return json.dumps(source, ensure_ascii=not plain)
    old = list(_elements(text, value.start))
    known = {json.loads(text[v.start : v.end]): text[v.start : v.end] for v in old if text[v.start] == '"'}
    lines = [line for line in re.split(r"(?<=\n)", source) if line]
    opening, closing = text[value.start : old[0].start], text[old[-1].end : value.end]
    between = text[old[0].end : old[1].start] if len(old) > 1 else f",{opening[1:] or _gap(text)}"
    return (
        opening + between.join(known.get(line) or json.dumps(line, ensure_ascii=not plain) for line in lines) + closing
    )


def _gap(text: str) -> str:
    """What stands behind a comma of a notebook that is one line."""
    members = sorted(_members(text, _space(text, 0)).values(), key=lambda value: value.start)
    comma = _space(text, members[0].end)
    return " " if text[comma + 1 : comma + 2] == " " else ""
