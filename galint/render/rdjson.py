"""`rdjson`: reviewdog's diagnostic format; columns count UTF-8 bytes, as it asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from galint.diagnostic import Diagnostic, Report
from galint.pages import url
from galint.render import Context
from galint.rule import Severity
from galint.source import Span, byte_column

_SEVERITY = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def render(report: Report, context: Context) -> str:
    """One DiagnosticResult object."""
    out = {
        "source": {"name": "galint"},
        "severity": "WARNING",
        "diagnostics": [_diagnostic(d, context) for d in report.diagnostics],
    }
    return json.dumps(out, indent=2, ensure_ascii=False) + "\n"


def _range(span: Span, lines: Sequence[str]) -> dict[str, dict[str, int]]:
    return {"start": _position(span.row, span.column, lines), "end": _position(span.end_row, span.end_column, lines)}


def _position(row: int, column: int, lines: Sequence[str]) -> dict[str, int]:
    line = lines[row - 1] if 1 <= row <= len(lines) else ""
    return {"line": row, "column": byte_column(line, column) + 1 if line else column + 1}


def _diagnostic(d: Diagnostic, context: Context) -> dict[str, Any]:
    lines = context.lines(d.filename, d.cell)
    out: dict[str, Any] = {
        "message": d.message,
        "location": {"path": d.filename, "range": _range(d.span, lines)},
        "severity": _SEVERITY[d.severity],
        "code": {"value": d.code, "url": url(d.code, d.name)},
    }
    if d.fix is not None:
        out["suggestions"] = [{"range": _range(edit.span, lines), "text": edit.content} for edit in d.fix.edits]
    if d.related:
        out["relatedLocations"] = [
            {
                "message": r.message,
                "location": {
                    "path": r.filename or d.filename,
                    "range": _range(
                        r.span, context.lines(r.filename or d.filename, r.cell or (None if r.filename else d.cell))
                    ),
                },
            }
            for r in d.related
        ]
    return out
