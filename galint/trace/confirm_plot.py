"""Draws what `galint confirm` measured: N·w and the distance from the large batch, a row for each loop that ran."""

from __future__ import annotations

import html as escaping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from galint.trace.concluding import Outcome, numbers
from galint.trace.confirm_report import place
from galint.trace.model import Status, Window
from galint.trace.plotting import page, rows_figure, save, svg_of

ROWS = 24
"""Loops drawn; the table of the HTML page has all."""


def plot_outcomes(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write the plot; the suffix decides the form. Raises ConfigError where it cannot be written."""
    loops = _loops(outcomes)
    fig = rows_figure([(_title(findings), windows) for findings, windows in loops[:ROWS]])
    if not loops:
        fig.text(0.5, 0.5, "no window was measured", ha="center", va="center")
    save(fig, path, lambda: _html(outcomes, fig, len(loops)))


def _loops(outcomes: Sequence[Outcome]) -> list[tuple[list[Outcome], list[Window]]]:
    """The findings that one run of a loop speaks of, with its measured windows, in the order of the findings."""
    out: dict[tuple[int, str], tuple[list[Outcome], list[Window]]] = {}
    for outcome in outcomes:
        optimizer = outcome.shown.optimizer if outcome.shown is not None else outcome.optimizer
        measured = [w for w in outcome.windows if w.measured and optimizer in ("", w.optimizer)]
        if measured:
            findings, _ = out.setdefault((id(outcome.windows), optimizer), ([], measured))
            findings.append(outcome)
    return list(out.values())


def _title(findings: Sequence[Outcome]) -> str:
    first = findings[0].finding
    cell = "" if first.cell is None else f" cell {first.cell}"
    said = ", ".join(dict.fromkeys(f"{o.finding.code} {o.status}" for o in findings))
    return f"{Path(first.filename).name}{cell}:{first.span.row} {said}"


def _html(outcomes: Sequence[Outcome], fig: Any, loops: int) -> str:
    say = escaping.escape
    counts = {s: sum(o.status is s for o in outcomes) for s in Status}
    summary = ", ".join(f"{n} {s}" for s, n in counts.items() if n) or "no findings, nothing to confirm"
    if loops > ROWS:
        summary += f"; the first {ROWS} of {loops} loops are drawn"
    lines = "".join(
        f'<tr><td class="{o.status}">{o.status}{" (replay)" if o.how == "replay" else ""}</td>'
        f"<td>{say(place(o.finding))}</td><td>{o.finding.code} {say(o.finding.name)}</td><td>{say(o.finding.message)}</td>"
        f"<td>{say(o.reason)}</td><td>{say(o.measured)}</td><td>{say(numbers(o.shown)) if o.shown else ''}</td></tr>"
        for o in outcomes
    )
    head = "".join(
        f"<th>{name}</th>" for name in ("status", "place", "rule", "finding", "reason", "measured", "window")
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return page("galint confirm", f"<p>{say(summary)}.</p>{svg_of(fig)}<h2>Findings</h2>{table}")
