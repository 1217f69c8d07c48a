"""`galint explain` as text: each loop's window table, formulas and effective batch."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from galint.explain import Happening, LedgerView, LoopView, MicroRow, WindowView
from galint.render.style import Style, plain, width
from galint.source import Span

Place = Callable[[Span], str]
"""How a place of the explained file is said (`12`, or `cell 3:4` in a notebook)."""

_WORDS = {
    "forward": "forward",
    "backward": "backward",
    "no_sync": "no_sync",
    "sync_flag": "gradient sync",
    "clear": "clear",
    "unscale": "unscale",
    "clip": "clip",
    "rescale": "rescale",
    "step": "step",
    "update": "scale update",
    "scheduler": "scheduler step",
}
_ALL = 8
"""Windows of up to this many micro-batches are shown whole; of longer ones the alike rows are folded."""

_CELL = 44
"""Characters of a formula in the table."""


def _row(span: Span) -> str:
    return str(span.row)


def line_of(span: Span, place: Place) -> str:
    """`line 12`, and `cell 3:4` in a notebook."""
    text = place(span)
    return f"line {text}" if text.isdigit() else text


def render(views: Sequence[LoopView], *, color: bool = False, place: Place = _row) -> str:
    """The loops one below the other; a sentence where there is none."""
    if not views:
        return "No training loop: nothing here runs backward and steps an optimizer.\n"
    style = Style(color)
    return "\n".join("\n".join(_loop(view, style, place)) + "\n" for view in views)


def _loop(view: LoopView, style: Style, place: Place) -> list[str]:
    inside = f"  (in {view.function})" if view.function else ""
    head = f"{plain(view.filename)}:{place(view.span)}"
    out = [f"{style('bold', head)}: {plain(view.text)}{style('dim', inside)}"]
    if not view.understood:
        where = f", {line_of(view.reason_span, place)}" if view.reason_span is not None else ""
        out.append(f"  {style('warning', 'not understood')}: {plain(view.reason)}{where}")
        return out
    if view.framework:
        out += textwrap.wrap(plain(view.reason), 110, initial_indent="  ", subsequent_indent="  ")
        out += [style("warning", f"  {plain(text)}") for text in view.warnings]
    elif not view.ledgers:
        out.append(f"  {style('warning', plain(view.reason))}")
    for ledger in view.ledgers:
        out += _ledger(ledger, style, place)
    if view.batch is not None:
        out += ["", f"  effective batch: {view.batch}{_means(view)}"]
    out += [f"  assuming {plain(text)}" for text in view.assumptions]
    return out


def _means(view: LoopView) -> str:
    assert view.batch is not None
    named = view.batch.micro and not view.batch.micro.isdigit()
    size = f"micro-batch (`{view.batch.micro}`)" if named else "micro-batch"
    n = f"N (`{view.batch.n_label}`)" if view.batch.n_label else "N"
    return f"   ({size} × {n}{' × ranks' if view.batch.ranks else ''})"


def gate(ledger: LedgerView, place: Place) -> str:
    """When an optimizer steps: "when `i % n == 0` (line 12), N = 4 (`n`)"."""
    out = "once a window"
    if ledger.guard is not None:
        out = f"{'unless' if ledger.unless else 'when'} `{plain(ledger.guard_text)}` ({line_of(ledger.guard, place)})"
    if ledger.n is not None:
        out += f", N = {ledger.n}" + (f" (`{plain(ledger.n_label)}`)" if ledger.n_label else "")
    return out


def _ledger(ledger: LedgerView, style: Style, place: Place) -> list[str]:
    out = ["", f"  `{plain(ledger.optimizer)}` steps {gate(ledger, place)}"]
    for window in ledger.windows:
        out += _window(window, "", style, place)
    if ledger.more:
        out.append(f"  … and windows of {ledger.more} more shape{'s' if ledger.more > 1 else ''}")
    for variant in ledger.variants:
        for window in variant.windows:
            out += _window(window, variant.label, style, place)
    return out


def title(window: WindowView) -> str:
    """`window 1`, `windows 1 to 3`, `windows 3 and 6`."""
    rows: list[list[int]] = []
    for number in window.numbers:
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    parts: list[str] = []
    for row in rows:
        parts += [f"{row[0]} to {row[-1]}"] if len(row) > 2 else map(str, row)
    text = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"window{'s' if len(window.numbers) > 1 else ''} {text}"


def _window(window: WindowView, label: str, style: Style, place: Place) -> list[str]:
    out = ["", f"  {style('frame', title(window))}" + (f", {plain(label)}" if label else "")]
    if window.opening:
        out.append(f"    before: {said(window.opening, place)}")
    out += _table(window, style, place)
    if window.closing:
        out.append(f"    after:  {said(window.closing, place)}")
    stale = window.verdict == "different"
    out.append(f"    applied:     {style('error' if stale else 'good', window.applied)}")
    if window.step is not None:
        out.append(f"    large batch: {window.expected}   {style('dim', _VERDICT[window.verdict])}")
    out += [f"    {style('warning', note)}" for note in window.notes]
    return out


_VERDICT = {"same": "(the same)", "different": "(not the same)", "unknown": "(cannot be compared)"}


def _table(window: WindowView, style: Style, place: Place) -> list[str]:
    scaler = any(r.scaler is not None for r in window.rows)
    sync = any(r.synced is not None for r in window.rows)
    optional = [*(["gradient is"] * scaler), *(["all-reduce"] * sync)]
    header = ["micro-batch", "share", *optional, "gradient holds", "what happens"]
    lines = [header]
    for row in folded(window.rows):
        if isinstance(row, int):
            lines.append(["…", *[""] * (len(header) - 2), f"({row} more like this)"])
            continue
        state = [row.scaler or ""] * scaler
        synced = [("yes" if row.synced else "no" if row.synced is not None else "")] * sync
        lines.append([f"g{row.number}", cut(row.share), *state, *synced, cut(row.holds), said(row.happenings, place)])
    widths = [max(width(line[k]) for line in lines) for k in range(len(header) - 1)]
    fates = ["header", *(r.fate if isinstance(r, MicroRow) else "" for r in folded(window.rows))]
    out = []
    for line, fate in zip(lines, fates, strict=True):
        cells = "  ".join(cell + " " * (size - width(cell)) for cell, size in zip(line, widths, strict=False))
        text = f"    {cells}  {line[-1]}".rstrip()
        out.append(style(_FATES[fate], text) if fate in _FATES else text)
    return out


_FATES = {"header": "dim", "discarded": "error"}


def folded(rows: Sequence[MicroRow]) -> list[MicroRow | int]:
    """The rows of a window; in a long one the alike rows in the middle become their number."""
    if len(rows) <= _ALL:
        return list(rows)
    out: list[MicroRow | int] = [rows[0]]
    for index, row in enumerate(rows[1:-1], 1):
        alike = index > 1 and _kind(row) == _kind(rows[index - 1])
        last = out[-1]
        if not alike:
            out.append(row)
        elif isinstance(last, int):
            out[-1] = last + 1
        else:
            out.append(1)
    return [*out, rows[-1]]


def _kind(row: MicroRow) -> tuple[object, ...]:
    return (row.share, row.scaler, row.synced, row.fate, tuple((h.kind, h.span) for h in row.happenings))


def said(happenings: Sequence[Happening], place: Place) -> str:
    """`31 backward · 34 unscale (1 micro-batch)`; forwards are left out where a backward follows."""
    words: list[str] = []
    times: list[int] = []
    for h in happenings:
        if h.kind == "forward" and any(other.kind == "backward" for other in happenings):
            continue
        where = f"{plain(h.file)}:{h.span.row}" if h.file else place(h.span)
        detail = f" ({plain(h.detail)})" if h.detail else ""
        word = f"{where} {_WORDS[h.kind]}{detail}"
        if words and words[-1] == word:
            times[-1] += 1
        else:
            words.append(word)
            times.append(1)
    return " · ".join(word if n == 1 else f"{word} {n} times" for word, n in zip(words, times, strict=True))


def cut(formula: str) -> str:
    """A formula that fits a cell; the whole one stands below the table and in the JSON."""
    return formula if len(formula) <= _CELL else formula[: _CELL - 1] + "…"
