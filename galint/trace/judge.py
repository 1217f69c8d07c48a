"""From windows to verdicts: which rule does each number confirm or refute.

Decisions are taken on the gradient, never on the update: Adam and clipping hide a missing 1/N whose
gradient is N times too large. The update's size is told as the severity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from galint.registry import RULES
from galint.rule import Severity
from galint.trace.model import Micro, Status, Trace, Verdict, Window

WEIGHT = 1e-2
"""|N·w - 1| above this is not rounding (measured: 2e-8 in float32, 4e-3 with bfloat16 gradients)."""

RELATIVE = 1e-3
"""Relative error of the applied gradient above this is a different gradient."""

_NOTES = {"GA205", "GA206", "GA403", "GA502"}
_FAMILY = {"GA203": "GA201", "GA204": "GA201", "GA602": "GA601"}
"""Rules whose number is another rule's: a division after backward leaves the same gradient as none."""


def informs(rule: str) -> bool:
    """Whether a rule only informs (a note): its confirmation does not fail a run."""
    known = {r.code: r.severity for r in RULES}
    return known.get(rule) is Severity.NOTE if rule in known else rule in _NOTES


@dataclass(slots=True)
class _Case:
    """All windows of one optimizer, and what their lengths say about N."""

    optimizer: str
    windows: list[Window]
    n: int = 0
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def measured(self) -> list[Window]:
        return [w for w in self.windows if w.measured and w.n]

    def say(
        self,
        rule: str,
        status: Status,
        window: Window,
        measured: str,
        reference: str,
        reason: str,
        place: tuple[str, int] | None = None,
        windows: Iterable[Window] = (),
    ) -> None:
        """Add a verdict about `window` and those like it."""
        concerned = list(windows) or [window]
        file, line = place or (window.file, window.line)
        lines = {(w.file, w.line) for w in concerned} | {(m.file, m.line) for w in concerned for m in w.micros}
        lines |= {m.cleared for w in concerned for m in w.micros if m.cleared} | {(file, line)}
        self.verdicts.append(
            Verdict(
                rule,
                status,
                file,
                line,
                measured,
                reference,
                reason,
                self.optimizer,
                [w.index for w in concerned],
                sorted(lines),
            )
        )


def number(value: float | None) -> str:
    """A number as people write it: four figures at most."""
    if value is None:
        return "unknown"
    if abs(value) < 1e-6:
        return "0"
    if math.isfinite(value) and round(value) and abs(value - round(value)) < 1e-3 and abs(value) < 1e6:
        return str(round(value))
    return f"{value:.3g}"


def weights(window: Window) -> str:
    """`N·w = 0, 0, 0, 1`, shortened when the window is long."""
    texts = [number(x) for x in window.nw]
    if len(texts) > 8:
        texts = [*texts[:4], f"… {len(texts) - 6} more …", *texts[-2:]]
    return "N·w = " + ", ".join(texts)


def close(value: float, to: float) -> bool:
    """Equal within the tolerance that held in practice."""
    return abs(value - to) <= WEIGHT * max(abs(to), 1.0)


def uniform(window: Window) -> float | None:
    """The common N·w of all micro-batches, or None when they differ."""
    values = window.nw
    if not values or any(abs(v - values[0]) > WEIGHT * max(abs(values[0]), 1e-12) for v in values):
        return None
    return values[0] if abs(values[0]) > WEIGHT / 10 else None


def agrees(window: Window) -> bool:
    """Whether the applied gradient is the large batch's, by either reference."""
    errors = [e for e in (window.relative_error, window.items_error) if e is not None]
    equal = all(close(v, 1.0) for v in window.nw) and not _carried(window)
    return (bool(errors) and min(errors) <= RELATIVE) or (equal and bool(errors) and min(errors) <= WEIGHT)


def _carried(window: Window) -> bool:
    return window.carry is not None and abs(window.carry) > WEIGHT


