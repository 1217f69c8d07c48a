"""Context managers with an effect on gradients, and what entering and leaving them does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.frame import Frame, Signal
from galint.run.iterate import drive
from galint.run.site import Site
from galint.run.values import NONE, Bound, Context, GeneratorCall, Opaque, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def enter(m: Calls, context: Context, frame: Frame) -> None:
    """Make a context active."""
    if context.kind == "generator":
        _enter_generator(m, context)
        return
    if context.kind == "accumulate":
        from galint.semantics import accelerate

        accelerate.enter(m, context)
    if context.kind == "no_sync":
        m.event("no_sync", context.span, getattr(context.target, "path", ""))
    if context.kind in {"no_sync", "no_grad", "accumulate"}:
        m.contexts.append(context)
    if context.kind == "stack":
        context.data.setdefault("as", context.data["stack"])


def leave(m: Calls, context: Context) -> None:
    """Make a context inactive."""
    if context.kind == "generator":
        for inner in reversed(context.data.get("opened", [])):
            leave(m, inner)
        return
    if context.kind == "stack":
        _close(m, context.data["stack"])
        return
    if context in m.contexts:
        m.contexts.remove(context)


def _enter_generator(m: Calls, context: Context) -> None:
    """A `@contextmanager` function of the project: the contexts open at its yield become active."""
    call = context.data["call"]
    if not isinstance(call, GeneratorCall):
        return
    before = list(m.contexts)
    opened: list[Context] = []

    def at_yield(value: Value) -> Signal | None:
        opened.extend(c for c in m.contexts if c not in before)
        context.data["as"] = value
        return Signal("break")

    drive(m, call, at_yield, call.func.node, "data")
    for inner in opened:
        if inner not in m.contexts:
            m.contexts.append(inner)
    context.data["opened"] = opened


def _no_grad(m: Calls, s: Site) -> Value | None:
    return Context("no_grad", None, s.span)


def _grad_enabled(m: Calls, s: Site) -> Value | None:
    flag = s.flag(0, "mode")
    return Context("no_grad" if flag is False else "null", None, s.span)


def _null(m: Calls, s: Site) -> Value | None:
    return Context("null", None, s.span)


def _stack(m: Calls, s: Site) -> Value | None:
    return _stack_of(m, s, [])


def _stack_of(m: Calls, s: Site, held: list[Value]) -> Context:
    holder = Opaque(f"#{m.tick()}", "exitstack")
    holder.elements = held
    return Context("stack", None, s.span, {"stack": holder})


def _holder(receiver: Value | None) -> Opaque | None:
    """What a stack holds its contexts in, entered by `with` (the `as` name) or not (the stack itself)."""
    if isinstance(receiver, Context):
        receiver = receiver.data.get("stack")
    return receiver if isinstance(receiver, Opaque) else None


def _enter_context(m: Calls, s: Site) -> Value | None:
    """`stack.enter_context(cm)`: active until the stack is left."""
    value, holder = s.arg(0, "cm"), _holder(s.receiver)
    if isinstance(value, Bound):
        value = m.call_value(value, [], {}, s.node, s.frame)
    if isinstance(value, Context) and holder is not None:
        enter(m, value, s.frame)
        if holder.elements is not None:
            holder.elements.append(value)
        got = value.data.get("as")
        return got if isinstance(got, Value) else NONE
    return NONE


def _enter_method(m: Calls, s: Site) -> Value | None:
    """A context entered by hand with `__enter__()`."""
    if isinstance(s.receiver, Context):
        enter(m, s.receiver, s.frame)
        got = s.receiver.data.get("as")
        return got if isinstance(got, Value) else NONE
    return None


def _exit_method(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Context):
        leave(m, s.receiver)
        return NONE
    return None


def _close(m: Calls, holder: Opaque) -> None:
    for inner in reversed(holder.elements or []):
        if isinstance(inner, Context):
            leave(m, inner)
    holder.elements = []


def _close_stack(m: Calls, s: Site) -> Value | None:
    holder = _holder(s.receiver)
    if holder is not None:
        _close(m, holder)
    return NONE


def _pop_all(m: Calls, s: Site) -> Value | None:
    """A new stack takes the open contexts over; none of them is left."""
    holder = _holder(s.receiver)
    if holder is None:
        return None
    held, holder.elements = holder.elements or [], []
    return _stack_of(m, s, held)


FUNCTIONS: dict[str, Meaning] = {
    "torch.no_grad": _no_grad,
    "torch.inference_mode": _no_grad,
    "torch.autograd.no_grad": _no_grad,
    "torch.set_grad_enabled": _grad_enabled,
    "torch.autograd.set_grad_enabled": _grad_enabled,
    "torch.autocast": _null,
    "torch.cuda.amp.autocast": _null,
    "torch.amp.autocast": _null,
    "*.autocast": _null,
    "torch.enable_grad": _null,
    "contextlib.ExitStack": _stack,
}

METHODS: dict[tuple[str, str], Meaning] = {
    **{
        (kind, name): meaning
        for kind in ("exitstack", "context")
        for name, meaning in {"enter_context": _enter_context, "close": _close_stack, "pop_all": _pop_all}.items()
    },
    ("context", "__enter__"): _enter_method,
    ("context", "__exit__"): _exit_method,
}
