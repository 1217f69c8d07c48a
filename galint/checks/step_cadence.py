"""GA401: accumulation windows are not N micro-batches long."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import Cadence, View
from galint.ledger import OptimizerLedger, Step
from galint.source import Span

CODE = "GA401"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """Compare the windows' lengths with the N that the guard itself names."""
    reported: set[Span] = set()
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        if cadence is None or cadence.guard is None or cadence.n < 2 or not view.lone(ledger):
            continue
        if not _gates(view, ledger, cadence) or _start_unknown(cadence):
            continue
        lengths = [len(view.window(s)) for s in view.steps(ledger)]
        fault = _fault(view, ledger, lengths, cadence)
        if fault is None or cadence.guard.span in reported:
            continue
        reported.add(cadence.guard.span)
        step = next((s for s in view.steps(ledger) if len(view.window(s)) != cadence.n), view.steps(ledger)[-1])
        yield Finding(
            CODE,
            cadence.guard.span,
            fault,
            step=step,
            window=cadence.n,
            related=tuple(q for q in view.places(step) if q[0] != cadence.guard.span),
        )


def _gates(view: View, ledger: OptimizerLedger, cadence: Cadence) -> bool:
    """True when backward also runs where the guard is not taken: the guard gates steps, not training."""
    assert cadence.guard is not None
    span = cadence.guard.span
    stepping = {s.window[-1] for s in ledger.steps if s.window}
    total = {t for s in ledger.steps for t in s.window} | set(ledger.window)
    if len(total) <= len(stepping) and all(len(s.window) <= 1 for s in ledger.steps):
        return False
    return any(e.span == span for e in view.guard_events) or any(g.span == span for s in ledger.steps for g in s.guards)


def _start_unknown(cadence: Cadence) -> bool:
    return cadence.guard is not None and any(k.endswith("@start") for k in cadence.guard.keys)


def _fault(view: View, ledger: OptimizerLedger, lengths: list[int], cadence: Cadence) -> str | None:
    n, label = cadence.n, cadence.label
    named = f"`{label}` = {n}" if not label.isdigit() else str(n)
    left = len(dict.fromkeys(ledger.window))
    never_again = left > 2 * n and len(lengths) >= 1
    if never_again and len(lengths) <= 2:
        return f"the optimizer steps {_times(len(lengths))} and never again: {left} micro-batches follow without a step"
    if not lengths or all(x == n for x in lengths):
        return None
    epochs = _epoch_starts(view, view.steps(ledger))
    rest = [x for k, x in enumerate(lengths) if k not in epochs]
    firsts = [x for k, x in enumerate(lengths) if k in epochs]
    if rest and all(x == n for x in rest) and firsts:
        wrong = [x for x in firsts if x != n]
        every = "the first window" if len(firsts) == 1 or firsts[1:] == [n] * (len(firsts) - 1) else "the first window of each epoch"
        return f"{every} has {_plural(wrong[0])} instead of {named}: the guard is off by {_off(wrong[0], n)}"
    if len(set(lengths)) == 1:
        return f"every window has {_plural(lengths[0])} instead of {named}"
    if len(lengths) > 2 and len(set(lengths[1:])) == 1 and lengths[1] != n:
        return f"windows have {_plural(lengths[1])} instead of {named} (the first has {lengths[0]})"
    shown = ", ".join(map(str, lengths[:6]))
    return f"windows have {shown} micro-batches instead of {named} each"


def _epoch_starts(view: View, steps: list[Step]) -> set[int]:
    """Indices of the windows that hold the first micro-batch of a run of the loop."""
    out: set[int] = set()
    seen: set[int] = set()
    for index, step in enumerate(steps):
        for token in step.window:
            micro = view.micro(token)
            if micro is not None and micro.serial not in seen:
                seen.add(micro.serial)
                out.add(index)
    return out


def _off(length: int, n: int) -> str:
    return "one" if abs(length - n) == 1 or length == 1 else str(abs(length - n))


def _plural(count: int) -> str:
    return f"{count} micro-batch{'es' if count != 1 else ''}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