def _kept(micro: Micro, weight: float, n: int) -> bool:
    return abs(n * weight) > WEIGHT


def judge(trace: Trace) -> list[Verdict]:
    """All verdicts of a trace: one a rule and optimizer, the most telling window first."""
    answer: list[Verdict] = []
    for label in dict.fromkeys(w.optimizer for w in trace.windows):
        case = _Case(label, [w for w in trace.windows if w.optimizer == label])
        _lengths(case)
        for check in CHECKS:
            check(case)
        answer += case.verdicts
    return answer


def _lengths(case: _Case) -> None:
    """N: what most windows have; with a tie, what the losses were divided by."""
    lengths = Counter(w.n for w in case.windows if w.n and not w.tail)
    divided = Counter(n for w in case.windows for n in [_divided_by(w)] * len(w.micros) if n)
    intended = divided.most_common(1)[0][0] if divided else 0
    if not lengths:
        case.n = max((w.n for w in case.windows), default=0)
        return
    best = max(lengths.values())
    tied = [n for n, count in lengths.items() if count == best]
    case.n = intended if intended in tied else max(tied)
    if 1 < intended != case.n and len(case.measured) == 1:
        case.n = intended  # one window is no pattern: believe the division


def _unsupported(case: _Case) -> None:
    for reason in dict.fromkeys(w.unsupported for w in case.windows if w.unsupported):
        first = next(w for w in case.windows if w.unsupported == reason)
        same = [w for w in case.windows if w.unsupported == reason]
        rule = "GA105" if "inside backward" in str(reason) else "GA000"
        case.say(rule, Status.INCONCLUSIVE, first, "", "", f"unsupported: {reason}", windows=same)


def _cleared(case: _Case) -> None:
    """GA101: micro-batches that a zero_grad removed before the step."""
    found = []
    for window in case.measured:
        lost = [
            m
            for m, w in zip(window.micros, window.w, strict=True)
            if m.cleared and not m.elsewhere and not _kept(m, w, window.n)
        ]
        if lost:
            found.append((window, lost))
    if found:
        window, lost = found[0]
        kept = window.n - len(lost)
        place = lost[-1].cleared
        reason = f"{len(lost)} of {window.n} micro-batch gradients are discarded by `zero_grad` before the step"
        reference = f"all {window.n} micro-batches weigh 1, {kept} arrived; {_distance(window)}"
        case.say("GA101", Status.CONFIRMED, window, weights(window), reference, reason, place, [w for w, _ in found])
    elif case.measured:
        _refute(case, "GA101", "every micro-batch's gradient reaches its step")


def _distance(window: Window) -> str:
    return (
        f"ratio of norms {number(window.ratio)}, cosine {number(window.cosine)}, "
        f"relative error {number(window.relative_error)}"
    )


def _refute(case: _Case, rule: str, reason: str, windows: list[Window] | None = None) -> None:
    chosen = windows or case.measured
    case.say(rule, Status.REFUTED, chosen[0], weights(chosen[0]), _distance(chosen[0]), reason, windows=chosen)


def _never_zeroed(case: _Case) -> None:
    """GA102: the gradient that an earlier step applied is applied again."""
    found = [w for w in case.measured if _carried(w)]
    later = [w for w in case.measured if w.carry is not None]
    if found:
        window = max(found, key=lambda w: abs(w.carry or 0.0))
        measured = f"carry = {number(window.carry)}"
        reason = "the step applies gradients that the step before it already applied"
        case.say("GA102", Status.CONFIRMED, window, measured, f"carry = 0; {_distance(window)}", reason, windows=found)
    elif later:
        _refute(case, "GA102", "nothing is carried over from the step before (carry = 0)", later)
    elif case.measured:
        window = case.measured[0]
        case.say("GA102", Status.INCONCLUSIVE, window, "", "", "one window shows no carry: trace two or more")


