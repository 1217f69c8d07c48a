"""The commands `galint trace`, `galint replay` and `galint experiment`: arguments, output, exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from galint.errors import ConfigError, GalintError
from galint.trace.model import INTERRUPTED, Record, Status, TraceError, Window

if TYPE_CHECKING:
    from galint.trace.running import Request, Result

_F = TypeVar("_F", bound=Callable[..., Any])
_CONTEXT = {"help_option_names": ["-h", "--help"], "ignore_unknown_options": False}
_EXIT = (
    "Exit codes: 0 nothing confirmed, 1 a fault is confirmed, 2 a mistake in the call, "
    "3 the script failed, 4 nothing could be decided."
)
PLOTS = (".png", ".svg", ".html")


def plot_path(_ctx: click.Context, _param: click.Parameter, value: Path | None) -> Path | None:
    """A file name whose suffix says how to draw."""
    if value is not None and value.suffix.lower() not in PLOTS:
        raise click.BadParameter(f"the name must end in one of {', '.join(PLOTS)}")
    return value


def plot_option(text: str) -> Callable[[_F], _F]:
    """The option `--plot FILE` of everything that draws."""
    return click.option(
        "--plot", type=click.Path(dir_okay=False, path_type=Path), callback=plot_path, metavar="FILE", help=text
    )


def run_options(function: _F) -> _F:
    """Options that trace and replay share."""
    for option in reversed(
        (
            click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does."),
            click.option(
                "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the trace as JSON lines here."
            ),
            click.option(
                "--output-format", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True,
                help="How to report; the script's own output then goes to stderr.",
            ),
            plot_option("Draw the windows to FILE: .png, .svg or one self-contained .html."),
            click.option(
                "--timeout", type=click.FloatRange(min=0, min_open=True), help="Give up after so many seconds."
            ),
            click.option("--no-lint", is_flag=True, help="Do not join the verdicts to the linter's findings."),
            click.option("-v", "--verbose", is_flag=True, help="Show refuted rules with their numbers."),
            click.argument("script", nargs=-1, type=click.UNPROCESSED),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("trace", context_settings=_CONTEXT, epilog=_EXIT)
@click.option(
    "--windows", type=click.IntRange(min=1), default=3, show_default=True, help="Stop after so many optimizer steps."
)
@click.option("--all-windows", is_flag=True, help="Let the script run to its end.")
@click.option("--events-only", is_flag=True, help="Record calls without sampling gradients: no verdicts on weights.")
@run_options
def trace(windows: int, all_windows: bool, events_only: bool, **rest: Any) -> int:
    """Run SCRIPT with its arguments under hooks and measure the gradient that each step applies.

    The script is not changed: `galint trace -- train.py --lr 1e-3`, or under torchrun
    `torchrun --nproc-per-node 2 -m galint trace -- train.py`. It is stopped after the windows asked for. What it
    saves goes to a temporary folder, and checkpoints that exist are protected.
    """
    return _traced(None if all_windows else windows, events_only=events_only, replay=False, window=0, **rest)


@click.command("replay", context_settings=_CONTEXT, epilog=_EXIT)
@click.option("--window", type=click.IntRange(min=0), default=0, show_default=True, help="The window to replay.")
@run_options
def replay(window: int, **rest: Any) -> int:
    """Trace SCRIPT and run the micro-batches of one window again as one large batch.

    Shows what couples the samples of a batch: BatchNorm (and the first module that does it), contrastive losses, and
    token counts. Dropout is off in the replay, buffers and the random state are put back.
    """
    return _traced(window + 2, events_only=False, replay=True, window=window, **rest)


def _traced(
    windows: int | None,
    *,
    events_only: bool,
    replay: bool,
    window: int,
    module: str | None,
    output: Path | None,
    output_format: str,
    plot: Path | None,
    timeout: float | None,
    no_lint: bool,
    verbose: bool,
    script: tuple[str, ...],
) -> int:
    argv = [module, *script] if module else list(script)
    if not argv:
        raise ConfigError("name the script to run: galint trace -- train.py")
    _need_torch()
    from galint.trace.running import Request

    request = Request(
        argv,
        module=module is not None,
        windows=windows,
        output=output,
        replay=replay,
        replay_window=window,
        events_only=events_only,
        timeout=timeout,
        script_to_stderr=output_format != "text",
    )
    return report(request, output_format, plot, no_lint, verbose)


def report(request: Request, output_format: str, plot: Path | None, no_lint: bool, verbose: bool) -> int:
    """Run a request and print its report; the exit code. Raises GalintError for a mistake in the call."""
    from galint.trace.judge import exit_code
    from galint.trace.running import run

    try:
        result = run(request, _progress() if output_format == "text" else lambda _: None)
    except TraceError as error:
        raise ConfigError(str(error)) from error
    if result.rank != 0:
        return 3 if result.trace.failed else 0
    left: list[Any] = []
    if not no_lint:
        result.verdicts, left = _joined(result)
    # GA203 has the numbers of GA201: alone, without a division after backward in the text, it says nothing more.
    result.verdicts = [v for v in result.verdicts if v.rule != "GA203" or v.finding]
    code = exit_code(result.trace, result.verdicts)
    _write(result, left, output_format, verbose, code)
    if request.output is not None:
        _append(request.output, result)
    if plot is not None:
        from galint.trace.plotting import plot_trace

        plot_trace(result.trace, result.verdicts, plot)
        click.echo(f"plot written to {plot}", err=True)
    return 130 if result.trace.end.get("why") == INTERRUPTED else code


def _joined(result: Result) -> tuple[list[Any], list[Any]]:
    from galint.trace.joining import files_of, join
    from galint.trace.running import findings

    try:
        found = findings(files_of(result.trace.windows))
    except GalintError as error:
        click.echo(f"galint: the linter's findings are left out: {error}", err=True)
        return result.verdicts, []
    verdicts, left = join(result.verdicts, found)
    for verdict in verdicts:
        needs = (verdict.finding or {}).get("configuration")
        if verdict.status is Status.REFUTED and needs:
            verdict.reason += f" in this run; the finding is about runs {needs}"
    return verdicts, left


def _write(result: Result, left: list[Any], output_format: str, verbose: bool, code: int) -> None:
    from galint.trace import report as rendering

    if output_format == "json":
        sys.stdout.write(rendering.as_json(result.trace, result.verdicts, left, code))
    elif output_format == "sarif":
        sys.stdout.write(rendering.as_sarif(result.trace, result.verdicts, left))
    else:
        from rich.console import Console

        console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
        if result.trace.windows:
            table = rendering.window_table("N·w of each micro-batch: all ones is the large batch")
            for window in result.trace.windows[:50]:
                rendering.add_window(table, window)
            console.print(table)
        rendering.text(result.trace, result.verdicts, left, console, verbose)


def _append(output: Path, result: Result) -> None:
    """Add the verdicts to the trace file; under torchrun the merged trace is written."""
    from galint.trace.model import to_line

    merged = int(os.environ.get("WORLD_SIZE", "1")) > 1
    with output.open("w" if merged else "a", encoding="utf-8") as stream:
        records: list[Record] = []
        if merged:
            records += [result.trace.header, *result.trace.events, *result.trace.windows]
        for record in [*records, *result.verdicts]:
            stream.write(to_line(record) + "\n")


def _progress() -> Callable[[Record], None]:
    """Prints one line a window to stderr as the script runs."""
    from rich.console import Console

    from galint.trace.report import window_cells

    console = Console(stderr=True, highlight=False)
    ranks = int(os.environ.get("WORLD_SIZE", "1")) > 1

    quiet = os.environ.get("RANK", "0") != "0"  # the ranks' lines would be told apart by nobody

    def show(record: Record) -> None:
        if isinstance(record, Window) and not quiet:
            cells = window_cells(record)
            index, optimizer, where, _, weights, *_ = (text for text, _ in cells)
            ratio, error = cells[6][0], cells[8][0]
            numbers = f"N·w {weights}  ratio {ratio}  error {error}"
            if not record.w:
                numbers = "measured when the ranks are merged" if ranks and not record.unsupported else weights
            line = f"window {index}  {optimizer}  {where}  {numbers}"
            console.print(line, style=cells[4][1] or None, markup=False, soft_wrap=True)

    return show


def _need_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise ConfigError("this command needs torch: install `galint[trace]` in the environment of the training script")


@click.command("experiment", context_settings=_CONTEXT)
@click.option("--quick", is_flag=True, help="A small net for a minute, instead of ResNet-18.")
@click.option("--data", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder with CIFAR-10.")
@click.option("--steps", type=click.IntRange(min=1), help="Optimizer steps of each run.")
@click.option("--only", multiple=True, metavar="RUN", help="Run these only (repeatable); `--list` names them.")
@click.option("--list", "list_runs", is_flag=True, help="Name the runs and stop.")
@click.option("--device", default=None, help="cpu, cuda, cuda:1 … (default: cuda where there is one).")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("galint-experiment"),
    show_default=True,
    help="Folder for the results, the plots and the report.",
)
@plot_option("Write this plot as well: .png, .svg or .html.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def experiment(
    quick: bool,
    data: Path | None,
    steps: int | None,
    only: tuple[str, ...],
    list_runs: bool,
    device: str | None,
    seed: int,
    output: Path,
    plot: Path | None,
    output_format: str,
) -> int:
    """Train the same model with batch 64, with 16x4 and with 8x8, and with each mistake switched on.

    Compares loss, accuracy, the distance of the applied gradient from the large batch's, time and peak memory, with and
    without BatchNorm and with GroupNorm. Writes results.json, PNG and SVG plots and one self-contained report.html.
    """
    _need_torch()
    from galint.trace.experiment.study import Settings, names, study

    if list_runs:
        click.echo("\n".join(names()))
        return 0
    unknown = sorted(set(only) - set(names()))
    if unknown:
        raise ConfigError(f"no run is named `{unknown[0]}`; `galint experiment --list` names them")
    settings = Settings(
        quick=quick, data=data, steps=steps, only=only, device=device, seed=seed, output=output, plot=plot
    )
    return study(settings, output_format)
