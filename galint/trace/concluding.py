"""What the numbers of slices and replays say about each finding: confirmed, refuted, consistent or inconclusive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from galint.diagnostic import Diagnostic
from galint.trace.confirming import SLICE, Job
from galint.trace.joining import join, same_file
from galint.trace.judge import informs, judge
from galint.trace.measures import agrees, all_reduces, distance, weights
from galint.trace.model import ENDED, Status, Trace, Verdict, Window, add, from_json

SCALING = frozenset({"GA201", "GA202", "GA203", "GA204", "GA205", "GA206"})
"""Rules about the factor in the loss: certain only where the text shows how the loss is made."""

_SHOWN_BY = {
    "GA103": ("GA401", "GA101"),
    "GA104": ("GA401", "GA402"),
    "GA107": ("GA102",),
    "GA302": ("GA301",),
    "GA602": ("GA601",),
}
"""Rules without a number of their own, and those whose number shows them."""

_OUTSIDE = {
    "GA105": "the optimizer steps inside backward, so a window holds one micro-batch whatever N is",
    "GA106": "it is about memory, which a gradient does not show",
    "GA206": "the slice's micro-batches hold equally many items; `galint replay` weighs the real ones",
    "GA405": "what is updated besides the parameters is outside the skeleton",
    "GA406": "the horizon of the schedule is in the text; the slice only counts its steps",
    "GA502": "the loss's own formula is outside the skeleton; `galint replay` measures the coupling",
}

_REFUSALS = ("has already been called", "No inf checks were recorded")
"""What torch says to a loop whose calls of the scaler are out of order: the fault itself, not the slice's."""

_STEPLESS = frozenset({"GA103", "GA401", "GA402", "GA403"})
"""Rules that micro-batches without a step can speak of."""

_RAISE = frozenset({"GA301", "GA304"})
"""Rules whose fault can end the loop with an error."""

Where = Callable[[int], tuple[str, int]]


@dataclass(slots=True)
class Outcome:
    """One finding and what was measured about it. `how` is slice, replay or empty when nothing ran."""

    finding: Diagnostic
    status: Status
    reason: str
    measured: str = ""
    reference: str = ""
    how: str = ""
    optimizer: str = ""
    windows: list[Window] = field(default_factory=list)
    shown: Window | None = None
    notes: list[str] = field(default_factory=list)
    failed: bool = False
    """Neither a slice nor a replay could be run."""
    device: str = ""


def conclude(job: Job, where: Where, trouble: str = "") -> list[Outcome]:
    """An outcome for each finding of a job. `where` turns a program's row into the user's file and line."""

    def place(row: int) -> tuple[str, int]:
        return where(job.row(row))

    tries: dict[str, _Try] = {how: _Try(job, how, place) for how in ("slice", "replay") if how in job.results}
    return [_decide(d, job, tries, trouble) for d in job.findings]


