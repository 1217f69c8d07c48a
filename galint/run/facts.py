"""What one abstract run saw: events, steps, loops, and where it lost its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from galint.ledger import LossFacts, OptimizerLedger
from galint.run.scenario import Choice, Scenario
from galint.source import Span


@dataclass(slots=True)
class Event:
    """Something that touched gradients, in the order it happened."""

    kind: str
    span: Span
    seq: int
    file: str = ""
    micro: int = 0
    text: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Micro:
    """Where a micro-batch stands: its innermost loop, that loop's run and iteration, and the outer ones."""

    token: int
    loop: Span | None
    serial: int
    iteration: int
    path: tuple[tuple[Span, int, int], ...] = ()
    """(loop header, run serial, iteration) of every enclosing loop, outermost first."""
    file: str = ""


@dataclass(slots=True)
class BackwardFact:
    """One backward call as it happened."""

    span: Span
    seq: int
    micro: int
    facts: LossFacts
    scaled: bool
    file: str
    optimizers: tuple[str, ...]
    modules: frozenset[int]
    name: str = ""
    where: tuple[tuple[Span, int, int], ...] = ()
    order: int = 0


@dataclass(slots=True)
class RunResult:
    """One scenario's run."""

    scenario: Scenario
    ledgers: dict[str, OptimizerLedger] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    backwards: list[BackwardFact] = field(default_factory=list)
    micros: dict[int, Micro] = field(default_factory=dict)
    choices: dict[str, Choice] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=dict)
    """Settings whose number the run fixed, by spelling."""
    roles: dict[str, str] = field(default_factory=dict)
    escapes: list[tuple[Span, str]] = field(default_factory=list)
    truncated: bool = False
    stopped: str = ""
    optimizers: dict[str, Any] = field(default_factory=dict)
    modules: dict[int, Any] = field(default_factory=dict)
    executed: set[int] = field(default_factory=set)
    """Ids of the function nodes that ran."""
    ended_in_loop: bool = False
    fuel: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
