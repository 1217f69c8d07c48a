"""Verdicts from the recovered weights: what the applied gradient is made of."""

from __future__ import annotations

from galint.trace.measures import (
    RELATIVE,
    WEIGHT,
    Case,
    agrees,
    carried,
    close,
    distance,
    number,
    other_n,
    own,
    refute,
    uniform,
    weights,
)
from galint.trace.model import ENDED, Micro, Status, Window


def _kept(micro: Micro, weight: float, n: int) -> bool:
    return abs(n * weight) > WEIGHT


def unsupported(case: Case) -> None:
    reasons = [w.unsupported for w in case.windows if w.unsupported and w.unsupported != ENDED]
    for reason in dict.fromkeys(reasons):
        first = next(w for w in case.windows if w.unsupported == reason)
        same = [w for w in case.windows if w.unsupported == reason]
        rule = "GA105" if "inside backward" in str(reason) else "GA000"
        case.say(rule, Status.INCONCLUSIVE, first, "", "", f"unsupported: {reason}", windows=same)


def idle(case: Case) -> None:
    """GA103: no backward ever ran before the steps."""
    if len(case.windows) > 1 and all(w.idle and not w.unsupported for w in case.windows):
        measured, reference = f"{len(case.windows)} steps, no backward", "a backward on each micro-batch"
        reason = "no backward ran: the steps apply no gradient"
        case.say("GA103", Status.CONFIRMED, case.windows[0], measured, reference, reason, windows=case.windows)


def cleared(case: Case) -> None:
    """GA101: micro-batches that a zero_grad removed before the step."""
    found = []
    for window in case.measured:
        lost = [
            m
            for m, w in zip(window.micros, window.w, strict=True)
            if not m.elsewhere and not _kept(m, w, window.n) and (m.cleared or not (window.unscales or window.clips))
        ]
        if lost:
            found.append((window, lost))
    if found:
        window, lost = found[0]
        kept = window.n - len(lost)
        place = lost[-1].cleared
        by = " by `zero_grad`" if place else ""  # else `.grad` was overwritten where no hook sees it
        reason = f"{len(lost)} of {window.n} micro-batch gradients are discarded{by} before the step"
        reference = f"all {window.n} micro-batches weigh 1, {kept} arrived; {distance(window)}"
        case.say("GA101", Status.CONFIRMED, window, weights(window), reference, reason, place, [w for w, _ in found])
    elif case.measured:
        refute(case, "GA101", "every micro-batch's gradient reaches its step")


def never_zeroed(case: Case) -> None:
    """GA102: the gradient that an earlier step applied is applied again."""
    found = [w for w in case.measured if carried(w) and not any(c["after"] < len(w.micros) for c in w.clips)]
    later = [w for w in case.measured if w.carry is not None]
    if found:
        window = max(found, key=lambda w: abs(w.carry or 0.0))
        measured = f"carry = {number(window.carry)}"
        reason = "the step applies gradients that the step before it already applied"
        case.say("GA102", Status.CONFIRMED, window, measured, f"carry = 0; {distance(window)}", reason, windows=found)
    elif later:
        refute(case, "GA102", "nothing is carried over from the step before (carry = 0)", later)
    elif case.measured:
        window = case.measured[0]
        case.say("GA102", Status.INCONCLUSIVE, window, "", "", "one window shows no carry: trace two or more")


