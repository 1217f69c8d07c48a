"""`galint explain`: what each loop of a file does, micro-batch by micro-batch."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from galint.cli.options import config_options, overrides
from galint.cli.output import write
from galint.cli.place import split
from galint.config.loading import Resolver
from galint.discovery import project_root
from galint.errors import ConfigError, GalintError, ParseError
from galint.source import Source, Span, read_bytes

if TYPE_CHECKING:
    from galint.explain import LoopView
    from galint.notebook import Notebook


@click.command("explain", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("target", metavar="FILE[:LINE]")
@click.option(
    "--output-format", type=click.Choice(["text", "svg", "html", "json"]), default="text",
    help="How loops are shown (default: text); svg and html draw the window beside the large batch.",
)  # fmt: skip
@click.option("-o", "--output-file", type=click.Path(path_type=Path), help="Write to this file.")
@config_options
def command(target: str, output_format: str, output_file: Path | None, config: tuple[str, ...], isolated: bool) -> int:
    """Show the window table and the applied gradient of each loop of FILE, or of the loop at LINE.

    In a notebook, FILE:CELL takes the loops of a code cell and FILE:CELL:LINE the one at its line.
    """
    name, numbers = split(target)
    resolver = Resolver(overrides(config, isolated))
    path = Path.cwd() / name
    page = _page(name, path)
    from galint.engine import explain

    try:
        views = explain(page.source, resolver.for_file(path), project_root(path.parent, None))
    except ParseError as error:
        raise GalintError(f"{name}:{page.place(Span(error.row, 0, error.row, 0))}: {error.message}") from None
    if numbers:
        views = _chosen(views, page, name, numbers)
    write(_rendered(views, page, output_format, output_file), output_file)
    return 0


@dataclass(frozen=True, slots=True)
class _Page:
    """The text that is explained, and how its places are said."""

    source: Source
    book: Notebook | None = None

    def locate(self, span: Span) -> tuple[int | None, Span]:
        """(code cell, span in it); no cell in a plain file."""
        return self.book.locate(span) if self.book is not None else (None, span)

    def place(self, span: Span) -> str:
        """`12`, or `cell 3:4`."""
        cell, inner = self.locate(span)
        return str(inner.row) if cell is None else f"cell {cell}:{inner.row}"


def _page(name: str, path: Path) -> _Page:
    if name == "-":
        return _Page(Source.from_bytes(sys.stdin.buffer.read(), "stdin.py"))
    if not path.exists():
        raise ConfigError(f"{name}: no such file")
    data = read_bytes(path, name)
    if name.endswith(".ipynb"):
        from galint import notebook

        book = notebook.load(data, name)
        return _Page(book.source, book) if book is not None else _Page(Source(name, ""))
    return _Page(Source.from_bytes(data, name, path))


def _chosen(views: Sequence[LoopView], page: _Page, name: str, numbers: Sequence[int]) -> list[LoopView]:
    """The loops at a line (a column behind it is ignored), or in a notebook's cell. Raises ConfigError."""
    from galint.explain import at_line

    if page.book is None:
        found = at_line(views, numbers[0])
    elif len(numbers) == 1:
        found = [v for v in views if page.locate(v.span)[0] == numbers[0]]
    else:
        row = page.book.row_of(*numbers)
        found = at_line(views, row) if row is not None else []
    if found:
        return found
    known = ", ".join(page.place(v.span) for v in views)
    hint = f"; there are loops at {known}" if known else "; the file has none"
    raise ConfigError(f"{name}: no training loop at {':'.join(map(str, numbers))}{hint}")


def _rendered(views: Sequence[LoopView], page: _Page, output_format: str, file: Path | None) -> str:
    if output_format == "json":
        from galint.render import explain_json

        return explain_json.render(views, locate=page.locate)
    if output_format == "text":
        from galint.render import explain_text
        from galint.render.style import wants_color

        color = wants_color(os.environ, file is None and sys.stdout.isatty())
        return explain_text.render(views, color=color, place=page.place)
    from galint.render import explain_html, explain_svg

    draw = explain_svg.render if output_format == "svg" else explain_html.render
    return draw(views, page.source.lines, place=page.place)