def _scaling(case: _Case) -> None:
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
        elif level < 1 - WEIGHT:
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
                f"N·w = 1; {_distance(window)}",
                f"{reason} the large batch's",
                place,
                over,
            )
    elif told:
        _refute(case, "GA201", "no micro-batch weighs more than 1/N", told)
        _refute(case, "GA203", "the division reaches the gradient", told)
    if under:
        window = under[0]
        times = number(1 / window.nw[-1]) if window.nw[-1] else "unknown"
        place = (window.micros[-1].file, window.micros[-1].line)
        reason = f"the loss is divided {times} times more than once by N = {window.n}"
        case.say(
            "GA202", Status.CONFIRMED, window, weights(window), f"N·w = 1; {_distance(window)}", reason, place, under
        )
    elif told:
        _refute(case, "GA202", "no micro-batch weighs less than 1/N", told)


def _cleared_pattern(window: Window) -> bool:
    """All lost micro-batches were cleared: the ones that arrived still tell the scale."""
    return all(m.cleared or abs(v) > WEIGHT / 10 for m, v in zip(_own(window), window.nw, strict=True))


def _own(window: Window) -> list[Micro]:
    return [m for m in window.micros if not m.elsewhere]


def _terms(case: _Case) -> None:
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


def _tail(case: _Case) -> None:
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


def _items(case: _Case) -> None:
    """GA206: equal weights although the losses average over different numbers of items."""
    for window in case.measured:
        items = {m.items for m in _own(window)}
        if (
            len(items) < 2
            or None in items
            or window.items_error is None
            or window.relative_error is None
            or window.tail
        ):
            continue
        counts = ", ".join(number(m.items) for m in _own(window)[:8])
        if window.relative_error <= RELATIVE < window.items_error:
            reason = f"micro-batches of different item counts ({counts}) weigh the same"
            measured = f"{weights(window)}; {number(window.items_error)} off the reference by items"
            case.say("GA206", Status.CONFIRMED, window, measured, "weights in proportion to items", reason)
            return
        if window.items_error <= RELATIVE:
            case.say("GA206", Status.REFUTED, window, weights(window), "", f"weighted by items ({counts})")
            return


def _unscale(case: _Case) -> None:
    """GA301: `unscale_` before the window's last backward."""
    scaled = [w for w in case.windows if any(m.scale != 1.0 for m in w.micros)]
    found = [(w, u) for w in scaled for u in w.unscales if 0 < u["after"] < len(w.micros)]
    if found:
        window, early = found[0]
        bad = window.measured and not agrees(window)
        reason = "`unscale_` runs before the window's last backward: scaled and unscaled gradients mix"
        status = Status.CONFIRMED if bad else Status.INCONCLUSIVE
        measured = weights(window) if window.measured else ""
        place = (early["file"], early["line"])
        case.say(
            "GA301", status, window, measured, f"N·w = 1; {_distance(window)}", reason, place, [w for w, _ in found]
        )
    elif [w for w in scaled if w.measured]:
        _refute(case, "GA301", "`unscale_` runs after the window's last backward", [w for w in scaled if w.measured])


def _clip(case: _Case) -> None:
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


def _scaler(case: _Case) -> None:
    """GA304: the loss scale changes between the micro-batches of one window."""
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
        _refute(case, "GA304", "the loss scale does not change inside a window")


