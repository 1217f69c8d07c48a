"""`galint explain` as one SVG: each loop's lines, its windows drawn beside them, and the large batch."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from galint.explain import LoopView, WindowView, listed
from galint.render import explain_figure as figure
from galint.render.explain_code import Line, beside
from galint.render.explain_figure import text
from galint.render.explain_palette import sheet
from galint.render.explain_text import Place, _row, gate, line_of, title
from galint.render.style import plain

_PAD, _CODE, _LINE, _MOST = 24, 560, 18, 68
"""Pixels around, of the code's width and of its line height; characters of a code line."""


def render(views: Sequence[LoopView], lines: Sequence[str], *, place: Place = _row) -> str:
    """A whole SVG document with its own style sheet, light and dark."""
    parts: list[str] = []
    y, width = _PAD, 720
    for view in views:
        body, w, h = _loop(view, lines, place)
        parts.append(f'<g transform="translate({_PAD} {y})">{body}</g>')
        y += h + 36
        width = max(width, w)
    if not views:
        parts.append(text(_PAD, y + 14, "No training loop: nothing here runs backward and steps an optimizer.", "lane"))
        y += 40
    width += 2 * _PAD
    name = escape(plain(views[0].filename)) if views else "no training loop"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" role="img">'
        f"<title>Accumulation windows of {name}</title><style>{sheet()}</style>"
        f'<rect class="paper" width="{width}" height="{y}"/>{"".join(parts)}</svg>\n'
    )


def _loop(view: LoopView, lines: Sequence[str], place: Place) -> tuple[str, int, int]:
    head = f"{plain(view.filename)}:{place(view.span)}" + (f"  in {view.function}" if view.function else "")
    out = [text(0, 14, head, "heading")]
    y = 34
    if not view.understood:
        where = f", {line_of(view.reason_span, place)}" if view.reason_span is not None else ""
        out.append(text(0, y, f"not understood: {plain(view.reason)}{where}", "bad"))
        y += 16
    elif not view.ledgers:
        for line in textwrap.wrap(plain(view.reason), 110):
            out.append(text(0, y, line, "gate" if view.framework else "bad"))
            y += 16
    if view.batch is not None:
        out.append(text(0, y, f"effective batch: {view.batch}", "gate"))
        y += 16
    for ledger in view.ledgers:
        out.append(text(0, y, f"{plain(ledger.optimizer)} steps {gate(ledger, place).replace('`', '')}", "gate"))
        y += 16
    code, code_height = _code(beside(view, lines))
    out.append(f'<g transform="translate(0 {y})">{code}</g>')
    x, top, width = _CODE + 32, y, _CODE
    for label, window in listed(view):
        body, w, h = _window(label, window, place)
        out.append(f'<g transform="translate({x} {top})">{body}</g>')
        top += h + 26
        width = max(width, x + w)
    return "".join(out), width, max(y + code_height, top)


def _window(label: str, window: WindowView, place: Place) -> tuple[str, int, int]:
    drawing = figure.window(window, place)
    head = title(window) + (f", {plain(label).replace('`', '')}" if label else "")
    out = [text(0, 13, head, "name"), f'<g transform="translate(0 26)">{drawing.body}</g>']
    y = drawing.height + 44
    good = {"same": "good", "different": "bad", "unknown": "gate"}[window.verdict]
    out.append(text(0, y, f"applied:     {window.applied}", f"formula {good}").replace("<text", _KEEP))
    if window.step is not None:
        y += 17
        out.append(text(0, y, f"large batch: {window.expected}", "formula").replace("<text", _KEEP))
    for note in window.notes:
        y += 17
        out.append(text(0, y, note, "bad"))
    return "".join(out), drawing.width, y + 4


_KEEP = '<text xml:space="preserve"'


def _code(shown: Sequence[Line]) -> tuple[str, int]:
    height = len(shown) * _LINE + 16
    out = [f'<rect class="panel" x="0" y="0" width="{_CODE}" height="{height}" rx="6"/>']
    for index, line in enumerate(shown):
        y = 8 + index * _LINE
        if line.kind and line.kind != "forward":
            alarm = " alarm" if line.alarm else ""
            out.append(f'<rect class="hit {line.kind}{alarm}" x="1" y="{y}" width="{_CODE - 2}" height="{_LINE}"/>')
        if line.row == 0:
            out.append(text(34, y + 13, "⋮", "number", "end"))
            continue
        out.append(text(34, y + 13, str(line.row), "number", "end"))
        written = line.text if len(line.text) <= _MOST else line.text[: _MOST - 1] + "…"
        out.append(text(44, y + 13, written, "code").replace("<text", _KEEP))
    return "".join(out), height
