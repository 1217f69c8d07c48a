"""GA603: the step's gradient was never all-reduced, so the ranks diverge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from galint.checks.finding import Finding
from galint.checks.sync import ABOUT, NAMES
from galint.checks.view import View
from galint.checks.windows import Window, full_windows, reduces_by_hand
from galint.ledger import Entry
from galint.run.facts import Event
from galint.source import Span

CODE = "GA603"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """The last micro-batch of a window went without synchronisation, or around the wrapper."""
    wrappers = wrapped(view)
    if not wrappers:
        return
    seen: set[Span] = set()
    for window in full_windows(view, any_loop=True):
        entries = sorted(window.step.applied, key=lambda e: e.seq)
        for module in wrappers if entries else ():
            found = fault(view, entries, module)
            if found is not None and found[0] not in seen:
                seen.add(found[0])
                yield finding(view, window, module, *found)


def wrapped(view: View) -> list[Any]:
    """The wrapped modules, none where the program all-reduces gradients itself."""
    modules = [m for m in view.run.modules.values() if getattr(m, "wrap", "") in NAMES]
    return [] if modules and reduces_by_hand(view) else modules


def finding(view: View, window: Window, module: Any, span: Span, why: str) -> Finding:
    """The finding at `span`; `why` says what kept the gradient on its rank."""
    made = ((module.made, "wrapped here"),) if module.made is not None else ()
    harm = f"the step applies {len(window.micros)} micro-batches of this rank alone and the ranks diverge"
    if module.wrap == "fsdp2":
        harm = "its gradient stays unsharded until another backward synchronises, and the step does not apply it"
    return Finding(
        CODE,
        span,
        f"{why}: {harm}",
        step=window.step,
        window=window.n,
        related=(*made, *view.places(window.step)),
    )


def fault(view: View, entries: list[Entry], module: Any) -> tuple[Span, str] | None:
    """Where and why the last of `entries` was not synchronised; None when it was, or when the run had to guess."""
    ident, name = str(module.ident), NAMES[module.wrap]
    flags = [(e, dict(e.facts.synced).get(ident)) for e in entries]
    last = entries[-1]
    if all(flag is None for _, flag in flags):
        if module.wrap in {"fsdp", "fsdp2", "fabric"} or not all(ident in e.facts.bypassed for e in entries):
            return None
        if any(
            e.kind == "forward" and e.micro == last.micro and e.data.get("ident") == module.ident
            for e in view.run.events
        ):
            return None  # the wrapper ran too, and what was made of the network's own methods is only its input
        forward = _forward(view, last)
        return (forward.span, f"the forward bypasses {name}, so nothing is all-reduced") if forward else None
    if any(flag for e, flag in flags if e.micro == last.micro) or dict(last.facts.synced).get(ident) is None:
        return None
    forward = _forward(view, last)
    if forward is None or _undecided(view):
        return None
    switched = [e for e in view.run.events if e.kind == "sync_flag" and e.seq < last.seq]
    late = [e for e in switched if e.seq > forward.seq and e.data.get("on")]
    if late:
        return late[-1].span, f"the flag is set after the forward, and {name} has already read it there"
    contexts = [e for e in view.run.events if e.kind == "no_sync" and e.seq < forward.seq]
    if contexts and not switched:
        return contexts[-1].span, "`no_sync` covers the window's last micro-batch"
    if switched:
        return switched[-1].span, "synchronisation is off on the window's last micro-batch"
    return None


def _forward(view: View, entry: Entry) -> Event | None:
    """The forward that a backward belongs to: the last one before it in the same micro-batch."""
    before = [e for e in view.run.events if e.kind == "forward" and e.seq < entry.seq and e.micro == entry.micro]
    return before[-1] if before else None


def _undecided(view: View) -> bool:
    """True when the run had to guess whether synchronisation is on."""
    if any(e.kind == "sync_flag" and e.data.get("known") is False for e in view.run.events):
        return True
    rows = {e.span.row for e in view.run.events if e.kind in {"no_sync", "sync_flag"}}
    return any(ABOUT.search(c.key) or c.span.row in rows for c in view.run.choices.values())
