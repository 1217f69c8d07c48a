"""Draws one accumulation window as SVG: micro-batches left to right, the applied gradient, the large batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape

from galint.explain import Happening, MicroRow, Weight, WindowView
from galint.render.explain_text import Place, folded
from galint.source import Span

LEFT, COLUMN, NARROW, SIDE = 104, 102, 64, 128
"""Pixels: the lanes' labels, a micro-batch, a fold of alike ones, the applied and the large batch each."""
CHIP = 19
WORDS = {
    "clear": "clear",
    "unscale": "unscale",
    "clip": "clip",
    "rescale": "rescale",
    "step": "step",
    "update": "new scale",
    "scheduler": "scheduler",
    "no_sync": "no_sync",
    "sync_flag": "sync flag",
    "backward": "backward",
    "forward": "forward",
}
_UNIT = 56
"""Pixels of the large batch's gradient: the mean, which is 1."""
_MOST = Fraction(4)
"""The applied gradient is drawn to scale up to this many times the large batch's."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG fragment and its size in pixels."""

    body: str
    width: int
    height: int


def window(view: WindowView, place: Place) -> Drawing:
    """The window's figure. Every colour comes with a shape or a word, so it reads without colour."""
    rows = folded(view.rows)
    count = max((r.number for r in view.rows), default=1)
    block = max(4, min(15, 90 // max(count, 1)))
    stack = block * count + 8
    scaler = any(r.scaler is not None for r in view.rows)
    sync = any(r.synced is not None for r in view.rows)
    total = sum((w.value or Fraction(0) for w in view.weights), Fraction(0))
    bars = max(stack, int(_UNIT * min(max(total, Fraction(1)), _MOST)) + 26)
    top = 22
    lanes = {"backward": top + 34, "gradient": top + 62}
    floor = lanes["gradient"] + bars
    lanes["sync"] = floor + 24
    chips_top = lanes["sync"] + (24 if sync else 2)
    deepest = max([len(_chips(r.happenings)) for r in rows if isinstance(r, MicroRow)] + [0])
    bottom = chips_top + CHIP * max(deepest, 1) + 6
    out: list[str] = []
    out += _labels(lanes, floor, chips_top, sync, scaler)
    x = LEFT
    for row in rows:
        if isinstance(row, int):
            out.append(_fold(x, row, lanes["backward"], floor))
            x += NARROW
            continue
        out += _column(row, view, x, lanes, floor, block, sync, chips_top, place)
        x += COLUMN
    out.append(f'<path class="axis" d="M{LEFT - 8} {floor + 0.5}H{x}"/>')
    out += _around(view, x, bottom, place)
    out += _sides(view, x + 26, floor, total)
    height = bottom + 22 * (bool(view.opening) + bool(view.closing))
    return Drawing("".join(out), x + 26 + 2 * SIDE + 16, height)


def _labels(lanes: dict[str, int], floor: int, chips: int, sync: bool, scaler: bool) -> list[str]:
    out = [
        text(0, lanes["backward"], "backward adds", "lane"),
        text(0, lanes["gradient"] + 12, "gradient holds", "lane"),
    ]
    if scaler:
        out.append(f'<rect class="scaled" x="0" y="{lanes["gradient"] + 22}" width="11" height="11" rx="2"/>')
        out.append(text(16, lanes["gradient"] + 32, "× loss scale", "lane"))
    if sync:
        out.append(text(0, lanes["sync"] + 4, "ranks", "lane"))
    out.append(text(0, chips + 13, "then", "lane"))
    return out


def _column(
    row: MicroRow, view: WindowView, x: int, lanes: dict[str, int], floor: int, block: int, sync: bool, chips: int,
    place: Place,
) -> list[str]:  # fmt: skip
    middle = x + COLUMN // 2 - 6
    kind = {"applied": "", "discarded": " lost", "pending": " waiting"}[row.fate]
    backward = next((h for h in row.happenings if h.kind == "backward"), None)
    at = f", line {_where(backward, place)}" if backward is not None else ""
    out = [f"<g><title>micro-batch {row.number}{escape(at)}: {escape(row.fate)}</title>"]
    out.append(text(middle, 14, f"g{row.number}", f"name{kind}", "middle"))
    out.append(f'<path class="flow{kind}" d="M{middle} 20V{lanes["backward"] - 16}"/>')
    pill = "pill scale" if row.scaled_loss else "pill"
    out.append(
        f'<rect class="{pill}" x="{x + 4}" y="{lanes["backward"] - 15}" width="{COLUMN - 20}" height="21" rx="10"/>'
    )
    times = "" if row.share == "1" else f" × {row.share}"
    out.append(text(middle, lanes["backward"], _short(f"g{row.number}{times}", 13), "pilltext", "middle"))
    y = floor
    for number in row.held:
        y -= block
        scaled = row.scaler == "scaled" or (row.scaler == "mixed" and number in _scaled(view, row))
        out.append(_block(x + 12, y, COLUMN - 36, block, "scaled" if scaled else "grad"))
        if block >= 12:
            out.append(text(middle, y + block - 4, f"g{number}", "onscaled" if scaled else "onblock", "middle"))
    if row.fate == "discarded" and row.number not in row.held:
        y -= max(block, 12)
        out.append(_block(x + 12, y, COLUMN - 36, max(block, 12) - 1, "ghost"))
        out.append(f'<path class="cross" d="M{x + 14} {y + 1}L{x + COLUMN - 26} {y + max(block, 12) - 2}"/>')
    if sync and row.synced is not None:
        out += _sync(row.synced, middle, lanes["sync"])
    for index, happening in enumerate(_chips(row.happenings)):
        out.append(_chip(happening, x, chips + CHIP * index, place))
    return [*out, "</g>"]


def _scaled(view: WindowView, row: MicroRow) -> set[int]:
    """In a gradient of mixed scale: the micro-batches that came after the last unscale."""
    scaled: set[int] = set()
    for other in view.rows[: row.number]:
        for happening in other.happenings:
            if happening.kind == "backward" and other.scaled_loss:
                scaled.add(other.number)
            elif happening.kind == "unscale":
                scaled.clear()
    return scaled


def _sync(on: bool, middle: int, y: int) -> list[str]:
    if not on:
        return [text(middle, y + 4, "no sync", "quiet", "middle")]
    arrows = f'<path class="sync" d="M{middle - 31} {y}h-9m3 -3l-3 3l3 3M{middle + 31} {y}h9m-3 -3l3 3l-3 3"/>'
    return [arrows, text(middle, y + 4, "all-reduce", "synctext", "middle")]


def _chips(happenings: Sequence[Happening]) -> list[Happening]:
    shown: dict[tuple[str, Span, str], Happening] = {}
    for h in happenings:
        if h.kind not in ("forward", "backward"):
            shown.setdefault((h.kind, h.span, h.detail), h)
    return list(shown.values())


def _chip(h: Happening, x: int, y: int, place: Place) -> str:
    words = f"{_where(h, place)} {WORDS[h.kind]}"
    width = COLUMN - 6
    title = f"<title>{escape(WORDS[h.kind])}{escape(f': {h.detail}') if h.detail else ''}</title>"
    alarm = " alarm" if h.kind == "clear" and h.detail else ""
    body = f'<rect class="chip {h.kind}{alarm}" x="{x - 1}" y="{y}" width="{width}" height="{CHIP - 3}" rx="3"/>'
    return f"<g>{title}{body}{text(x + 5, y + 12, _short(words, 16), f'chiptext {h.kind}text{alarm}')}</g>"


def _where(h: Happening, place: Place) -> str:
    return f"{h.file.rpartition('/')[2]}:{h.span.row}" if h.file else place(h.span)


def _around(view: WindowView, right: int, y: int, place: Place) -> list[str]:
    """What happens before the first and after the last micro-batch of the window."""
    out = []
    for name, happenings in (("before", view.opening), ("after", view.closing)):
        chips = _chips(happenings)
        if not chips:
            y += 22 if happenings else 0
            continue
        out.append(text(0, y + 12, f"{name} all", "lane"))
        for index, happening in enumerate(chips):
            out.append(_chip(happening, LEFT + index * COLUMN, y, place))
        y += 22
    return out


def _fold(x: int, count: int, y: int, floor: int) -> str:
    dots = text(x + NARROW // 2 - 8, (y + floor) // 2, f"… {count}", "quiet", "middle")
    return dots + text(x + NARROW // 2 - 8, (y + floor) // 2 + 14, "alike", "quiet", "middle")


def _sides(view: WindowView, x: int, floor: int, total: Fraction) -> list[str]:
    """The applied gradient and the large batch's, drawn to the same scale."""
    out = [f'<path class="rule" d="M{x - 14}.5 4V{floor + 40}"/>']
    out.append(text(x, 14, "the step applies", "side"))
    if view.step is not None:
        out.append(text(x + SIDE, 14, "the large batch", "side"))
    y = Fraction(floor)
    factor = min(Fraction(1), _MOST / total) if total > 0 else Fraction(1)
    for weight in view.weights:
        y = _bar(out, weight, x, y, factor)
    if not view.weights:
        out.append(_block(x, floor - _UNIT, SIDE - 34, _UNIT, "ghost"))
        out.append(text(x + (SIDE - 34) // 2, floor - _UNIT // 2 + 4, "nothing", "quiet", "middle"))
    if view.stale:
        y -= 16
        out.append(_block(x, int(y), SIDE - 34, 15, "stale"))
        out.append(text(x + (SIDE - 34) // 2, int(y) + 11, f"{view.stale} stale", "quiet", "middle"))
    count = max((r.number for r in view.rows), default=1)
    if view.step is not None:
        slot = Fraction(_UNIT, count)
        for number in range(count):
            top = floor - slot * (number + 1)
            out.append(_block(x + SIDE, float(top), SIDE - 34, float(slot), "mean"))
            if slot >= 12:
                middle = x + SIDE + (SIDE - 34) // 2
                out.append(
                    text(
                        middle,
                        float(top + slot / 2 + 4),
                        f"g{number + 1}" + (f"/{count}" if count > 1 else ""),
                        "onmean",
                        "middle",
                    )
                )
    out.append(f'<path class="axis" d="M{x - 4} {floor + 0.5}H{x + 2 * SIDE - 30}"/>')
    mark = {"same": "= the same", "different": "≠ not the same", "unknown": "? not comparable"}[view.verdict]
    out.append(text(x, floor + 18, mark, f"verdict {view.verdict}"))
    if total > _MOST:
        out.append(text(x, floor + 34, f"{total} times too large, not to scale", "quiet"))
    elif view.verdict == "different" and total > 1:
        out.append(text(x, floor + 34, f"{total} times too large", "quiet"))
    return out


def _bar(out: list[str], weight: Weight, x: int, y: Fraction, factor: Fraction) -> Fraction:
    """One micro-batch's part of the applied gradient; returns its upper edge."""
    value = abs(weight.value) if weight.value is not None else Fraction(1, 4)
    height = max(value * _UNIT * factor, Fraction(2))
    kind = "scaled" if weight.scaled else "grad" if weight.value is not None else "ghost"
    out.append(_block(x, float(y - height), SIDE - 34, float(height), kind))
    if height >= 12:
        share = "" if weight.value == 1 else f" × {weight.value if weight.value is not None else '?'}"
        label = f"g{weight.number}{share}{' · scale' if weight.scaled else ''}"
        ink = {"scaled": "onscaled", "grad": "onblock", "ghost": "quiet"}[kind]
        out.append(text(x + (SIDE - 34) // 2, float(y - height / 2 + 4), label, ink, "middle"))
    return y - height


def _block(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:.2f}" width="{width:g}" height="{max(height - 1, 1):.2f}" rx="2"/>'


def text(x: float, y: float, words: str, kind: str, anchor: str = "") -> str:
    """A `<text>` with its class and, if given, its anchor."""
    where = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:.4g}"{where}>{escape(words)}</text>'


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
