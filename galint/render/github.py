"""`github`: workflow commands that GitHub Actions turns into annotations."""

from __future__ import annotations

from galint.diagnostic import Diagnostic, Report
from galint.render import Context
from galint.render.full import where
from galint.render.style import plain
from galint.rule import Severity

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, context: Context) -> str:
    """One workflow command a finding."""
    return "".join(f"{_command(d)}\n" for d in report.diagnostics)


def _command(d: Diagnostic) -> str:
    span = d.span
    properties = {"title": f"galint ({d.code})", "file": d.filename, "line": span.row}
    if d.cell is None:
        properties |= {"col": span.column + 1, "endLine": span.end_row}
        if span.end_row == span.row:  # an end column is only understood within one line
            properties["endColumn"] = span.end_column
    else:  # the file is JSON: rows of a cell would point anywhere
        properties["line"] = 1
    text = f"{where(d.filename, d.cell, span.row, span.column)}: {d.code} {d.message}"
    if d.applied is not None and d.expected is not None:
        text += f"\napplied: {d.applied}\nlarge batch: {d.expected}"
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{_LEVEL[d.severity]} {listed}::{_data(text)}"


def _data(text: str) -> str:
    text = "".join(char if char in "\r\n" else plain(char) for char in text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