def _cadence(case: _Case) -> None:
    """GA401, GA402 and GA403: windows that are not N micro-batches long."""
    usual = [w for w in case.windows if not w.skipped and w.n]
    leaked = [w for w in usual if any(m.after_epoch for m in w.micros[1:]) and w.n > 1]
    if leaked:
        window = leaked[0]
        reason = "the partial last window of an epoch is applied with the next epoch's first micro-batches"
        good = window.measured and agrees(window)
        status = Status.REFUTED if good and window.n == case.n else Status.CONFIRMED
        measured = f"a window of {window.n}, ratio of norms {number(window.ratio)}"
        case.say("GA402", status, window, measured, f"windows of {case.n} within one epoch", reason, windows=leaked)
    odd = [w for w in usual if w.n != case.n and not w.tail and w not in leaked]
    divided = [w for w in usual if w.n == case.n > 1 and _divided_by(w) not in (0, 1, w.n, w.n * w.n)]
    if odd or (divided and len(divided) == sum(w.n == case.n for w in usual)):
        window = (odd or divided)[0]
        should = _divided_by(window) if not odd and _divided_by(window) else case.n
        lengths = ", ".join(str(w.n) for w in usual[:8])
        ratio = f"; {weights(window)}" if window.w else ""
        reason = f"a window of {window.n} micro-batches where N is {should}"
        status = Status.CONFIRMED if len(usual) > 1 or _divided_by(window) > 1 else Status.INCONCLUSIVE
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
    dropped = [w for w in usual if w.dropped]
    if dropped:
        window = dropped[0]
        reason = f"{window.dropped} micro-batches at the end of an epoch are computed and thrown away"
        case.say(
            "GA403", Status.CONFIRMED, window, f"{window.dropped} lost", "0 lost", reason, window.dropped_at, dropped
        )


def _divided_by(window: Window) -> int:
    """The whole number that every loss of the window was divided by; 0 when there is none."""
    factors = {m.factor for m in window.micros}
    factor = next(iter(factors), None)
    if len(factors) != 1 or not factor or not 0 < factor <= 1:
        return 0
    return round(1 / factor) if abs(1 / factor - round(1 / factor)) < WEIGHT else 0


def _schedulers(case: _Case) -> None:
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
            case.say(rule, Status.CONFIRMED, window, measured, "once a window", reason, place, [w for w, _ in found])
        elif seen and seen[0].n > 1:
            reason = f"{what} between windows only"
            case.say(rule, Status.REFUTED, seen[0], "", "once a window", reason, windows=seen)


def _traffic(case: _Case) -> None:
    """GA601, GA602 and GA603: collectives of a window against the minimum."""
    wrapped = [w for w in case.windows if w.n > 1 and any(m.synced is not None for m in w.micros)]
    if not wrapped:
        return
    minimum = max((w.buckets or 0 for w in wrapped), default=0)
    excess = [w for w in wrapped if minimum and w.allreduces > minimum]
    per_backward = max((m.bytes for w in wrapped for m in w.micros), default=0)
    if excess:
        window = excess[0]
        measured = f"{window.allreduces} all-reduces and {window.bytes:,} bytes a window"
        reference = f"{minimum} all-reduces and {per_backward:,} bytes"
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
            case.say(rule, Status.REFUTED, wrapped[0], f"{minimum} all-reduces a window", "", reason, windows=wrapped)
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
            f"{window.allreduces} all-reduces",
            "at least one",
            reason,
            place,
            silent,
        )
    else:
        reason = "the last backward of every window communicates"
        case.say("GA603", Status.REFUTED, wrapped[0], "", "", reason, windows=wrapped)


CHECKS: tuple[Callable[[_Case], None], ...] = (
    _unsupported,
    _cleared,
    _never_zeroed,
    _scaling,
    _terms,
    _tail,
    _items,
    _unscale,
    _clip,
    _scaler,
    _cadence,
    _schedulers,
    _traffic,
)


def family(rule: str) -> str:
    """The rule whose number decides `rule` when it has none of its own."""
    return _FAMILY.get(rule, rule)


def exit_code(trace: Trace, verdicts: Iterable[Verdict]) -> int:
    """1 when a fault is confirmed, 3 when the script failed, 4 when nothing could be measured, else 0."""
    found = list(verdicts)
    if any(v.status is Status.CONFIRMED and not informs(v.rule) for v in found):
        return 1
    if trace.failed:
        return 3
    if not any(w.measured for w in trace.windows):
        return 4
    return 4 if any(v.status is Status.INCONCLUSIVE and v.rule in ("GA000", "GA105") for v in found) else 0
