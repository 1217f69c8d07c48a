"""Well-known helpers of vision code bases: the scaler objects of timm, MAE and their many copies.

`loss_scaler(loss, optimizer, clip_grad=…, parameters=…, update_grad=…)` scales, runs backward and, when
`update_grad` is true, unscales, clips and steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.ledger import Guard
from galint.run.site import Site
from galint.run.values import NONE, Lit, Opaque, Optimizer, Tensor, Value
from galint.semantics.backward import as_loss
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _make(m: Calls, s: Site) -> Value | None:
    return Opaque(f"#{m.tick()}", "native_scaler")


def _call(m: Calls, s: Site) -> Value | None:
    loss = s.arg(0, "loss")
    optimizer = s.arg(1, "optimizer")
    if not isinstance(optimizer, Optimizer):
        return None
    if not isinstance(loss, Tensor):
        loss = as_loss(m, loss) if loss is not None else m.tensor("loss", m.token())
    m.backward(loss, s.span)
    flag = s.kwargs.get("update_grad", s.kwargs.get("need_update"))
    truth = True if flag is None else m.truth(flag)
    if truth is not False:
        if isinstance(flag, Lit):
            m.guards.append(Guard(s.span, "update_grad", flag.moduli, flag.keys))
        clip = s.kwargs.get("clip_grad", s.kwargs.get("max_norm"))
        if clip is not None and not (isinstance(clip, Lit) and clip.value is None):
            m.clip(optimizer.modules, s.span, s.text, optimizer)
        m.step(optimizer, s.span)
        if isinstance(flag, Lit):
            m.guards.pop()
    return Opaque("grad_norm", data=True, born=m.token())


def _scaler_call(m: Calls, s: Site) -> Value | None:
    return _call(m, s) if len(s.args) >= 2 or "optimizer" in s.kwargs else None


def _accumulate_gradients(m: Calls, s: Site) -> Value | None:
    """StyleGAN's loss objects, made from a class name: `loss.accumulate_gradients(…)` runs backward, scaled as it likes."""
    values = s.all_args()
    if not any(m.is_data(v) for v in values):
        return None
    loss = m.tensor("loss", max((m.born_of(v) for v in values), default=0))
    loss.grad, loss.unknown_scale = True, True
    m.backward(loss, s.span)
    return NONE


FUNCTIONS: dict[str, Meaning] = {
    "*.NativeScaler": _make,
    "*.NativeScalerWithGradNormCount": _make,
    "*.NativeScalerWithGradUpdate": _make,
    "*.ApexScaler": _make,
    "*.ApexScalerWithGradNormCount": _make,
}
METHODS: dict[tuple[str, str], Meaning] = {
    ("native_scaler", "()"): _call,
    ("scaler", "()"): _scaler_call,
    ("*", "accumulate_gradients"): _accumulate_gradients,
}
