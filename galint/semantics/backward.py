"""The backward call: which loss it runs through, and what `gradient=` multiplies it by; see `torch.Tensor.backward`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.ledger import ONE, Coefficient
from galint.run.site import Site
from galint.run.tensors import invert
from galint.run.values import NONE, Lit, Module, Opaque, Optimizer, Seq, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _backward(m: Calls, s: Site) -> Value | None:
    """`loss.backward(gradient=w)` and `engine.backward(loss)` by shape."""
    given = s.arg(0, "gradient")
    target = s.receiver
    if isinstance(target, Seq):
        return None
    if not s.args and "loss" in s.kwargs:
        s.args.append(s.kwargs["loss"])
    losses = [t for v in s.args[:1] for t in m.tensors_in(v) if t.grad]
    if isinstance(target, (Optimizer, Module)) or (
        isinstance(target, Opaque) and target.kind in {"engine", "accelerator", "fabric"}
    ):
        if losses:
            m.backward(losses[0], s.span)
        elif s.args:
            m.backward(as_loss(m, s.args[0]), s.span)
        return NONE
    factor = ONE
    if given is not None and not (isinstance(given, Lit) and (given.value is None or isinstance(given.value, bool))):
        factor = _gradient_factor(m, given)
    if isinstance(target, Tensor):
        m.backward(target, s.span, factor)
        return NONE
    if losses:
        m.backward(losses[0], s.span)
        return NONE
    if isinstance(target, Opaque):
        m.backward(as_loss(m, target), s.span, factor)
        return NONE
    return None


def _gradient_factor(m: Calls, given: Value) -> Coefficient:
    """What `gradient=` multiplies the loss by; `torch.tensor(1 / N)` and `full_like(loss, x)` are seen through."""
    given = m.resolve(given)
    if isinstance(given, Tensor):
        coefficient = given.terms[-1].coefficient if given.terms else ONE
        return coefficient
    if isinstance(given, (Lit, Opaque)):
        return m.symbol(given)
    return ONE


def loss_in(m: Calls, value: Value) -> Tensor:
    """The loss that a framework's `backward` was given, or the first one inside what it was given."""
    found = m.tensors_in(value)
    return found[0] if found else as_loss(m, value)


def as_loss(m: Calls, value: Value) -> Tensor:
    """A loss known only as an opaque value."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Opaque):
        coefficient, base, settings = _peel(m, value)
        out = m.tensor(base.path, value.born or base.born or m.token(), value.modules | base.modules)
        out.grad = True
        keys = settings | {name for name, _ in coefficient.symbols}
        out = out.map(lambda c: c.combine(coefficient), keys)
        for made, settings in m.result.facts.get("given", {}).items():
            if made in base.path:
                out.hidden |= settings  # a helper out of sight may divide by what it is given
        for ident in {a for i in base.modules for a in m.ancestors.get(i, ())}:
            # `raw_model.last_loss`: the forward that left it there
            if (output := m.outputs.get(ident)) is not None:
                out.synced = {**output.synced, **out.synced}
                out.bypassed |= output.bypassed
        return out
    return m.tensor("loss", m.token())


def _peel(m: Calls, value: Opaque) -> tuple[Coefficient, Opaque, frozenset[str]]:
    """Split `x / N` kept as deferred arithmetic into its factor and its base; the settings that it was divided by."""
    if value.deferred is not None and value.deferred[0] in {"*", "/"}:
        op, left, right = value.deferred
        if op == "*" and not isinstance(left, Opaque) and isinstance(right, Opaque):
            left, right = right, left
        if isinstance(left, Opaque):
            inner, base, settings = _peel(m, left)
            factor, number = m.symbol(right), m.resolve(right)
            if op == "/" and isinstance(number, Lit):
                settings |= number.keys | {name for name, _ in number.moduli}
            return inner.combine(factor if op == "*" else invert(factor)), base, settings
    return ONE, value, frozenset()


def _autograd_backward(m: Calls, s: Site) -> Value | None:
    """`torch.autograd.backward(tensors, grad_tensors)`."""
    if not s.args and "tensors" not in s.kwargs:
        return None
    what = s.arg(0, "tensors")
    weights = s.arg(1, "grad_tensors")
    losses = m.tensors_in(what) if what is not None else []
    if not losses and isinstance(what, Opaque):
        losses = [as_loss(m, what)]
    factors: list[Coefficient] = [ONE] * len(losses)
    if weights is not None and not (isinstance(weights, Lit) and weights.value is None):
        parts = weights.elts if isinstance(weights, Seq) else [weights]
        factors = [_gradient_factor(m, parts[min(i, len(parts) - 1)]) for i in range(len(losses))] if parts else factors
    for loss, factor in zip(losses, factors, strict=True):
        m.backward(loss, s.span, factor)
    return NONE


FUNCTIONS: dict[str, Meaning] = {
    "torch.autograd.backward": _autograd_backward,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("*", "backward"): _backward,
    ("*", "manual_backward"): _backward,
}
