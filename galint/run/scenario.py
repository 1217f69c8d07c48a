"""One way to run the loops: what unknown integers and conditions are taken to be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from galint.source import Span


@dataclass(slots=True)
class Scenario:
    """Assignments for one abstract run.

    `window` is the value of an unknown N, `length` the number of batches in a loader of unknown length,
    `start` the value of a counter whose start is not visible. `values` fixes settings by their spelling,
    `choices` conditions by theirs. `rare` names the data-dependent condition that is flipped once.
    """

    window: int = 4
    length: int = 8
    start: int = 0
    epochs: int = 2
    values: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, bool] = field(default_factory=dict)
    rare: str | None = None
    rare_at: int = 0
    onward: bool = False
    """Whether a `raise` that nothing handles is passed over: where it stands on every way to the training."""

    ready: bool = False
    """Whether what is collected before a training starts was collected: where no other run trains."""

    def variant(self, **changes: Any) -> Scenario:
        """A copy with some fields replaced; dictionaries are merged, not replaced."""
        out = replace(self, values=dict(self.values), choices=dict(self.choices), rare_at=0)
        for name, value in changes.items():
            if isinstance(value, dict):
                getattr(out, name).update(value)
            else:
                setattr(out, name, value)
        return out


@dataclass(frozen=True, slots=True)
class Choice:
    """A condition the run could not decide: its spelling, what was taken, and whether it matters."""

    key: str
    taken: bool
    data: bool
    relevant: bool
    span: Span
