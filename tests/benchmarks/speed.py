"""How long galint takes beside other linters, how much memory, and how its time grows.

usage: python tests/benchmarks/speed.py [--tools BIN] [--site FOLDER] [--scripts FOLDER ...] [--only a,b,c,growth]
                                        [--repeat 3] [--limit 600]

BIN is the `bin` folder of an environment with ruff, flake8, torchfix and fixit, and with a compiled wheel of galint
(CONTRIBUTING.md says how to make one); without it, the plain package alone is measured. (a) is an installed site-packages
folder with torch in it, (b) folders of training scripts, (c) one file of 300 lines. Tools run one after the other,
each `--repeat` times, and the best time counts; `x` columns are times relative to galint's cold run. Processor time
counts all processes of a tool and does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GALINT = [sys.executable, "-m", "galint", "--isolated", "-q", "--exit-zero"]
LOOP = """
def train_{k}(model, loader, criterion, optimizer, scheduler, args):
    model.train()
    for step, (images, labels) in enumerate(loader):
        images, labels = images.to(args.device), labels.to(args.device)
        outputs = model(images)
        loss = criterion(outputs, labels) / args.accum
{flags}        loss.backward()
        if (step + 1) % args.accum == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds on the clock, seconds of processor time, and the largest process in MiB."""

    wall: float
    cpu: float
    peak: float


def run(command: list[str], folder: Path, limit: float) -> Cost | None:
    """One run, output thrown away; None when it took longer than `limit`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while True:
            pid, _, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = 0
                break
            if time.perf_counter() - start > limit:
                process.kill()
                return None
            time.sleep(0.005)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, cpu, usage.ru_maxrss / 1024)


def best(command: list[str], folder: Path, repeat: int, limit: float) -> Cost | None:
    """The fastest of several runs."""
    costs: list[Cost] = []
    for _ in range(repeat):
        cost = run(command, folder, limit)
        if cost is None:
            return None
        costs.append(cost)
        if cost.wall > limit / 4:
            break
    return min(costs, key=lambda cost: cost.wall)


def tools(binaries: Path | None, cache: Path) -> dict[str, list[str]]:
    """Name → command line without the paths; tools that are not there are left out."""
    compiled = shutil.which("galint", path=str(binaries)) if binaries else None
    galint = [compiled, *GALINT[3:]] if compiled else GALINT
    out = {
        "galint, cold": [*galint, "--no-cache"],
        "galint, cached": [*galint, "--cache-dir", str(cache)],
    }
    if compiled:
        out["galint, not compiled"] = [*GALINT, "--no-cache"]
    others = {
        "ruff": ["check", "--no-cache", "--isolated", "-q"],
        "flake8": ["--isolated", "-q"],
        "torchfix": [],
        "fixit": ["lint"],
    }
    for name, args in others.items():
        found = shutil.which(name, path=str(binaries)) if binaries else None
        if found:
            out[name] = [found, *args]
    return out


def table(title: str, paths: list[str], folder: Path, args: argparse.Namespace) -> None:
    """Run every tool on the same paths and print a row for each."""
    print(
        f"\n### {title}\n\n| tool | wall s | x | processor s | x | peak MiB |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    base: Cost | None = None
    with tempfile.TemporaryDirectory() as cache:
        for name, command in tools(args.tools, Path(cache) / "results").items():
            if name == "galint, cached":
                run([*command, *paths], folder, args.limit)  # fills the cache
            cost = best([*command, *paths], folder, args.repeat, args.limit)
            if cost is None:
                print(f"| {name} | > {args.limit:.0f} | | | | |", flush=True)
                continue
            base = base or cost
            wall, cpu = cost.wall / base.wall, cost.cpu / base.cpu
            print(
                f"| {name} | {cost.wall:.2f} | {wall:.1f} | {cost.cpu:.2f} | {cpu:.1f} | {cost.peak:.0f} |", flush=True
            )


def script(lines: int) -> str:
    """A training script of about so many lines: one loop, and the functions that scripts have around it."""
    text = "import torch\nfrom torch import nn\n" + LOOP.format(k=0, flags="")
    k = 0
    while text.count("\n") < lines:
        k += 1
        text += f"\n\ndef helper_{k}(values, limit=10):\n    out = []\n    for value in values:\n        if value > limit:\n"
        text += f"            out.append(value * {k})\n    return sum(out) / max(len(out), 1)\n"
    return text


def nested(depth: int) -> str:
    """One loop inside `depth` loops."""
    body = LOOP.format(k=0, flags="").lstrip("\n").splitlines(True)
    head = "".join("    " * (k + 1) + f"for i{k} in range(2):\n" for k in range(depth))
    return "import torch\n" + body[0] + head + "".join("    " * depth + line for line in body[1:])


def flagged(count: int) -> str:
    """One loop with so many configuration flags."""
    flags = "".join(f"        if args.flag_{k}:\n            loss = loss + penalty_{k}(model)\n" for k in range(count))
    return "import torch\n" + LOOP.format(k=0, flags=flags)


def seconds(text: str) -> float:
    """Processor time of linting one text, the best of three."""
    from galint import Config, Source, lint

    times: list[float] = []
    for _ in range(3):
        start = time.process_time()
        lint(Source("train.py", text), Config())
        times.append(time.process_time() - start)
    return min(times)


def growth() -> None:
    """Time per unit as each quantity doubles; a flat row is linear growth."""
    print("\n### Growth: ms (ms per unit)\n")
    series: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
        "lines of a file": (script, (250, 500, 1000, 2000, 4000)),
        "loops of a file": (
            lambda n: "import torch\n" + "".join(LOOP.format(k=k, flags="") for k in range(n)),
            (5, 10, 20, 40, 80),
        ),
        "configuration flags in a loop": (flagged, (2, 4, 8, 16, 32)),
        "loops around the loop": (nested, (1, 2, 4, 8)),
    }
    seconds(script(50))
    for name, (make, sizes) in series.items():
        cells = [f"{size}: {1000 * (spent := seconds(make(size))):.0f} ({1000 * spent / size:.2f})" for size in sizes]
        print(f"- {name}: {', '.join(cells)}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, cells = Path(name), []
        for size in (50, 100, 200, 400):
            for number in range(size):
                (folder / f"train_{number}.py").write_text(script(100))
            cost = best([*GALINT, "--no-cache", "--jobs", "1", "."], folder, 2, 600)
            assert cost is not None
            cells.append(f"{size}: {1000 * cost.cpu:.0f} ({1000 * cost.cpu / size:.2f})")
        print(f"- files of 100 lines, one process: {', '.join(cells)}")


def main() -> None:
    """Print the tables that the README shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--scripts", type=Path, nargs="*", default=[])
    parser.add_argument("--only", default="a,b,c,growth")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600)
    args = parser.parse_args()
    wanted = set(args.only.split(","))
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}")
    if "a" in wanted and args.site:
        table("(a) site-packages", ["."], args.site, args)
    if "b" in wanted and args.scripts:
        table("(b) training scripts", [str(path.absolute()) for path in args.scripts], Path.cwd(), args)
    if "c" in wanted:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "train.py").write_text(script(300))
            (folder / "plain.py").write_text(script(300).replace("backward", "forward").replace("step", "stop"))
            table("(c) one file of 300 lines with a loop", ["train.py"], folder, args)
            table("(c) one file of 300 lines without training code", ["plain.py"], folder, args)
    if "growth" in wanted:
        growth()


if __name__ == "__main__":
    main()
