"""The Python API: trace a loop in this process and assert that it applies the large batch's gradient."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

import torch

from galint.trace import leftovers
from galint.trace.hooks import Hooks
from galint.trace.judge import informs, judge
from galint.trace.measures import agrees, number, weights
from galint.trace.model import Event, Header, Status, Trace, Verdict, Window, add
from galint.trace.recorder import Recorder


class NotTheLargeBatch(AssertionError):
    """A window's step did not apply the gradient of the large batch, or nothing was measured."""


class Watch:
    """A trace in the making; use it as a context manager.

    `windows`, `events` and `verdicts` can be read during and after the block. Only one watch can be active
    in a process.
    """

    _active: Watch | None = None

    def __init__(
        self,
        model: torch.nn.Module | None = None,
        optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
        *,
        sampling: bool = True,
    ) -> None:
        self.model = model
        only = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else optimizer
        self._only = None if only is None else list(only)
        self.trace = Trace(Header(argv=list(sys.argv), torch=torch.__version__))
        self.recorder = Recorder(functools.partial(add, self.trace), sampling=sampling, only=self._only)
        self._hooks = Hooks(self.recorder)

    def __enter__(self) -> Self:
        if Watch._active is self:
            return self  # `with galint_watch(…) as t:` in a test: the fixture has begun it
        if Watch._active is not None:
            raise RuntimeError("another galint.trace.watch is active in this process")
        Watch._active = self
        try:
            self._start()
        except BaseException:
            self._hooks.remove()
            Watch._active = None
            raise
        return self

    def _start(self) -> None:
        self._hooks.install()
        for optimizer in self._only or ():
            self.recorder.state(optimizer)
        if self.model is not None and self._only is None:
            self._find_optimizers()
        for module in self.model.modules() if self.model is not None else ():
            if isinstance(module, torch.nn.parallel.DistributedDataParallel):
                self.recorder.collectives.add(module)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if Watch._active is not self:
            return
        if error is None:
            leftovers.finish(self.recorder)
        self._hooks.remove()
        Watch._active = None
        how = "finished" if error is None else "failed"
        self.trace.end = {"type": "end", "how": how, "error": "" if error is None else f"{kind}: {error}"}
        self.trace.verdicts = judge(self.trace)

    def _find_optimizers(self) -> None:
        """Optimizers that exist already and hold parameters of the model."""
        import gc

        assert self.model is not None
        members = {id(p) for p in self.model.parameters()}
        for candidate in gc.get_objects():
            # The type itself: isinstance asks objects for `__class__`, and lazy ones answer with warnings.
            if issubclass(type(candidate), torch.optim.Optimizer) and any(
                id(p) in members for g in candidate.param_groups for p in g["params"]
            ):
                self.recorder.state(candidate)

    @property
    def windows(self) -> list[Window]:
        """The closed windows so far."""
        return self.trace.windows

    @property
    def events(self) -> list[Event]:
        """The events so far."""
        return self.trace.events

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts about the windows so far."""
        return self.trace.verdicts or judge(self.trace)

    @property
    def confirmed(self) -> list[Verdict]:
        """Faults that a number shows, notes left out."""
        return [v for v in self.verdicts if v.status is Status.CONFIRMED and not informs(v.rule)]

    def assert_large_batch(self, *, windows: int = 1, allow: Iterable[str] = ()) -> None:
        """Raise NotTheLargeBatch unless every full window applied the large batch's gradient.

        At least `windows` windows must have been measured. `allow` names rule codes to let pass, and their
        windows with them. Short windows at the end of an epoch are informed about, not failed.
        """
        __tracebackhide__ = True
        if self.recorder.internal is not None:
            raise NotTheLargeBatch(f"the trace failed inside: {self.recorder.internal}")
        measured = [w for w in self.windows if w.measured and w.n]
        if len(measured) < windows:
            reasons = {w.unsupported for w in self.windows if w.unsupported} or {"too few steps ran"}
            raise NotTheLargeBatch(
                f"{len(measured)} windows were measured, {windows} are wanted: {', '.join(map(str, reasons))}"
            )
        allowed = set(allow)
        excused = {(v.optimizer, i) for v in self.verdicts if v.rule in allowed for i in v.windows}
        problems = [
            f"{v.filename}:{v.line}: {v.rule} {v.reason} ({v.measured})"
            for v in self.confirmed
            if v.rule not in allowed
        ]
        problems += [
            f"{w.file}:{w.line}: window {w.index} of {w.optimizer}: {weights(w)}, "
            f"relative error {number(w.relative_error)}"
            for w in measured
            if not w.tail and not agrees(w) and (w.optimizer, w.index) not in excused
        ]
        if problems:
            raise NotTheLargeBatch("the applied gradient is not the large batch's\n  " + "\n  ".join(problems))


def watch(
    model: torch.nn.Module | None = None,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    *,
    sampling: bool = True,
) -> Watch:
    """Watch a training loop: `with galint.trace.watch(model, optimizer) as t: ...`.

    Without `optimizer`, those that hold parameters of `model` and those created inside the block are watched.
    Without either, all that are created inside it. `sampling=False` records events without gradients.
    """
    return Watch(model, optimizer, sampling=sampling)
