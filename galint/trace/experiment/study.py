"""Run the study: every plan from the same start on the same samples, then the table, the plots and the report."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from galint.errors import ConfigError
from galint.trace.experiment.data import Images, cifar10, synthetic
from galint.trace.experiment.loops import BATCH, MISTAKES, Curve, Plan, plans, train
from galint.trace.experiment.nets import resnet18, small
from galint.trace.report import size

LEARNING_RATES = {"batchnorm": 0.05, "groupnorm": 0.02, "none": 0.1}
"""SGD with momentum 0.9; what trains the small net without a warm-up."""

DEEP_RATES = LEARNING_RATES | {"groupnorm": 0.003, "none": 0.03}
"""The same for ResNet-18: with GroupNorm its loss rises fourfold in ten steps at the small net's rate."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line asks for."""

    quick: bool = False
    data: Path | None = None
    steps: int | None = None
    only: tuple[str, ...] = ()
    device: str | None = None
    seed: int = 0
    output: Path = Path("galint-experiment")
    plot: Path | None = None

    @property
    def count(self) -> int:
        """Optimizer steps of a run."""
        return self.steps or (40 if self.quick else 100)


def names() -> list[str]:
    """The names of all runs."""
    return [plan.name for plan in plans()]


def study(settings: Settings, output_format: str = "text") -> int:
    """Train all runs and write `results.json`, `experiment.png`, `experiment.svg` and `report.html`. 0, or 130 when interrupted.

    An interrupt ends the training, not the study: the runs that are done are reported.
    """
    device = _device(settings.device)
    images = _images(settings)
    chosen = [p for p in plans() if not settings.only or p.name in settings.only]
    _writable(settings.output)
    curves: list[Curve] = []
    code = 0
    try:
        _run(settings, chosen, images, device, curves)
    except KeyboardInterrupt:
        if not curves:
            raise
        code = 130
    from galint.trace.experiment.charts import charts, html

    title = f"{'small net' if settings.quick else 'ResNet-18'}, {images.name}, batch {BATCH}, {settings.count} steps"
    if code:
        title += f", interrupted after {len(curves)} of {len(chosen)} runs"
    results = {
        "title": title,
        "device": str(device),
        "torch": torch.__version__,
        "seed": settings.seed,
        "runs": [{k: _jsonable(v) for k, v in _summary(c).items()} | {"curves": _plain(c)} for c in curves],
    }
    (settings.output / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    figures = charts(curves, title)
    for suffix in ("png", "svg"):
        figures.savefig(settings.output / f"experiment.{suffix}")
    rows = [_row(c) for c in curves]
    page = html(curves, title, HEAD, rows, f"torch {torch.__version__} on {device}, seed {settings.seed}")
    (settings.output / "report.html").write_text(page, encoding="utf-8")
    if settings.plot is not None:
        if settings.plot.suffix.lower() == ".html":
            settings.plot.write_text(page, encoding="utf-8")
        else:
            figures.savefig(settings.plot)
    if output_format == "json":
        sys.stdout.write(json.dumps(results, indent=1) + "\n")
        return code
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(HEAD):
        table.add_column(name, justify="left" if index in (0, 1) else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"report: {settings.output / 'report.html'}")
    return code


def _run(settings: Settings, chosen: list[Plan], images: Images, device: torch.device, curves: list[Curve]) -> None:
    """Train the chosen runs, each appended to `curves` when it is done."""
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console) as progress:
        whole = progress.add_task("all runs", total=len(chosen) * settings.count)
        for plan in chosen:
            task = progress.add_task(plan.name, total=settings.count)
            torch.manual_seed(settings.seed)
            model = (small if settings.quick else resnet18)(plan.norm)

            def advance(task: int = task) -> None:
                progress.advance(task)  # type: ignore[arg-type]
                progress.advance(whole)

            lr = (LEARNING_RATES if settings.quick else DEEP_RATES)[plan.norm]
            every = 1 if settings.quick else 4
            began = time.perf_counter()
            curves.append(train(plan, model, images, device, settings.count, settings.seed, lr, every, advance))
            progress.remove_task(task)
            if not console.is_terminal:
                # A log file shows no bar.
                console.print(f"{len(curves)} of {len(chosen)}: {plan.name}, {time.perf_counter() - began:.0f} s")


def _images(settings: Settings) -> Images:
    if settings.data is not None:
        return cifar10(settings.data)
    return synthetic(1024 if settings.quick else 4096, 512, settings.seed)


def _device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name}: {str(error).splitlines()[0]}") from error
    return device


def _writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output {folder}: {error.strerror}") from error


HEAD = ("run", "mistake", "final loss", "accuracy", "gradient distance", "norm ratio", "ms / step", "memory")


def _summary(curve: Curve) -> dict[str, object]:
    """The numbers of a run that the table shows. The distance is the median over steps after the first window."""
    later = [d for s, d in curve.distances if s > 0] or [d for _, d in curve.distances]
    ratios = [a / b for s, a, b in curve.norms if b and s > 0] or [a / b for _, a, b in curve.norms if b]
    tail = curve.losses[-max(1, len(curve.losses) // 10) :]
    rule, what = MISTAKES.get(curve.plan.mistake or "", ("", ""))
    return {
        "name": curve.plan.name,
        "n": curve.plan.n,
        "norm": curve.plan.norm,
        "rule": rule,
        "what": what,
        "final_loss": sum(tail) / len(tail) if tail else math.nan,
        "accuracy": curve.accuracy[-1][1] if curve.accuracy else math.nan,
        "distance": median(later) if later else math.nan,
        "worst_distance": max((d for _, d in curve.distances), default=math.nan),
        "norm_ratio": median(ratios) if ratios else math.nan,
        "seconds_per_step": curve.seconds,
        "memory": curve.memory,
        "memory_kind": curve.memory_kind,
        "diverged": curve.diverged,
    }


def _row(curve: Curve) -> tuple[str, ...]:
    s = _summary(curve)
    rare = float(str(s["worst_distance"])) > 2 * float(str(s["distance"])) and curve.plan.mistake is not None
    distance = f"{s['distance']:.2g}" + (f" (worst {s['worst_distance']:.2g})" if rare else "")
    return (
        str(s["name"]),
        f"{s['rule']} {s['what']}".strip(),
        "diverged" if s["diverged"] else f"{s['final_loss']:.3f}",
        f"{s['accuracy']:.1%}",
        distance,
        f"{s['norm_ratio']:.3g}",
        f"{curve.seconds * 1000:.0f}",
        size(curve.memory),
    )


def _plain(curve: Curve) -> dict[str, object]:
    body = curve.as_dict()
    body["losses"] = [_finite(v) for v in curve.losses]
    body["distances"] = [[s, _finite(d)] for s, d in curve.distances]
    body["norms"] = [[s, _finite(a), _finite(b)] for s, a, b in curve.norms]
    return body


def _finite(value: float) -> float | str:
    """JSON has no infinity."""
    return value if math.isfinite(value) else str(value)


def _jsonable(value: object) -> object:
    return _finite(value) if isinstance(value, float) else value
