"""Verdicts from the calls of a window: scaler, clipping, cadence, schedulers, communication."""

from __future__ import annotations

from galint.trace.measures import Case, agrees, all_reduces, distance, divided_by, number, other_n, refute, weights
from galint.trace.model import ENDED, Status, Window


def unscale(case: Case) -> None:
    """GA301: `unscale_` before the window's last backward."""
    scaled = [w for w in case.windows if any(m.scale != 1.0 for m in w.micros)]
    raised = [(w, u) for w in case.windows for u in w.unscales if "error" in u]
    if raised:
        window, call = raised[0]
        reason = "`unscale_` runs again before the step, which raises an error"
        place = (call["file"], call["line"])
        case.say("GA301", Status.CONFIRMED, window, str(call["error"]), "one call a window", reason, place)
        return
    found = [(w, u) for w in scaled for u in w.unscales if 0 < u["after"] < len(w.micros)]
    if found:
        window, early = found[0]
        bad = window.measured and not agrees(window)
        reason = "`unscale_` runs before the window's last backward: scaled and unscaled gradients mix"
        status = Status.CONFIRMED if bad else Status.INCONCLUSIVE
        measured = weights(window) if window.measured else ""
        place = (early["file"], early["line"])
        case.say(
            "GA301", status, window, measured, f"N·w = 1; {distance(window)}", reason, place, [w for w, _ in found]
        )
    elif [w for w in scaled if w.measured]:
        refute(case, "GA301", "`unscale_` runs after the window's last backward", [w for w in scaled if w.measured])


def clip(case: Case) -> None:
    """GA302 and GA303: what clipping saw."""
    clipped = [w for w in case.windows if w.clips]
    if not clipped:
        return
    scaled = [(w, c) for w in clipped for c in w.clips if c["scale"] != 1.0]
    if scaled:
        window, clip = scaled[0]
        measured = f"clipping saw a norm of {number(clip['norm'])}, {number(clip['scale'])} times the gradient's"
        reason = "gradients are clipped before `unscale_`"
        place = (clip["file"], clip["line"])
        case.say(
            "GA302", Status.CONFIRMED, window, measured, "the unscaled norm", reason, place, [w for w, _ in scaled]
        )
    else:
        case.say(
            "GA302",
            Status.REFUTED,
            clipped[0],
            "scale 1 at the clip",
            "",
            "clipping sees unscaled gradients",
            windows=clipped,
        )
    early = [(w, c) for w in clipped for c in w.clips if c["after"] < len(w.micros)]
    if early:
        window, clip = early[0]
        times = len(window.clips)
        reason = f"gradients are clipped {times} times in a window of {window.n}, not once before the step"
        bad = window.measured and not agrees(window)
        status = Status.CONFIRMED if bad else Status.CONSISTENT
        place = (clip["file"], clip["line"])
        case.say("GA303", status, window, f"{times} clips", "1 clip", reason, place, [w for w, _ in early])
    else:
        case.say(
            "GA303", Status.REFUTED, clipped[0], "1 clip a window", "", "clipped once, before the step", windows=clipped
        )


def scaler(case: Case) -> None:
    """GA304: the loss scale changes between the micro-batches of one window."""
    refused = [(w, u) for w in case.windows for u in w.scaler_updates if "error" in u]
    if refused:
        window, update = refused[0]
        reason = "`scaler.update()` runs inside the window, which raises an error"
        place = (update["file"], update["line"])
        case.say("GA304", Status.CONFIRMED, window, str(update["error"]), "once a window", reason, place)
        return
    found = [(w, u) for w in case.windows for u in w.scaler_updates if 0 < u["after"] < len(w.micros)]
    if found:
        changed = [(w, u) for w, u in found if u["old"] != u["new"]]
        window, update = (changed or found)[0]
        scales = {m.scale for w, _ in found for m in w.micros}
        bad = window.measured and not agrees(window)
        reason = "`scaler.update()` runs inside the window"
        status = Status.CONFIRMED if bad or len(scales) > 1 else Status.CONSISTENT
        measured = f"scales {', '.join(number(s) for s in sorted(scales))}; {weights(window) if window.w else ''}"
        place = (update["file"], update["line"])
        case.say(
            "GA304", status, window, measured.rstrip("; "), "one scale a window", reason, place, [w for w, _ in found]
        )
    elif any(m.scale != 1.0 for w in case.measured for m in w.micros):
        refute(case, "GA304", "the loss scale does not change inside a window")


