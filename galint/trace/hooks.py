"""Install the hooks that feed a recorder, and take every one of them away again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim import lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from galint.trace import leftovers
from galint.trace.losses import FUNCTIONS, SCALE_TAG, tagging
from galint.trace.patching import Patches
from galint.trace.recorder import Recorder, StopTracing


def _quiet(recorder: Recorder, action: Callable[..., Any]) -> Callable[..., Any]:
    """A hook must never break the run it watches: its own failure ends the trace, not the script."""

    def safe(*args: Any, **kwargs: Any) -> Any:
        if recorder.internal is not None:
            return None
        try:
            return action(*args, **kwargs)
        except StopTracing:
            raise
        except Exception as error:
            recorder.internal = f"{type(error).__name__}: {error}"
            return None

    return safe


class Hooks:
    """All hooks of one trace. `install` and `remove` may each be called once."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.patches = Patches()
        self.handles: list[Any] = []

    def install(self) -> None:
        """Patch torch for this process until `remove`."""
        recorder, replace = self.recorder, self.patches.replace
        replace(torch.autograd, "backward", self._backward)
        self._optimizers()
        replace(torch.nn.Module, "zero_grad", lambda f: _before(f, _quiet(recorder, recorder.module_zeroed)))
        self._clips()
        self._scaler()
        self._schedulers()
        self._loaders()
        self._ddp()
        for name in FUNCTIONS:
            replace(torch.nn.functional, name, functools.partial(tagging, name, recorder.sampling))

    def remove(self) -> None:
        """Restore torch."""
        self.patches.undo()
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.recorder.remove()

    def _backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self.recorder

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:
            return recorder.backward(original, args, kwargs)

        return backward

    def _optimizers(self) -> None:
        recorder = self.recorder
        known = _quiet(recorder, recorder.state)

        def created(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def init(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
                original(self, *args, **kwargs)
                if recorder.only is None:
                    known(self)

            return init

        self.patches.replace(torch.optim.Optimizer, "__init__", created)
        self.patches.replace(
            torch.optim.Optimizer, "zero_grad", lambda f: _before(f, _quiet(recorder, recorder.zeroed))
        )
        self.handles.append(register_optimizer_step_pre_hook(_quiet(recorder, recorder.before)))
        self.handles.append(register_optimizer_step_post_hook(_quiet(recorder, recorder.after)))

    def _clips(self) -> None:
        clipping = _quiet(self.recorder, self.recorder.clipping)
        from torch.nn.utils import clip_grad

        def by_norm(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def clip(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
                parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
                clipping(parameters, "norm", float(max_norm))
                return original(parameters, max_norm, *args, **kwargs)

            return clip

        def by_value(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def clip(parameters: Any, clip_value: Any, *args: Any, **kwargs: Any) -> Any:
                parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
                clipping(parameters, "value", float(clip_value))
                return original(parameters, clip_value, *args, **kwargs)

            return clip

        # The inner function is looked up by name at each call, so names imported earlier are seen too.
        if not self.patches.replace(clip_grad, "_clip_grads_with_norm_", by_norm):
            for owner in (clip_grad, torch.nn.utils):
                self.patches.replace(owner, "clip_grad_norm_", by_norm)
        for owner in (clip_grad, torch.nn.utils):
            self.patches.replace(owner, "clip_grad_value_", by_value)

    def _scaler(self) -> None:
        recorder = self.recorder
        unscaling, updated, skipped = (
            _quiet(recorder, f) for f in (recorder.unscaling, recorder.updated, recorder.skipped)
        )
        failed = _quiet(recorder, functools.partial(leftovers.unscale_failed, recorder))
        unchecked = _quiet(recorder, functools.partial(leftovers.update_failed, recorder))
        scaler_class = torch.amp.grad_scaler.GradScaler

        def scale(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def scaled(self: Any, outputs: Any) -> Any:
                result = original(self, outputs)
                node: Any = result.grad_fn if isinstance(result, torch.Tensor) else None
                value = getattr(self, "_scale", None)  # a disabled scaler has none
                if node is not None and isinstance(value, torch.Tensor):
                    node.metadata[SCALE_TAG] = value.detach().clone()
                return result

            return scaled

        def unscale(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def unscale_(self: Any, optimizer: Any) -> Any:
                try:
                    result = original(self, optimizer)
                except RuntimeError as error:
                    failed(_inner(optimizer), str(error))
                    raise
                if self.is_enabled():
                    unscaling(self, _inner(optimizer))
                return result

            return unscale_

        def step(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def stepping(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
                inner = _inner(optimizer)
                recorder.stepped.discard(id(inner))
                recorder.in_scaler_step = True
                try:
                    result = original(self, optimizer, *args, **kwargs)
                finally:
                    recorder.in_scaler_step = False
                if self.is_enabled() and id(inner) not in recorder.stepped:
                    skipped(inner)
                return result

            return stepping

        def update(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def updating(self: Any, *args: Any, **kwargs: Any) -> Any:
                if not self.is_enabled():
                    return original(self, *args, **kwargs)
                before = float(self.get_scale())
                try:
                    result = original(self, *args, **kwargs)
                except AssertionError as error:
                    unchecked(str(error))
                    raise
                updated(before, float(self.get_scale()))
                return result

            return updating

        for name, wrap in (("scale", scale), ("unscale_", unscale), ("step", step), ("update", update)):
            self.patches.replace(scaler_class, name, wrap)

    def _schedulers(self) -> None:
        scheduled = _quiet(self.recorder, self.recorder.scheduled)
        depth = [0]

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def step(self: Any, *args: Any, **kwargs: Any) -> Any:
                # Constructors take an initial step, and chained schedulers step their parts.
                if depth[0] == 0 and not _in_init(self):
                    scheduled(self)
                depth[0] += 1
                try:
                    return original(self, *args, **kwargs)
                finally:
                    depth[0] -= 1

            return step

        for value in {v for v in vars(lr_scheduler).values() if isinstance(v, type)}:
            if issubclass(value, lr_scheduler.LRScheduler) and "step" in value.__dict__:
                self.patches.replace(value, "step", wrap)
        from torch.optim.swa_utils import AveragedModel

        averaged = _quiet(self.recorder, self.recorder.averaged)
        self.patches.replace(AveragedModel, "update_parameters", lambda f: _before(f, lambda _self: averaged()))

    def _loaders(self) -> None:
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        drawn = _quiet(self.recorder, self.recorder.drawn)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def following(self: Any) -> Any:
                try:
                    batch = original(self)
                except StopIteration:
                    drawn(self, True)
                    raise
                drawn(self, False)
                return batch

            return following

        self.patches.replace(_BaseDataLoaderIter, "__next__", wrap)

    def _ddp(self) -> None:
        if not torch.distributed.is_available():
            return
        from torch.nn.parallel import DistributedDataParallel

        recorder = self.recorder
        forward = _quiet(recorder, recorder.wrapped_forward)
        entered = _quiet(recorder, recorder.no_sync)
        self.patches.replace(DistributedDataParallel, "_pre_forward", lambda f: _before(f, forward))

        def wrapping(original: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(original)
            def init(self: Any, *args: Any, **kwargs: Any) -> None:
                original(self, *args, **kwargs)
                recorder.collectives.add(self)  # also one whose forward is never called: its gradients stay local

            return init

        self.patches.replace(DistributedDataParallel, "__init__", wrapping)

        def no_sync(original: Callable[..., Any]) -> Callable[..., Any]:
            @contextmanager
            @functools.wraps(original)
            def context(self: Any) -> Any:
                entered(True)
                with original(self):
                    yield
                entered(False)

            return context

        self.patches.replace(DistributedDataParallel, "no_sync", no_sync)


def _before(original: Callable[..., Any], action: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        action(self)
        return original(self, *args, **kwargs)

    return method


def _in_init(scheduler: Any) -> bool:
    return getattr(scheduler, "_is_initial", False) or not hasattr(scheduler, "_last_lr")


def _inner(optimizer: Any) -> torch.optim.Optimizer:
    """The torch optimizer inside a wrapper such as Accelerate's."""
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer
