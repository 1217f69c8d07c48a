"""Names in scope during the abstract run, and the signals that leave blocks early."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from galint import program as p
from galint.ledger import Guard
from galint.run.values import Value
from galint.source import Span


class Frame:
    """Local names of a module, function or class body; `parent` is the enclosing scope."""

    __slots__ = ("depth", "function", "globals", "nonlocals", "owner", "parent", "receiver", "vars", "yields")

    def __init__(self, parent: Frame | None, function: p.Node | None = None) -> None:
        self.parent = parent
        self.vars: dict[str, Value] = {}
        self.globals: Frame = parent.globals if parent else self
        self.function = function
        self.receiver: Value | None = None
        self.owner: Any = None
        self.nonlocals: dict[str, Frame] = {}
        self.yields: Callable[[Value], Signal | None] | None = None
        self.depth = 0
        """How many conditions hold where the function was called."""

    def find(self, name: str) -> Frame | None:
        """The frame that holds `name`, looking outwards."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.vars:
                return frame
            frame = frame.parent
        return None


class Signal:
    """How a block was left: kind is "break", "continue" or "return"."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Value | None = None) -> None:
        self.kind = kind
        self.value = value


BREAK = Signal("break")
CONTINUE = Signal("continue")


class UserRaise(Exception):
    """The program raised; `name` is the exception's class name where it is known."""

    def __init__(self, name: str) -> None:
        self.name = name


class GeneratorExit_(Exception):
    """The loop around a generator ended while the generator was suspended in a yield."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal


class RunOver(Exception):
    """The run has seen enough, or its budget is spent (`reason` then says so)."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason


@dataclass(slots=True)
class LoopFrame:
    """One running loop. `token` identifies the current iteration, `serial` this run of the loop."""

    node: p.Node
    span: Span
    serial: int
    iteration: int = 0
    token: int = 0
    last: bool = False
    steps: bool = False
    backwards: bool = False
    residual: list[Guard] = field(default_factory=list)
    role: str = ""
    cut: bool = False
    """The run passes the loop fewer times than the program does."""
    passes: int = 0
    """How often the run passes it, where that is known before."""
