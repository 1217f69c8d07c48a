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
from collections.abc import Callable
from typing import Any

import torch

from galint.trace.batching import (
    Call,
    NotReplayable,
    add,
    bare,
    detached,
    device_of,
    gradients,
    joined,
    joined_cotangents,
    quiet_randomness,
    restored_buffers,
    samples_of,
    tensors_in,
)
from galint.trace.location import users_frame
from galint.trace.measures import number
from galint.trace.model import Status, Verdict
from galint.trace.patching import Patches
from galint.trace.recorder import Recorder
from galint.trace.state import OptimizerState

FP32, AUTOCAST, BF16 = 1e-4, 1e-2, 5e-2
"""Relative errors that a replay may have without coupling: measured over fp32, autocast and bf16 parameters."""

COUPLED = 1e-3
"""Mixed curvature above this part of the sample's own is coupling, not rounding."""

FEATURES = 1024
"""Elements of a module's output that are kept for each sample, to find the first module that differs."""


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
            record = Call(bare(module), *kept, file, line, torch.is_autocast_enabled(device_of(module).type))
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
            device = device_of(module)
            sizes = [samples_of(c) for c in column]
            args = joined([c.args for c in column], sizes)
            kwargs = joined([c.kwargs for c in column], sizes)
            cotangents = joined_cotangents(column)
            spies: list[_Spy] = []
            for call in column:
                with quiet_randomness(device), restored_buffers(module), _Spy(module) as spy:
                    add(small, gradients(module, call, call.args, call.kwargs, call.cotangents, parameters))
                spies.append(spy)
            with quiet_randomness(device), restored_buffers(module), _Spy(module) as whole:
                add(large, gradients(module, column[0], args, kwargs, cotangents, parameters))
            differing = differing or _first_difference(spies, whole, _tolerance(column, parameters))
        tolerance = max(_tolerance([m[i] for m in calls], parameters) for i in range(len(calls[0])))
        gap = sum(float((a.double() - b.double()).square().sum()) for a, b in zip(small, large, strict=True)) ** 0.5
        size = sum(float(b.double().square().sum()) for b in large) ** 0.5
        error = gap / size if size else 0.0
        counts = " + ".join(str(samples_of(m[0])) for m in calls[:8])
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


def _tolerance(column: list[Call], parameters: list[torch.Tensor]) -> float:
    if any(p.dtype in (torch.bfloat16, torch.float16) for p in parameters):
        return BF16
    return AUTOCAST if any(c.autocast for c in column) else FP32


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
