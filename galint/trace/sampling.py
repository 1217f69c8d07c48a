"""Fixed samples of one optimizer's gradients: each micro-batch's own, and what a step applies.

At most 65,536 elements in at most 128 parameters, read as strided views of short blocks. A leaf hook adds each
backward's own gradient to the row of that micro-batch before autograd accumulates it, so rows are
independent of what happens to `.grad`. Samples stay on the parameter's device.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

ELEMENTS = 65_536
LEAST = 8_192
TENSORS = 128
BLOCK = 16
"""Elements read side by side, a cache line of float32: single elements would cost a line of memory each."""


def trainable(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Parameters of all groups that can have a gradient."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


def unsupported_parameters(parameters: list[torch.Tensor]) -> str | None:
    """Why these parameters' gradients cannot be sampled, or None."""
    for p in parameters:
        kind = type(p).__name__
        if kind in ("FlatParameter", "DTensor"):
            return f"sharded parameters ({kind}) hold a part of the gradient"
    return None


class Sampler:
    """Samples of one optimizer. `begin` and `end` bracket a backward; `snapshot` reads `.grad`.

    `listening=False` leaves the parameters without hooks, for a trace of events alone.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, listening: bool = True) -> None:
        parameters = [p for p in trainable(optimizer) if p.layout == torch.strided]
        self.groups = len(optimizer.param_groups)
        total = sum(p.numel() for p in parameters)
        every = max(1, -(-len(parameters) // TENSORS))
        chosen = parameters[::every]
        covered = sum(p.numel() for p in chosen)
        # A part of a small model determines the weights as well, and costs less beside its short steps.
        wanted = min(ELEMENTS, max(LEAST, covered // 128))
        stride = max(1, -(-covered // wanted))
        self.total = total
        self.device = chosen[0].device if chosen else torch.device("cpu")
        wide = any(p.dtype == torch.float64 for p in chosen)
        self.dtype = torch.float64 if wide else torch.float32
        self.slots: list[tuple[torch.Tensor, int, int]] = []
        """Parameter, how many elements of it, and how far its blocks lie apart (BLOCK: side by side)."""
        size = 0
        room = wanted + len(chosen)
        for p in _shown(chosen, stride):
            count = min(max(1, p.numel() // stride), room, p.numel(), ELEMENTS - size)
            if count <= 0:
                continue
            blocks = count // BLOCK
            step = p.numel() // blocks if blocks else 0
            if step > BLOCK:
                # An odd distance walks through the columns of a matrix whose rows are a power of two long.
                count, step = blocks * BLOCK, step - 1 + step % 2
            else:
                step = BLOCK
            self.slots.append((p, count, step))
            size += count
            room -= count
        self.size = size
        self.counts = [count for _, count, _ in self.slots]
        self.row: torch.Tensor | None = None
        self.dense = True
        self.trouble: str | None = None
        self.parts: list[torch.Tensor | None] = [None] * len(self.slots)
        """Where the current row takes each parameter's gradient; None outside a backward."""
        self.reached = False
        register: Any = torch.Tensor.register_hook  # untyped in torch
        me = weakref.ref(self)
        self.handles = [
            register(p, _hook(me, self.parts, i, count, step))
            for i, (p, count, step) in enumerate(self.slots if listening else ())
        ]

    def begin(self) -> None:
        """A backward starts."""
        self.row = torch.zeros(self.size, dtype=self.dtype, device=self.device)
        self.parts[:] = self.row.split_with_sizes(self.counts)
        self.reached = False

    def end(self) -> torch.Tensor | None:
        """The backward's own gradient sample, or None when it did not reach this optimizer."""
        row, self.row = self.row, None
        self.parts[:] = [None] * len(self.parts)
        return row if self.reached else None

    def snapshot(self) -> torch.Tensor:
        """The sample of what the parameters' `.grad` hold now (zero where there is none)."""
        return self._read([p.grad for p, *_ in self.slots])

    def parameters(self) -> torch.Tensor:
        """The sample of the parameters themselves."""
        return self._read([p for p, *_ in self.slots])

    def _read(self, tensors: list[Any]) -> torch.Tensor:
        row = torch.zeros(self.size, dtype=self.dtype, device=self.device)
        with torch.no_grad():
            parts = row.split_with_sizes(self.counts)
            for tensor, part, (_, count, step) in zip(tensors, parts, self.slots, strict=True):
                if tensor is not None and tensor.layout is torch.strided:
                    if step > BLOCK:
                        part = part.view(-1, BLOCK)
                    part.copy_(_view(tensor, count, step))
        return row

    def remove(self) -> None:
        """Take the leaf hooks away."""
        for handle in self.handles:
            handle.remove()
        self.handles = []


def _shown(chosen: list[torch.Tensor], stride: int) -> list[torch.Tensor]:
    """Without the parameters that would give less than a block, where the others hold nine tenths of the elements.

    Biases and norms of a large model are two thirds of the tensors to read and a hundredth of the numbers.
    """
    large = [p for p in chosen if p.numel() >= BLOCK * stride]
    return large if sum(p.numel() for p in large) >= 0.9 * sum(p.numel() for p in chosen) else chosen


def _view(tensor: torch.Tensor, count: int, step: int) -> torch.Tensor:
    """The first `count` elements, or blocks that start `step` elements apart."""
    flat = tensor if tensor.is_contiguous() else tensor.reshape(-1)
    return flat.as_strided((count // BLOCK, BLOCK), (step, 1)) if step > BLOCK else flat.view(-1)[:count]


def _hook(
    owner: weakref.ref[Sampler], parts: list[torch.Tensor | None], index: int, count: int, step: int
) -> Callable[[torch.Tensor], None]:
    """Add one parameter's gradient to the current row. It runs once a parameter in every backward: keep it short."""

    def hook(grad: torch.Tensor) -> None:
        part = parts[index]
        sampler = owner()
        if part is None or sampler is None:
            return
        sampler.reached = True
        if grad.layout is not torch.strided:
            sampler.dense = False
            return
        try:
            view = _view(grad.detach() if grad.requires_grad else grad, count, step)
            if view.device != part.device:
                view = view.to(part.device)
            (part.view(-1, BLOCK) if step > BLOCK else part).add_(view)
        except Exception as error:  # inside the user's backward, which must not notice
            sampler.trouble = f"a gradient cannot be sampled: {type(error).__name__}: {error}"

    return hook
