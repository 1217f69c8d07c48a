"""`gitlab`: a Code Quality report (the Code Climate subset that GitLab reads)."""

from __future__ import annotations

import json

from galint.diagnostic import Report
from galint.render import Context
from galint.render.fingerprint import fingerprints
from galint.rule import Severity

_SEVERITY = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report, context: Context) -> str:
    """A JSON list, one object a finding."""
    prints = fingerprints(report.diagnostics, context)
    out = [
        {
            "description": f"{d.code}: {d.message}",
            "check_name": d.name,
            "fingerprint": fingerprint,
            "severity": _SEVERITY[d.severity],
            "location": {
                "path": d.filename,
                "positions": {
                    "begin": {"line": d.span.row, "column": d.span.column + 1},
                    "end": {"line": d.span.end_row, "column": d.span.end_column + 1},
                },
            },
        }
        for d, fingerprint in zip(report.diagnostics, prints, strict=True)
    ]
    return json.dumps(out, indent=2, ensure_ascii=False) + "\n"
