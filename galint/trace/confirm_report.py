"""Renders what `galint confirm` found: text for a terminal, JSON, SARIF with the verdicts as properties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from galint.diagnostic import Diagnostic, Report
from galint.render.full import where
from galint.trace.concluding import Outcome, body, exit_code, numbers
from galint.trace.judge import informs
from galint.trace.model import Status

_COLORS = {
    Status.CONFIRMED: "bold red",
    Status.CONSISTENT: "yellow",
    Status.INCONCLUSIVE: "dim",
    Status.REFUTED: "green",
}


def text(outcomes: Sequence[Outcome], console: Console) -> None:
    """Each finding with its numbers and its status."""

    def line(label: str, content: str) -> None:
        if content:
            console.print(f"    {label:<11}{content}", soft_wrap=True, markup=False, highlight=False)

    for out in outcomes:
        d = out.finding
        note = " (note)" if informs(d.code) else ""
        by = " (replay)" if out.how == "replay" else ""
        console.print(
            Text.assemble(
                f"{place(d)}: ",
                (f"{d.code} {d.name}", "bold"),
                " ",
                (f"{out.status}{by}{note}", _COLORS[out.status]),
                f": {out.reason}",
            ),
            soft_wrap=True,
        )
        line("finding:", d.message + (f" ({d.configuration})" if d.configuration else ""))
        line("measured:", out.measured)
        if out.shown is not None:
            window = out.shown
            line("window:", f"{window.index} of {window.optimizer}, {window.n} micro-batches: {numbers(window)}")
        line("reference:", out.reference)
        for note in out.notes:
            line("note:", note)
    counts = {s: sum(o.status is s for o in outcomes) for s in Status}
    console.print(", ".join(f"{n} {s}" for s, n in counts.items() if n) or "no findings, nothing to confirm")


def as_text(outcomes: Sequence[Outcome], slices: Sequence[tuple[str, str]], *, color: bool) -> str:
    """What a terminal shows."""
    import io

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=color, width=160, highlight=False, no_color=not color)
    for filename, source in slices:
        console.print(f"# the slice of {filename}\n{source}\n", markup=False, soft_wrap=True)
    text(outcomes, console)
    return stream.getvalue()


def place(d: Diagnostic) -> str:
    """`file:row:column` as the linter says it."""
    return where(d.filename, d.cell, d.span.row, d.span.column)


def as_json(outcomes: Sequence[Outcome], slices: Sequence[tuple[str, str]] = ()) -> str:
    """One JSON document: each finding with its verdict; with `--show-slice` the slices too."""
    verdicts: list[dict[str, Any]] = []
    for out in outcomes:
        d = out.finding
        finding = {
            "code": d.code, "name": d.name, "message": d.message, "filename": d.filename, "line": d.span.row,
            "column": d.span.column + 1, **({} if d.cell is None else {"cell": d.cell}), "applied": d.applied, "expected": d.expected, "configuration": d.configuration,
        }  # fmt: skip
        verdicts.append({**body(out), "filename": d.filename, "line": d.span.row, "finding": finding})
    from galint import __version__

    document: dict[str, Any] = {
        "version": 1,
        "galint": __version__,
        "verdicts": verdicts,
        "exit_code": exit_code(outcomes),
    }
    if slices:
        document["slices"] = [{"filename": f, "text": t} for f, t in slices]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_sarif(outcomes: Sequence[Outcome]) -> str:
    """The linter's own SARIF results, each with its verdict in the properties."""
    from galint import __version__
    from galint.render import Context, render
    from galint.render.sarif import artifact

    report = Report(diagnostics=[o.finding for o in outcomes], files=len({o.finding.filename for o in outcomes}))
    document = json.loads(render(report, "sarif", Context(version=__version__)))
    waiting = list(outcomes)
    for result in document["runs"][0]["results"]:
        spot = result["locations"][0]["physicalLocation"]
        told = (
            result["ruleId"],
            spot["artifactLocation"],
            result["properties"].get("cell"),
            spot["region"].get("startLine"),
        )
        for out in waiting:
            d = out.finding
            if (d.code, artifact(d.filename), d.cell, d.span.row) == told:
                result.setdefault("properties", {})["verdict"] = body(out)
                waiting.remove(out)
                break
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
