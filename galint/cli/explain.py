"""`galint explain`: what each loop of a file does, micro-batch by micro-batch."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from galint.cli.options import config_options, overrides
from galint.cli.output import write
from galint.config.loading import Resolver
from galint.discovery import project_root
from galint.errors import ConfigError
from galint.source import Source, read_bytes


@click.command("explain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", metavar="FILE[:LINE]")
@config_options
def command(target: str, config: tuple[str, ...], isolated: bool) -> int:
    """Show the window table and the applied gradient of each loop of FILE, or of the loop at LINE."""
    name, line = _split(target)
    resolver = Resolver(overrides(config, isolated))
    path = Path.cwd() / name
    source = _source(name, path)
    from galint.engine import explain
    from galint.render.explain_text import render

    views = explain(source, resolver.for_file(path), project_root(path.parent, None), line)
    write(render(views), None)
    return 0


def _split(target: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(.+?):(\d+)(?::\d+)?", target)
    if match is None or Path(target).exists():
        return target, None
    return match[1], int(match[2])


def _source(name: str, path: Path) -> Source:
    if name == "-":
        return Source.from_bytes(sys.stdin.buffer.read(), "stdin.py")
    if not path.exists():
        raise ConfigError(f"{name}: no such file")
    data = read_bytes(path, name)
    if name.endswith(".ipynb"):
        from galint import notebook

        book = notebook.load(data, name)
        return book.source if book is not None else Source(name, "")
    return Source.from_bytes(data, name, path)
