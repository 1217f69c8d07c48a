"""Runs a script on paper and gives its variables as Python values, for comparison with Python itself."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from galint import program as p
from galint.run.calls import Calls
from galint.run.frame import Frame, RunOver, UserRaise
from galint.run.scenario import Scenario
from galint.run.static import Static
from galint.run.values import Iterable, Lit, Mapping, Range, Seq, Value
from galint.syntax import parse


class Unknown:
    """A value that the run does not know."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


def machine(text: str, scenario: Scenario | None = None) -> tuple[Calls, Frame, p.Program]:
    """A machine for a script, its module frame, and the program; nothing has run yet."""
    program = parse(text)
    made = Calls(Static([program.body]), scenario or Scenario())
    frame = Frame(None)
    made.prepare(frame)
    return made, frame, program


def run(text: str, scenario: Scenario | None = None) -> tuple[Calls, Frame]:
    """Run a script on paper; what it raises ends the run."""
    made, frame, program = machine(text, scenario)
    try:
        made.run_body(program.body, frame)
    except UserRaise as raised:
        made.result.stopped = raised.name
    except RunOver as over:
        made.result.stopped = over.reason or "enough was seen"
    return made, frame


def python(value: Value | None) -> Any:
    """The Python value of what the run knows; `UNKNOWN`, also as an element, where it does not."""
    if isinstance(value, Lit):
        exact = value.value
        return int(exact) if isinstance(exact, Fraction) and exact.denominator == 1 else exact
    if isinstance(value, Seq):
        made = [python(v) for v in value.elts]
        return {"tuple": tuple, "set": set, "list": list}[value.kind](made)
    if isinstance(value, Mapping):
        return {key: python(v) for key, v in value.items.items()}
    if isinstance(value, Range):
        return range(value.start, value.stop, value.step)
    if isinstance(value, Iterable):
        return UNKNOWN
    return UNKNOWN


def variables(text: str, scenario: Scenario | None = None) -> dict[str, Any]:
    """The module's variables after a run on paper."""
    _, frame = run(text, scenario)
    return {name: python(value) for name, value in frame.vars.items()}
