"""mmengine: an `OptimWrapper` divides the loss by its own N and steps and clears at its own boundaries.

See the mmengine documentation, "OptimWrapper" (`accumulative_counts`): `update_params` is `scale_loss`, `backward`, and, where
`should_update` says so, `step` and `zero_grad`. `backward` counts and divides by nothing. `optim_context` turns
synchronisation off where the next micro-batch is not the window's last. The division at the end of the run, which
`initialize_count_status` changes, is not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.ledger import OWN_COUNT, Guard
from galint.run.site import Site
from galint.run.tensors import invert
from galint.run.values import NONE, Context, Lit, Opaque, Optimizer, Tensor, Value
from galint.semantics import optim
from galint.semantics.backward import loss_in
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls

_SETTING = "accumulative_counts"
KEY = "mmengine"


def _make(m: Calls, s: Site) -> Value | None:
    """The wrapper acts on its optimizer's gradients, so it is that optimizer with a number and a count."""
    given = s.kwargs.get("optimizer") or (s.args[0] if s.args else None)
    wrapper = given if isinstance(given, Optimizer) else optim.make(m, s)
    if not isinstance(wrapper, Optimizer):
        return None
    wrapper.items["__count__"] = Lit(0)
    wrapper.items["__steps__"] = s.arg(1, _SETTING) or Lit(1)
    wrapper.attrs["optimizer"] = wrapper
    wrapper.attrs["_accumulative_counts"] = wrapper.items["__steps__"]
    return wrapper


def _steps(m: Calls, wrapper: Optimizer) -> tuple[int, Value]:
    """N and what spells it; a wrapper handed in from elsewhere has an unknown N."""
    steps = wrapper.items.get("__steps__")
    if steps is None:
        steps = wrapper.attrs.get("_accumulative_counts") or Opaque(f"{wrapper.path}.{_SETTING}")
        wrapper.items["__steps__"] = wrapper.attrs["_accumulative_counts"] = steps
    number = m.demand(steps, "window")
    return max(int(number.value), 1) if number is not None else 1, steps


def _count(wrapper: Optimizer) -> int:
    """How many backwards ran through the wrapper."""
    count = wrapper.items.get("__count__")
    return int(count.value) if isinstance(count, Lit) else 0


def _modulus(m: Calls, wrapper: Optimizer) -> tuple[str, int]:
    """N as it is spelled, and N."""
    n, steps = _steps(m, wrapper)
    return steps.path if isinstance(steps, Opaque) else getattr(steps, "text", "") or str(n), n


def _guard(m: Calls, s: Site, wrapper: Optimizer) -> Guard:
    return Guard(s.span, f"{wrapper.path}.should_update()", (_modulus(m, wrapper),), frozenset({OWN_COUNT}))


def _due(m: Calls, wrapper: Optimizer, ahead: int) -> Lit:
    modulus = _modulus(m, wrapper)
    return Lit((_count(wrapper) + ahead) % modulus[1] == 0, moduli=(modulus,))


def _scaled(m: Calls, wrapper: Optimizer, loss: Tensor) -> Tensor:
    _, steps = _steps(m, wrapper)
    factor = invert(m.symbol(m.resolve(steps)))
    keys = frozenset({KEY, *((steps.path,) if isinstance(steps, Opaque) else ())})
    return loss.map(lambda c: c.combine(factor), keys)


def _scale_loss(m: Calls, s: Site) -> Value | None:
    loss = s.arg(0, "loss")
    if not isinstance(s.receiver, Optimizer) or loss is None:
        return None
    return _scaled(m, s.receiver, loss_in(m, loss))


def _backward(m: Calls, s: Site) -> Value | None:
    """`wrapper.backward(loss)`, and that of any optimizer that takes the loss (a half precision one's)."""
    loss = s.arg(0, "loss")
    if not isinstance(s.receiver, Optimizer) or loss is None:
        return None
    s.receiver.items["__count__"] = Lit(_count(s.receiver) + 1)
    m.backward(loss_in(m, loss), s.span)
    return NONE


def _update(m: Calls, s: Site) -> Value | None:
    wrapper, loss = s.receiver, s.arg(0, "loss")
    if not isinstance(wrapper, Optimizer) or loss is None or not m.tensors_in(loss):
        return None
    guard = _guard(m, s, wrapper)
    wrapper.items["__count__"] = Lit(_count(wrapper) + 1)
    m.ledger(wrapper)
    m.backward(_scaled(m, wrapper, loss_in(m, loss)), s.span, name=KEY)
    if _due(m, wrapper, 0).value:
        m.guards.append(guard)
        m.step(wrapper, s.span)
        m.guards.pop()
        m.clear([wrapper], frozenset(), s.span, s.text)
    return NONE


def _should_update(m: Calls, s: Site) -> Value | None:
    return _due(m, s.receiver, 0) if isinstance(s.receiver, Optimizer) else None


def _should_sync(m: Calls, s: Site) -> Value | None:
    return _due(m, s.receiver, 1) if isinstance(s.receiver, Optimizer) else None


def _context(m: Calls, s: Site) -> Value | None:
    if not isinstance(s.receiver, Optimizer):
        return None
    return Context("null" if _due(m, s.receiver, 1).value else "no_sync", s.arg(0, "model"), s.span)


def _nothing(m: Calls, s: Site) -> Value | None:
    return NONE


_WRAPPERS = ("OptimWrapper", "AmpOptimWrapper", "ApexOptimWrapper")
FUNCTIONS: dict[str, Meaning] = {f"mmengine.*.{name}": _make for name in _WRAPPERS}
METHODS: dict[tuple[str, str], Meaning] = {
    ("optimizer", "update_params"): _update,
    ("optimizer", "scale_loss"): _scale_loss,
    ("optimizer", "backward"): _backward,
    ("optimizer", "should_update"): _should_update,
    ("optimizer", "should_sync"): _should_sync,
    ("optimizer", "optim_context"): _context,
    ("optimizer", "initialize_count_status"): _nothing,
}
