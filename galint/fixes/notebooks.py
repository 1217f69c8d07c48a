"""Applies proved fixes to a notebook: its code cells change, everything else stays byte for byte as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from galint import notebook
from galint.config import Config
from galint.diagnostic import Applicability, Diagnostic, Edit, Report
from galint.engine import lint
from galint.fixes.apply import Allowed
from galint.fixes.attach import attach
from galint.fixes.textedit import apply_changes, changes_of
from galint.source import Source

_ROUNDS = 40
"""Fixes of one notebook: each is proved for the text that the ones before it left."""


@dataclass(slots=True)
class FixedNotebook:
    """What fixing gave: the file's bytes, what was applied in order, and what remains, counted in cells."""

    data: bytes
    report: Report = field(default_factory=Report)
    applied: list[Diagnostic] = field(default_factory=list)


def fix_notebook(
    data: bytes, filename: str, path: Path | None, config: Config, root: Path | None, may: Allowed
) -> FixedNotebook:
    """Apply every fix that `may` allows, errors first. Raises SourceError for what is no notebook."""
    out = FixedNotebook(data)
    writable = _writer(data) is not None
    while True:
        book = notebook.load(out.data, filename)
        if book is None:
            return out
        source = replace(book.source, path=path)
        out.report = book.relocate(attach(lint(source, config, root), source, config, root))
        if not writable:
            out.report.diagnostics = [_by_hand(d) for d in out.report.diagnostics]
        chosen = [d for d in out.report.diagnostics if may(d)]
        if not chosen or len(out.applied) >= _ROUNDS:
            return out
        first = min(chosen, key=lambda d: (-d.severity.rank, d.cell or 0, d.span, d.code))
        assert first.fix is not None and first.cell is not None
        changed = rewritten(out.data, first.cell, first.fix.edits)
        if changed is None or changed == out.data:
            return out
        out.data = changed
        out.applied.append(first)


def _by_hand(diagnostic: Diagnostic) -> Diagnostic:
    fix = diagnostic.fix
    return replace(diagnostic, fix=replace(fix, applicability=Applicability.DISPLAY)) if fix is not None else diagnostic


def rewritten(data: bytes, number: int, edits: Iterable[Edit]) -> bytes | None:
    """The notebook with `edits` made in its code cell `number` (from 1).

    None where the file's own way of writing JSON is not known, so that more than the cell would change.
    """
    write = _writer(data)
    if write is None:
        return None
    document = json.loads(data)
    cell = notebook.code_cells(document)[number - 1]
    key = "source" if "source" in cell else "input"
    text = notebook.cell_text(cell)
    text = apply_changes(text, changes_of(edits, Source("", text)))
    cell[key] = text.splitlines(keepends=True) if isinstance(cell[key], list) else text
    return write(document)


def _writer(data: bytes) -> Callable[[Any], bytes] | None:
    """What writes a document just as `data` is written; None when nothing known does."""
    try:
        text = data.decode("utf-8")
        document = json.loads(text)
    except ValueError:
        return None
    end = text[len(text.rstrip("\r\n")) :]
    styles: list[tuple[int | str | None, tuple[str, str] | None]] = [(1, None), (2, None), (4, None), ("\t", None)]
    styles += [(None, None), (None, (",", ":"))]
    for indent, separators in styles:
        for ascii_only in (False, True):

            def write(
                value: Any,
                indent: int | str | None = indent,
                separators: tuple[str, str] | None = separators,
                ascii_only: bool = ascii_only,
            ) -> bytes:
                shown = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ascii_only)
                return (shown + end).encode("utf-8")

            try:
                if write(document) == data:
                    return write
            except UnicodeEncodeError:  # a lone surrogate, which only the ASCII way can write
                continue
    return None
