"""Generator functions of the project: whatever consumes one runs at each of its yields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from galint.run.frame import GeneratorExit_, Signal, UserRaise
from galint.run.values import GeneratorCall, Value

if TYPE_CHECKING:
    from galint.run.execute import Execute

Each = Callable[[Value], Signal | None]


def run_generator(m: Execute, call: GeneratorCall, each: Each) -> Signal | None:
    """Run a generator function of the project; the loop's body runs at each of its yields."""
    func = call.func
    if len(m.call_stack) > 30 or m.call_stack.count(func.node) > 2:
        return None
    depth = len(m.loops)

    def at_yield(value: Value) -> Signal | None:
        # The generator's own loops are not loops around the body that consumes it.
        hidden, m.loops[depth:] = m.loops[depth:], []
        try:
            return each(value)
        finally:
            m.loops[depth:] = hidden

    frame = m.new_frame(func, call.args, call.kwargs)
    frame.yields = at_yield
    m.call_stack.append(func.node)
    try:
        m.run_body(func.node.body, frame)  # type: ignore[arg-type]
    except GeneratorExit_ as stop:
        return stop.signal
    except UserRaise as raised:
        if raised.name not in {"StopIteration", "IndexError"}:
            raise
    finally:
        m.call_stack.pop()
    return None