class _Try:
    """One program's run, read."""

    def __init__(self, job: Job, how: str, where: Where) -> None:
        self.how = how
        self.where = where
        self.result = result = job.results[how]
        self.ranks = job.ranks.get(how, {})
        self.trace = Trace()
        for body in result["windows"]:
            record = from_json(body)
            if isinstance(record, Window):
                _relocate(record, where)
                add(self.trace, record)
        self.verdicts = judge(self.trace)
        for body in result["verdicts"]:
            verdict = from_json(body)
            if isinstance(verdict, Verdict):
                verdict.filename, verdict.line = where(verdict.line)
                verdict.lines = [where(n) if f == SLICE else (f, n) for f, n in verdict.lines]
                self.verdicts.append(verdict)

    @property
    def ran(self) -> bool:
        """Whether anything can be said from it."""
        if self.result["failed"] or not self.result["backwards"]:
            return False
        if self._raised:
            return any(text in self._raised for text in _REFUSALS)
        return bool(self.trace.windows)

    @property
    def idle(self) -> bool:
        """Whether it ran to its end, for certain, with steps and no backward."""
        result = self.result
        return bool(result["steps"]) and not (
            result["backwards"] or result["failed"] or result["error"] or self.guessed
        )

    @property
    def measured(self) -> bool:
        """Whether a step was measured."""
        return any(w.measured for w in self.trace.windows)

    @property
    def _raised(self) -> str:
        return str(self.result["error"])

    @property
    def unsure(self) -> list[str]:
        """What the slice had to take for granted."""
        return [*self.result["assumed"], *self.result["undecided"]]

    @property
    def guessed(self) -> list[str]:
        """Conditions that nobody decided and on which a backward, a step or a clearing hangs."""
        return list(self.result["guessed"])

    @property
    def single(self) -> bool:
        """Whether no window of it accumulates."""
        return all(w.n <= 1 for w in self.trace.windows if w.measured)

    def about(self, d: Diagnostic) -> Verdict | None:
        """The verdict about a finding."""
        joined, _ = join(self.verdicts, [d])
        own = [v for v in joined if v.finding and v.rule == d.code]
        own.sort(key=lambda v: list(Status).index(v.status))
        if own and own[0].status in {Status.CONFIRMED, Status.CONSISTENT}:
            return own[0]
        if d.code in _SHOWN_BY:
            for rule in _SHOWN_BY[d.code]:
                shown = next((v for v in self.verdicts if v.rule == rule and v.status is Status.CONFIRMED), None)
                if shown is not None:
                    return replace(shown, rule=d.code)
        if not own:
            # The calls are in a helper of another file, and the finding is where the loop calls it.
            away = [v for v in self.verdicts if v.rule == d.code and not same_file(v.filename, d.filename)]
            return next((v for v in away if v.status in {Status.CONFIRMED, Status.CONSISTENT}), None)
        return own[0]


def _relocate(window: Window, where: Where) -> None:
    """The user's files and lines in place of the slice's."""
    window.file, window.line = where(window.line)
    for micro in window.micros:
        micro.file, micro.line = where(micro.line)
        if micro.cleared:
            micro.cleared = where(micro.cleared[1])
    if window.dropped_at:
        window.dropped_at = where(window.dropped_at[1])
    for kind in ("clips", "unscales", "scaler_updates", "scheduler_steps", "side_effects", "no_sync_lines"):
        for mark in getattr(window, kind):
            mark["file"], mark["line"] = where(int(mark["line"]))


def _decide(d: Diagnostic, job: Job, tries: dict[str, _Try], trouble: str) -> Outcome:
    sliced, replayed = (t if t is not None and t.ran else None for t in (tries.get("slice"), tries.get("replay")))
    if (
        sliced is not None
        and replayed is not None
        and replayed.measured
        and not sliced.measured
        and not sliced.result["error"]
    ):
        sliced = None
    if sliced is None and replayed is None:
        tried = tries.get("slice")
        if d.code == "GA103" and tried is not None and tried.idle:
            steps = tried.result["steps"]
            return Outcome(
                d, Status.CONFIRMED, "the steps apply no gradient", f"{steps} steps, no backward", how="slice",
                windows=tried.trace.windows, device=tried.result["device"],
            )  # fmt: skip
        why = (
            trouble
            or job.no_slice
            or next((t.result["failed"] for t in tries.values() if t.result["failed"]), "")
            or "no gradient step ran"
        )
        return Outcome(d, Status.INCONCLUSIVE, f"the loop could not be run: {why}", failed=True)
    if sliced is None and replayed is not None:
        return _replayed(d, replayed, _why(job, tries.get("slice")))
    assert sliced is not None
    out = _outcome(d, sliced)
    if out.status in {Status.CONFIRMED, Status.REFUTED} and sliced.guessed:
        _unsure(out, sliced)
    if out.status in {Status.CONFIRMED, Status.CONSISTENT} or replayed is None:
        return out
    refuted = out.status is Status.REFUTED
    if refuted and d.code == "GA204":
        out.status, out.reason = (
            Status.INCONCLUSIVE,
            "a term that is made outside the skeleton is not in the slice's loss",
        )
    elif refuted and (sliced.unsure or (job.body["n"] > 1 and sliced.single)):
        _unsure(out, sliced)
    other = _replayed(d, replayed, f"the slice says: {out.reason}")
    if other.status is not Status.CONSISTENT:
        return out
    if out.status is Status.INCONCLUSIVE and not refuted and not sliced.guessed:
        return other
    out.notes.append(f"the linter's own reading of the loop, replayed in torch, shows it: {other.measured}")
    return out


