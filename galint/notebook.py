"""Jupyter notebooks: code cells as one Python text, and findings carried back to their cells."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from galint.diagnostic import Diagnostic, Edit, Fix, NotUnderstood, Related, Report
from galint.errors import SourceError
from galint.source import Source, Span, split_lines

_LINE_MAGIC = re.compile(r"^(\s*)(?:[%!?]|[\w.]+\?{1,2}\s*$|(?:[\w.,\s\[\]()]+=\s*)[%!])")
_CELL_MAGIC = re.compile(r"^\s*%%(\w+)?")
_AUTOMAGIC = re.compile(
    r"\s*(?:"
    r"alias|autoawait|autocall|autoindent|autoreload|automagic|bookmark|cat|cd|clear|colors|conda|config|cp|"
    r"debug|dhist|dirs|doctest_mode|ed|edit|env|gui|hist|history|ldir|less|lf|lk|ll|load|load_ext|loadpy|"
    r"logoff|logon|logstart|logstate|logstop|ls|lsmagic|lx|macro|magic|mamba|man|matplotlib|micromamba|mkdir|"
    r"more|mv|notebook|page|pastebin|pdb|pdef|pdoc|pfile|pinfo|pinfo2|pip|popd|pprint|precision|prun|psearch|"
    r"psource|pushd|pwd|pycat|pylab|quickref|recall|rehashx|reload_ext|rep|rerun|reset|reset_selective|rm|"
    r"rmdir|run|save|sc|set_env|shell|store|sx|system|tb|tensorboard|tensorflow_version|time|timeit|unalias|"
    r"unload_ext|uv|who|who_ls|whos|xdel|xmode"
    r")\s+(?!(?:in|is|if|and|or|not|for)\b|,|#|[^\w\s\"'~$.\\]{0,2}=(?!=))\S"
)
"""The line magics of IPython and Colab with what they are given: a cell that is one line needs no `%` before them."""
_ROW = re.compile(r"(\bon line )(\d+)")
_PYTHON_CELLS = {"time", "timeit", "capture", "prun", "python", "python3", "pypy"}
"""Cell magics whose body is Python all the same."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its 1-based number among code cells, its lines, and its first row in the whole text."""

    number: int
    lines: tuple[str, ...]
    first_row: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code cells of a notebook and the Python text that they make together."""

    source: Source
    cells: tuple[Cell, ...]

    def cell_lines(self, number: int) -> Sequence[str]:
        """The lines of the code cell `number` as written, magics included."""
        return next((cell.lines for cell in self.cells if cell.number == number), ())

    def row_of(self, number: int, line: int) -> int | None:
        """The row in the whole text of a line of code cell `number`; None where there is no such cell."""
        return next((cell.first_row + line - 1 for cell in self.cells if cell.number == number), None)

    def locate(self, span: Span) -> tuple[int, Span]:
        """A span of the whole text as (code cell, span within it), cut at the cell's end."""
        starts = [cell.first_row for cell in self.cells]
        cell = self.cells[max(0, bisect_right(starts, span.row) - 1)]
        last = cell.first_row + len(cell.lines) - 1
        shift = cell.first_row - 1
        if span.end_row > last:
            span = Span(min(span.row, last), span.column, last, len(cell.lines[-1]) if cell.lines else 0)
        return cell.number, Span(span.row - shift, span.column, span.end_row - shift, span.end_column)

    def relocate(self, report: Report) -> Report:
        """The report with every place counted within its cell."""
        report.diagnostics = [self.place(d) for d in report.diagnostics]
        report.not_understood = [self._loop(loop) for loop in report.not_understood]
        return report

    def place(self, d: Diagnostic) -> Diagnostic:
        """A diagnostic with every place counted within its cell."""
        cell, span = self.locate(d.span)
        related = tuple(self._related(r, cell) for r in d.related)
        shift = d.span.row - span.row
        # CPython's own words for a syntax error hold a row.
        message = _ROW.sub(lambda row: f"{row[1]}{int(row[2]) - shift}", d.message) if d.code == "GA000" else d.message
        return replace(d, cell=cell, span=span, message=message, related=related, fix=self._fix(d.fix, cell))

    def _related(self, related: Related, home: int) -> Related:
        if related.filename not in (None, self.source.filename):
            return related
        cell, span = self.locate(related.span)
        if cell == home:
            return replace(related, span=span)
        return Related(span, related.message, cell=cell)

    def _fix(self, fix: Fix | None, home: int) -> Fix | None:
        """A fix within one cell; one that reaches into another cell is not offered."""
        if fix is None:
            return None
        edits = [self.locate_edit(edit) for edit in fix.edits]
        if any(cell != home for cell, _ in edits):
            return None
        return replace(fix, edits=tuple(edit for _, edit in edits))

    def locate_edit(self, edit: Edit) -> tuple[int, Edit]:
        """An edit of the whole text as (code cell, edit within it).

        The last line of a cell has no line end of its own: what is inserted below it goes behind it, and what
        takes it away takes the line end before it.
        """
        span, content = edit.span, edit.content
        for cell in self.cells:
            behind = cell.first_row + len(cell.lines)
            if not (span.end_row == behind and span.end_column == 0 and span.row >= cell.first_row):
                continue
            if span.row == behind and not content.endswith("\n"):
                break
            last, end = len(cell.lines), len(cell.lines[-1])
            row, column = span.row - cell.first_row + 1, span.column
            if span.row == behind:
                return cell.number, Edit(Span(last, end, last, end), "\n" + content[:-1])
            if not content and column == 0 and row > 1:
                row, column = row - 1, len(cell.lines[row - 2])
            return cell.number, Edit(Span(row, column, last, end), content.removesuffix("\n"))
        number, inner = self.locate(span)
        return number, Edit(inner, content)

    def _loop(self, loop: NotUnderstood) -> NotUnderstood:
        cell, span = self.locate(loop.span)
        return replace(loop, span=span, cell=cell)


