"""Large-batch replay: run the forwards of one window again as one batch and compare gradients.

What the weights cannot show (BatchNorm, losses that couple samples) shows here. The inputs of the
root modules and the gradients that arrived at their outputs are kept for one window. At its step the
micro-batches are run again one by one and then joined, both with dropout off, buffers restored
and the random state forked, and the kept gradients are sent back through both. Where they
differ, the first module whose outputs differ couples the samples of a batch.

Whether the loss itself couples samples is asked of its curvature: a mean over samples has no mixed
second derivative between the outputs of two samples.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from galint.trace.judge import number
from galint.trace.location import users_frame
from galint.trace.model import Status, Verdict
from galint.trace.patching import Patches
from galint.trace.recorder import Recorder
from galint.trace.state import OptimizerState

FP32, AUTOCAST, BF16 = 1e-4, 1e-2, 5e-2
"""Relative errors that a replay may have without coupling: measured over fp32, autocast and bf16 parameters."""

COUPLED = 1e-3
"""Mixed curvature above this part of the sample's own is coupling, not rounding."""

_DROPOUTS = (
    "dropout",
    "alpha_dropout",
    "feature_dropout",
    "feature_alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
)
FEATURES = 1024
"""Elements of a module's output that are kept for each sample, to find the first module that differs."""


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