def _why(job: Job, sliced: _Try | None) -> str:
    """Why no slice of the text speaks."""
    if sliced is None:
        return job.no_slice
    broke = str(sliced.result["failed"] or sliced.result["error"]).split(". ")[0].rstrip(".: ")
    line = f" at line {sliced.where(sliced.result['line'])[1]}" if broke and sliced.result["line"] else ""
    return broke + line or ("no backward ran" if not sliced.result["backwards"] else "no step was measured")


def _replayed(d: Diagnostic, replayed: _Try, why: str) -> Outcome:
    """What the abstract run's events say when torch plays them.

    They are the linter's own reading of the text: torch can show that this reading has the effect that the finding
    tells, but not that the reading is right. So a replay is never more than consistent, and it refutes nothing.
    """
    out = _outcome(d, replayed)
    if out.status is Status.CONFIRMED:
        out.status = Status.CONSISTENT
    elif out.status is Status.REFUTED:
        out.status = Status.INCONCLUSIVE
    reading = (
        "a replay of the linter's own reading of the loop, not of its text, so it proves no more than the arithmetic"
    )
    out.notes.append(f"{reading}: {why}" if why else reading)
    return out


def _unsure(out: Outcome, sliced: _Try) -> None:
    """A number that hangs on a guess proves nothing, either way."""
    taken = ", ".join(f"`{u}`" for u in (sliced.guessed or sliced.unsure)[:3]) or "that a window has one micro-batch"
    out.notes.append(f"the slice had to guess {taken}")
    if out.status is Status.CONFIRMED:
        out.status = Status.CONSISTENT
    else:
        out.status, out.reason = (
            Status.INCONCLUSIVE,
            f"the slice does not show it, but it rests on a guess: {out.reason}",
        )


def _outcome(d: Diagnostic, ran: _Try) -> Outcome:
    """What one run says."""
    verdict = ran.about(d)
    measured = [w for w in ran.trace.windows if w.measured]
    base = Outcome(d, Status.INCONCLUSIVE, "", how=ran.how, windows=ran.trace.windows, device=ran.result["device"])
    gap = ran.ranks.get("gap")
    if d.code == "GA603" and gap is not None:
        base.measured = f"parameters of 2 ranks differ by {gap:.2g}"
        base.reference = "parameters are equal on all ranks"
        base.status = Status.CONFIRMED if gap > 1e-6 else Status.REFUTED
        base.reason = (
            "the step applies a gradient that was not synchronised"
            if gap > 1e-6
            else "two ranks stay equal after their steps"
        )
        base.shown = measured[0] if measured else None
        return base
    if d.code in _OUTSIDE and (verdict is None or verdict.status is not Status.CONFIRMED):
        return _outside(d, base, verdict, measured)
    if verdict is None:
        return _general(d, base, ran, measured)
    base.status, base.reason, base.optimizer = verdict.status, verdict.reason, verdict.optimizer
    base.measured, base.reference = verdict.measured, verdict.reference
    base.shown = _window(ran.trace.windows, verdict)
    if base.status is Status.CONFIRMED and d.code in SCALING:
        _cap(base, ran)
    if base.status is Status.REFUTED and ran.result["error"]:
        base.status = Status.INCONCLUSIVE
        base.reason = f"the loop's own calls raise an error before it shows: {ran.result['error']}"
    return base


def _cap(out: Outcome, ran: _Try) -> None:
    """Scaling is confirmed only where the loss is made in plain sight."""
    assumed = ", ".join(f"`{a}`" for a in ran.result["assumed"][:3])
    if ran.how == "replay":
        return  # a replay is capped as a whole
    if assumed:
        why = f"the slice took {assumed} as 1"
    elif ran.result["hidden"]:
        why = "the loss is made outside the skeleton, so a division may hide there"
    else:
        return
    out.status = Status.CONSISTENT
    out.notes.append(why)


