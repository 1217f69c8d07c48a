"""Gradient clipping: `torch.nn.utils.clip_grad_norm_`, `clip_grad_value_` and their relatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.values import NONE, External, Lit, Opaque, Optimizer, Seq, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _clip(m: Calls, s: Site) -> Value | None:
    values = s.all_args()
    modules = frozenset().union(*(m.modules_in(v) for v in values)) if values else frozenset()
    optimizer = next((v for v in values if isinstance(v, Optimizer)), None)
    scaled = _times_scale(s.arg(1, "max_norm") or s.arg(1, "clip_value"))
    m.clip(modules if optimizer is None else frozenset(), s.span, s.text, optimizer, scaled_bound=scaled)
    return Opaque("grad_norm", data=True, born=m.token())


def _times_scale(bound: Value | None) -> bool:
    """Whether the bound was multiplied by the loss scale, as the gradients are."""
    return isinstance(bound, Opaque) and "get_scale()" in bound.path


def _method(m: Calls, s: Site) -> Value | None:
    """`model.clip_grad_norm_(…)` (FSDP), `optimizer.clip_grad_norm(…)`."""
    receiver = s.receiver
    if isinstance(receiver, Optimizer):
        m.clip(frozenset(), s.span, s.text, receiver, scaled_bound=_times_scale(s.arg(0, "max_norm")))
    elif isinstance(receiver, Opaque) and receiver.kind in {"accelerator", "fabric"}:
        sync = receiver.attrs.get("sync_gradients")
        if receiver.kind == "accelerator" and isinstance(sync, Lit) and sync.value is False:
            m.event("clip_in_window", s.span, s.text)
            m.clip(frozenset(), s.span, s.text)
            return Opaque("grad_norm", data=True, born=m.token())
        # Accelerate and Fabric unscale before they clip.
        for held in m.optimizers.values():
            for entry in m.ledger(held).pending:
                entry.scaled = False
        m.clip(frozenset(), s.span, s.text)
    else:
        modules = receiver.modules if isinstance(receiver, Opaque) else frozenset()
        m.clip(modules, s.span, s.text, scaled_bound=_times_scale(s.arg(0, "max_norm")))
    return Opaque("grad_norm", data=True, born=m.token())


def _apply(m: Calls, s: Site) -> Value | None:
    """apex's `multi_tensor_applier(operation, flag, [gradients, gradients], factor)`: norms, and scaling in place."""
    lists = s.arg(2, "tensor_lists")
    held = [v for one in lists.elts if isinstance(one, Seq) for v in one.elts] if isinstance(lists, Seq) else []
    grads = [v for v in held if isinstance(v, Opaque) and path_terminal(v.path) == "grad"]
    if not grads or not isinstance(lists, Seq) or not s.node.args:
        return None
    first = s.args[0]
    operation = first.name if isinstance(first, External) else p.text(s.node.args[0].value)
    if "norm" in operation:
        norm = Opaque(f"norm({grads[0].path})", data=True, born=m.token())
        return Seq([norm, Opaque("norms", data=True, born=m.token())], "tuple")
    if "scale" in operation and len(s.args) > 3 and lists.elts[0] is lists.elts[-1]:
        m.rescale(frozenset().union(*(g.modules for g in grads)), m.symbol(s.args[3]), s.span)
    return NONE


FUNCTIONS: dict[str, Meaning] = {
    **{
        f"*.{name}": _clip
        for name in (
            "clip_grad_norm_",
            "clip_grad_value_",
            "clip_grad_norm",
            "clip_gradient",
            "clip_grad_value",
            "dispatch_clip_grad",
        )
    },
    "*.multi_tensor_applier": _apply,
}
METHODS: dict[tuple[str, str], Meaning] = {
    ("*", name): _method for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_gradients")
}
