"""What no step closes: micro-batches left at the end, and scaler calls that raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from galint.trace.model import ENDED, Window

if TYPE_CHECKING:
    from galint.trace.recorder import Recorder


def finish(recorder: Recorder) -> None:
    """The script came to its end: what no step applied is told in a last, unmeasured window."""
    for state in [] if recorder.stopped or recorder.internal else list(recorder.states.values()):
        left = [e.micro for e in state.pending if e.coefficient != 0 and e.micro.seq not in recorder.applied]
        if not left:
            continue
        window = Window(state.index, state.label, left[-1].file, left[-1].line, rank=recorder.rank)
        window.unsupported = ENDED
        window.dropped = len({m.batch for m in left})
        window.dropped_at = (left[-1].file, left[-1].line)
        state.pending = []
        recorder.sink(window)


def update_failed(recorder: Recorder, error: str) -> None:
    """`scaler.update` refused to run where no gradients were checked since the one before."""
    event = recorder.emit("scaler.update", error=error)
    for state in recorder.states.values():
        if state.pending:
            state.note("scaler_updates", event.file, event.line, old=0.0, new=0.0, error=error)
            window = state.close(event.file, event.line, event.seq, recorder.rank, set())
            window.unsupported = "`scaler.update` raises an error"
            recorder.sink(window)


def unscale_failed(recorder: Recorder, optimizer: torch.optim.Optimizer, error: str) -> None:
    """`scaler.unscale_` refused to run a second time in one window."""
    state = recorder.state(optimizer)
    event = recorder.emit("unscale_", error=error)
    if state is None or "already been called" not in error:
        return
    state.note("unscales", event.file, event.line, error=error, implicit=False)
    window = state.close(event.file, event.line, event.seq, recorder.rank, set())
    window.unsupported = "`unscale_` raises an error"
    recorder.sink(window)