def scaling(case: Case) -> None:
    """GA201, GA202 and their family: all micro-batches weigh the same, but not 1/N."""
    full = [w for w in case.measured if w.n > 1 and w.n == case.n]
    told = [w for w in full if all(m.factor is not None for m in w.micros if not m.elsewhere)]
    if full and not told:
        reason = "neither the graph nor a loss function tells what the loss averages over"
        for rule in ("GA201", "GA202"):
            case.say(rule, Status.INCONCLUSIVE, full[0], weights(full[0]), "", reason, windows=full)
        return
    over, under = [], []
    for window in told:
        kept = [v for v in window.nw if abs(v) > WEIGHT / 10]
        level = kept[-1] if kept else 0.0
        if agrees(window) or (uniform(window) is None and not _cleared_pattern(window)):
            continue
        if level > 1 + WEIGHT and close(level, float(window.n)):
            over.append(window)
        elif level < 1 - WEIGHT and not other_n(window):
            under.append(window)
    if over:
        window = over[0]
        reason = f"{window.n} mean losses are added without 1/{window.n}: the gradient is {number(window.ratio)} times"
        measured = weights(window)
        place = (window.micros[-1].file, window.micros[-1].line)
        for rule in ("GA201", "GA203"):
            status = Status.CONFIRMED if rule == "GA201" else Status.CONSISTENT
            case.say(
                rule,
                status,
                window,
                measured,
                f"N·w = 1; {distance(window)}",
                f"{reason} the large batch's",
                place,
                over,
            )
    elif clipped := [w for w in told if _clipped_inside(w) and max(w.nw) > 1 + WEIGHT]:
        reason = "clipping between the micro-batches has changed their weights, which tell no factor any more"
        case.say("GA201", Status.INCONCLUSIVE, clipped[0], weights(clipped[0]), "N·w = 1", reason, windows=clipped)
    elif told:
        refute(case, "GA201", "no micro-batch weighs more than 1/N", told)
        refute(case, "GA203", "the division reaches the gradient", told)
    if under:
        window = under[0]
        times = number(1 / window.nw[-1]) if window.nw[-1] else "unknown"
        place = (window.micros[-1].file, window.micros[-1].line)
        reason = f"the loss is divided {times} times more than once by N = {window.n}"
        # Twice by N, or thrice; any other factor may be a count of items that a summed loss is divided by.
        twice = any(close(window.nw[-1], float(window.n) ** -k) for k in (1, 2))
        status = Status.CONFIRMED if twice else Status.CONSISTENT
        case.say("GA202", status, window, weights(window), f"N·w = 1; {distance(window)}", reason, place, under)
    elif told:
        refute(case, "GA202", "no micro-batch weighs less than 1/N", told)


def _clipped_inside(window: Window) -> bool:
    return any(c["after"] < len(window.micros) for c in window.clips)


def _cleared_pattern(window: Window) -> bool:
    """All lost micro-batches were cleared: the ones that arrived still tell the scale."""
    return all(m.cleared or abs(v) > WEIGHT / 10 for m, v in zip(own(window), window.nw, strict=True))


def terms(case: Case) -> None:
    """GA204: one term of the loss carries 1/N and another does not."""
    for window in case.measured:
        for micro in window.micros:
            terms = [abs(t) for t in micro.terms]
            if window.n > 1 and any(close(t * window.n, 1.0) for t in terms) and any(close(t, 1.0) for t in terms):
                text = "factors " + ", ".join(number(t) for t in terms)
                reason = f"one term of the loss is divided by {window.n} and another is not, unless that is its weight"
                place = (micro.file, micro.line)
                case.say("GA204", Status.CONSISTENT, window, text, "one factor for all terms", reason, place)
                return


def tail(case: Case) -> None:
    """GA205: a short last window that is divided by N, not by its length. It informs."""
    for window in case.measured:
        level = uniform(window)
        if window.tail and level is not None and window.n < case.n:
            good = close(level, 1.0)
            reason = f"the last window has {window.n} of {case.n} micro-batches and is weighted by " + (
                "its own length" if good else f"{case.n}"
            )
            status = Status.REFUTED if good else Status.CONFIRMED
            case.say("GA205", status, window, weights(window), "N·w = 1 with N its own length", reason)
            return


def items(case: Case) -> None:
    """GA206: equal weights although the losses average over different numbers of items."""
    for window in case.measured:
        items = {m.items for m in own(window)}
        if (
            len(items) < 2
            or None in items
            or window.items_error is None
            or window.relative_error is None
            or window.tail
        ):
            continue
        counts = ", ".join(number(m.items) for m in own(window)[:8])
        if window.relative_error <= RELATIVE < window.items_error:
            reason = f"micro-batches of different item counts ({counts}) weigh the same"
            measured = f"{weights(window)}; {number(window.items_error)} off the reference by items"
            case.say("GA206", Status.CONFIRMED, window, measured, "weights in proportion to items", reason)
            return
        if window.items_error <= RELATIVE:
            case.say("GA206", Status.REFUTED, window, weights(window), "", f"weighted by items ({counts})")
            return