class Replayer:
    """Captures one window of each optimizer and replays it before its step.

    `verdicts` are about GA501 and GA502; `outcome` tells what happened, for people.
    """

    def __init__(self, window: int = 0) -> None:
        self.window = window
        self.calls: list[list[Call]] = []
        self.current: list[Call] = []
        self.verdicts: list[Verdict] = []
        self.outcome: dict[str, Any] = {"status": "no window was replayed"}
        self.coupling: tuple[float, str] | None = None
        self.done = False
        self._depth = 0
        self._busy = False

    def install(self, patches: Patches, recorder: Recorder) -> None:
        """Hook the forwards of root modules and look at each backward's root."""
        patches.replace(torch.nn.Module, "__call__", self._calling)

        def looking(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def backward(*args: Any, **kwargs: Any) -> Any:
                if recorder.depth or self.done:
                    return original(*args, **kwargs)
                root = args[0] if args else kwargs.get("tensors")
                if self.coupling is None and isinstance(root, torch.Tensor):
                    self.coupling = self._loss_coupling(root)
                result = original(*args, **kwargs)
                calls, self.current = [c for c in self.current if c.used], []
                if calls:
                    self.calls.append(calls)
                return result

            return backward

        patches.replace(torch.autograd, "backward", looking)

    def _calling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._depth or self._busy or self.done or not torch.is_grad_enabled() or torch.compiler.is_compiling():
                return original(module, *args, **kwargs)
            if not any(p.requires_grad for p in module.parameters()):
                return original(module, *args, **kwargs)  # a loss module: it belongs to the loss
            kept = (detached(args), detached(kwargs))
            self._depth += 1
            try:
                result = original(module, *args, **kwargs)
            finally:
                self._depth -= 1
            file, line, _ = users_frame()
            record = Call(bare(module), *kept, file, line, torch.is_autocast_enabled(_device(module).type))
            self._outputs = tensors_in(result)
            self._follow(record, self._outputs)
            self.current.append(record)
            return result

        return call

    def _follow(self, record: Call, outputs: list[torch.Tensor]) -> None:
        record.cotangents = [None] * len(outputs)
        record.shapes = [o.shape for o in outputs]
        for index, output in enumerate(outputs):
            if not output.requires_grad or output.is_leaf:
                continue

            def keep(grad: torch.Tensor, index: int = index) -> None:
                if self._busy:
                    return
                before = record.cotangents[index]
                record.cotangents[index] = grad.detach().clone() if before is None else before + grad.detach()

            register: Any = output.register_hook  # untyped in torch
            register(keep)

    # --- does the loss couple samples? ---------------------------------------------------------

    def _loss_coupling(self, root: torch.Tensor) -> tuple[float, str] | None:
        """Mixed curvature of the loss between two samples, relative to a sample's own; None when it cannot be told."""
        outputs = [o for o in getattr(self, "_outputs", []) if o.requires_grad and o.dim() >= 1 and o.shape[0] > 1]
        if not outputs or root.numel() != 1:
            return None
        output = outputs[0]
        self._busy = True
        try:
            (first,) = torch.autograd.grad(root, output, create_graph=True, retain_graph=True, allow_unused=True)
            if first is None or not first.requires_grad:
                return 0.0, "the loss is linear in the outputs"
            generator = torch.Generator(device="cpu").manual_seed(0)
            direction = torch.randn(first[0].shape, generator=generator).to(first.device, first.dtype)
            (second,) = torch.autograd.grad((first[0] * direction).sum(), output, retain_graph=True, allow_unused=True)
        except (RuntimeError, NotImplementedError) as error:
            return float("nan"), f"the loss has no second derivative ({str(error).splitlines()[0]})"
        finally:
            self._busy = False
        if second is None:
            return 0.0, ""
        own, others = float(second[0].float().norm()), float(second[1:].float().norm())
        whole = (own * own + others * others) ** 0.5
        return (others / whole if whole > 0 else 0.0), ""

    # --- the replay ----------------------------------------------------------------------------

    def before_step(self, state: OptimizerState, optimizer: torch.optim.Optimizer) -> None:
        """Called before a step is taken, with the gradients of the window complete."""
        if self.done or self._busy or state.index < self.window:
            self.calls = []
            return
        calls, self.calls = self.calls, []
        if not calls:
            return
        self.done = True
        self._busy = True
        place = (calls[-1][-1].file, calls[-1][-1].line)
        try:
            self._replay(calls, state, place)
        except NotReplayable as error:
            self._say("GA501", Status.INCONCLUSIVE, place, "", f"not replayable: {error}", state)
            self.outcome = {"status": "not replayable", "reason": str(error)}
        except Exception as error:  # a model that does not run with a large batch must not end the user's run
            text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            self._say("GA501", Status.INCONCLUSIVE, place, "", f"the large batch does not run: {text}", state)
            self.outcome = {"status": "failed", "reason": text}
        finally:
            self._busy = False
        self._loss_verdict(state, place)

    def _replay(self, calls: list[list[Call]], state: OptimizerState, place: tuple[str, int]) -> None:
        kinds = {tuple(id(c.module) for c in micro) for micro in calls}
        if len(kinds) != 1:
            raise NotReplayable("the micro-batches do not run the same modules in the same order")
        if len(calls) < 2:
            raise NotReplayable("the window has one micro-batch")
        parameters = [p for p, *_ in state.sampler.slots]
        small = [torch.zeros_like(p) for p in parameters]
        large = [torch.zeros_like(p) for p in parameters]
        differing: str | None = None
        for position in range(len(calls[0])):
            column = [micro[position] for micro in calls]
            module = column[0].module
            device = _device(module)
            sizes = [_size(c) for c in column]
            args = joined([c.args for c in column], sizes)
            kwargs = joined([c.kwargs for c in column], sizes)
            cotangents = _joined_cotangents(column)
            spies: list[_Spy] = []
            for call in column:
                with quiet_randomness(device), restored_buffers(module), _Spy(module) as spy:
                    _add(small, _gradients(module, call, call.args, call.kwargs, call.cotangents, parameters))
                spies.append(spy)
            with quiet_randomness(device), restored_buffers(module), _Spy(module) as whole:
                _add(large, _gradients(module, column[0], args, kwargs, cotangents, parameters))
            differing = differing or _first_difference(spies, whole, _tolerance(column, parameters))
        tolerance = max(_tolerance([m[i] for m in calls], parameters) for i in range(len(calls[0])))
        gap = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(small, large, strict=True)) ** 0.5
        size = sum(float(b.double().square().sum()) for b in large) ** 0.5
        error = gap / size if size else 0.0
        counts = " + ".join(str(_size(m[0])) for m in calls[:8])
        measured = f"relative error {error:.2g} between micro-batches and one batch ({counts})"
        self.outcome = {"status": "replayed", "relative_error": error, "tolerance": tolerance, "module": differing}
        if error > tolerance:
            why = (
                f"`{differing}` couples the samples of a batch"
                if differing
                else "a module couples the samples of a batch"
            )
            known = differing is None or "Norm" in differing
            status = Status.CONFIRMED if known else Status.CONSISTENT
            self._say(
                "GA501", status, place, measured, f"{why}: it is the first whose output differs", state, tolerance
            )
        else:
            self._say(
                "GA501", Status.REFUTED, place, measured, "no module couples the samples of a batch", state, tolerance
            )

    def _loss_verdict(self, state: OptimizerState, place: tuple[str, int]) -> None:
        if self.coupling is None:
            return
        value, reason = self.coupling
        measured = f"{number(value * 100)} % of the loss's curvature lies between samples"
        if value != value:
            self._say("GA502", Status.INCONCLUSIVE, place, "", reason, state)
        elif value > COUPLED:
            why = "the loss couples the samples of a batch, so a mean over micro-batches is another loss"
            self._say("GA502", Status.CONFIRMED, place, measured, why, state)
        else:
            self._say("GA502", Status.REFUTED, place, measured, "the loss is a mean over samples", state)

    def _say(
        self,
        rule: str,
        status: Status,
        place: tuple[str, int],
        measured: str,
        reason: str,
        state: OptimizerState,
        tolerance: float | None = None,
    ) -> None:
        lines = {(e.micro.file, e.micro.line) for e in state.pending} | {place}
        reference = f"at most {number(tolerance)}" if tolerance is not None else ""
        self.verdicts.append(
            Verdict(rule, status, *place, measured, reference, reason, state.label, [state.index], sorted(lines))
        )