def _outside(d: Diagnostic, out: Outcome, verdict: Verdict | None, measured: Sequence[Window]) -> Outcome:
    out.reason = _OUTSIDE[d.code]
    out.shown = measured[0] if measured else None
    if d.code == "GA105" and out.windows and all(w.n <= 1 or w.unsupported for w in out.windows):
        out.status = Status.CONSISTENT
        out.measured = "1 micro-batch a step"
    elif d.code == "GA206" and measured and all(agrees(w) for w in measured):
        out.status = Status.CONSISTENT
        out.measured = weights(measured[0])
    elif d.code == "GA406" and any(w.scheduler_steps for w in out.windows):
        window = next(w for w in out.windows if w.scheduler_steps)
        out.status = Status.CONSISTENT
        out.measured = f"the schedule advances {len(window.scheduler_steps)} times a window of {window.n}"
    elif verdict is not None and verdict.status is Status.CONSISTENT:
        out.status, out.measured = verdict.status, verdict.measured
    return out


def _general(d: Diagnostic, out: Outcome, ran: _Try, measured: Sequence[Window]) -> Outcome:
    """No rule of the tracer speaks of it: whether any step leaves the large batch."""
    if ran.result["error"] and d.code in _RAISE:
        out.status, out.reason, out.measured = Status.CONFIRMED, "the loop raises an error", ran.result["error"]
        return out
    if ran.result["error"]:
        out.reason = f"the loop's own calls raise {ran.result['error']}"
        return out
    wrong = [w for w in measured if not agrees(w)] if d.code < "GA3" or d.code in _STEPLESS | {"GA701"} else []
    never = [w for w in out.windows if w.unsupported == ENDED]
    if wrong:
        window = wrong[0]
        out.status, out.shown = Status.CONSISTENT, window
        out.reason = "the step does not apply the large batch's gradient"
        out.measured, out.reference = weights(window), f"N·w = 1; {distance(window)}"
        if d.code == "GA701" and ran.how == "slice":
            out.status = Status.CONFIRMED
    elif never and d.code in _STEPLESS:
        out.status, out.reason = Status.CONSISTENT, f"{never[0].dropped} micro-batches reach no step"
        out.measured = f"{never[0].dropped} not applied"
    else:
        out.reason = "nothing measured speaks of this rule"
        out.shown = measured[0] if measured else None
    return out


def _window(windows: Sequence[Window], verdict: Verdict) -> Window | None:
    return next((w for w in windows if w.optimizer == verdict.optimizer and w.index in verdict.windows), None)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """1 when a fault is confirmed, 3 when a loop could not be run, 4 when one could not be decided, else 0."""
    if any(o.status is Status.CONFIRMED and not informs(o.finding.code) for o in outcomes):
        return 1
    if any(o.failed for o in outcomes):
        return 3
    return 4 if any(o.status is Status.INCONCLUSIVE for o in outcomes) else 0


def numbers(window: Window) -> str:
    """`N·w = …; ratio of norms …, cosine …, relative error …` and the traffic against its minimum."""
    parts = [weights(window), distance(window)] if window.measured else [window.unsupported or "not measured"]
    if window.buckets:
        once = max((m.bytes for m in window.micros), default=0)
        parts.append(
            f"{all_reduces(window.allreduces)} and {window.bytes:,} bytes (minimum {window.buckets} and {once:,})"
        )
    return "; ".join(parts)


def body(out: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    window = out.shown
    shown = None if window is None else {
        "index": window.index, "optimizer": window.optimizer, "n": window.n, "nw": window.nw, "carry": window.carry,
        "ratio": window.ratio, "cosine": window.cosine, "relative_error": window.relative_error,
        "allreduces": window.allreduces, "bytes": window.bytes, "minimum_allreduces": window.buckets,
    }  # fmt: skip
    return {
        "rule": out.finding.code, "status": str(out.status), "reason": out.reason, "measured": out.measured,
        "reference": out.reference, "how": out.how, "notes": out.notes, "device": out.device, "window": shown,
        "windows": [{"n": w.n, "nw": w.nw, "measured": w.measured} for w in out.windows],
    }  # fmt: skip
