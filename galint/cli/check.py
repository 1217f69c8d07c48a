"""`galint check`: lint files and folders."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from galint import __version__
from galint.cli.fix import FixOptions, exit_code, fix_options, fix_outcome, tell
from galint.cli.options import config_options, overrides, selection_options
from galint.cli.output import Progress, Texts, warn, write
from galint.config.loading import Resolver
from galint.config.model import Config
from galint.driver import Outcome, run, run_text
from galint.errors import ConfigError
from galint.render import FORMATS, TEXT_FORMATS, Context, render
from galint.rule import Severity


@click.command("check", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@selection_options
@fix_options
@click.option(
    "--output-format", type=click.Choice(list(FORMATS)), default=None, help="How findings are shown (default: full)."
)
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write findings to this file.")
@click.option("--statistics", is_flag=True, help="Show how often each rule was found, instead of each finding.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even when there are findings.")
@click.option(
    "--fail-on",
    type=click.Choice([str(s) for s in Severity]),
    help="The least severity that exits with 1 (default: warning).",
)
@click.option("--stdin-filename", metavar="FILE", help="The name of what `-` reads from standard input.")
@config_options
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERNS",
    help="Leave out these files and folders, instead of the default list.",
)
@click.option("--extend-exclude", multiple=True, metavar="PATTERNS", help="Leave out these files and folders as well.")
@click.option("--force-exclude/--no-force-exclude", default=None, help="Exclude files even when they are named here.")
@click.option(
    "--respect-gitignore/--no-respect-gitignore",
    default=None,
    help="Leave out what .gitignore files ignore (default: yes).",
)
@click.option("--baseline", metavar="FILE", help="Show only findings that this file does not know.")
@click.option(
    "--write-baseline",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write today's findings to this file and exit.",
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes (default: as many as pay).")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the result cache.")
@click.option("--cache-dir", metavar="FOLDER", help="Folder of the result cache.")
@click.option("--show-files", is_flag=True, help="List the files that would be linted.")
@click.option("--show-settings", is_flag=True, help="Show the settings in force for the first path.")
@click.option("-q", "--quiet", is_flag=True, help="Show findings only, no summary and no progress.")
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error what was read and what was not understood.")
def command(
    paths: tuple[str, ...], select: tuple[str, ...], ignore: tuple[str, ...], extend_select: tuple[str, ...],
    output_format: str | None, output_file: Path | None, statistics: bool, exit_zero: bool, fail_on: str | None,
    stdin_filename: str | None, config: tuple[str, ...], isolated: bool, exclude: tuple[str, ...],
    extend_exclude: tuple[str, ...], force_exclude: bool | None, respect_gitignore: bool | None,
    baseline: str | None, write_baseline: Path | None, jobs: int | None, no_cache: bool, cache_dir: str | None,
    show_files: bool, show_settings: bool, quiet: bool, verbose: bool, fixing: FixOptions, watch: bool,
) -> int:  # fmt: skip
    """Lint files and folders; `-` reads standard input. Without PATHS: the current folder."""
    if watch:
        from galint.cli.watch import watch as watching

        context = click.get_current_context()
        again = {**context.params, "watch": False}
        return watching(
            lambda: int(context.invoke(command, **again)),
            paths or (".",),
            lambda: Resolver(overrides(config, isolated, exclude=exclude, extend_exclude=extend_exclude)),
        )
    resolver = Resolver(
        overrides(
            config, isolated, select=select, ignore=ignore, extend_select=extend_select, exclude=exclude,
            extend_exclude=extend_exclude, force_exclude=force_exclude, respect_gitignore=respect_gitignore,
            fail_on=fail_on, baseline=baseline, cache_dir=cache_dir,
        )
    )  # fmt: skip
    if "-" in paths and len(paths) > 1:
        raise ConfigError("`-` stands alone: standard input cannot be mixed with paths")
    names = list(paths) or ["."]
    main_config = _config_of(names[0] if names[0] != "-" else stdin_filename or "stdin.py", resolver)
    if show_settings:
        from galint.cli.settings import settings_text

        write(settings_text(main_config), output_file)
        return 0
    if show_files:
        return _show_files(names, resolver, output_file)
    outcome = _run(names, stdin_filename, resolver, jobs, quiet, not no_cache)
    done = fix_outcome(outcome, fixing, resolver) if fixing.wanted(output_format) else None
    if verbose:
        _tell(outcome)
    for problem in sorted(outcome.problems):
        warn(problem)
    code: int | None = None
    if done is not None:
        tell(done, fixing)
        code = exit_code(done, fixing, outcome)
        if code is not None and (fixing.fix_only or fixing.add_ignore):
            return code
    if write_baseline is not None:
        from galint import baseline as known
        from galint.render.style import counted

        text = known.text(outcome.report, Texts(outcome).lines, known.folder_of(write_baseline))
        write(text, write_baseline)
        warn(f"wrote {counted(len(outcome.report.diagnostics), 'finding')} to {write_baseline}")
        return 2 if outcome.problems else 0
    if main_config.baseline is not None:
        _subtract(main_config.baseline, outcome)
    rendered = _rendered(outcome, output_format or "full", statistics, quiet, output_file, done is not None)
    if done is not None and done.stdin is not None and output_file is None:
        sys.stderr.write(rendered.encode(errors="backslashreplace").decode())
    else:
        write(rendered, output_file)
    if outcome.problems:
        return 2
    if code is not None:
        return code
    failing = any(d.severity.rank >= main_config.fail_on.rank for d in outcome.report.diagnostics)
    return 1 if failing and not exit_zero else 0


def _config_of(name: str, resolver: Resolver) -> Config:
    path = Path(os.path.normpath(Path.cwd() / name))
    return resolver.for_folder(path) if path.is_dir() else resolver.for_file(path)


def _run(
    names: list[str], stdin_filename: str | None, resolver: Resolver, jobs: int | None, quiet: bool, cached: bool
) -> Outcome:
    if names == ["-"]:
        return run_text(sys.stdin.buffer.read(), stdin_filename or "stdin.py", resolver)
    if stdin_filename is not None:
        raise ConfigError("--stdin-filename needs `-` as the only path")
    with Progress(not quiet) as progress:
        return run(names, resolver, jobs=jobs, progress=progress, cached=cached)


def _rendered(
    outcome: Outcome, output_format: str, statistics: bool, quiet: bool, file: Path | None, fixes_tried: bool
) -> str:
    from galint.render.style import Style, wants_color

    color = output_format in TEXT_FORMATS and wants_color(os.environ, file is None and sys.stdout.isatty())
    if statistics:
        from galint.render.summary import statistics as table

        if output_format in ("json", "json-lines"):
            from galint.render.json_format import statistics_json

            return statistics_json(outcome.report)
        return table(outcome.report, Style(color))
    context = Context(
        lines=Texts(outcome).lines, color=color, version=__version__, quiet=quiet, fixes_tried=fixes_tried
    )
    return render(outcome.report, output_format, context)


def _show_files(names: list[str], resolver: Resolver, file: Path | None) -> int:
    from galint.discovery import Target, find

    code, out = 0, ""
    for item in find(names, resolver):
        if isinstance(item, Target):
            out += f"{item.filename}\n"
        else:
            warn(str(item))
            code = 2
    write(out, file)
    return code


def _tell(outcome: Outcome) -> None:
    from galint.render.full import where
    from galint.render.style import counted

    report = outcome.report
    warn(f"{counted(report.files, 'file')} read, {counted(report.loops, 'loop')}, {report.understood} understood")
    for loop in report.not_understood:
        warn(f"{where(loop.filename, loop.cell, loop.span.row, loop.span.column)}: not understood: {loop.reason}")


def _subtract(file: Path, outcome: Outcome) -> None:
    from galint import baseline as known

    linted = [target.filename for target in outcome.targets]
    for line in known.subtract(file, outcome.report, Texts(outcome).lines, linted):
        warn(line)
