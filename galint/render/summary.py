"""The closing line of the formats for people, and the statistics table."""

from __future__ import annotations

from collections import Counter

from galint.diagnostic import Report
from galint.render import Context
from galint.render.style import Style, counted
from galint.rule import Severity


def summary(report: Report, context: Context, style: Style) -> str:
    """One line: how many findings of which severity, and how much of the loops was understood."""
    if context.quiet:
        return ""
    found = Counter(diagnostic.severity for diagnostic in report.diagnostics)
    parts = [
        style.severity(severity, counted(found[severity], str(severity)))
        for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTE)
        if found[severity]
    ]
    head = f"Found {', '.join(parts)}" if parts else style("good", "No findings")
    scope = f" in {counted(report.files, 'file')}"
    if report.loops:
        scope += f" ({counted(report.loops, 'training loop')}"
        missed = report.loops - report.understood
        scope += f", {missed} not understood: see `galint explain`)" if missed else ")"
    return f"{head}{scope}.\n"


def statistics(report: Report, style: Style) -> str:
    """A row per rule: count, code, severity and name, the most frequent first."""
    counts = Counter((d.code, d.name, d.severity) for d in report.diagnostics)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    wide = max((len(str(number)) for _, number in rows), default=0)
    return "".join(
        f"{number:>{wide}}  {style.severity(severity, code)}  {severity:<7}  {name}\n"
        for (code, name, severity), number in rows
    )
