"""Output formats: each turns a report into text; none of them prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from galint.diagnostic import Report

FORMATS: dict[str, str] = {
    "full": "full",
    "concise": "concise",
    "grouped": "grouped",
    "json": "json_format",
    "json-lines": "json_format",
    "sarif": "sarif",
    "github": "github",
    "gitlab": "gitlab",
    "junit": "junit",
    "pylint": "pylint",
    "rdjson": "rdjson",
    "lsp": "lsp",
}
"""Format → the module of this folder that renders it."""

TEXT_FORMATS = ("full", "concise", "grouped")
"""The formats for people: coloured on a terminal, followed by a summary."""


def _no_lines(filename: str, cell: int | None) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Context:
    """What a renderer may use besides the report.

    `lines(filename, cell)` gives a file's (or notebook cell's) lines, empty when they cannot be had.
    """

    lines: Callable[[str, int | None], Sequence[str]] = _no_lines
    color: bool = False
    version: str = ""
    quiet: bool = False
    """No summary line."""
    fixes_tried: bool = True
    """False when nobody has looked for fixes yet: the summary then says how to."""


def render(report: Report, output_format: str, context: Context) -> str:
    """The report in one of `FORMATS`, ending with a newline (or empty)."""
    module = import_module(f"galint.render.{FORMATS[output_format]}")
    name = "render_lines" if output_format == "json-lines" else "render"
    return cast(Callable[[Report, Context], str], getattr(module, name))(report, context)
