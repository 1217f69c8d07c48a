"""`galint explain` as one HTML page without scripts or outside resources, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from galint.explain import LoopView, WindowView, listed
from galint.render import explain_figure as figure
from galint.render.explain_code import Line, beside
from galint.render.explain_palette import sheet
from galint.render.explain_text import Place, _row, gate, line_of, title
from galint.render.style import plain

_PAGE = """
*{box-sizing:border-box}
body{margin:0;padding:28px clamp(16px,3vw,48px);background:var(--paper);color:var(--ink);
font:14px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:19px;margin:0 0 4px}h2{font-size:15px;margin:0}h3{font-size:13px;margin:0 0 8px;font-weight:600}
p{margin:2px 0;color:var(--dim)}code,pre{font:12px/18px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
section{margin-top:30px;border-top:1px solid var(--line);padding-top:18px}
.sides{display:flex;gap:32px;align-items:flex-start;flex-wrap:wrap;margin-top:14px}
.lines{flex:0 1 auto;min-width:300px;max-width:min(600px,100%);background:var(--panel);border:1px solid var(--line);border-radius:6px;
padding:8px 0;margin:0;overflow-x:auto;position:sticky;top:12px}
.lines span{display:block;padding:0 12px 0 0;white-space:pre;min-width:max-content}
.lines b{display:inline-block;width:3.5em;padding-right:1em;text-align:right;color:var(--dim);font-weight:400;
user-select:none}
.lines .on{background:var(--soft)}.lines .step{background:var(--stepsoft)}.lines .unscale{background:var(--scalesoft)}
.lines .alarm{background:var(--clearsoft)}
.windows{flex:1 1 560px;min-width:0;display:grid;gap:30px}
figure{margin:0;overflow-x:auto}figure svg{display:block;height:auto;max-width:100%}
dl{display:grid;grid-template-columns:max-content 1fr;gap:0 12px;margin:8px 0 0}dt{color:var(--dim)}dd{margin:0}
.bad{color:var(--clear)}.good{color:var(--step)}
"""


def render(views: Sequence[LoopView], lines: Sequence[str], *, place: Place = _row) -> str:
    """A whole page: per loop the file's lines and, beside them, its windows and the large batch."""
    name = escape(plain(views[0].filename)) if views else "no training loop"
    body = "".join(_loop(view, lines, place) for view in views)
    if not views:
        body = "<p>No training loop: nothing here runs backward and steps an optimizer.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{name}: accumulation windows</title><style>{sheet(':root')}{_PAGE}</style></head>"
        f"<body><h1>{name}</h1><p>What each optimizer step applies, micro-batch by micro-batch, "
        f"beside the large batch it stands for.</p>{body}</body></html>\n"
    )


def _loop(view: LoopView, lines: Sequence[str], place: Place) -> str:
    inside = f" <p>in {escape(view.function)}</p>" if view.function else ""
    out = [f"<section><h2>{escape(line_of(view.span, place))}: <code>{escape(plain(view.text))}</code></h2>{inside}"]
    if not view.understood:
        where = f", {escape(line_of(view.reason_span, place))}" if view.reason_span is not None else ""
        out.append(f'<p class="bad">not understood: {escape(plain(view.reason))}{where}</p>')
    elif not view.ledgers:
        out.append(f"<p>{_quoted(view.reason)}</p>" if view.framework else f'<p class="bad">{escape(view.reason)}</p>')
    for ledger in view.ledgers:
        out.append(f"<p><code>{escape(plain(ledger.optimizer))}</code> steps {_quoted(gate(ledger, place))}</p>")
    if view.batch is not None:
        out.append(f"<p>effective batch: {escape(str(view.batch))}</p>")
    out += [f'<p class="bad">{_quoted(text)}</p>' for text in view.warnings]
    out += [f"<p>assuming {_quoted(text)}</p>" for text in view.assumptions]
    out.append(f'<div class="sides"><pre class="lines">{"".join(map(_line, beside(view, lines)))}</pre>')
    out.append(f'<div class="windows">{"".join(_window(label, w, place) for label, w in listed(view))}</div>')
    return "".join(out) + "</div></section>"


def _line(line: Line) -> str:
    if line.row == 0:
        return "<span><b>⋮</b></span>"
    kind = "" if line.kind in ("", "forward") else f"on {line.kind}{' alarm' if line.alarm else ''}"
    return f'<span class="{kind}"><b>{line.row}</b>{escape(line.text)}</span>'


def _window(label: str, window: WindowView, place: Place) -> str:
    drawing = figure.window(window, place)
    head = escape(title(window)) + (f", {_quoted(label)}" if label else "")
    kind = {"same": "good", "different": "bad", "unknown": ""}[window.verdict]
    said = f"{title(window)}: applied {window.applied}, large batch {window.expected or 'none'}"
    out = [
        f'<figure><h3>{head}</h3><svg width="{drawing.width}" height="{drawing.height}" '
        f'style="min-width:{drawing.width * 3 // 4}px" role="img" '
        f'aria-label="{escape(said)}" viewBox="0 0 {drawing.width} {drawing.height}">{drawing.body}</svg>',
        f'<dl><dt>applied</dt><dd class="{kind}"><code>{escape(window.applied)}</code></dd>',
    ]
    if window.step is not None:
        out.append(f"<dt>large batch</dt><dd><code>{escape(window.expected)}</code></dd>")
    out += [f'<dt></dt><dd class="bad">{escape(note)}</dd>' for note in window.notes]
    return "".join(out) + "</dl></figure>"


def _quoted(text: str) -> str:
    """Escaped text whose `quoted` parts are code."""
    parts = escape(plain(text)).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))
