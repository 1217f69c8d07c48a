"""What a run showed, in the short forms by which runs are compared and the next one is chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from galint import program as p
from galint.ledger import Step
from galint.run.facts import RunResult
from galint.run.names import TPU
from galint.run.scenario import Choice
from galint.source import Span

_AND = "\n"
"""Between the conditions of a label: no condition's spelling holds it."""


def loops_of(run: RunResult) -> set[Span]:
    """The micro-batch loops of a run."""
    return {b.where[-1][0] for b in run.backwards if b.where}


def guards_of(run: RunResult) -> set[Span]:
    """The conditions with a number in them that end windows of several micro-batches."""
    steps = [s for ledger in run.ledgers.values() for s in ledger.steps[:6] if len(set(s.window)) > 1]
    return {g.span for s in steps for g in s.guards if g.moduli}


def moduli_of(run: RunResult) -> list[tuple[tuple[tuple[str, int], ...], frozenset[str]]]:
    """The numbers in the guards of steps, taken or not, with the settings behind them."""
    out = [(g.moduli, g.keys) for ledger in run.ledgers.values() for s in ledger.steps[:6] for g in s.guards]
    out += [(e.data["moduli"], e.data["keys"]) for e in run.events if e.kind == "guard"]
    return out


def nominal(run: RunResult, n: int) -> dict[str, int]:
    """Batches whose defaults make a step's guard count to 1 at most (`batch // micro_batch`): of n parts each."""
    ones = [keys for moduli, keys in moduli_of(run) if any(isinstance(v, int) and v <= 1 for _, v in moduli)]
    sizes = run.facts.get("quotients", {}).items()
    return {key: n * size for key, (part, size) in sizes if any({key, part} <= keys for keys in ones)}


def one_by_one(run: RunResult) -> bool:
    """Whether no optimizer steps over more than a micro-batch and no count says when: such a loop has no short window."""
    steps = [step for ledger in run.ledgers.values() for step in ledger.steps]
    return (
        not run.facts.get("break_bounds")
        and not moduli_of(run)
        and all(entry.applied for ledger in run.ledgers.values() for entry in ledger.pending)
        and all(len(s.window) <= 1 and not s.lost and not s.carried for s in steps)
    )


def multiple(n: int) -> int:
    """A loader length that n divides, with at least two windows and some eight batches."""
    return n * max(2, -(-8 // max(n, 1)))


def undecided(run: RunResult) -> list[Choice]:
    """The conditions of a run that matter and that do not hang on the data.

    Not those that ask for a TPU: a run on one with a loss scale and CUDA's calls, one condition flipped, is nobody's.
    """
    return [c for c in run.choices.values() if c.relevant and not c.data and (c.taken or not TPU.search(c.key))]


def both(labels: Iterable[str]) -> str:
    """The label of a run that several conditions led to."""
    return _AND.join(labels)


def parts(label: str) -> list[str]:
    """The conditions in a run's label."""
    return label.split(_AND)


def negation(key: str) -> str:
    """A condition's spelling for "is false"."""
    return key[4:] if key.startswith("not ") else f"not {key}"


def signature(run: RunResult) -> tuple[Any, ...]:
    """What a run showed, for telling configurations apart."""
    parts: list[Any] = [frozenset(e.span for e in run.events if e.kind == "update_effect")]
    for key, ledger in run.ledgers.items():
        steps = ledger.steps[:8]
        parts.append(
            (
                key,
                tuple(
                    (
                        s.span,
                        len(s.window),
                        tuple(
                            (
                                e.span,
                                str(e.coefficient),
                                e.scaled,
                                e.facts.synced,
                                e.facts.bypassed,
                                len(e.facts.penalties),
                            )
                            for e in s.applied
                        ),
                        tuple((mk.kind, mk.span, mk.pending) for mk in s.marks),
                        len(s.lost),
                        len(s.carried),
                    )
                    for s in steps
                ),
            )
        )
    return tuple(parts)


def in_vain(run: RunResult) -> list[tuple[p.If, Step]]:
    """Conditions about N on whose other side alone a backward stands, where a step by that N has nothing to apply."""
    if run.backwards or run.escapes:
        return []
    asked: dict[p.If, frozenset[str]] = run.facts.get("passed_by", {})
    steps = [(step, guard) for k in run.ledgers.values() for step in k.steps for guard in step.guards if guard.moduli]
    return [
        (stmt, next(step for step, guard in steps if guard.keys & keys))
        for stmt, keys in asked.items()
        if any(guard.keys & keys and any(n > 1 for _, n in guard.moduli) for _, guard in steps)
    ]
