"""From windows to verdicts: which rule does each number confirm or refute.

Decisions are taken on the gradient, never on the update: Adam and clipping hide a missing 1/N whose
gradient is N times too large. The update's size is told as the severity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from galint.registry import RULES
from galint.rule import Severity
from galint.trace import call_checks as calls
from galint.trace import gradient_checks as gradient
from galint.trace.measures import Case, divided_by
from galint.trace.model import Status, Trace, Verdict

_NOTES = {"GA205", "GA206", "GA403", "GA502"}
_FAMILY = {"GA203": "GA201", "GA204": "GA201", "GA602": "GA601"}
"""Rules whose number is another rule's: a division after backward leaves the same gradient as none."""


def informs(rule: str) -> bool:
    """Whether a rule only informs (a note): its confirmation does not fail a run."""
    known = {r.code: r.severity for r in RULES}
    return known.get(rule) is Severity.NOTE if rule in known else rule in _NOTES


def judge(trace: Trace) -> list[Verdict]:
    """All verdicts of a trace: one a rule and optimizer, the most telling window first."""
    answer: list[Verdict] = []
    for label in dict.fromkeys(w.optimizer for w in trace.windows):
        case = Case(label, [w for w in trace.windows if w.optimizer == label])
        _lengths(case)
        if all(w.idle for w in trace.windows):  # else another optimizer's turn may not have come
            gradient.idle(case)
        for check in CHECKS:
            check(case)
        answer += case.verdicts
    return answer


def _lengths(case: Case) -> None:
    """N: what most windows have; with a tie, what the losses were divided by."""
    lengths = Counter(w.n for w in case.windows if w.n and not w.tail)
    divided = Counter(n for w in case.windows for n in [divided_by(w)] * len(w.micros) if n)
    intended = divided.most_common(1)[0][0] if divided else 0
    if not lengths:
        case.n = max((w.n for w in case.windows), default=0)
        return
    best = max(lengths.values())
    tied = [n for n, count in lengths.items() if count == best]
    case.n = intended if intended in tied else max(tied)
    if 1 < intended != case.n and len(case.measured) == 1:
        case.n = intended  # one window is no pattern: believe the division


CHECKS: tuple[Callable[[Case], None], ...] = (
    gradient.unsupported,
    gradient.cleared,
    gradient.never_zeroed,
    gradient.scaling,
    gradient.terms,
    gradient.tail,
    gradient.items,
    calls.unscale,
    calls.clip,
    calls.scaler,
    calls.cadence,
    calls.schedulers,
    calls.traffic,
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
    if (trace.end.get("replay") or {}).get("status") in ("not replayable", "failed"):
        return 4  # what `galint replay` was asked for
    return 4 if any(v.status is Status.INCONCLUSIVE and v.rule in ("GA000", "GA105") for v in found) else 0
