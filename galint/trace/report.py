"""Verdicts and windows as text, JSON and SARIF."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from galint import __version__
from galint.diagnostic import Diagnostic
from galint.registry import RULES
from galint.trace.judge import informs
from galint.trace.measures import number, weights
from galint.trace.model import Status, Trace, Verdict, Window, to_json

_COLORS = {
    Status.CONFIRMED: "bold red",
    Status.REFUTED: "green",
    Status.CONSISTENT: "yellow",
    Status.INCONCLUSIVE: "cyan",
}
_NAMES = {rule.code: rule.name for rule in RULES}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def short(path: str) -> str:
    """A path relative to the working folder where that is shorter."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return relative if len(relative) < len(path) else path


def size(count: int) -> str:
    """A number of bytes as people write it."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return str(count)


def window_table(title: str = "windows") -> Table:
    """An empty table for windows; `add_window` fills it."""
    table = Table(title=title, title_justify="left", expand=False)
    for name in ("window", "optimizer", "step at", "N", "N·w", "carry", "ratio", "cosine", "rel. error", "all-reduces"):
        table.add_column(name, overflow="fold")
    return table


def add_window(table: Table, window: Window) -> None:
    """One row: the recovered weights, or why there are none."""
    table.add_row(*(Text(cell, style=style) for cell, style in window_cells(window)))


def window_cells(window: Window) -> list[tuple[str, str]]:
    """The cells of a window's row with their styles."""
    where = f"{os.path.basename(window.file)}:{window.line}"
    if window.skipped:
        what = "skipped: the loss scale overflowed"
    elif window.unsupported:
        what = window.unsupported
    elif not window.w:
        what = "not measured"
    else:
        what = weights(window).removeprefix("N·w = ")
    good = window.measured and min(e for e in (window.relative_error, window.items_error, 9.0) if e is not None) < 1e-3
    style = "green" if good else "yellow" if window.tail or not window.measured else "red"
    reduces = f"{window.allreduces} ({size(window.bytes)})" if window.allreduces else "0" if window.buckets else "-"
    tail = " (tail)" if window.tail else ""
    return [
        (f"{window.index}{tail}", ""),
        (window.optimizer, ""),
        (where, ""),
        (str(window.n), ""),
        (what, style),
        ("-" if window.carry is None else number(window.carry), ""),
        ("-" if window.ratio is None else number(window.ratio), ""),
        ("-" if window.cosine is None else f"{window.cosine:.3f}", ""),
        (_error(window), ""),
        (reduces, ""),
    ]


def _error(window: Window) -> str:
    """The distance from the large batch; where only its items explain the weights, that as well."""
    error, by_items = window.relative_error, window.items_error
    if error is None:
        return "-"
    rest = f" (by items {by_items:.2g})" if by_items is not None and by_items < 1e-3 < error else ""
    return f"{error:.2g}{rest}"


def text(
    trace: Trace, verdicts: list[Verdict], left: list[Diagnostic], console: Console, verbose: bool = False
) -> None:
    """Print the verdicts: what is confirmed first; what is refuted in one line unless `verbose`."""
    for status in (Status.CONFIRMED, Status.CONSISTENT, Status.INCONCLUSIVE, Status.REFUTED):
        chosen = [v for v in verdicts if v.status is status]
        shown = chosen if status is not Status.REFUTED or verbose else [v for v in chosen if v.finding]
        alike = Counter((v.rule, v.filename, v.line, v.reason, v.measured, str(v.finding)) for v in shown)
        for verdict in shown:
            times = alike.pop((verdict.rule, verdict.filename, verdict.line, verdict.reason, verdict.measured,
                               str(verdict.finding)), 0)  # fmt: skip
            if times:
                _print(verdict, console, times)
        hidden = [v for v in chosen if v not in shown]
        if hidden:
            codes = ", ".join(dict.fromkeys(v.rule for v in hidden))
            console.print(Text.assemble(("refuted ", _COLORS[status]), codes), soft_wrap=True)
    for diagnostic in left:
        where = f"{short(diagnostic.filename)}:{diagnostic.span.row}"
        line = f"{where}: {diagnostic.code} {diagnostic.name}: nothing measured about this finding"
        console.print(Text(line, style="dim"), soft_wrap=True)
    for update in _severities(trace):
        console.print(Text(update, style="dim"), soft_wrap=True)
    if trace.failed:
        console.print(
            Text(f"the script failed: {trace.end.get('error', 'it was killed')}", style="red"), soft_wrap=True
        )
    if trace.end.get("internal"):
        console.print(Text(f"the trace broke off: {trace.end['internal']}", style="red"), soft_wrap=True)
    if trace.end.get("why"):
        console.print(Text(f"the script was ended: {trace.end['why']}"))
    kept = trace.end.get("kept") or []
    if kept:
        console.print(Text(f"not written, because the run was traced: {', '.join(map(short, kept[:5]))}", style="dim"))
    found = sum(v.status is Status.CONFIRMED and not informs(v.rule) for v in verdicts)
    measured = sum(w.measured for w in trace.windows)
    console.print(f"{found} confirmed in {measured} measured windows of {len(trace.windows)}")


