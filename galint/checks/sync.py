"""Gradient synchronisation in a window, as GA601 to GA603 ask it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from galint.checks.view import View
from galint.ledger import Entry, Step
from galint.source import Span

NAMES = {"ddp": "DDP", "fsdp": "FSDP", "fsdp2": "FSDP2", "apex-ddp": "apex DDP", "fabric": "Fabric"}
"""What messages call the wrappers."""
ABOUT = re.compile(r"sync(?!_?b(n|atch))", re.I)
"""A condition about gradient synchronisation; `sync_bn` is about BatchNorm's statistics."""
_RANKS = re.compile(r"rank\b\W* != \(?-1|world_size\W* > 1|(^|[._])(is_)?(ddp|distributed)$|is_initialized\(\)$")
_ONE = re.compile(r"rank\b\W* == \(?-1|world_size\W* (==|<=) 1|(^|[._])single_(gpu|process)$")


@dataclass(slots=True)
class SyncWindow:
    """One window of a wrapped model."""

    step: Step
    wrap: str
    made: Span | None
    total: int
    synced: int
    """Micro-batches whose backward all-reduced."""
    first: Entry
    """The first synchronised backward that was not the window's last."""
    last_synced: bool
    bypassed: bool
    inert: Span | None
    """A `no_sync` that wraps the backward but not the forward."""


def windows(view: View) -> Iterator[SyncWindow]:
    """Full windows of models whose wrapping is visible; a step that runs a closure evaluates one batch again instead."""
    if _alone(view.scenario.choices):
        return
    for ledger in view.ledgers:
        waits = view.stalled(ledger)
        if view.run.facts.get("closure") and waits is None:
            continue
        for step in [waits] if waits is not None else view.steps(ledger)[1:3] or view.steps(ledger)[:1]:
            total = list(dict.fromkeys(step.window))
            if len(total) < 2 or not step.applied or not view.repeats(step):
                continue
            if len({e.seq for e in (*step.applied, *(e for e, _ in step.lost))}) < 2:
                continue  # one backward all-reduces once, however many parts of the batch its loss was summed over
            yield from _of_step(view, step, total, view.shared(ledger))


def _alone(choices: dict[str, bool]) -> bool:
    """True where a run took the program for one process, and the model is wrapped all the same: no such program runs."""
    return any((_RANKS if not taken else _ONE).search(key) is not None for key, taken in choices.items())


def _of_step(view: View, step: Step, total: list[int], shared: frozenset[Span]) -> Iterator[SyncWindow]:
    entries = [*step.applied, *(e for e, _ in step.lost)]
    own = [e for e in entries if e.span not in shared]
    if len({e.micro for e in own}) > 1:  # what another network's loss leaves here is no part of the window
        micros = {e.micro for e in own}
        entries, total = own, [t for t in total if t in micros]
    entries.sort(key=lambda e: e.seq)
    idents = {ident for e in entries for ident, _ in e.facts.synced}
    for ident in sorted(idents):
        module = view.run.modules.get(int(ident))
        wrap = getattr(module, "wrap", "")
        if wrap not in {"ddp", "fsdp", "apex-ddp", "fabric"}:
            continue
        on = [e for e in entries if dict(e.facts.synced).get(ident)]
        on_first = entries[0] if not on else on[0]
        micros = {e.micro for e in on}
        last = entries[-1]
        yield SyncWindow(
            step,
            wrap,
            getattr(module, "made", None),
            len(total),
            len(micros),
            on_first,
            bool(dict(last.facts.synced).get(ident)),
            ident in last.facts.bypassed,
            _inert(view, step, on),
        )
        return


def _inert(view: View, step: Step, on: list[Entry]) -> Span | None:
    """The `no_sync` entered just before a synchronised backward, after its forward."""
    events = sorted((e for e in view.run.events if e.kind in {"no_sync", "forward", "backward"}), key=lambda e: e.seq)
    spans = {e.span for e in on}
    pending: Span | None = None
    for event in events:
        if event.kind == "no_sync":
            pending = event.span
        elif event.kind == "forward":
            pending = None
        elif event.kind == "backward":
            if pending is not None and event.span in spans:
                return pending
            pending = None
    return None