def cadence(case: Case) -> None:
    """GA401, GA402 and GA403: windows that are not N micro-batches long."""
    usual = [w for w in case.windows if not w.skipped and w.n and not _inside(w)]
    leaked = [w for w in usual if any(m.after_epoch for m in w.micros[1:]) and w.n > 1]
    if leaked:
        window = leaked[0]
        reason = "the partial last window of an epoch is applied with the next epoch's first micro-batches"
        good = window.measured and agrees(window)
        status = Status.REFUTED if good and window.n == case.n else Status.CONFIRMED
        measured = f"a window of {window.n}, ratio of norms {number(window.ratio)}"
        case.say("GA402", status, window, measured, f"windows of {case.n} within one epoch", reason, windows=leaked)
    # Without a data loader the end of an epoch is not seen: a short window that is not the first may be a tail.
    odd = [
        w
        for w in usual
        if w.n != case.n and not w.tail and w not in leaked and (w.loader or w.index == 0 or w.n > case.n)
    ]
    divided = [w for w in usual if w.n == case.n and other_n(w)]
    never = [w for w in case.windows if w.unsupported == ENDED]
    if not usual and never and not any(_inside(w) for w in case.windows):
        window = never[0]
        reason = f"{window.dropped} micro-batches ran backward and no step followed"
        case.say("GA401", Status.CONFIRMED, window, "0 steps", "a step every N micro-batches", reason)
        return
    if odd or (divided and len(divided) == sum(w.n == case.n for w in usual)):
        if divided and len(divided) == sum(w.n == case.n for w in usual):
            odd = []  # not one window has the N that the losses were divided by
        window = (odd or divided)[0]
        should = divided_by(window) if not odd and divided_by(window) else case.n
        lengths = ", ".join(str(w.n) for w in usual[:8])
        ratio = f"; {weights(window)}" if window.w else ""
        reason = f"a window of {window.n} micro-batches where N is {should}"
        status = Status.CONFIRMED if len(usual) > 1 or divided_by(window) > 1 else Status.INCONCLUSIVE
        if not odd or window.index == 0 or window.n < case.n:
            case.say(
                "GA401",
                status,
                window,
                f"window lengths {lengths}{ratio}",
                f"{should} each",
                reason,
                windows=odd or divided,
            )
        else:
            maybe = f"{reason}; no data loader was seen, so it cannot be told whether an epoch ended in it"
            case.say(
                "GA402",
                Status.CONSISTENT,
                window,
                f"window lengths {lengths}{ratio}",
                f"{should} each",
                maybe,
                windows=odd,
            )
    elif len(usual) > 1:
        case.say(
            "GA401",
            Status.REFUTED,
            usual[0],
            f"windows of {case.n}",
            "",
            "all windows have the same length",
            windows=usual,
        )
        if not leaked and any(w.tail or w.dropped for w in usual):
            case.say("GA402", Status.REFUTED, usual[0], "", "", "no window spans two epochs", windows=usual)
    dropped = [w for w in case.windows if w.dropped]
    if dropped:
        window = dropped[0]
        reason = f"{window.dropped} micro-batches at the end of an epoch are computed and thrown away"
        case.say(
            "GA403", Status.CONFIRMED, window, f"{window.dropped} lost", "0 lost", reason, window.dropped_at, dropped
        )


def _inside(window: Window) -> bool:
    """Whether the optimizer itself runs the backwards, so that their number is no cadence of the loop."""
    return "LBFGS" in str(window.unsupported) or "inside backward" in str(window.unsupported)


def schedulers(case: Case) -> None:
    """GA404 and GA405: what happens on every micro-batch and should happen once a window."""
    for rule, kind, what in (
        ("GA404", "scheduler_steps", "the learning-rate scheduler advances"),
        ("GA405", "side_effects", "the moving average is updated"),
    ):
        seen = [w for w in case.windows if getattr(w, kind)]
        found = [(w, s) for w in seen for s in getattr(w, kind) if 0 < s["after"] < len(w.micros)]
        if found:
            window, step = found[0]
            times = len(getattr(window, kind))
            place = (step["file"], step["line"])
            measured = f"{times} times in a window of {window.n}"
            reason = f"{what} on micro-batches, not on updates"
            # A schedule may be counted in micro-batches on purpose: its horizon is the static half's to know.
            status = Status.CONSISTENT if rule == "GA404" else Status.CONFIRMED
            case.say(rule, status, window, measured, "once a window", reason, place, [w for w, _ in found])
        elif seen and seen[0].n > 1:
            reason = f"{what} between windows only"
            case.say(rule, Status.REFUTED, seen[0], "", "once a window", reason, windows=seen)


def traffic(case: Case) -> None:
    """GA601, GA602 and GA603: collectives of a window against the minimum."""
    wrapped = [w for w in case.windows if w.n > 1 and any(m.synced is not None for m in w.micros)]
    if not wrapped:
        return
    minimum = max((w.buckets or 0 for w in wrapped), default=0)
    excess = [w for w in wrapped if minimum and w.allreduces > minimum]
    per_backward = max((m.bytes for w in wrapped for m in w.micros), default=0)
    if excess:
        window = excess[0]
        measured = f"{all_reduces(window.allreduces)} and {window.bytes:,} bytes a window"
        reference = f"{all_reduces(minimum)} and {per_backward:,} bytes"
        inert = [n for w in excess for n in w.no_sync_lines]
        place = (window.micros[0].file, window.micros[0].line)
        reason = "gradients are all-reduced on micro-batches that do not step"
        case.say("GA601", Status.CONFIRMED, window, measured, reference, reason, place, excess)
        if inert:
            where = (inert[0]["file"], inert[0]["line"])
            why = "`no_sync` is entered, but not around the forward that decides: it saves nothing"
            case.say("GA602", Status.CONFIRMED, window, measured, reference, why, where, excess)
    elif minimum:
        for rule in ("GA601", "GA602"):
            reason = "only the last backward of a window communicates"
            case.say(rule, Status.REFUTED, wrapped[0], f"{all_reduces(minimum)} a window", "", reason, windows=wrapped)
    silent = [w for w in wrapped if not w.micros[-1].synced]
    if silent:
        window = silent[0]
        place = (window.micros[-1].file, window.micros[-1].line)
        reason = (
            "the last backward before the step does not communicate: ranks diverge; a run with two ranks would prove it"
        )
        case.say(
            "GA603",
            Status.CONSISTENT,
            window,
            all_reduces(window.allreduces),
            "at least one",
            reason,
            place,
            silent,
        )
    else:
        reason = "the last backward of every window communicates"
        case.say("GA603", Status.REFUTED, wrapped[0], "", "", reason, windows=wrapped)