def _severities(trace: Trace) -> list[str]:
    """How much of the parameters an off-scale step moves: the gradient decides, the update is the severity."""
    bad = [w for w in trace.windows if w.measured and w.relative_error and w.relative_error > 1e-2 and w.parameter_norm]
    if not bad:
        return []
    moved = bad[0].update_norm or 0.0
    return [f"the update of window {bad[0].index} moved the parameters by {moved / (bad[0].parameter_norm or 1.0):.2%}"]


def _print(verdict: Verdict, console: Console, optimizers: int) -> None:
    note = " (note)" if informs(verdict.rule) else ""
    name = _NAMES.get(verdict.rule, "" if verdict.rule != "GA000" else "trace")
    head = Text.assemble(
        f"{short(verdict.filename)}:{verdict.line}: ",
        (f"{verdict.rule} {name}".strip() if verdict.rule != "GA000" else "trace", "bold"),
        " ",
        (f"{verdict.status}{note}", _COLORS[verdict.status]),
        f": {verdict.reason}" + (f" ({optimizers} optimizers)" if optimizers > 1 else ""),
    )
    console.print(head, soft_wrap=True)
    indent = "    "
    if verdict.finding:
        needs = verdict.finding.get("configuration")
        message = f"{verdict.finding['message']} ({needs})" if needs else verdict.finding["message"]
        console.print(f"{indent}finding:   {message}", soft_wrap=True, markup=False, highlight=False)
    if verdict.measured:
        console.print(f"{indent}measured:  {verdict.measured}", soft_wrap=True, markup=False, highlight=False)
    if verdict.reference:
        console.print(f"{indent}reference: {verdict.reference}", soft_wrap=True, markup=False, highlight=False)


def as_json(trace: Trace, verdicts: list[Verdict], left: list[Diagnostic], code: int) -> str:
    """One JSON document: header, windows, verdicts, findings without a measurement, how it ended."""
    document = {
        "version": 1,
        "galint": __version__,
        "trace": _body(to_json(trace.header)),
        "windows": [_body(to_json(w)) | {"n": w.n, "nw": w.nw} for w in trace.windows],
        "verdicts": [_body(to_json(v)) for v in verdicts],
        "unmeasured": [{"code": d.code, "filename": d.filename, "line": d.span.row} for d in left],
        "end": trace.end,
        "exit_code": code,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _body(body: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in body.items() if k != "type"}


def as_sarif(trace: Trace, verdicts: list[Verdict], left: list[Diagnostic]) -> str:
    """SARIF 2.1.0: one result a verdict, the verdict itself in its properties."""
    used = dict.fromkeys(v.rule for v in verdicts)
    results = [_result(v) for v in verdicts]
    for d in left:
        body = _place(d.filename, d.span.row) | {"message": {"text": d.message}}
        results.append(
            {"ruleId": d.code, "level": str(d.severity), "properties": {"verdict": {"status": "unmeasured"}}} | body
        )
    failed = [{"level": "error", "message": {"text": str(trace.end.get("error", "the script was killed"))}}]
    run = {
        "tool": {
            "driver": {
                "name": "galint",
                "version": __version__,
                "rules": [{"id": code, "name": _NAMES.get(code, code)} for code in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not trace.failed, "toolExecutionNotifications": failed if trace.failed else []}
        ],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _place(filename: str, line: int) -> dict[str, Any]:
    path = short(filename)
    uri = f"file://{path}" if path.startswith("/") else path.replace(os.sep, "/")
    return {
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": max(line, 1)}}}]
    }


def _result(verdict: Verdict) -> dict[str, Any]:
    kinds = {
        Status.CONFIRMED: "fail",
        Status.REFUTED: "pass",
        Status.CONSISTENT: "review",
        Status.INCONCLUSIVE: "open",
    }
    levels = {rule.code: str(rule.severity) for rule in RULES}
    confirmed = verdict.status is Status.CONFIRMED
    level = levels.get(verdict.rule, "note" if informs(verdict.rule) else "warning") if confirmed else "none"
    message = verdict.reason + (f" ({verdict.measured})" if verdict.measured else "")
    where = verdict.finding or {}
    place = _place(str(where.get("filename", verdict.filename)), int(where.get("line", verdict.line)))
    return {
        "ruleId": verdict.rule,
        "kind": kinds[verdict.status],
        "level": level,
        "message": {"text": message},
        "properties": {"verdict": _body(to_json(verdict))},
        **place,
    }
