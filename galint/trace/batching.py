"""Make one batch of several: joining inputs and output gradients, and running a module as it was.

Nothing is ever padded: what cannot be joined is NotReplayable.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from galint.trace.patching import Patches

_DROPOUTS = (
    "dropout",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
)


class NotReplayable(Exception):
    """The inputs cannot be joined into one batch; the text says why."""


@dataclass(slots=True)
class Call:
    """One forward of a root module: its inputs, and the gradients that came to its outputs."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    file: str
    line: int
    autocast: bool
    shapes: list[torch.Size] = field(default_factory=list)
    cotangents: list[torch.Tensor | None] = field(default_factory=list)

    @property
    def used(self) -> bool:
        """Whether backward reached its outputs."""
        return any(c is not None for c in self.cotangents)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """All tensors of nested tuples, lists, dicts and dataclass-like outputs, in a fixed order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, list | tuple):
        return [t for v in value for t in tensors_in(v)]
    return []


def detached(value: Any) -> Any:
    """The same structure with copies of the tensors, which the script cannot change any more."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad and value.is_floating_point())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(detached(v) for v in value))
    if isinstance(value, list | tuple):
        return type(value)(detached(v) for v in value)
    if isinstance(value, dict):
        return {k: detached(v) for k, v in value.items()}
    return value


def joined(values: list[Any], sizes: list[int]) -> Any:
    """One argument of the large batch from those of the micro-batches; NotReplayable when it cannot be."""
    first = values[0]
    if isinstance(first, torch.Tensor):
        if any(not isinstance(v, torch.Tensor) for v in values):
            raise NotReplayable("an argument is a tensor in one micro-batch only")
        batched = all(v.dim() and v.shape[0] == n for v, n in zip(values, sizes, strict=True))
        if batched:
            if len({v.shape[1:] for v in values}) != 1:
                shapes = ", ".join(str(tuple(v.shape)) for v in values[:3])
                raise NotReplayable(f"micro-batches have different shapes ({shapes}), perhaps padded one by one")
            return torch.cat([v.detach() for v in values]).requires_grad_(first.requires_grad)
        if all(torch.equal(v, first) for v in values):
            return first
        raise NotReplayable(
            f"a tensor of shape {tuple(first.shape)} is neither batched nor the same in all micro-batches"
        )
    if isinstance(first, list | tuple):
        if len({len(v) for v in values}) != 1:
            raise NotReplayable("a list has another length in each micro-batch")
        return type(first)(joined(list(parts), sizes) for parts in zip(*values, strict=True))
    if isinstance(first, dict):
        if len({tuple(v) for v in values}) != 1:
            raise NotReplayable("a dict has other keys in each micro-batch")
        return {k: joined([v[k] for v in values], sizes) for k in first}
    if all(_same(v, first) for v in values):
        return first
    raise NotReplayable(f"an argument of type {type(first).__name__} changes between micro-batches")


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except Exception:  # objects whose comparison fails are not known to be equal
        return False


@contextmanager
def quiet_randomness(device: torch.device) -> Iterator[None]:
    """Dropout patched off and the random state forked."""
    patches = Patches()
    devices = [device] if device.type == "cuda" else []
    for name in _DROPOUTS:
        patches.replace(torch.nn.functional, name, lambda f: lambda x, *a, **k: x)
    attention = torch.nn.functional.scaled_dot_product_attention

    def without_dropout(*args: Any, **kwargs: Any) -> Any:
        kwargs["dropout_p"] = 0.0
        return attention(*args[:4], *args[5:], **kwargs)

    patches.replace(torch.nn.functional, "scaled_dot_product_attention", lambda _: without_dropout)
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        patches.undo()


@contextmanager
def restored_buffers(module: torch.nn.Module) -> Iterator[None]:
    """Buffers (running statistics) as they were, whatever the block does to them."""
    saved = [(b, b.detach().clone()) for b in module.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in saved:
                buffer.copy_(value)


def bare(module: torch.nn.Module) -> torch.nn.Module:
    """The module inside DDP and torch.compile wrappers."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and isinstance(module, torch.nn.parallel.DistributedDataParallel):
            inner = module.module
        if not isinstance(inner, torch.nn.Module):
            return module
        module = inner


def device_of(module: torch.nn.Module) -> torch.device:
    return next((p.device for p in module.parameters()), torch.device("cpu"))


def samples_of(call: Call) -> int:
    """Samples of a forward: the first dimension of its first batched input."""
    sizes = [t.shape[0] for t in tensors_in((call.args, call.kwargs)) if t.dim()]
    if not sizes:
        raise NotReplayable("a forward has no batched input")
    return int(sizes[0])


def joined_cotangents(column: list[Call]) -> list[torch.Tensor | None]:
    """The gradients at the large batch's outputs. A scalar (a loss inside the model) is a mean over samples."""
    answer: list[torch.Tensor | None] = []
    if len({len(c.cotangents) for c in column}) != 1:
        raise NotReplayable("a module returns another number of tensors in each micro-batch")
    for index in range(len(column[0].cotangents)):
        parts = [c.cotangents[index] for c in column]
        shapes = [c.shapes[index] for c in column]
        if all(p is None for p in parts):
            answer.append(None)
            continue
        filled = [p if p is not None else None for p in parts]
        if any(p is None for p in filled):
            raise NotReplayable("an output is used by some micro-batches only")
        tensors = [p for p in filled if p is not None]
        if shapes[0] == torch.Size([]):
            answer.append(torch.stack(tensors).sum(0))
        elif len({s[1:] for s in shapes}) != 1:
            raise NotReplayable("outputs of micro-batches have different shapes")
        else:
            answer.append(torch.cat(tensors))
    return answer


def gradients(
    module: torch.nn.Module,
    call: Call,
    args: Any,
    kwargs: Any,
    cotangents: list[torch.Tensor | None],
    parameters: list[torch.Tensor],
) -> tuple[torch.Tensor | None, ...]:
    """Gradients of the parameters from given gradients at the outputs. `.grad` is not touched."""
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(torch.autocast(device_of(module).type, enabled=call.autocast))
        outputs = tensors_in(module(*args, **kwargs))
    if len(outputs) != len(cotangents):
        raise NotReplayable("the module returns another number of tensors when it runs again")
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if c is not None and o.requires_grad]
    if any(o.shape != c.shape for o, c in pairs):
        raise NotReplayable("the large batch's outputs are not the micro-batches' joined along the first dimension")
    heads, weights = [o for o, _ in pairs], [c.to(o.dtype) for o, c in pairs]
    if not heads:
        return tuple(None for _ in parameters)
    return torch.autograd.grad(heads, parameters, weights, allow_unused=True)


def add(total: list[torch.Tensor], more: tuple[torch.Tensor | None, ...]) -> None:
    for into, grad in zip(total, more, strict=True):
        if grad is not None:
            into.add_(grad.detach())
