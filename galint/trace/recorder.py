"""Turn hooked calls into events and windows: the bookkeeping between backward, zero_grad and step."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch

from galint.trace.collectives import Collectives
from galint.trace.draws import Draws
from galint.trace.location import users_frame
from galint.trace.losses import glance, read_loss
from galint.trace.measures import divided_by
from galint.trace.model import Event, Record, Window
from galint.trace.state import OptimizerState, Pending, fused_scale_of, micro_of

MAX_EVENTS = 100_000
"""Events kept for one trace; a run that never steps must not fill the memory."""


class StopTracing(BaseException):
    """Enough windows were traced. Not an Exception, so that `except Exception` lets it pass."""


class Recorder:
    """Receives what the hooks see. `sink` gets each event and window; `sampling=False` records events alone.

    `only` limits the trace to these optimizers. After `limit` windows of every optimizer that steps,
    StopTracing is raised at the user's step.
    """

    def __init__(
        self,
        sink: Callable[[Record], None],
        *,
        rank: int = 0,
        sampling: bool = True,
        only: Iterable[torch.optim.Optimizer] | None = None,
        limit: int | None = None,
        on_window: Callable[[Window, OptimizerState, torch.optim.Optimizer], None] | None = None,
        before_step: Callable[[OptimizerState, torch.optim.Optimizer], None] | None = None,
        rows_wanted: bool = False,
    ) -> None:
        self.sink = sink
        self.rank = rank
        self.sampling = sampling
        self.only = None if only is None else {id(o) for o in only}
        self.limit = limit
        self.on_window = on_window
        self.before_step = before_step
        self.rows_wanted = rows_wanted
        self.states: weakref.WeakKeyDictionary[torch.optim.Optimizer, OptimizerState] = weakref.WeakKeyDictionary()
        self.iterators: weakref.WeakKeyDictionary[Any, Draws] = weakref.WeakKeyDictionary()
        self.current: Draws | None = None
        self.boundary_in: int | None = None
        self.collectives = Collectives()
        self.forward_sync: bool | None = None
        self.depth = 0
        self.seq = 0
        self.events = 0
        self.stopped = False
        self.swallowed = 0
        self.on_swallowed: Callable[[int], None] | None = None
        """Called when the script goes on after StopTracing, with how often it has."""
        self.internal: str | None = None
        self.applied: dict[int, set[str]] = {}
        self.in_scaler_step = False
        self.stepped: set[int] = set()
        self.batch = 0
        self.batch_lines: set[tuple[str, int]] = set()
        self.draws_at_batch = 0
        self.losses_a_batch: int | None = None
        self.draws = 0
        self.labels: Counter[str] = Counter()
        self.holding: dict[int, torch.optim.Optimizer] = {}
        """Optimizers with a window begun: a script's globals may be gone when its end is told."""

    # --- events --------------------------------------------------------------------------------

    def emit(self, kind: str, **data: Any) -> Event:
        """Record an event at the user's line."""
        file, line, function = users_frame()
        self.seq += 1
        event = Event(self.seq, kind, file, line, function, self.rank, data)
        self.events += 1
        if self.events <= MAX_EVENTS:
            self.sink(event)
        return event

    def state(self, optimizer: torch.optim.Optimizer) -> OptimizerState | None:
        """The optimizer's state, created when it is first seen; None when it is not traced."""
        if self.only is not None and id(optimizer) not in self.only:
            return None
        state = self.states.get(optimizer)
        if state is None:
            name = type(optimizer).__name__
            self.labels[name] += 1
            label = name if self.labels[name] == 1 else f"{name} #{self.labels[name]}"
            state = self.states[optimizer] = OptimizerState(optimizer, label, self.sampling)
            if isinstance(optimizer, torch.optim.LBFGS):
                state.unsupported = "LBFGS evaluates the loss several times in one step"
        return state

    # --- backward ------------------------------------------------------------------------------

    def backward(self, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one backward and record it as a micro-batch of every optimizer that it reaches."""
        if self.depth or self.stopped or self.internal:
            return original(*args, **kwargs)
        root = args[0] if args else kwargs.get("tensors")
        gradient = args[1] if len(args) > 1 else kwargs.get("grad_tensors")
        # Events alone tell the loss; what it was multiplied with takes the whole walk.
        seen = None if self.sampling else glance(root)
        info = None
        if seen is None:
            info = read_loss(root, gradient)
            seen = info.name, info.reduction, info.batch_size
        event = self.emit("backward", loss=seen[0], batch_size=seen[2], reduction=seen[1])
        states = []
        if self.sampling:
            for optimizer, state in list(self.states.items()):
                state.refresh(optimizer)
                state.sampler.begin()
                states.append(state)
                self.holding[id(optimizer)] = optimizer
        before = self.collectives.counts() if self.collectives.any else {}
        self.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.depth -= 1
            try:
                self._after_backward(states, info, event, before)
            except Exception as error:  # the trace ends, the script goes on
                self.internal = f"{type(error).__name__}: {error}"

    def _after_backward(self, states: list[OptimizerState], info: Any, event: Event, before: dict[int, int]) -> None:
        reduces, size, synced = self.collectives.since(before)
        # Backwards at different lines without a batch drawn or a step taken between them are losses of one batch.
        line = (event.file, event.line)
        # A first micro-batch with fewer losses shows that a further line is the next batch, not another loss.
        full = self.losses_a_batch is not None and len(self.batch_lines) >= self.losses_a_batch
        if line in self.batch_lines or self.draws != self.draws_at_batch or full:
            if self.losses_a_batch is None and self.batch_lines:
                self.losses_a_batch = len(self.batch_lines)
            self._next_batch()
        self.batch_lines.add(line)
        event.data["allreduces"] = reduces
        for state in states:
            row = state.sampler.end()
            state.unsupported = state.sampler.trouble or state.unsupported
            if row is None:
                continue
            micro = micro_of(info, event.file, event.line, event.seq, self.batch, state.boundary)
            state.boundary = False
            micro.allreduces, micro.bytes, micro.synced = reduces, size, synced
            state.pending.append(Pending(micro, row, info))
            state.preclip = None
        if self.current is not None:
            self.current.micros += 1
        if self.boundary_in is not None:
            self.boundary_in -= 1
            if self.boundary_in <= 0:
                self._boundary()

    def _next_batch(self) -> None:
        self.batch += 1
        self.batch_lines = set()
        self.draws_at_batch = self.draws

    # --- zeroing, clipping, scaling ------------------------------------------------------------

    def zeroed(self, optimizer: torch.optim.Optimizer) -> None:
        """`optimizer.zero_grad()` is about to run."""
        state = self.state(optimizer)
        event = self.emit("zero_grad", optimizer=state.label if state else type(optimizer).__name__)
        if state is not None:
            state.clear(event.file, event.line)

    def module_zeroed(self, module: torch.nn.Module) -> None:
        """`module.zero_grad()` is about to run: it clears the optimizers whose parameters it holds."""
        event = self.emit("zero_grad", module=type(module).__name__)
        held = {id(p) for p in module.parameters()}
        for state in self.states.values():
            if state.members <= held:
                state.clear(event.file, event.line)

    def clipping(self, parameters: Iterable[torch.Tensor], kind: str, limit: float) -> None:
        """Gradients are about to be clipped: keep what they were."""
        members = {id(p) for p in parameters}
        event = self.emit("clip", how=kind, limit=limit)
        for state in self.states.values():
            if not (state.members & members) or not self.sampling:
                continue
            snapshot = state.sampler.snapshot()
            scales = [e.info.scale.value() for e in state.pending if e.coefficient != 0]
            pending_scale = 1.0 if state.unscaled else max(scales, default=1.0)
            state.note(
                "clips", event.file, event.line, how=kind, limit=limit, scale=pending_scale, norm=float(snapshot.norm())
            )
            if state.preclip is None:
                state.preclip = snapshot

    def unscaling(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        """`scaler.unscale_` has run."""
        state = self.state(optimizer)
        scale = float(scaler.get_scale())
        event = self.emit("unscale_", scale=scale, implicit=self.in_scaler_step)
        if state is not None:
            state.note("unscales", event.file, event.line, scale=scale, implicit=self.in_scaler_step)
            state.unscale(scale)

    def updated(self, before: float, after: float) -> None:
        """`scaler.update()` has run."""
        event = self.emit("scaler.update", before=before, after=after)
        for state in self.states.values():
            if state.pending:
                state.note("scaler_updates", event.file, event.line, old=before, new=after)

    def scheduled(self, scheduler: Any) -> None:
        """A learning-rate scheduler advances."""
        event = self.emit("scheduler.step", scheduler=type(scheduler).__name__)
        optimizer = getattr(scheduler, "optimizer", None)
        state = self.states.get(optimizer) if isinstance(optimizer, torch.optim.Optimizer) else None
        if state is not None:
            state.note("scheduler_steps", event.file, event.line)

    def averaged(self) -> None:
        """A moving average of the weights is updated."""
        event = self.emit("average", what="AveragedModel.update_parameters")
        for state in self.states.values():
            state.note("side_effects", event.file, event.line, what="AveragedModel.update_parameters")

    def no_sync(self, entered: bool) -> None:
        """DDP's `no_sync` is entered or left."""
        event = self.emit("no_sync", entered=entered)
        if entered:
            for state in self.states.values():
                state.note("no_sync_lines", event.file, event.line)

    def wrapped_forward(self, wrapper: Any) -> None:
        """A DDP wrapper runs its forward: the flag it reads now decides whether backward communicates."""
        self.collectives.add(wrapper)
        self.forward_sync = bool(wrapper.require_backward_grad_sync)
        if torch.is_grad_enabled():
            self.emit("forward", sync=self.forward_sync)

    # --- data loaders --------------------------------------------------------------------------

    def drawn(self, iterator: Any, exhausted: bool) -> None:
        """A data loader iterator gave a batch, or had none left."""
        draws = self.iterators.get(iterator)
        if draws is None:
            length: int | None = None
            with suppress(Exception):
                length = len(iterator)
            draws = self.iterators[iterator] = Draws(length)
        if not exhausted:
            draws.drawn += 1
            self.draws += 1
            self.current = draws
            return
        # A validation loader feeds no backward; a training loader may be read some batches ahead.
        if draws.micros * 2 < draws.drawn or draws.drawn == 0:
            return
        ahead = draws.drawn - draws.micros
        if 0 < ahead <= 2:
            self.boundary_in = ahead
        else:
            self._boundary()

    def _boundary(self) -> None:
        self.boundary_in = None
        self.emit("epoch")
        for state in self.states.values():
            state.boundary = True

    def _at_end_of_epoch(self) -> bool:
        """Whether the training loader has given its last batch."""
        if self.boundary_in is not None or any(s.boundary for s in self.states.values()):
            return True
        draws = self.current
        return draws is not None and draws.length is not None and draws.drawn >= draws.length

    # --- steps ---------------------------------------------------------------------------------

    def before(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        """Global pre-step hook: capture what will be applied, after a closure when there is one."""
        if self.stopped or self.internal:
            return None
        state = self.state(optimizer)
        if state is None or not self.sampling:
            return None
        if self.depth:
            state.unsupported = "the optimizer steps inside backward"
            return None
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if state.unsupported is not None:
            return None
        if not callable(closure):
            self._capture(optimizer, state)
            return None

        def with_capture() -> Any:
            loss = closure()
            self._capture(optimizer, state)
            return loss

        if "closure" in kwargs:
            return args, {**kwargs, "closure": with_capture}
        return (args[0], with_capture, *args[2:]), kwargs

    def _capture(self, optimizer: torch.optim.Optimizer, state: OptimizerState) -> None:
        state.capture(fused_scale_of(optimizer))
        if self.before_step is not None:
            self.before_step(state, optimizer)

    def after(self, optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
        """Global post-step hook: the window ends."""
        if self.stopped:
            self.swallowed += 1
            if self.on_swallowed is not None:
                self.on_swallowed(self.swallowed)
            raise StopTracing
        state = None if self.internal else self.state(optimizer)
        if state is None:
            return
        self.stepped.add(id(optimizer))
        self._next_batch()
        self.losses_a_batch = None
        event = self.emit("step", optimizer=state.label)
        self._close(optimizer, state, event, skipped=False)

    def skipped(self, optimizer: torch.optim.Optimizer) -> None:
        """`scaler.step` found infinities and did not step: the window ends without numbers."""
        state = self.state(optimizer)
        if state is None:
            return
        event = self.emit("skipped_step", optimizer=state.label)
        state.captured = None
        self._close(optimizer, state, event, skipped=True)

    def _close(self, optimizer: torch.optim.Optimizer, state: OptimizerState, event: Event, skipped: bool) -> None:
        elsewhere = {seq for seq, by in self.applied.items() if by - {state.label}}
        window = state.close(event.file, event.line, event.seq, self.rank, elsewhere)
        window.skipped = skipped
        window.loader = self.current is not None
        window.buckets = max((m.allreduces for m in window.micros), default=0) or None
        typical = max(state.lengths, key=state.lengths.__getitem__, default=window.n)
        window.tail = self._at_end_of_epoch() and window.n < max(typical, divided_by(window))
        for entry in state.pending:
            if entry.coefficient != 0 and not skipped:
                self.applied.setdefault(entry.micro.seq, set()).add(state.label)
        if len(self.applied) > 4096:
            self.applied = dict(list(self.applied.items())[-1024:])
        if self.on_window is not None:
            self.on_window(window, state, optimizer)
        state.next_window(window)
        self.holding.pop(id(optimizer), None)
        self.sink(window)
        if self.limit is not None and self._enough():
            self.stopped = True
            raise StopTracing

    def _enough(self) -> bool:
        assert self.limit is not None
        counts = [s.index for s in self.states.values() if s.index]
        return bool(counts) and (min(counts) >= self.limit or sum(counts) >= 4 * self.limit * len(counts))

    def remove(self) -> None:
        """Take all leaf hooks away."""
        for state in self.states.values():
            state.sampler.remove()
