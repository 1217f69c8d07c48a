"""`galint confirm`: run the loops behind the findings on a tiny model and measure what each step applies."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click

from galint.cli.options import config_options, overrides, selection_options
from galint.cli.output import warn, write
from galint.cli.place import split
from galint.config.loading import Resolver
from galint.errors import ConfigError, SourceError
from galint.trace.command import plot_option


@click.command(
    "confirm",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 nothing confirmed, 1 a fault is confirmed, 2 a mistake in the call, 3 a loop could not be run, "
    "4 a finding could not be decided.",
)
@click.argument("paths", metavar="PATH[:LINE]…", nargs=-1)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to report.",
)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write to this file.")
@plot_option("Draw what was measured to FILE: .png, .svg or one self-contained .html.")
@click.option("--device", default="auto", show_default=True, help="auto (CUDA where there is one), cpu, cuda, cuda:1 …")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
    help="Seconds for one process of slices, besides two for each slice.",
)  # fmt: skip
@click.option("--show-slice", is_flag=True, help="Print the programs that ran (text), or add them (json).")
@selection_options
@config_options
def command(
    paths: tuple[str, ...],
    output_format: str,
    output_file: Path | None,
    plot: Path | None,
    device: str,
    timeout: float,
    show_slice: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...],
    config: tuple[str, ...],
    isolated: bool,
) -> int:
    """Lint PATH and run the loop behind each finding, cut to its gradient skeleton, on a tiny real model.

    No data, environment or code of the project is used: loop headers, counters and guards are rebuilt from the text, models
    and losses are stand-ins, optimizers, GradScaler and DDP are torch's own. It runs in a process of its own, without a
    network, in a temporary folder.

    In a notebook, PATH:CELL takes the findings of a code cell and PATH:CELL:LINE those at its line.

    A loop that cannot be cut out is replayed as the linter read it: such a finding is at most "consistent (replay)".
    """
    if find_spec("torch") is None:
        raise ConfigError("this command needs torch: install `galint[trace]`")
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ConfigError(f"--device: `{device}` is not auto, cpu, cuda or cuda:N")
    from galint.discovery import Target, find
    from galint.trace.concluding import exit_code
    from galint.trace.confirmation import Confirmation, confirm
    from galint.trace.confirming import Limits

    resolver = Resolver(overrides(config, isolated, select=select, ignore=ignore, extend_select=extend_select))
    result = Confirmation()
    whole: list[str] = []
    for path in paths or (".",):
        name, numbers = split(path)
        if not numbers:
            whole.append(name)
            continue
        part = confirm([t for t in find([name], resolver) if isinstance(t, Target)], Limits(device, timeout), numbers)
        if not part.outcomes and not part.problems:
            warn(f"{name}:{':'.join(map(str, numbers))}: the linter finds nothing there")
        result.outcomes += part.outcomes
        result.slices += part.slices
        result.problems += part.problems
    if whole:
        targets: list[Target] = []
        for item in find(whole, resolver):
            if isinstance(item, SourceError):
                result.problems.append(str(item))
            else:
                targets.append(item)
        part = confirm(targets, Limits(device, timeout))
        result.outcomes += part.outcomes
        result.slices += part.slices
        result.problems += part.problems
    for problem in result.problems:
        warn(problem)
    if plot is not None:
        from galint.trace.confirm_plot import plot_outcomes

        plot_outcomes(result.outcomes, plot)
        click.echo(f"plot written to {plot}", err=True)
    write(_rendered(result.outcomes, result.slices if show_slice else [], output_format, output_file), output_file)
    return exit_code(result.outcomes) or (2 if result.problems else 0)


def _rendered(
    outcomes: Sequence[object], slices: Sequence[tuple[str, str]], output_format: str, file: Path | None
) -> str:
    from galint.trace import confirm_report
    from galint.trace.concluding import Outcome

    found = [o for o in outcomes if isinstance(o, Outcome)]
    if output_format == "json":
        return confirm_report.as_json(found, slices)
    if output_format == "sarif":
        return confirm_report.as_sarif(found)
    return confirm_report.as_text(found, slices, color=file is None and sys.stdout.isatty())
