"""DeepSpeed: the engine divides by its own N and its `step` acts at its own boundaries.

See the DeepSpeed documentation, "Training API": gradient accumulation is automatic, `backward` averages over
`gradient_accumulation_steps`, `step` is a no-op inside the window, and clearing is the engine's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from galint import program as p
from galint.ledger import Coefficient
from galint.run.nodes import terminal
from galint.run.sides import remainders
from galint.run.site import Site
from galint.run.values import NONE, Lit, Mapping, Module, Opaque, Optimizer, Seq, Value
from galint.semantics import backward
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


_STEPS = "gradient_accumulation_steps"


def _initialize(m: Calls, s: Site) -> Value | None:
    engine = Opaque("engine", "engine")
    engine.items["__made__"] = NONE
    model = s.arg(1, "model")
    if isinstance(model, Module):
        engine.modules = model.modules
    optimizer = m.make_optimizer("engine.optimizer", engine.modules)
    optimizer.engine = engine
    given = s.arg(2, "optimizer")
    if isinstance(given, Optimizer):
        given.engine = engine
    engine.attrs["optimizer"] = optimizer
    config = m.resolve(s.arg(10, "config") or s.kwargs.get("config_params") or NONE)
    steps = config.items.get(_STEPS) if isinstance(config, Mapping) else None
    if isinstance(steps, Lit) and steps.value == 1 and all(k.endswith(f"['{_STEPS}']") for k in steps.keys):
        engine.items["__alone__"] = steps
    return Seq([engine, optimizer, Opaque("loader", "loader"), Opaque("lr_scheduler", "scheduler")], "tuple")


def _parts(m: Calls, engine: Opaque) -> tuple[Optimizer, int]:
    """The engine's optimizer and N: 1 where the settings written in the program say so, and it counts by itself."""
    optimizer = engine.attrs.get("optimizer")
    if not isinstance(optimizer, Optimizer):
        optimizer = m.make_optimizer(f"{engine.path}.optimizer", engine.modules)
        optimizer.engine = engine
        engine.attrs["optimizer"] = optimizer
    named = any("deepspeed" in name.lower() for name in m.static.uses)
    if not named and "__made__" not in engine.items and engine.path.removeprefix("self.") in _stepped_by_a_count(m):
        engine.items["__alone__"] = engine.items["__unseen__"] = NONE
    return optimizer, 1 if "__alone__" in engine.items else m.scenario.window


def _stepped_by_a_count(m: Calls) -> frozenset[str]:
    """What is told to step under a remainder: it does not count by itself, and is no engine of DeepSpeed's."""
    return m.static.once("stepped by a count", lambda: frozenset(_told_to_step(m)))


def _told_to_step(m: Calls) -> Iterator[str]:
    for node in m.static.everything():
        if isinstance(node, p.If) and remainders(node.test, m.static):
            for call in (n for stmt in node.body for n in m.static.walk(stmt) if isinstance(n, p.Call)):
                if isinstance(call.func, p.Attr) and call.func.name == "step":
                    yield p.text(call.func.value).removeprefix("self.")


def _engine(m: Calls, s: Site) -> Opaque | None:
    """The engine that a method is called on; a network whose name steps and takes losses elsewhere is one too."""
    if not isinstance(s.receiver, Module):
        return s.receiver if isinstance(s.receiver, Opaque) and s.receiver.kind == "engine" else None
    func = s.node.func
    if s.receiver.cls is not None or not isinstance(func, p.Attr) or m.static.kind_of(terminal(func.value)) != "engine":
        return None
    held = s.receiver.items.get("__engine__")
    if not isinstance(held, Opaque):
        held = s.receiver.items["__engine__"] = Opaque(s.receiver.path, "engine", modules=s.receiver.modules)
    return held


def _backward(m: Calls, s: Site) -> Value | None:
    loss, engine = s.arg(0, "loss"), _engine(m, s)
    if engine is None:
        return backward.METHODS["*", "backward"](m, s)
    if loss is None:
        return None
    optimizer, n = _parts(m, engine)
    m.ledger(optimizer)
    given = loss_in(m, loss)
    if "__alone__" in engine.items:  # the program counts, as it does with any other optimizer
        if "__unseen__" in engine.items:
            given = given.copy()
            given.unknown_scale = True
        m.backward(given, s.span)
    else:
        m.backward(given.map(lambda c: c, frozenset({"deepspeed"})), s.span, Coefficient(Fraction(1, n)), "engine")
    return NONE


def _steps(engine: Opaque) -> int:
    """How often `engine.step()` was called: DeepSpeed counts micro-batches there, not in `backward`."""
    count = engine.items.get("__count__")
    return int(count.value) if isinstance(count, Lit) else 0


def _step(m: Calls, s: Site) -> Value | None:
    engine = _engine(m, s)
    if engine is None:
        return None
    optimizer, n = _parts(m, engine)
    count = _steps(engine) + 1
    engine.items["__count__"] = Lit(count)
    if count % n == 0:
        m.step(optimizer, s.span)
        m.clear([optimizer], frozenset(), s.span, "engine.step()")
    return NONE


def _boundary(m: Calls, s: Site) -> Value | None:
    engine = _engine(m, s)
    if engine is None:
        return None
    _, n = _parts(m, engine)
    return Lit((_steps(engine) + 1) % n == 0, moduli=(("gradient_accumulation_steps", n),))


def _forward(m: Calls, s: Site) -> Value | None:
    if not isinstance(s.receiver, Opaque):
        return None
    values = s.all_args()
    out = m.tensor(f"{s.receiver.path}(…)", max((m.born_of(v) for v in values), default=0), s.receiver.modules)
    return out


def _nothing(m: Calls, s: Site) -> Value | None:
    return NONE


FUNCTIONS: dict[str, Meaning] = {"deepspeed.initialize": _initialize}
METHODS: dict[tuple[str, str], Meaning] = {
    ("engine", "backward"): _backward,
    ("engine", "step"): _step,
    ("engine", "()"): _forward,
    ("engine", "forward"): _forward,
    ("engine", "zero_grad"): _nothing,
    ("engine", "is_gradient_accumulation_boundary"): _boundary,
    ("module", "backward"): _backward,
    ("module", "step"): _step,
    ("module", "is_gradient_accumulation_boundary"): _boundary,
}
