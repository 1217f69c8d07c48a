"""What tracing costs: the step with events, and with sampling, side by side with the untraced step.

    python tests/benchmarks/trace_overhead.py [--rounds 9] [--device cuda] [--memory]

The three loops alternate within one process, a few windows each, so that whatever else the machine does falls on all
alike; the table shows the median of the ratios of neighbours. No threshold is asserted on time here: the aim is at
most 1.02 for events and 1.1 for sampling at one million parameters and more. `--memory` compares the bytes that live
tensors hold at their peak.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from galint.trace import watch
from galint.trace.experiment.nets import resnet18

N = 4
WINDOWS = 5
"""Windows timed in a row; their median is one side of a ratio."""


def perceptron(width: int, depth: int) -> nn.Module:
    """A plain net of `depth` square layers."""
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def transformer() -> nn.Module:
    """Six encoder layers of width 256 over 64 tokens, mean-pooled: many small parameters."""
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Linear(256, 10)

        def forward(self, x: torch.Tensor) -> Any:
            return self.head(self.body(x).mean(1))

    return Net()


CASES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "perceptron 1.1 M": (lambda: perceptron(512, 4), (64, 512)),
    "perceptron 8.4 M": (lambda: perceptron(1024, 8), (32, 1024)),
    "transformer 4.7 M": (transformer, (4, 64, 256)),
    "ResNet-18 11.2 M": (lambda: resnet18("groupnorm"), (2, 3, 32, 32)),
}


class Loop:
    """One training loop that can be advanced window by window."""

    def __init__(self, make: Any, shape: tuple[int, ...], device: str) -> None:
        torch.manual_seed(0)
        self.model = make().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batches = [
            (torch.randn(shape, device=device), torch.randint(0, 10, (shape[0],), device=device)) for _ in range(32)
        ]
        self.next = 0
        self.device = device

    def window(self) -> None:
        """N micro-batches and a step."""
        for _ in range(N):
            x, y = self.batches[self.next % len(self.batches)]
            self.next += 1
            (nn.functional.cross_entropy(self.model(x), y) / N).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.device != "cpu":
            torch.cuda.synchronize()

    def timed(self) -> float:
        """Seconds of one window."""
        # On a CPU the process's own time, on one thread: what else the machine runs does not count.
        clock = time.process_time if self.device == "cpu" else time.perf_counter
        began = clock()
        self.window()
        return clock() - began


def ratios(make: Any, shape: tuple[int, ...], device: str, rounds: int) -> tuple[float, float, float, int]:
    """(untraced ms, events ratio, sampling ratio, parameters); each round times all three next to each other."""
    loop = Loop(make, shape, device)
    for _ in range(2):
        loop.window()
    plain, events, sampled = [], [], []
    for index in range(rounds):
        took = {}
        order = ("plain", "events", "sampled")
        for how in order[index % 3 :] + order[: index % 3]:
            tracing = nullcontext() if how == "plain" else watch(loop.model, loop.optimizer, sampling=how == "sampled")
            with tracing:
                loop.window()  # hooks and samples are set up outside the measurement, as they are once a run
                took[how] = median(loop.timed() for _ in range(WINDOWS))
        plain.append(took["plain"])
        events.append(took["events"] / took["plain"])
        sampled.append(took["sampled"] / took["plain"])
    count = sum(p.numel() for p in loop.model.parameters())
    return median(plain) * 1000, median(events), median(sampled), count


def live_bytes() -> int:
    """Bytes of the storages of all live tensors (CPU, where torch keeps no peak)."""
    import gc

    seen = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor) and thing.layout == torch.strided:
            storage = thing.untyped_storage()
            seen[storage.data_ptr()] = storage.nbytes()
    return sum(seen.values())


def extra_memory(make: Any, shape: tuple[int, ...], device: str) -> tuple[int, int]:
    """(bytes that tracing adds while a window is complete, what the samples may take)."""

    def held(traced: bool) -> int:
        loop = Loop(make, shape, device)
        loop.window()
        peak = 0

        def look(*_: Any) -> None:
            nonlocal peak
            # Gradients have no Python object, and so are not found, until somebody asks for them.
            grads = [p.grad for p in loop.model.parameters()]
            peak = max(peak, live_bytes() if device == "cpu" else torch.cuda.max_memory_allocated())
            del grads

        if device != "cpu":
            torch.cuda.reset_peak_memory_stats()
        handle = loop.optimizer.register_step_pre_hook(look)
        if traced:
            with watch(loop.model, loop.optimizer):
                loop.window()
                loop.window()
        else:
            loop.window()
            loop.window()
        handle.remove()
        return peak

    without = held(False)
    # N rows, the stale and the applied gradient, the parameters before the step, each of 65,536 float32.
    return held(True) - without, (N + 4) * 65_536 * 4


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {options.device}, {torch.get_num_threads()} threads, windows of {N}")
    print(f"{'model':<20}{'parameters':>12}{'untraced':>12}{'events':>9}{'sampling':>10}")
    for name, (make, shape) in CASES.items():
        if options.only not in name:
            continue
        untraced, events, sampled, count = ratios(make, shape, options.device, options.rounds)
        print(f"{name:<20}{count:>12,}{untraced:>9.1f} ms{events:>9.3f}{sampled:>10.3f}", flush=True)
        if options.memory:
            extra, allowed = extra_memory(make, shape, options.device)
            print(f"{'':<20}memory: {extra:,} bytes more, the samples are {allowed:,}", flush=True)


if __name__ == "__main__":
    main()