def _device(module: torch.nn.Module) -> torch.device:
    return next((p.device for p in module.parameters()), torch.device("cpu"))


def _size(call: Call) -> int:
    """Samples of a forward: the first dimension of its first batched input."""
    sizes = [t.shape[0] for t in tensors_in((call.args, call.kwargs)) if t.dim()]
    if not sizes:
        raise NotReplayable("a forward has no batched input")
    return int(sizes[0])


def _tolerance(column: list[Call], parameters: list[torch.Tensor]) -> float:
    if any(p.dtype in (torch.bfloat16, torch.float16) for p in parameters):
        return BF16
    return AUTOCAST if any(c.autocast for c in column) else FP32


def _joined_cotangents(column: list[Call]) -> list[torch.Tensor | None]:
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


def _gradients(
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
        stack.enter_context(torch.autocast(_device(module).type, enabled=call.autocast))
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


def _add(total: list[torch.Tensor], more: tuple[torch.Tensor | None, ...]) -> None:
    for into, grad in zip(total, more, strict=True):
        if grad is not None:
            into.add_(grad.detach())


class _Spy:
    """Keeps a sample of every submodule's output for the time of one forward, in the order they ran."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.outputs: list[tuple[str, torch.Tensor]] = []
        self._handles: list[Any] = []

    def __enter__(self) -> _Spy:
        for name, module in self.module.named_modules():
            if next(module.children(), None) is None:
                label = f"{name or 'the model'} ({type(module).__name__})"
                self._handles.append(module.register_forward_hook(functools.partial(self._see, label)))
        return self

    def _see(self, label: str, _module: torch.nn.Module, _args: Any, output: Any) -> None:
        for tensor in tensors_in(output):
            if tensor.dim() >= 1 and tensor.is_floating_point():
                flat = tensor.detach().reshape(tensor.shape[0], -1)
                step = max(1, flat.shape[1] // FEATURES)
                self.outputs.append((label, flat[:, ::step].clone()))

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _first_difference(spies: list[_Spy], whole: _Spy, tolerance: float) -> str | None:
    """The first submodule whose joined outputs are not those of the large batch."""
    for index, (label, large) in enumerate(whole.outputs):
        parts = [s.outputs[index][1] for s in spies if index < len(s.outputs)]
        if len(parts) != len(spies) or len({p.shape[1:] for p in parts}) != 1:
            continue
        small = torch.cat(parts)
        if small.shape != large.shape:
            continue
        size = float(large.double().norm())
        if size and float((small.double() - large.double()).norm()) / size > tolerance:
            return label
    return None