def load(data: bytes, filename: str) -> Notebook | None:
    """The notebook's Python text, or None when its language is not Python. Raises SourceError."""
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise SourceError(f"{filename}: is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{filename}: is not a notebook (not valid JSON: {str(error)[:80]})") from None
    if not isinstance(document, dict):
        raise SourceError(f"{filename}: is not a notebook (no object at its top)")
    try:
        cells = code_cells(document)
    except TypeError:
        raise SourceError(f"{filename}: is not a notebook (it has no cells)") from None
    if _language(document) != "python":
        return None
    texts = [cell_text(cell) for cell in cells]
    out: list[str] = []
    known: list[Cell] = []
    for number, text in enumerate(texts, 1):
        lines = split_lines(text)
        known.append(Cell(number, tuple(lines), len(out) + 1))
        out += _neutral(lines)
    if not known:
        return None
    rows = tuple(cell.first_row for cell in known)
    return Notebook(Source(filename, "\n".join(out) + "\n", cells=rows), tuple(known))


def code_cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The code cells of a notebook's document, in order. Raises TypeError where it has no cells."""
    cells = document.get("cells")
    if cells is None and isinstance(document.get("worksheets"), list):  # nbformat 3
        cells = [c for sheet in document["worksheets"] if isinstance(sheet, dict) for c in sheet.get("cells") or ()]
    if not isinstance(cells, list):
        raise TypeError("no cells")
    return [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


def _language(document: dict[str, object]) -> str:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return "python"
    for section, key in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(section)
        if isinstance(part, dict) and isinstance(part.get(key), str):
            return "python" if "python" in part[key].lower() else str(part[key])
    return "python"


def cell_text(cell: dict[str, Any]) -> str:
    """A cell's text, however it is stored; a NUL counts as a blank."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str)).replace("\0", " ")
    return source.replace("\0", " ") if isinstance(source, str) else ""


def _neutral(lines: Sequence[str]) -> list[str]:
    """The lines with IPython's own syntax replaced, so that rows and the columns of code stay.

    A cell in another language becomes comments, a magic or shell line becomes `pass`.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return [""] * len(lines)
    if first == 0 and not any(lines[1:]) and _AUTOMAGIC.match(lines[0]):
        return ["pass", *lines[1:]]
    magic = _CELL_MAGIC.match(lines[first])
    if magic:
        if magic[1] not in _PYTHON_CELLS:
            return ["" for _ in lines]
        return [*lines[:first], "", *_neutral_lines(lines[first + 1 :])]
    return _neutral_lines(lines)


def _neutral_lines(lines: Sequence[str]) -> list[str]:
    out: list[str] = []
    state = _Quotes()
    continued = False
    for line in lines:
        if continued:  # the rest of a magic that a backslash carries over the line's end
            out.append("")
            continued = line.rstrip().endswith("\\")
            continue
        match = None if state.inside or state.depth else _LINE_MAGIC.match(line)
        if match is None:
            state.feed(line)
            out.append(line)
            continue
        out.append(f"{match[1]}pass")
        continued = line.rstrip().endswith("\\")
    return out


class _Quotes:
    """Whether a line starts inside a triple-quoted string or brackets, where `%` and `!` are no magics."""

    _TOKEN = re.compile(r"#.*|\\.|\"\"\"|'''|\"|'|[\[({]|[\])}]")

    def __init__(self) -> None:
        self.inside: str | None = None
        self.depth = 0

    def feed(self, line: str) -> None:
        """Read one line of Python."""
        position = 0
        while match := self._TOKEN.search(line, position):
            token = match.group()
            position = match.end()
            if self.inside is not None:
                if token.startswith("#"):
                    position = match.start() + 1
                elif token == self.inside:
                    self.inside = None
            elif token[0] == "#":
                return
            elif token[0] in "\"'":
                self.inside = token
            elif token in "([{":
                self.depth += 1
            elif token in ")]}":
                self.depth = max(0, self.depth - 1)
        if self.inside is not None and len(self.inside) == 1 and not line.endswith("\\"):
            self.inside = None
