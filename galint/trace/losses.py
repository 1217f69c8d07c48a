"""What a loss is made of: the factor before backward, the reduction and the items it averages over.

The factor is read from the autograd graph, walking from the root through scalar Mul and Div nodes to
the loss itself. Loss functions leave a tag in their node's metadata, which lives as long as the
graph and keeps nothing else alive. Numbers on a device stay there until `Lazy.value` is asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

FUNCTIONS = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

LOSS_TAG = "galint.loss"
SCALE_TAG = "galint.scale"
_MAX_DEPTH = 64

_PASS = [
    "AliasBackward",
    "CloneBackward",
    "DiagonalBackward",
    "ExpandBackward",
    "FlattenBackward",
    "NegBackward",
    "ReshapeAliasBackward",
    "SelectBackward",
    "SqueezeBackward",
    "ToCopyBackward",
    "UnsafeViewBackward",
    "UnsqueezeBackward",
    "ViewBackward",
]


_ARITHMETIC = {"MulBackward", "DivBackward", "AddBackward", "SubBackward", "MeanBackward", "SumBackward"}


_SCALINGS = {"MulBackward0", "DivBackward0"}


class Lazy:
    """A product of numbers, some of them still on a device."""

    __slots__ = ("number", "tensors")

    def __init__(self, number: float = 1.0, tensors: list[tuple[torch.Tensor, bool]] | None = None) -> None:
        self.number = number
        self.tensors = tensors or []

    def times(self, value: Any, divide: bool = False) -> None:
        """Multiply (or divide) by a number or a one-element tensor."""
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu":
                self.tensors.append((value.detach().clone(), divide))
                return
            value = float(value)
        number = float(value)
        if divide:
            self.number = self.number / number if number else float("inf")
        else:
            self.number *= number

    def value(self) -> float:
        """The product, synchronising with the device when it must."""
        answer = self.number
        for tensor, divide in self.tensors:
            number = float(tensor)
            answer = answer / number if divide and number else answer * number
        return answer


@dataclass(slots=True)
class LossInfo:
    """What the walk found. `candidates` are the item counts that a sum may have been divided by."""

    name: str = "unknown"
    reduction: str = "unknown"
    batch_size: int | None = None
    items: Lazy | None = None
    candidates: list[Lazy] = field(default_factory=list)
    factor: Lazy = field(default_factory=Lazy)
    divisors: list[Lazy] = field(default_factory=list)
    """Each number the loss was divided by: one of them may be a count of unmasked elements."""
    counted: bool = False
    """The loss function itself told the items."""
    operations: list[tuple[Lazy, bool]] = field(default_factory=list)
    """The numbers in `factor` one by one; True for a division."""
    scale: Lazy = field(default_factory=Lazy)
    terms: list[float] = field(default_factory=list)
    """The weights of the addends, where these differ."""
    addends: int = 1

    def times(self, value: Any, divide: bool) -> None:
        """Note a scalar multiplication or division of the loss."""
        self.factor.times(value, divide)
        one = Lazy()
        one.times(value, divide)
        self.operations.append((one, divide))

    def accumulating(self, n: int, lengths: set[int]) -> list[float]:
        """The factors that stand for accumulation, given the window's length and what N may be besides.

        A constant such as 0.5 in `0.5 * loss` is part of the loss, and so is the 2 in `(a + b) / 2`. A number that is
        1/N or N is not; where there is none, divisions by whole numbers count (a loop that divides by the wrong N).
        """
        mean = 1.0 / self.addends if self.addends > 1 and self.addends != n else None
        values = [(one.value(), divide) for one, divide in self.operations]
        values = [(v, divide) for v, divide in values if mean is None or abs(v - mean) > 1e-6 * mean]
        wanted = [x for k in lengths if k > 1 for x in (float(k), 1.0 / k)]
        chosen = [v for v, _ in values if any(abs(v - x) <= 1e-6 * x for x in wanted)]
        if not chosen:
            chosen = [v for v, divide in values if divide and v and abs(1 / v - round(1 / v)) <= 1e-6 / v]
        return chosen


Tag = tuple[str, str, int | None, int | None]
"""What a loss function told of its result: name, reduction, batch size, items."""


def tagging(name: str, counting: bool, original: Callable[..., Any]) -> Callable[..., Any]:
    """A loss function that tags its result's node and otherwise does what the original does.

    `counting` adds the items that the loss averages over, which a trace of events alone does not ask for.
    """
    compiling = torch.compiler.is_compiling

    @functools.wraps(original)
    def loss_function(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if compiling():
            return result
        node: Any = result.grad_fn if isinstance(result, torch.Tensor) and not result.ndim else None
        if node is None:
            return result
        tags = node.metadata
        if LOSS_TAG not in tags:
            first = args[0] if args else kwargs.get("input")
            size = first.shape[0] if isinstance(first, torch.Tensor) and first.ndim else None
            reduction = kwargs.get("reduction", "mean")
            tags[LOSS_TAG] = (
                name,
                "mean" if reduction == "batchmean" else str(reduction),
                size,
                _items(name, args, kwargs, size) if counting else None,
            )
        return result

    return loss_function


def _items(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], size: int | None) -> int | None:
    if kwargs.get("reduction") == "batchmean" or name == "ctc_loss":
        return size
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(target, torch.Tensor):
        return size
    first = args[0] if args else kwargs.get("input")
    if name == "cross_entropy" and isinstance(first, torch.Tensor) and first.shape == target.shape and first.dim() > 1:
        return target.numel() // int(first.shape[1])  # class probabilities: one item for each distribution
    return target.numel()


def read_loss(root: Any, gradient: Any = None) -> LossInfo:
    """Walk from a backward root (a tensor, or what `torch.autograd.backward` accepts) to its loss."""
    if isinstance(root, list | tuple):
        if len(root) != 1:
            return LossInfo(name="several roots")
        root = root[0]
        gradient = gradient[0] if isinstance(gradient, list | tuple) and gradient else gradient
    info = LossInfo()
    if not isinstance(root, torch.Tensor) or root.grad_fn is None or root.numel() != 1:
        return info
    if isinstance(gradient, torch.Tensor) and gradient.numel() == 1:
        info.times(gradient, False)
    try:
        _walk(root.grad_fn, info, 0)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return LossInfo()  # a graph already freed, or nodes of another torch version: unknown, never a crash
    return info


def glance(root: Any) -> tuple[str, str, int | None] | None:
    """Name, reduction and batch size of a loss that a known function made and that was only scaled since.

    None for anything else, which is for `read_loss` to find out: this is the short way for a trace of events alone.
    """
    node: Any = root.grad_fn if isinstance(root, torch.Tensor) and not root.ndim else None
    for _ in range(4):
        if node is None:
            return None
        tags = node.metadata
        tag = tags.get(LOSS_TAG)
        if tag is not None and SCALE_TAG not in tags:
            return tag[0], tag[1], tag[2]
        kind, parents = type(node).__name__, node.next_functions
        if kind not in _SCALINGS or not parents or (kind.startswith("Div") and parents[0][0] is None):
            return None
        node = parents[0][0]
        if len(parents) > 1:
            other = parents[1][0]
            if node is not None and other is not None:
                return None
            node = other if node is None else node
    return None


def _walk(node: Any, info: LossInfo, depth: int) -> None:
    for _ in range(_MAX_DEPTH):
        tags = node.metadata
        if SCALE_TAG in tags:
            info.scale.times(tags[SCALE_TAG])
            node = next(p for p, _ in node.next_functions if p is not None)
            continue
        stem = _stem(type(node).__name__)
        tag = tags.get(LOSS_TAG)
        if tag is not None or (stem not in _ARITHMETIC and hasattr(node, "_saved_reduction")):
            _leaf(node, tag, stem, info)
            return
        parents = [parent for parent, _ in node.next_functions]
        live = [p for p in parents if p is not None]
        if stem in ("MulBackward", "DivBackward") and len(live) == 1:
            other = _other(node, parents)
            if other is None:
                return
            divide = stem == "DivBackward"
            info.times(other, divide)
            if divide:
                info.divisors.append(Lazy())
                info.divisors[-1].times(other)
            node = live[0]
        elif stem in _PASS and len(live) == 1:
            node = live[0]
        elif stem in ("AddBackward", "SubBackward"):
            if len(live) == 1:
                info.addends += len(parents) - 1
                node = live[0]
                continue
            _terms(live, info, depth)
            return
        elif stem == "MeanBackward":
            sizes = tuple(node._saved_self_sym_sizes)
            if node._saved_self_sym_numel == 1 and live:
                node = live[0]
                continue
            info.name, info.reduction = "mean", "mean"
            info.batch_size = int(sizes[0]) if sizes else None
            info.items = Lazy(float(node._saved_self_sym_numel))
            return
        elif stem == "SumBackward":
            sizes = tuple(node._saved_self_sym_sizes)
            numel = 1
            for size in sizes:
                numel *= int(size)
            if numel == 1 and live:
                node = live[0]
                continue
            info.name, info.reduction = "sum", "sum"
            info.batch_size = int(sizes[0]) if sizes else None
            info.items = Lazy(float(numel))
            info.candidates = [Lazy(float(numel)), *([Lazy(float(sizes[0]))] if sizes else [])]
            return
        else:
            return


@functools.cache
def _stem(name: str) -> str:
    return name.rstrip("0123456789")


def _other(node: Any, parents: list[Any]) -> Any:
    """The operand without a gradient of a scalar Mul or Div; None when it is not one number."""
    if len(parents) > 1 and parents[0] is None:
        if type(node).__name__.startswith("Div"):
            return None  # number / loss is no scaling
        value = node._saved_self
    else:
        value = node._saved_other
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            return None
        return float(value) if value.is_cpu else value
    return value if isinstance(value, int | float) else None


def _leaf(node: Any, tag: Tag | None, stem: str, info: LossInfo) -> None:
    info.counted = True
    items: int | None = None
    if tag is not None:
        info.name, info.reduction, info.batch_size, items = tag
    else:
        info.name = stem.removesuffix("Backward")
        info.reduction = {1: "mean", 2: "sum"}.get(int(node._saved_reduction), "unknown")
        saved = node._saved_self
        info.batch_size = int(saved.shape[0]) if saved.dim() else None
    weight = getattr(node, "_saved_total_weight", None)
    if isinstance(weight, torch.Tensor) and weight.numel() == 1:
        info.items = Lazy()
        info.items.times(weight)
    elif items is not None:
        info.items = Lazy(float(items))
    if info.items is not None:
        info.candidates = [info.items]
    if info.batch_size is not None:
        info.candidates = [*info.candidates, Lazy(float(info.batch_size))]


def _terms(live: list[Any], info: LossInfo, depth: int) -> None:
    """A sum of losses: a factor that all terms share belongs to the whole, others are their weights."""
    if depth >= 8:
        return
    parts = []
    for parent in live:
        part = LossInfo()
        _walk(parent, part, depth + 1)
        parts.append(part)
    factors = [part.factor.value() for part in parts]
    reductions = {part.reduction for part in parts}
    info.addends += sum(part.addends for part in parts) - 1
    known = next((p for p in parts if p.reduction == "mean"), parts[0])
    if reductions == {"sum"} and len({round(f, 12) for f in factors}) == 1:
        chosen = parts[0]
        info.candidates, info.divisors = chosen.candidates, [*info.divisors, *chosen.divisors]
    elif "sum" in reductions:
        known = LossInfo()
    info.name = " + ".join(dict.fromkeys(p.name for p in parts))
    info.reduction, info.batch_size, info.items = known.reduction, known.batch_size, known.items
    info.counted = known.counted
    shared = factors[0]
    if all(abs(f - shared) <= 1e-9 * abs(shared) for f in factors):
        info.times(1 / shared if shared else 0.0, True)
    else:
        info.terms = [t for p, f in zip(parts, factors, strict=True) for t in (p.terms or [f])]
