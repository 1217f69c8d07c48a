"""GA404: a per-update scheduler advances every micro-batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.checks.windows import Window, calls, events_in, every_micro, full_windows
from galint.run.facts import Event
from galint.run.nodes import terminal
from galint.run.values import Lit
from galint.source import Span

CODE = "GA404"
WITNESS = "even"
_UPDATES = re.compile(r"updates?($|_)|optim\w*_steps?|opt_steps", re.I)
_OWN_COUNT = {"ReduceLROnPlateau", "CosineAnnealingWarmRestarts"}


def check(view: View) -> Iterator[Finding]:
    """A scheduler whose horizon is counted in updates, and that every micro-batch of a window advances."""
    seen: set[Span] = set()
    for window in full_windows(view):
        for span, events in events_in(view, window, "scheduler").items():
            event = events[0]
            if span in seen or not every_micro(window, events) or not _per_update(view, window, event):
                continue
            if event.data.get("prepared") or _maybe_prepared(view, event):
                continue
            seen.add(span)
            total = len(window.micros)
            made = event.data.get("made")
            horizon = ((made.value, "the scheduler, made here"),) if isinstance(made, Lit) else ()
            yield Finding(
                CODE,
                span,
                f"the scheduler advances {len(events)} times in a window of {total} micro-batches, and its horizon is "
                f"counted in optimizer steps: the schedule runs {total} times too fast",
                step=window.step,
                window=total,
                related=(*horizon, *view.places(window.step)),
                applied="",
                expected="",
            )


def _per_update(view: View, window: Window, event: Event) -> bool:
    """True when what the schedule's length was computed from counts optimizer steps."""
    horizon, cls = event.data.get("horizon"), event.data.get("class")
    if not isinstance(horizon, Lit) or event.data.get("args") or (isinstance(cls, Lit) and cls.value in _OWN_COUNT):
        return False
    keys = view.n_keys(window.ledger) | (frozenset() if window.literal else {window.label})
    if _times_n(str(horizon.value), keys):
        return False
    if any(names_n(view, key, keys) for key in horizon.keys) or any(
        key and re.search(rf"\b{re.escape(key)}\b", str(horizon.value)) for key in keys
    ):
        return True
    if window.literal and re.search(rf"/ {len(window.micros)}\b", str(horizon.value)):
        return True
    if any(key.startswith("len(") for key in horizon.keys):
        return False
    return any(_UPDATES.search(key) for key in horizon.keys)


def _times_n(spelled: str, keys: frozenset[str]) -> bool:
    """True when a horizon is multiplied by N and nowhere divided by it: it counts micro-batches."""
    names = "|".join(re.escape(key.rpartition(".")[2]) for key in keys if key)
    if not names or re.search(rf"/[^*+,]*\b({names})\b", spelled):
        return False
    return bool(re.search(rf"\*[^*/+,]*\b({names})\b|^[^*/+,]*\b({names})\s*\*", spelled))


def _maybe_prepared(view: View, event: Event) -> bool:
    """True when some `prepare` call may have wrapped this scheduler."""
    name = event.text.rpartition(".step")[0]
    for call in calls(view):
        if terminal(call.func) in {"prepare", "prepare_scheduler", "initialize"}:
            spelled = [p.text(a.value) for a in call.args]
            if any(a.star for a in call.args) or name in spelled:
                return True
    return False
