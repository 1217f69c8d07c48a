"""The closing line of the formats for people, and the statistics table."""

from __future__ import annotations

from collections import Counter

from galint.config.selectors import find_rule
from galint.diagnostic import Applicability, Diagnostic, Report
from galint.render import Context
from galint.render.style import Style, counted
from galint.rule import Fixability, Severity


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
    return f"{head}{scope}.{_repairs(report, context)}\n"


def repairable(diagnostic: Diagnostic) -> bool:
    """Whether `--fix` alone repairs a finding."""
    return diagnostic.fix is not None and diagnostic.fix.applicability is Applicability.SAFE


def _repairs(report: Report, context: Context) -> str:
    """How many of the findings `--fix` repairs, or how to learn it where nobody has looked yet."""
    if not context.fixes_tried:
        codes = {diagnostic.code for diagnostic in report.diagnostics}
        may = any(find_rule(code).fixability is not Fixability.NEVER for code in codes)
        return " `galint --diff` shows what can be repaired." if may else ""
    fixes = Counter(d.fix.applicability for d in report.diagnostics if d.fix is not None)
    safe, unsafe = fixes[Applicability.SAFE], fixes[Applicability.UNSAFE]
    more = f", `--unsafe-fixes` {unsafe} more" if unsafe else ""
    if safe:
        return f" `--fix` repairs {safe}{more}."
    return f" `--fix --unsafe-fixes` repairs {unsafe}." if unsafe else ""


def statistics(report: Report, style: Style) -> str:
    """A row per rule: count, code, severity and name, the most frequent first."""
    counts = Counter((d.code, d.name, d.severity) for d in report.diagnostics)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    wide = max((len(str(number)) for _, number in rows), default=0)
    return "".join(
        f"{number:>{wide}}  {style.severity(severity, code)}  {severity:<7}  {name}\n"
        for (code, name, severity), number in rows
    )
