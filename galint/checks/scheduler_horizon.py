"""GA406: a schedule's length is counted in micro-batches while the scheduler advances per update."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.checks.windows import Window, full_windows
from galint.run.facts import Event
from galint.run.values import Lit
from galint.source import Span

CODE = "GA406"
WITNESS = "even"
_LOADER = re.compile(r"^len\(.*(loader|_dl\b|dl\)|batches)", re.I)


def check(view: View) -> Iterator[Finding]:
    """A scheduler advanced once a window whose horizon is the number of batches, not divided by N."""
    seen: set[Span] = set()
    for window in full_windows(view):
        for event in _once_a_window(view, window):
            horizon, made = event.data.get("horizon"), event.data.get("made")
            if not isinstance(horizon, Lit) or not isinstance(made, Lit) or made.value in seen:
                continue
            if not any(_LOADER.search(key) for key in horizon.keys) or _divided(view, window, horizon):
                continue
            seen.add(made.value)
            total = len(window.micros)
            named = window.named if window.n == total or not window.label else f"`{window.label}`"
            yield Finding(
                CODE,
                made.value,
                f"the schedule's length is counted in micro-batches, but the scheduler advances once a window of "
                f"{total}: training ends at 1/{total} of the schedule; divide by {named}",
                window=window.n,
                related=((event.span, "advanced here, once an optimizer step"), *view.places(window.step)),
            )


def _once_a_window(view: View, window: Window) -> list[Event]:
    """Scheduler steps of which each window has exactly one."""
    tokens = set(window.micros)
    steps = [e for e in view.run.events if e.kind == "scheduler"]
    found = [e for e in steps if e.micro in tokens or _right_after(view, window, e)]
    spans = [e.span for e in found]
    return [e for e in found if spans.count(e.span) == 1 and not e.data.get("args")]


def _right_after(view: View, window: Window, event: Event) -> bool:
    later = [s.seq for s in view.steps(window.ledger) if s.seq > window.step.seq]
    return window.step.seq < event.seq < (later[0] if later else 0)


def _divided(view: View, window: Window, horizon: Lit) -> bool:
    """True when N, or anything unknown that may stand for it, takes part in the horizon."""
    spelled = str(horizon.value)
    keys = view.n_keys(window.ledger) | {window.label}
    if "/" in spelled or any(key and re.search(rf"(?<!\w){re.escape(key)}(?!\w)", spelled) for key in keys):
        return True
    return any(names_n(view, key, keys) for key in horizon.keys) or bool(re.search(r"accum|update", spelled, re.I))
