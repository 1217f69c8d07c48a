"""`lsp`: one `textDocument/publishDiagnostics` parameter object a file; positions count UTF-16 units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from galint.diagnostic import Diagnostic, Fix, Report
from galint.pages import folder
from galint.render import Context
from galint.rule import Severity
from galint.source import Span, utf16_column

_SEVERITY = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.NOTE: 3}
_UNNECESSARY = 1
_FADED = {"GA001", "GA203"}
"""Rules about code that has no effect: editors grey it out."""


def render(report: Report, context: Context) -> str:
    """A JSON object a line, one for each file with findings."""
    out = ""
    for filename, group in groupby(report.diagnostics, key=lambda d: d.filename):
        found = [diagnostic_object(d, context.lines(filename, d.cell), context) for d in group]
        out += json.dumps({"uri": uri(filename), "diagnostics": found}, ensure_ascii=False) + "\n"
    return out


def uri(filename: str) -> str:
    """The file URI of a name as shown."""
    return (Path.cwd() / filename).as_uri()


def position(row: int, column: int, lines: Sequence[str]) -> dict[str, int]:
    """A 1-based row and 0-based code-point column as a protocol position."""
    line = lines[row - 1] if 1 <= row <= len(lines) else ""
    return {"line": row - 1, "character": utf16_column(line, column) if line else column}


def range_object(span: Span, lines: Sequence[str]) -> dict[str, dict[str, int]]:
    """A span as a protocol range."""
    return {"start": position(span.row, span.column, lines), "end": position(span.end_row, span.end_column, lines)}


def diagnostic_object(d: Diagnostic, lines: Sequence[str], context: Context) -> dict[str, Any]:
    """A finding as a protocol Diagnostic; `data` holds the formulas, the assumptions and the fix."""
    out: dict[str, Any] = {
        "range": range_object(d.span, lines),
        "severity": _SEVERITY[d.severity],
        "code": d.code,
        "source": "galint",
        "message": _message(d),
        "data": {
            "name": d.name,
            "applied": d.applied,
            "expected": d.expected,
            "assumptions": list(d.assumptions),
            "configuration": d.configuration,
            "cell": d.cell,
            "fix": _fix(d.fix, lines),
        },
    }
    pages = folder()
    if pages is not None:
        out["codeDescription"] = {"href": (pages / f"{d.code}-{d.name}.md").as_uri()}
    if d.code in _FADED:
        out["tags"] = [_UNNECESSARY]
    if d.related:
        out["relatedInformation"] = [
            {
                "message": r.message,
                "location": {
                    "uri": uri(r.filename or d.filename),
                    "range": range_object(
                        r.span, context.lines(r.filename or d.filename, r.cell or (None if r.filename else d.cell))
                    ),
                },
            }
            for r in d.related
        ]
    return out


def _message(d: Diagnostic) -> str:
    out = d.message
    if d.applied is not None and d.expected is not None:
        out += f"\napplied: {d.applied}\nlarge batch: {d.expected}"
    if d.configuration:
        out += f"\nholds {d.configuration}"
    return out


def _fix(fix: Fix | None, lines: Sequence[str]) -> dict[str, Any] | None:
    if fix is None:
        return None
    edits = [{"range": range_object(edit.span, lines), "newText": edit.content} for edit in fix.edits]
    return {"title": fix.message, "applicability": str(fix.applicability), "edits": edits}
