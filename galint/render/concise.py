"""`concise`: one line a finding."""

from __future__ import annotations

from galint.diagnostic import Report
from galint.render import Context
from galint.render.full import where
from galint.render.style import Style, plain
from galint.render.summary import repairable, summary


def render(report: Report, context: Context) -> str:
    """`path:row:column: CODE message`, with `[*]` where `--fix` repairs it, and the summary line."""
    style = Style(context.color)
    lines = [
        f"{style('bold', where(d.filename, d.cell, d.span.row, d.span.column))}: "
        f"{style.severity(d.severity, d.code)} {'[*] ' if repairable(d) else ''}{plain(d.message)}"
        + (f" ({plain(d.configuration)})" if d.configuration else "")
        for d in report.diagnostics
    ]
    return "".join(f"{line}\n" for line in lines) + summary(report, context, style)
