"""`grouped`: findings under their file's name."""

from __future__ import annotations

from itertools import groupby

from galint.diagnostic import Report
from galint.render import Context
from galint.render.style import Style, plain
from galint.render.summary import repairable, summary


def render(report: Report, context: Context) -> str:
    """A heading a file, an aligned line a finding, and the summary line."""
    style = Style(context.color)
    out = ""
    for filename, group in groupby(report.diagnostics, key=lambda d: d.filename):
        found = list(group)
        places = [("" if d.cell is None else f"cell {d.cell}:") + f"{d.span.row}:{d.span.column + 1}" for d in found]
        wide = max(map(len, places))
        out += style("bold", f"{plain(filename)}:") + "\n"
        for d, place in zip(found, places, strict=True):
            out += f"  {place:<{wide}} {style.severity(d.severity, d.code)} "
            out += f"{'[*] ' if repairable(d) else ''}{plain(d.message)}\n"
        out += "\n"
    return out + summary(report, context, style)
