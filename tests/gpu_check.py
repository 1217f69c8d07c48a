"""The GPU checks as one script: `python tests/gpu_check.py` runs in under five minutes on one CUDA device.

Exits with 0 when everything holds, 1 when something does not, and 77 where there is no CUDA device. `--device cpu` runs
what needs no GPU, to try the script itself. pytest runs the same checks under the mark `gpu` (tests/test_trace_gpu.py).
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from galint.trace import Status, Watch, watch
from galint.trace.experiment.nets import resnet18, small
from galint.trace.patching import Patches
from galint.trace.replay import Replayer

F = nn.functional
N = 4
DEVICE = "cuda"
HALF = {"cuda": torch.float16, "cpu": torch.bfloat16}
"""What a GradScaler is used with."""


def batches(count: int, size: int = 8) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Images and labels on the device."""
    torch.manual_seed(1)
    made = [(torch.randn(size, 3, 32, 32), torch.randint(0, 10, (size,))) for _ in range(count)]
    return [(x.to(DEVICE), y.to(DEVICE)) for x, y in made]


def run(mistake: str = "", amp: torch.dtype | None = None, scaler: Any = None, fused: bool = False) -> Watch:
    """Three windows of a small net under watch."""
    torch.manual_seed(0)
    model = small("groupnorm").to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    scaler = scaler or torch.amp.GradScaler(DEVICE, enabled=False)
    with watch(model, optimizer) as t:
        for i, (x, y) in enumerate(batches(3 * N)):
            if mistake == "zero":
                optimizer.zero_grad()
            with torch.autocast(DEVICE, amp or torch.bfloat16, enabled=amp is not None):
                loss = F.cross_entropy(model(x), y) / (1 if mistake == "unscaled" else N)
            scaler.scale(loss).backward()
            if mistake == "early" and i % N == 0:
                scaler.unscale_(optimizer)
            if (i + 1) % N == 0:
                if scaler.is_enabled() and not fused and mistake != "early":
                    scaler.unscale_(optimizer)
                    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    assert t.recorder.internal is None, t.recorder.internal
    return t


def confirmed(t: Watch) -> set[str]:
    """Codes of the confirmed rules."""
    return {v.rule for v in t.verdicts if v.status is Status.CONFIRMED}


def check_right_loops() -> None:
    """Plain, autocast, and float16 with a GradScaler (also fused) weigh one."""
    run().assert_large_batch(windows=3)
    run(amp=torch.bfloat16).assert_large_batch(windows=3)
    for fused in (False, True) if DEVICE == "cuda" else (False,):
        t = run(amp=HALF[DEVICE], scaler=torch.amp.GradScaler(DEVICE, init_scale=1024.0), fused=fused)
        assert confirmed(t) == set(), [v for v in t.verdicts if v.status is Status.CONFIRMED]
        assert all(abs(v - 1) < 1e-2 for w in t.windows for v in w.nw), [w.nw for w in t.windows]


def check_mistakes() -> None:
    """Each mistake is confirmed by its own rule."""
    assert confirmed(run("unscaled")) == {"GA201"}
    assert confirmed(run("zero")) == {"GA101"}
    t = run("early", amp=HALF[DEVICE], scaler=torch.amp.GradScaler(DEVICE, init_scale=65536.0))
    assert "GA301" in confirmed(t), t.verdicts


def check_samples_stay_on_the_device() -> None:
    """No synchronisation between the steps: a backward and a zero_grad under watch move nothing to the host."""
    model = small("groupnorm").to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = batches(N)
    with watch(model, optimizer):
        for x, y in data:  # warm up: allocations, library handles
            (F.cross_entropy(model(x), y) / N).backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for x, y in data:
                (F.cross_entropy(model(x), y) / N).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        optimizer.step()


def check_replay() -> None:
    """BatchNorm is found; GroupNorm stays below the tolerance that replaying in another order calibrates."""
    for norm, status in (("batchnorm", Status.CONFIRMED), ("groupnorm", Status.REFUTED)):
        torch.manual_seed(0)
        model = (resnet18 if DEVICE == "cuda" else small)(norm).to(DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        replayer, patches = Replayer(), Patches()
        with watch(model, optimizer) as t:
            t.recorder.before_step = replayer.before_step
            replayer.install(patches, t.recorder)
            for x, y in batches(N):
                (F.cross_entropy(model(x), y) / N).backward()
            optimizer.step()
            patches.undo()
        found = {v.rule: v.status for v in replayer.verdicts}
        assert found["GA501"] is status, (norm, replayer.outcome)
        assert found["GA502"] is Status.REFUTED
        print(f"    {norm}: {replayer.outcome}")


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def check_overhead() -> None:
    """Prints the side-by-side cost; only a gross excess fails."""
    model = (resnet18 if DEVICE == "cuda" else small)("groupnorm").to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    data = batches(N, 32)

    def window() -> float:
        synchronize()
        began = time.perf_counter()
        for x, y in data:
            (F.cross_entropy(model(x), y) / N).backward()
        optimizer.step()
        optimizer.zero_grad()
        synchronize()
        return time.perf_counter() - began

    for _ in range(3):
        window()
    plain = sorted(window() for _ in range(9))[4]
    ratios = {}
    for how in ("events", "sampling"):
        with watch(model, optimizer, sampling=how == "sampling"):
            window()
            ratios[how] = sorted(window() for _ in range(9))[4] / plain
    print(f"    untraced {plain * 1000:.1f} ms, events {ratios['events']:.3f}, sampling {ratios['sampling']:.3f}")
    assert ratios["sampling"] < 1.5


def check_memory() -> None:
    """The peak grows by the samples at most (and the allocator's rounding)."""
    peaks = {}
    for traced in (False, True):
        torch.cuda.empty_cache()
        torch.manual_seed(0)
        model = resnet18("groupnorm").to(DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = batches(2 * N, 32)
        torch.cuda.reset_peak_memory_stats()
        tracing: Any = watch(model, optimizer) if traced else None
        if tracing:
            tracing.__enter__()
        for i, (x, y) in enumerate(data):
            (F.cross_entropy(model(x), y) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
        peaks[traced] = torch.cuda.max_memory_allocated()
        if tracing:
            tracing.__exit__(None, None, None)
        del model, optimizer
    # N rows, stale, applied, parameters, and their float64 copies for the inner products.
    allowed = (3 * N + 12) * 65_536 * 4 * 2
    print(f"    {peaks[True] - peaks[False]:,} bytes more, {allowed:,} allowed")
    assert peaks[True] - peaks[False] <= allowed


ON_A_GPU: tuple[Callable[[], None], ...] = (check_samples_stay_on_the_device, check_memory)
"""Checks of what only CUDA has: streams that must not be waited for, and a peak of allocated memory."""

CHECKS: tuple[Callable[[], None], ...] = (
    check_right_loops,
    check_mistakes,
    check_samples_stay_on_the_device,
    check_replay,
    check_overhead,
    check_memory,
)


def main() -> int:
    """Run all checks and print one line each."""
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    DEVICE = parser.parse_args().device
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print("no CUDA device")
        return 77
    failed = 0
    print(torch.__version__, torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU")
    for check in CHECKS:
        if DEVICE == "cpu" and check in ON_A_GPU:
            print(f"skip  {check.__name__}: it needs CUDA")
            continue
        began = time.perf_counter()
        try:
            check()
            print(f"ok    {check.__name__} ({time.perf_counter() - began:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL  {check.__name__}\n{traceback.format_exc()}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
