"""Plots of a trace: N·w of each micro-batch and gradient norms against the large batch; PNG, SVG or HTML."""

from __future__ import annotations

import html as escaping
import io
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from galint.errors import ConfigError
from galint.trace.measures import agrees, number, weights
from galint.trace.model import Status, Trace, Verdict, Window

STYLE: dict[str, list[str]] = {
    "colors": [
        "#e41a1c",
        "#377eb8",
        "#4daf4a",
        "#984ea3",
        "#ff7f00",
        "#a65628",
        "#f781bf",
        "#17becf",
        "#bcbd22",
        "#7f7f7f",
    ]
}
SHOWN = 60
"""Windows drawn; the rest of a long trace is in its file."""


def figure(width: float, height: float) -> Any:
    """An empty figure without a window system. Raises ConfigError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("plots need matplotlib: install `galint[trace]`") from error
    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def svg_of(fig: Any) -> str:
    """The figure as an `<svg>` element for a page."""
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "galint"}):
        fig.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def page(title: str, body: str) -> str:
    """A self-contained HTML page: no script, no font, no picture from elsewhere."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaping.escape(title)}</title>\n'
        "<style>body{font:15px/1.5 system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#222;"
        "background:#fff}table{border-collapse:collapse;margin:1em 0}td,th{border-bottom:1px solid #ddd;"
        "padding:.25em .8em;text-align:left;font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}"
        ".confirmed{color:#c0392b;font-weight:bold}.refuted{color:#1e8449}.consistent{color:#b9770e}</style></head>\n"
        f"<body><h1>{escaping.escape(title)}</h1>{body}</body></html>\n"
    )


def trace_figure(trace: Trace) -> Any:
    """The figure of a trace: one row of plots an optimizer."""
    labels = list(dict.fromkeys(w.optimizer for w in trace.windows)) or ["no optimizer stepped"]
    return rows_figure([(label, [w for w in trace.windows if w.optimizer == label and w.measured]) for label in labels])


def rows_figure(rows: Sequence[tuple[str, Sequence[Window]]]) -> Any:
    """A figure with a row for each title and its measured windows: N·w, and the distance from the large batch."""
    fig = figure(13, 4.0 * max(1, len(rows)) + 0.4)
    parts = fig.subfigures(max(1, len(rows)), 1, squeeze=False)[:, 0]
    for part, (title, windows) in zip(parts, rows, strict=False):
        part.suptitle(textwrap.shorten(title, 130, placeholder=" …"), x=0.01, ha="left", fontweight="bold")
        left, right = part.subplots(1, 2)
        _weights(left, windows[:SHOWN])
        _norms(right, windows[:SHOWN])
    return fig


def _weights(axes: Any, windows: Sequence[Window]) -> None:
    place = 0
    ticks: list[tuple[float, str]] = []
    for window in windows:
        values = window.nw
        places = list(range(place, place + len(values)))
        color = "#1e8449" if agrees(window) else "#e67e22" if window.tail else "#c0392b"
        axes.vlines(places, 0, values, color=color, linewidth=2)
        axes.plot(places, values, "o", color=color, markersize=5)
        ticks.append((place + (len(values) - 1) / 2, str(window.index)))
        place += len(values) + 1
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.text(1.0, 1.0, " large batch", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    biggest = max((abs(v) for w in windows for v in w.nw if math.isfinite(v)), default=1.0)
    if biggest > 100:
        axes.set_yscale("symlog", linthresh=1)
    else:
        axes.set_ylim(min(-0.1, *(v * 1.1 for w in windows for v in w.nw), 0), max(1.3, biggest * 1.15))
    step = max(1, len(ticks) // 20)
    axes.set_xticks([t for t, _ in ticks[::step]], [name for _, name in ticks[::step]])
    axes.set(title="N·w of each micro-batch", xlabel="window", ylabel="N·w")
    axes.grid(True, axis="y", alpha=0.25)


def _norms(axes: Any, windows: Sequence[Window]) -> None:
    shown = [w for w in windows if w.ratio is not None]
    places = [w.index for w in shown]
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.plot(places, [w.ratio for w in shown], "s-", color="#377eb8", label="norm: applied / large batch")
    cosines = [(w.index, w.cosine) for w in shown if w.cosine is not None]
    axes.plot([i for i, _ in cosines], [c for _, c in cosines], "^-", color="#4daf4a", label="cosine")
    errors = [(w.index, w.relative_error) for w in shown if w.relative_error is not None]
    axes.plot([i for i, _ in errors], [e for _, e in errors], "o-", color="#c0392b", label="relative error")
    biggest = max((w.ratio or 0.0 for w in shown), default=1.0)
    if biggest > 100:
        axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(places[:: max(1, len(places) // 20)])
    axes.set(title="applied gradient against the large batch", xlabel="window")
    axes.legend(fontsize=8)
    axes.grid(True, axis="y", alpha=0.25)


def plot_trace(trace: Trace, verdicts: list[Verdict], path: Path) -> None:
    """Write the plot of a trace; the suffix decides the form. Raises ConfigError when it cannot be written."""
    fig = trace_figure(trace)
    save(fig, path, lambda: _html(trace, verdicts, fig))


def save(fig: Any, path: Path, html: Callable[[], str]) -> None:
    """Write a figure as PNG or SVG, or the page that holds it. Raises ConfigError when it cannot be written."""
    try:
        if path.suffix.lower() == ".html":
            path.write_text(html(), encoding="utf-8")
        elif path.suffix.lower() == ".svg":
            path.write_text(svg_of(fig), encoding="utf-8")
        else:
            fig.savefig(path)
    except OSError as error:
        raise ConfigError(f"cannot write `{path}`: {error.strerror}") from error


def _html(trace: Trace, verdicts: list[Verdict], fig: Any) -> str:
    say = escaping.escape
    counts = Counter(v.status for v in verdicts)
    summary = ", ".join(f"{counts[s]} {s}" for s in Status if counts[s]) or "no verdicts"
    order = list(Status)
    lines = "".join(
        f'<tr><td class="{v.status}">{v.status}</td><td>{say(v.rule)}</td>'
        f"<td>{say(Path(v.filename).name)}:{v.line}</td><td>{say(v.reason)}</td><td>{say(v.measured)}</td></tr>"
        for v in sorted(verdicts, key=lambda v: order.index(v.status))
    )
    windows = "".join(
        f"<tr><td>{w.index}</td><td>{say(w.optimizer)}</td><td>{say(Path(w.file).name)}:{w.line}</td><td>{w.n}</td>"
        f"<td>{say(weights(w) if w.measured else w.unsupported or 'not measured')}</td>"
        f"<td>{number(w.ratio)}</td><td>{number(w.relative_error)}</td></tr>"
        for w in trace.windows[:SHOWN]
    )
    return page(
        "galint trace",
        f"<p><code>{say(' '.join(trace.header.argv))}</code>, torch {say(trace.header.torch)}: {summary}.</p>"
        f"{svg_of(fig)}"
        "<h2>Verdicts</h2><table><thead><tr><th>status</th><th>rule</th><th>place</th><th>reason</th><th>measured</th>"
        f"</tr></thead><tbody>{lines}</tbody></table><h2>Windows</h2><table><thead><tr><th>window</th><th>optimizer</th>"
        "<th>step at</th><th>N</th><th>weights</th><th>ratio</th><th>relative error</th></tr></thead>"
        f"<tbody>{windows}</tbody></table>",
    )
