"""Data parallelism: DistributedDataParallel, FSDP, FSDP2, apex's DDP, DataParallel.

DDP decides at the forward whether the coming backward all-reduces (`require_backward_grad_sync`, `no_sync`): see
the PyTorch documentation of `DistributedDataParallel.no_sync`. FSDP asks in its hook after the backward, so its `no_sync`
and FSDP2's `set_requires_gradient_sync` may come later, before the backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import NONE, Context, Module, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def wrap(kind: str) -> Meaning:
    """The meaning of a wrapper's constructor."""

    def meaning(m: Calls, s: Site) -> Value | None:
        inner = s.arg(0, "module") or s.arg(0, "model")
        base = inner if isinstance(inner, Module) else None
        module = m.make_module(base.path if base is not None else f"#{m.tick()}", wrap=kind, inner=base)
        module.made = s.span
        if base is not None:
            m.ancestors[base.ident] = m.ancestors[base.ident] | {module.ident}
            module.attrs.update({k: v for k, v in base.attrs.items() if k != "module"})
        m.event("wrap", s.span, kind, ident=module.ident)
        return module

    return meaning


def _fully_shard(m: Calls, s: Site) -> Value | None:
    inner = s.arg(0, "module")
    if isinstance(inner, Module):
        inner.wrap = "fsdp2"
        m.event("wrap", s.span, "fsdp2", ident=inner.ident)
        return inner
    return None


def _no_sync(m: Calls, s: Site) -> Value | None:
    """`model.no_sync()`: a model that comes from another file has been wrapped there, for nothing else has the method."""
    if isinstance(s.receiver, Module) and not s.receiver.wrap and s.receiver.made is None:
        s.receiver.wrap = "ddp"
        s.receiver.items["__guessed__"] = NONE
    return Context("no_sync", s.receiver, s.span)


def _set_sync(m: Calls, s: Site) -> Value | None:
    """FSDP2: read at the backward, so it may follow the forward."""
    if isinstance(s.receiver, Module) and s.args:
        truth = m.truth(s.args[0])
        s.receiver.sync = True if truth is None else truth
        m.event("sync_flag", s.span, s.receiver.path, on=s.receiver.sync)
    return NONE


def _join(m: Calls, s: Site) -> Value | None:
    return Context("null", None, s.span)


_DDP, _FSDP, _DP, _APEX = wrap("ddp"), wrap("fsdp"), wrap("dp"), wrap("apex-ddp")

FUNCTIONS: dict[str, Meaning] = {
    "torch.nn.parallel.DistributedDataParallel": _DDP,
    "torch.nn.parallel.distributed.DistributedDataParallel": _DDP,
    "torch.nn.DataParallel": _DP,
    "torch.nn.parallel.DataParallel": _DP,
    "apex.parallel.DistributedDataParallel": _APEX,
    "apex.parallel.distributed.DistributedDataParallel": _APEX,
    "*.FullyShardedDataParallel": _FSDP,
    "*.fully_shard": _fully_shard,
    "*.DistributedDataParallel": _DDP,
    "*.DataParallel": _DP,
}


def _allreduces(m: Calls, s: Site) -> Value | None:
    """apex's `disable_allreduce()` and `enable_allreduce()`: its hooks ask during the backward."""
    if isinstance(s.receiver, Module):
        s.receiver.sync = s.name == "enable_allreduce"
        m.event("sync_flag", s.span, s.receiver.path, on=s.receiver.sync, known=True)
    return NONE


METHODS: dict[tuple[str, str], Meaning] = {
    ("module", "no_sync"): _no_sync,
    ("opaque", "no_sync"): _no_sync,
    ("module", "set_requires_gradient_sync"): _set_sync,
    ("module", "disable_allreduce"): _allreduces,
    ("module", "enable_allreduce"): _allreduces,
    ("module", "join"): _join,
}
