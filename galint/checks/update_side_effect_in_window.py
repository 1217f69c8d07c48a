"""GA405: what belongs to the optimizer step (a moving average of the weights) runs on every micro-batch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import Window, events_in, every_micro, full_windows
from galint.source import Span

CODE = "GA405"
WITNESS = "even"
_METER = re.compile(r"loss|(?<!para)meter|time|speed|metric|acc\b|norm|sched|optim", re.I)


def check(view: View) -> Iterator[Finding]:
    """A call of this kind in each micro-batch of a window, where the weights change only at its end."""
    seen: set[Span] = set()
    for window in full_windows(view):
        for span, events in events_in(view, window, "update_effect").items():
            if span in seen or not every_micro(window, events) or _METER.search(events[0].text):
                continue
            if any("%" in text and not _asks_n(text, window) for text in events[0].data.get("guards", ())):
                continue  # an interval of its own
            seen.add(span)
            total = len(window.micros)
            budget = events[0].text.endswith("update_and_allocate")
            effect = "AdaLoRA's rank budget is updated" if budget else "the moving average of the weights is updated"
            result = "its schedule runs" if budget else "its decay acts"
            yield Finding(
                CODE,
                span,
                f"{effect} {len(events)} times in a window of {total} micro-batches, although the weights change once: "
                f"{result} {total} times too fast",
                step=window.step,
                window=total,
                related=view.places(window.step),
                applied="",
                expected="",
            )
    yield from _intervals(view)


def _intervals(view: View) -> Iterator[Finding]:
    """Saving or evaluating every so many updates, asked on each micro-batch, while the updates do not advance."""
    seen: set[Span] = set()
    for window in full_windows(view):
        total = len(window.micros)
        for span, events in events_in(view, window, "interval").items():
            values = [e.data["value"] for e in events]
            if span in seen or total < 3 or len(events) != total or any(e.data["held"] for e in events):
                continue
            if (
                len(set(values[:-1])) > 1
                or values[-1] - values[0] not in {0, 1}
                or not _advances(view, span, values[0], total - 1)
            ):
                continue
            seen.add(span)
            yield Finding(
                CODE,
                span,
                f"`{events[0].text}` runs on {total} micro-batches in a row whenever this is true: the counter of updates "
                f"stands still within a window of {total} micro-batches",
                step=window.step,
                window=total,
                related=view.places(window.step),
                applied="",
                expected="",
            )


def _advances(view: View, span: Span, value: int, often: int) -> bool:
    """Whether a counter goes on by one from window to window, and each of its values is asked so often."""
    asked = Counter(e.data["value"] for e in view.run.events if e.kind == "interval" and e.span == span)
    return min(asked[value], asked[value + 1]) >= often


def _asks_n(text: str, window: Window) -> bool:
    """Whether a condition's text names N."""
    words = re.findall(r"\w+", window.label) or [str(window.n)]
    return re.search(rf"\b{words[-1]}\b", text) is not None
