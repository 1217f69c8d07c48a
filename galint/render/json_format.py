"""`json` and `json-lines`: every finding with all that it carries, for other programs."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from galint.diagnostic import Diagnostic, Fix, NotUnderstood, Related, Report
from galint.pages import url
from galint.render import Context
from galint.source import Span


def place(row: int, column: int) -> dict[str, int]:
    """A 1-based row and a 1-based code-point column from a span's 0-based one."""
    return {"row": row, "column": column + 1}


def _ends(span: Span) -> dict[str, dict[str, int]]:
    return {"location": place(span.row, span.column), "end_location": place(span.end_row, span.end_column)}


def _related(related: Related, filename: str) -> dict[str, Any]:
    cell = {} if related.cell is None else {"cell": related.cell}
    return {"message": related.message, "filename": related.filename or filename, **cell, **_ends(related.span)}


def fix_object(fix: Fix | None) -> dict[str, Any] | None:
    """A fix as JSON: {message, applicability, edits: [{content, location, end_location}]}."""
    if fix is None:
        return None
    edits = [{"content": edit.content, **_ends(edit.span)} for edit in fix.edits]
    return {"message": fix.message, "applicability": str(fix.applicability), "edits": edits}


def diagnostic_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as JSON; `cell` only for notebooks."""
    cell = {} if diagnostic.cell is None else {"cell": diagnostic.cell}
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "filename": diagnostic.filename,
        **cell,
        **_ends(diagnostic.span),
        "applied": diagnostic.applied,
        "expected": diagnostic.expected,
        "assumptions": list(diagnostic.assumptions),
        "configuration": diagnostic.configuration,
        "related": [_related(related, diagnostic.filename) for related in diagnostic.related],
        "fix": fix_object(diagnostic.fix),
        "url": url(diagnostic.code, diagnostic.name),
    }


def _loop(loop: NotUnderstood) -> dict[str, Any]:
    cell = {} if loop.cell is None else {"cell": loop.cell}
    location = place(loop.span.row, loop.span.column)
    return {"filename": loop.filename, **cell, "location": location, "reason": loop.reason}


def report_object(report: Report) -> dict[str, Any]:
    """The whole report as one JSON object, version 1."""
    return {
        "version": 1,
        "diagnostics": [diagnostic_object(diagnostic) for diagnostic in report.diagnostics],
        "summary": {
            "files": report.files,
            "loops": report.loops,
            "understood": report.understood,
            "not_understood": [_loop(loop) for loop in report.not_understood],
        },
    }


def render(report: Report, context: Context) -> str:
    """One indented JSON object."""
    return json.dumps(report_object(report), indent=2, ensure_ascii=False) + "\n"


def render_lines(report: Report, context: Context) -> str:
    """One JSON object a line, each a diagnostic."""
    return "".join(json.dumps(diagnostic_object(d), ensure_ascii=False) + "\n" for d in report.diagnostics)


def statistics_json(report: Report) -> str:
    """How often each rule was found, the most frequent first, as a JSON list."""
    counts = Counter((d.code, d.name, str(d.severity)) for d in report.diagnostics)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    out = [{"code": code, "name": name, "severity": level, "count": number} for (code, name, level), number in rows]
    return json.dumps(out, indent=2) + "\n"
