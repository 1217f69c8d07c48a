"""`full`: the finding in its source, its related places, the two formulas, and what it assumes."""

from __future__ import annotations

from galint.diagnostic import Applicability, Diagnostic, Report
from galint.render import Context
from galint.render.excerpt import Mark, excerpt
from galint.render.style import Style, plain
from galint.render.summary import summary

_FIX_WORD = {
    Applicability.SAFE: "`--fix` applies it",
    Applicability.UNSAFE: "`--fix --unsafe-fixes` applies it",
    Applicability.DISPLAY: "by hand",
}


def where(filename: str, cell: int | None, row: int, column: int) -> str:
    """`train.py:7:5`, and `train.ipynb:cell 3:7:5` in a notebook; the column is 1-based."""
    middle = "" if cell is None else f":cell {cell}"
    return f"{plain(filename)}{middle}:{row}:{column + 1}"


def render(report: Report, context: Context) -> str:
    """All findings and the summary line."""
    style = Style(context.color)
    blocks = [_block(diagnostic, context, style) for diagnostic in report.diagnostics]
    return "".join(f"{block}\n\n" for block in blocks) + summary(report, context, style)


def _block(diagnostic: Diagnostic, context: Context, style: Style) -> str:
    d = diagnostic
    arrow = style("frame", "-->")
    out = [
        style.severity(d.severity, f"{d.severity}[{d.code}]") + style("bold", f" {d.name}: {plain(d.message)}"),
        f"  {arrow} {where(d.filename, d.cell, d.span.row, d.span.column)}",
    ]
    here = [r for r in d.related if r.filename in (None, d.filename) and r.cell in (None, d.cell)]
    lines = context.lines(d.filename, d.cell)
    marks = [Mark(d.span, "", True), *(Mark(r.span, plain(r.message), False) for r in here)]
    out += excerpt(lines, marks, d.severity, style)
    for related in d.related:
        if related in here and lines:
            continue
        filename = related.filename or d.filename
        cell = related.cell if related.filename is not None or related.cell is not None else d.cell
        place = where(filename, cell, related.span.row, related.span.column)
        text = plain(related.message)
        shown = excerpt(context.lines(filename, cell), [Mark(related.span, text, False)], d.severity, style)
        out.append(f"  {style('frame', ':::')} {place}" + ("" if shown else f" {text}"))
        out += shown
    out += [f"  {style('frame', '=')} {note}" for note in _notes(d, style)]
    return "\n".join(out)


def _notes(d: Diagnostic, style: Style) -> list[str]:
    notes: list[str] = []
    if d.applied is not None:
        notes.append(f"{style('bold', 'applied:')}     {plain(d.applied)}")
    if d.expected is not None:
        notes.append(f"{style('bold', 'large batch:')} {plain(d.expected)}")
    if d.configuration:
        notes.append(f"{style('bold', 'holds')} {plain(d.configuration)}")
    notes += [
        f"{style('bold', 'assumes')} {plain(assumption.removeprefix('assumes '))}" for assumption in d.assumptions
    ]
    if d.fix is not None:
        notes.append(f"{style('bold', 'fix:')} {plain(d.fix.message)} ({_FIX_WORD[d.fix.applicability]})")
    notes.append(f"{style('bold', 'help:')} `galint rule {d.code}` explains this rule")
    return notes
