"""PyTorch-Ignite: `Engine(process_function)` calls the function once a batch when it is run.

See the Ignite documentation, `ignite.engine.engine.Engine`: `engine.state.iteration` counts from 1 over all epochs and
is raised before the process function runs; `engine.state.epoch` counts from 1. Handlers are not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.frame import LoopFrame
from galint.run.site import Site
from galint.run.values import NONE, Class, External, Function, Instance, Lit, Opaque, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _make(m: Calls, s: Site) -> Value | None:
    process = s.arg(0, "process_function")
    if not isinstance(process, Function):
        return None
    engine = Opaque(f"#{m.tick()}", "ignite")
    engine.items["process"] = process
    engine.attrs["state"] = Opaque("engine.state")
    return engine


def _run(m: Calls, s: Site) -> Value | None:
    engine, data = s.receiver, s.arg(0, "data")
    if not isinstance(engine, Opaque) or data is None:
        return None
    process, state = engine.items.get("process"), engine.attrs.get("state")
    if not isinstance(process, Function) or not isinstance(state, Opaque):
        return None
    count = 0
    for epoch in range(m.scenario.epochs):
        m.serials += 1
        loop = LoopFrame(s.node, s.span, m.serials, -1, m.new_token(), role="length")
        m.loops.append(loop)
        state.attrs["epoch"] = Lit(epoch + 1)

        def each(value: Value, loop: LoopFrame = loop) -> None:
            nonlocal count
            m.burn()
            count += 1
            loop.iteration, loop.token = loop.iteration + 1, m.new_token()
            loop.residual.clear()
            state.attrs["iteration"] = Lit(count, born=loop.token)
            m.call_function(process, [engine, m.stamp(value, loop.token)], {}, s.node)

        try:
            m.iterate(data, each, s.node, "length")
        finally:
            m.loops.pop()
        m.leave_loop(loop)
    return NONE


def _is_engine(cls: Class) -> bool:
    """Whether a class descends from Ignite's Engine."""
    return any(
        _is_engine(base) if isinstance(base, Class) else isinstance(base, External) and base.name in FUNCTIONS
        for base in cls.bases
    )


def count(receiver: Value, number: int, token: int) -> None:
    """Set what an engine of the project's own class has counted when its process function runs."""
    if isinstance(receiver, Instance) and _is_engine(receiver.cls):
        state = receiver.attrs.setdefault("state", Opaque("engine.state"))
        if isinstance(state, Opaque):
            state.attrs["iteration"] = Lit(number, born=token)


FUNCTIONS: dict[str, Meaning] = {
    "ignite.engine.Engine": _make,
    "ignite.engine.engine.Engine": _make,
    "ignite.*.Engine": _make,
}
METHODS: dict[tuple[str, str], Meaning] = {("ignite", "run"): _run}
