"""Traces of several ranks: each keeps its samples in a file, and rank 0 solves over their average.

DDP applies the mean over ranks, which no rank's own gradients explain. A collective inside the
traced run could hang a program whose ranks diverge, so nothing is exchanged while it runs.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from galint.trace.losses import Lazy, LossInfo
from galint.trace.model import Status, Trace, Verdict, Window, read
from galint.trace.state import OptimizerState, Pending, measure

DIVERGED = 1e-6
"""Relative difference of parameters between ranks above which they have diverged (they should be bitwise equal)."""


class SampleFile:
    """Collects what a merge needs of each window; called by the recorder when a window closes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.windows: list[dict[str, Any]] = []

    def __call__(self, window: Window, state: OptimizerState, _optimizer: torch.optim.Optimizer) -> None:
        """Keep the window's samples on the CPU."""
        body: dict[str, Any] = {"optimizer": window.optimizer, "index": window.index}
        body["parameters"] = state.sampler.parameters().cpu()
        if state.captured is not None and state.pending:
            body["rows"] = torch.stack([e.row.cpu() for e in state.pending])
            body["coefficients"] = [e.coefficient for e in state.pending]
            body["applied"] = state.captured[0].cpu()
            body["stale"] = None if state.stale is None else state.stale.cpu()
            body["stale_coefficient"] = state.stale_coefficient
            # The single rank cannot explain an averaged gradient: its own weights would only mislead.
            window.w, window.relative_error, window.items_error, window.ratio, window.cosine = (
                [],
                None,
                None,
                None,
                None,
            )
        self.windows.append(body)

    def save(self) -> None:
        """Write the file, complete or not at all."""
        part = self.path.with_suffix(".part")
        torch.save(self.windows, part)
        part.replace(self.path)


def rank_path(output: Path, rank: int) -> Path:
    """The trace file of one rank: `trace.rank1.jsonl` beside `trace.jsonl`."""
    return output.with_name(f"{output.stem}.rank{rank}{output.suffix}")


def wait_for(output: Path, world: int, seconds: float) -> list[int]:
    """Wait until all ranks' sample files are there; the ranks that did not come."""
    until = time.monotonic() + seconds
    while True:
        missing = [r for r in range(world) if not Path(f"{rank_path(output, r)}.samples").exists()]
        if not missing or time.monotonic() > until:
            return missing
        time.sleep(0.2)


def merge(output: Path, ranks: list[int]) -> tuple[Trace, list[Verdict]]:
    """One trace from those of several ranks: rank 0's windows with weights over the averaged gradients.

    Also verdicts about ranks that diverged (GA603).
    """
    traces = [read(rank_path(output, r)) for r in ranks]
    samples: list[list[dict[str, Any]]] = [
        torch.load(f"{rank_path(output, r)}.samples", weights_only=True) for r in ranks
    ]
    merged = traces[0]
    verdicts: list[Verdict] = []
    for trace in traces[1:]:
        merged.events += trace.events
        if trace.failed and not merged.failed:
            merged.end = trace.end
    for position, window in enumerate(merged.windows):
        same = [s[position] for s in samples if position < len(s)]
        if len(same) < len(ranks):
            window.unsupported = "a rank has fewer windows"
            continue
        _average(window, same)
        gap = _divergence([body["parameters"] for body in same])
        if gap > DIVERGED:
            last = window.micros[-1] if window.micros else None
            place = (last.file, last.line) if last else (window.file, window.line)
            lines = sorted({(m.file, m.line) for m in window.micros} | {(window.file, window.line)})
            verdicts.append(
                Verdict(
                    "GA603",
                    Status.CONFIRMED,
                    *place,
                    measured=f"parameters of {len(ranks)} ranks differ by {gap:.2g} after window {window.index}",
                    reference="parameters are equal on all ranks",
                    reason="the step applies a gradient that was not synchronised",
                    optimizer=window.optimizer,
                    windows=[window.index],
                    lines=lines,
                )
            )
    first = {v.optimizer: v for v in reversed(verdicts)}
    return merged, list(first.values())


def _average(window: Window, bodies: list[dict[str, Any]]) -> None:
    """Solve one window over the mean of the ranks' gradients."""
    if any("rows" not in b for b in bodies) or len({b["rows"].shape for b in bodies}) != 1:
        return
    rows = torch.stack([b["rows"] for b in bodies]).mean(0)
    applied = torch.stack([b["applied"] for b in bodies]).mean(0)
    stale = [b["stale"] for b in bodies]
    kept = torch.stack(stale).mean(0) if all(s is not None for s in stale) else None
    entries = []
    for micro, row, coefficient in zip(window.micros, rows, bodies[0]["coefficients"], strict=True):
        known = micro.factor is not None
        info = LossInfo(micro.loss, "mean" if known else "unknown", micro.batch_size)
        info.scale = Lazy(micro.scale)
        info.times(1 / (micro.factor or 1.0), True)
        info.items = Lazy(micro.items) if micro.items is not None else None
        entries.append(Pending(replace(micro), row, info, float(coefficient)))
    measure(window, entries, applied, kept, float(bodies[0]["stale_coefficient"]), {window.n})
    window.micros = [e.micro for e in entries]


def _divergence(parameters: list[torch.Tensor]) -> float:
    first = parameters[0]
    scale = float(first.norm()) or 1.0
    return max(float((other - first).norm()) / scale for other in parameters[1:])
