"""Plots of the study (matplotlib, no window) and one self-contained HTML report."""

from __future__ import annotations

import html as escaping
import math
from collections.abc import Sequence
from typing import Any

from galint.trace.experiment.loops import Curve
from galint.trace.plotting import STYLE, figure, page, svg_of

_LINES = {"64": "-", "16x4": "--", "8x8": ":"}
_NORM_COLORS = {"batchnorm": "#c0392b", "groupnorm": "#1f77b4", "none": "#555555"}
FLOOR = 1e-8
"""Distances below this are drawn here: the logarithm needs a floor."""


def smooth(values: Sequence[float], width: int) -> list[float]:
    """A trailing mean, to see a loss under its noise."""
    answer = []
    for i in range(len(values)):
        part = values[max(0, i - width + 1) : i + 1]
        answer.append(sum(part) / len(part))
    return answer


def charts(curves: list[Curve], title: str) -> Any:
    """One figure: loss, accuracy and gradient distance for the splits and for the mistakes, time and memory."""
    splits = [c for c in curves if c.plan.group == "split"]
    mistakes = [c for c in curves if c.plan.group == "mistake"]
    right = next((c for c in splits if c.plan.name == "16x4 groupnorm"), None)
    rows = 1 + bool(splits) + bool(mistakes)
    fig = figure(16, 4.8 * rows)
    fig.suptitle(f"Gradient accumulation against the large batch: {title}", fontsize=13)
    row = 0
    if splits:
        _three(fig, rows, row, splits, "64 samples a step, split three ways", _split_style)
        row += 1
    if mistakes:
        shown = ([right] if right else []) + mistakes
        colors = STYLE["colors"]
        palette = {c.plan.name: colors[i % len(colors)] for i, c in enumerate(mistakes)}

        def mistake_style(curve: Curve) -> dict[str, Any]:
            if curve is right:
                return {"color": "black", "linewidth": 2.2, "label": "right (16x4)"}
            return {"color": palette[curve.plan.name], "linewidth": 1.4}

        _three(fig, rows, row, shown, "16x4 with GroupNorm and one mistake", mistake_style)
        row += 1
    _bars(fig, rows, row, curves)
    return fig


def _split_style(curve: Curve) -> dict[str, Any]:
    label = curve.plan.name.split()[0]
    return {"color": _NORM_COLORS[curve.plan.norm], "linestyle": _LINES[label], "linewidth": 1.6}


def _three(fig: Any, rows: int, row: int, curves: list[Curve], title: str, style: Any) -> None:
    loss, hits, gap = (fig.add_subplot(rows, 6, (row * 6 + i, row * 6 + i + 1)) for i in (1, 3, 5))
    finite = [v for c in curves for v in c.losses if math.isfinite(v)]
    for curve in curves:
        look = {"label": curve.plan.name} | style(curve)
        values = smooth(curve.losses, max(1, len(curve.losses) // 15))
        loss.plot(range(1, len(values) + 1), [min(v, 1e6) if math.isfinite(v) else math.nan for v in values], **look)
        hits.plot(
            [s for s, _ in curve.accuracy], [100 * a for _, a in curve.accuracy], marker="o", markersize=3, **look
        )
        points = [(s, d) for s, d in curve.distances if math.isfinite(d)]
        gap.plot([s + 1 for s, _ in points], [max(d, FLOOR) for _, d in points], **look)
    if finite:
        first = max(c.losses[0] for c in curves if c.losses and math.isfinite(c.losses[0]))
        loss.set_ylim(0, 1.6 * first)
    loss.set(title=f"training loss: {title}", xlabel="optimizer step", ylabel="loss (trailing mean)")
    hits.set(title="test accuracy", xlabel="optimizer step", ylabel="%", ylim=(0, 102))
    gap.set(
        title="gradient distance from the large batch",
        xlabel="optimizer step",
        ylabel="relative error (0 drawn at 1e-8)",
        yscale="log",
    )
    for axes in (loss, hits, gap):
        axes.grid(True, alpha=0.25)
    gap.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _bars(fig: Any, rows: int, row: int, curves: list[Curve]) -> None:
    labels = [c.plan.name for c in curves]
    places = list(range(len(curves)))
    colors = [_NORM_COLORS[c.plan.norm] if c.plan.group == "split" else "#b0b0b0" for c in curves]
    time, memory = (fig.add_subplot(rows, 6, (row * 6 + i, row * 6 + i + 2)) for i in (1, 4))
    time.bar(places, [c.seconds * 1000 for c in curves], color=colors)
    memory.bar(places, [c.memory / 1e6 for c in curves], color=colors)
    time.set(title="time of an optimizer step", ylabel="ms")
    kind = next((c.memory_kind for c in curves if c.memory_kind), "")
    memory.set(title=f"memory ({kind})", ylabel="MB")
    for axes in (time, memory):
        axes.set_xticks(places, labels, rotation=45, ha="right", fontsize=8)
        axes.grid(True, axis="y", alpha=0.25)
        axes.set_axisbelow(True)


def html(curves: list[Curve], title: str, head: Sequence[str], rows: list[tuple[str, ...]], note: str) -> str:
    """The report as one HTML page with its plots inside."""
    cells = "".join(f"<th>{escaping.escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escaping.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    text = (
        f"<p>{escaping.escape(title)}. {escaping.escape(note)}.</p>"
        "<p>All runs start from the same parameters (of their normalisation) and see the same samples in the same "
        "order; a step takes 64 samples. The gradient distance is |applied - large batch| / |large batch| over the "
        "samples of the step, measured before clipping at the same parameters; the table shows its median after the "
        "first step. Rounding gives 1e-7 to 1e-6.</p>"
        f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{svg_of(charts(curves, title))}"
    )
    return page("galint experiment", text)
