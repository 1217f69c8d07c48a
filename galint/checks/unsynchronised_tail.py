"""GA603 on the short last window of an epoch: it is stepped although `no_sync` still covered it."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.unsynchronised_step import fault, finding, wrapped
from galint.checks.view import View
from galint.checks.windows import Window, full_windows
from galint.source import Span

CODE = "GA603"
WITNESS = "tail"


def check(view: View) -> Iterator[Finding]:
    """Windows that the end of the loader cuts short, where full windows are synchronised."""
    modules = wrapped(view)
    if not modules:
        return
    seen: set[Span] = set()
    for full in list(full_windows(view, any_loop=True)):
        for step in view.steps(full.ledger):
            micros = view.window(step)
            entries = sorted(step.applied, key=lambda e: e.seq)
            if not entries or len(micros) >= full.n:
                continue
            short = Window(full.ledger, step, micros, full.n, full.label, full.automatic)
            whole = sorted(full.step.applied, key=lambda e: e.seq)
            for module in modules:
                found = fault(view, entries, module)
                if found is None or found[0] in seen or fault(view, whole, module) is not None:
                    continue
                seen.add(found[0])
                yield finding(view, short, module, found[0], f"{found[1]} when an epoch ends inside a window")
