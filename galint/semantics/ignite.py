"""PyTorch-Ignite: `Engine(process_function)` calls the function once a batch when it is run.

See the Ignite documentation, `ignite.engine.engine.Engine`: `engine.state.iteration` counts from 1 over all epochs and
is raised before the process function runs; `engine.state.epoch` counts from 1. Handlers (`Events`, `add_event_handler`, `on`)
run in the order in which they were added; `every=N` asks the number of the iteration, over all epochs, or of the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.ledger import Guard
from galint.run.frame import LoopFrame
from galint.run.site import Site
from galint.run.values import NONE, Bound, Class, External, Function, Instance, Lit, Opaque, Partial, Seq, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _make(m: Calls, s: Site) -> Value | None:
    process = s.arg(0, "process_function")
    if not isinstance(process, Function):
        return None
    engine = Opaque(f"#{m.tick()}", "ignite")
    engine.items["process"] = process
    engine.items["handlers"] = Seq([])
    engine.attrs["state"] = Opaque("engine.state")
    return engine


def _event(m: Calls, s: Site) -> Value | None:
    """`Events.ITERATION_COMPLETED(every=N)`; `once` and a filter of one's own leave what they gate alone."""
    event = Opaque(f"#{m.tick()}", "ignite-event")
    event.items["name"] = Lit(s.name.rpartition(".")[2])
    event.items["every"] = s.kwargs.get("every") or NONE
    if s.args or s.kwargs.keys() - {"every"}:
        event.items["rare"] = NONE
    return event


def _on(m: Calls, s: Site) -> Value | None:
    """`@engine.on(event)`: a call of it with the handler adds the handler."""
    event = s.arg(0, "event_name")
    if not isinstance(s.receiver, Opaque) or event is None:
        return None
    return Partial(Bound(s.receiver, "add_event_handler"), [event], {})


def _add(m: Calls, s: Site) -> Value | None:
    engine, event, handler = s.receiver, s.arg(0, "event_name"), s.arg(1, "handler")
    handlers = engine.items.get("handlers") if isinstance(engine, Opaque) else None
    if not isinstance(handlers, Seq) or event is None or not isinstance(handler, (Function, Bound, Partial)):
        return None
    handlers.elts.append(Seq([event, handler, *s.args[2:]]))
    return NONE


def _fire(m: Calls, s: Site, engine: Opaque, name: str, number: int) -> None:
    """Run the handlers of an event whose count is `number`."""
    handlers = engine.items.get("handlers")
    for added in handlers.elts if isinstance(handlers, Seq) else ():
        if not isinstance(added, Seq):
            continue
        event, handler, *args = added.elts
        every: Value = NONE
        if isinstance(event, Opaque):
            told, every = event.items.get("name"), event.items.get("every", NONE)
            if not isinstance(told, Lit) or told.value != name or "rare" in event.items:
                continue
        elif not isinstance(event, External) or event.name.rpartition(".")[2] != name:
            continue
        count = m.demand(every, "window") if every is not NONE else None
        n = max(int(count.value), 1) if count is not None else 1
        if number % n:
            continue
        label = every.path if isinstance(every, Opaque) else getattr(every, "text", "") or str(n)
        guards = [Guard(s.span, f"every={label}", ((label, n),), count.keys)] if count is not None else []
        m.guards += guards
        m.call_value(handler, [engine, *args] if _takes_engine(handler) else args, {}, s.node, s.frame)
        del m.guards[len(m.guards) - len(guards) :]


def _takes_engine(handler: Value) -> bool:
    """Ignite gives the engine to a handler that has a parameter for it."""
    node = handler.node if isinstance(handler, Function) else None
    return not isinstance(node, p.FunctionDef) or bool(node.params)


def _run(m: Calls, s: Site) -> Value | None:
    engine, data = s.receiver, s.arg(0, "data")
    if not isinstance(engine, Opaque) or data is None:
        return None
    process, state = engine.items.get("process"), engine.attrs.get("state")
    if not isinstance(process, Function) or not isinstance(state, Opaque):
        return None
    count = 0
    _fire(m, s, engine, "STARTED", 1)
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
            _fire(m, s, engine, "ITERATION_STARTED", count)
            m.call_function(process, [engine, m.stamp(value, loop.token)], {}, s.node)
            _fire(m, s, engine, "ITERATION_COMPLETED", count)

        _fire(m, s, engine, "EPOCH_STARTED", epoch + 1)
        try:
            m.iterate(data, each, s.node, "length")
        finally:
            m.loops.pop()
        m.leave_loop(loop)
        _fire(m, s, engine, "EPOCH_COMPLETED", epoch + 1)
    _fire(m, s, engine, "COMPLETED", 1)
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


_EVENTS = ("STARTED", "EPOCH_STARTED", "ITERATION_STARTED", "ITERATION_COMPLETED", "EPOCH_COMPLETED", "COMPLETED")
FUNCTIONS: dict[str, Meaning] = {
    "ignite.engine.Engine": _make,
    "ignite.engine.engine.Engine": _make,
    "ignite.*.Engine": _make,
}
FUNCTIONS |= {f"ignite.*.{name}": _event for name in _EVENTS}
METHODS: dict[tuple[str, str], Meaning] = {
    ("ignite", "run"): _run,
    ("ignite", "on"): _on,
    ("ignite", "add_event_handler"): _add,
}
