"""Automatic mixed precision: `GradScaler`, and apex's `scale_loss`.

`scale` multiplies the loss, `unscale_` divides the accumulated gradients once per optimizer and update,
`step` unscales what was not, `update` changes the scale: see the PyTorch notes "CUDA Automatic Mixed Precision
examples", section "Gradient accumulation".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.machine import NOWHERE
from galint.run.nodes import path_terminal
from galint.run.site import Site
from galint.run.unknowns import setting
from galint.run.values import NONE, Context, Instance, Lit, Opaque, Optimizer, Seq, Tensor, Value
from galint.semantics.backward import as_loss
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def make(m: Calls, s: Site) -> Value | None:
    out = Opaque(f"#{m.tick()}", "scaler")
    enabled = s.kwargs.get("enabled")
    if isinstance(enabled, (Lit, Opaque)):
        out.items["__enabled__"] = enabled
        node = next((a.value for a in s.node.args if a.keyword == "enabled"), None)
        if isinstance(enabled, Lit) and enabled.keys and not enabled.value and node is not None:
            out.items["__asked__"] = Lit(setting(node, enabled), text=p.text(node))
    return out


def _path(value: Value | None) -> str:
    return value.path if isinstance(value, Opaque) else "scaler"


def enabled(m: Calls, scaler: Value | None) -> bool:
    """Whether a scaler acts; an unknown `enabled=` is a configuration, taken as on."""
    if isinstance(scaler, Opaque):
        flag = scaler.items.get("__enabled__")
        asked = scaler.items.get("__asked__")
        if isinstance(asked, Lit):  # off by a setting's default, which may be given
            span = m.loops[-1].span if m.loops else NOWHERE
            return m.choose(str(asked.value), False, data=False, relevant=True, span=span, asked=asked.text)
        if isinstance(flag, Lit):
            return bool(flag.value)
        if isinstance(flag, Opaque):
            return m.choose(flag.path, True, data=False, relevant=True, span=m.loops[-1].span if m.loops else NOWHERE)
    return True


def _scale(m: Calls, s: Site) -> Value | None:
    value = s.arg(0, "outputs")
    scaler = s.receiver if isinstance(s.receiver, Opaque) else None
    on = enabled(m, scaler)
    if isinstance(value, Seq):
        return Seq([_mark(v, scaler, s) if on else v for v in value.elts], value.kind)
    if isinstance(value, Opaque):
        value = as_loss(m, value)
    if isinstance(value, Tensor):
        return _mark(value, scaler, s) if on else value
    return value


def _mark(value: Value, scaler: Opaque | None, s: Site) -> Value:
    if not isinstance(value, Tensor):
        return value
    out = value.copy()
    out.scaled, out.scaled_at = scaler or Opaque("scaler"), s.span
    out.parent = value
    return out


def _unscale(m: Calls, s: Site) -> Value | None:
    target = s.arg(0, "optimizer")
    if not enabled(m, s.receiver):
        return NONE
    for optimizer in _optimizers(target):
        m.unscale(optimizer, _path(s.receiver), s.span)
    return NONE


def _optimizers(value: Value | None) -> list[Optimizer]:
    if isinstance(value, Optimizer):
        return [value]
    if isinstance(value, Seq):
        return [v for v in value.elts if isinstance(v, Optimizer)]
    if isinstance(value, Instance):  # a wrapper with a schedule of its own
        held = [v for v in value.attrs.values() if isinstance(v, Optimizer)]
        return held if len(held) == 1 else []
    return []


def _step(m: Calls, s: Site) -> Value | None:
    targets = _optimizers(s.arg(0, "optimizer"))
    if not targets and isinstance(s.arg(0, "optimizer"), Opaque):
        return None
    for optimizer in targets:
        held = optimizer.accelerated
        if held is not None and m.truth(held.attrs.get("sync_gradients", Lit(True))) is False:
            return NONE
        m.step(optimizer, s.span, scaler=_path(s.receiver) if enabled(m, s.receiver) else "")
    if targets and "backward" in m.static.uses.get(path_terminal(_path(s.receiver)), ()):
        m.clear_applied()  # no GradScaler, but a helper out of sight that runs backward too: it may clear as well
    return NONE


def _update(m: Calls, s: Site) -> Value | None:
    if not enabled(m, s.receiver):
        return NONE
    path = _path(s.receiver)
    for own in (path, f"{path}.scaler"):  # a helper's `update` is its scaler's
        m.scale_generation[own] = m.scale_generation.get(own, 0) + 1
    held = max((ledger.held() for ledger in m.result.ledgers.values()), default=0)
    m.event("scaler_update", s.span, path, pending=held)
    for ledger in m.result.ledgers.values():
        ledger.marks.append(m._mark("update", s.span, ledger, path))
    return NONE


def _scale_loss(m: Calls, s: Site) -> Value | None:
    """apex: `with amp.scale_loss(loss, optimizer) as scaled_loss` unscales when it is left."""
    loss = s.arg(0, "loss")
    if isinstance(loss, Opaque):
        loss = as_loss(m, loss)
    if isinstance(loss, Tensor):
        scaled = loss.copy()
        scaled.parent = loss
        return Context("scale_loss", None, s.span, {"as": scaled})
    return Context("scale_loss", None, s.span, {"as": loss})


def _get_scale(m: Calls, s: Site) -> Value | None:
    return Opaque(f"{_path(s.receiver)}.get_scale()", data=True, born=m.token())


def _enabled(m: Calls, s: Site) -> Value | None:
    return Lit(enabled(m, s.receiver))


FUNCTIONS: dict[str, Meaning] = {
    "torch.cuda.amp.GradScaler": make,
    "torch.amp.GradScaler": make,
    "torch.amp.grad_scaler.GradScaler": make,
    "torch.cuda.amp.grad_scaler.GradScaler": make,
    "*.GradScaler": make,
    "*.ShardedGradScaler": make,
    "*.scale_loss": _scale_loss,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("scaler", "scale"): _scale,
    ("scaler", "unscale_"): _unscale,
    ("scaler", "step"): _step,
    ("scaler", "update"): _update,
    ("scaler", "get_scale"): _get_scale,
    ("scaler", "is_enabled"): _enabled,
    ("*", "unscale_"): _unscale,
    ("*", "scale_loss"): _scale_loss,
}
