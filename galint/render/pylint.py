"""`pylint`: the parseable one-line format that many build servers know."""

from __future__ import annotations

from galint.diagnostic import Report
from galint.render import Context
from galint.render.style import plain


def render(report: Report, context: Context) -> str:
    """`path:row: [CODE] message`, one line a finding."""
    return "".join(f"{plain(d.filename)}:{d.span.row}: [{d.code}] {plain(d.message)}\n" for d in report.diagnostics)
