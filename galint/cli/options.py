"""Flags that several commands share, and how they become configuration overrides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from galint.config.loading import Overrides
from galint.errors import ConfigError
from galint.rule import Severity

_F = TypeVar("_F", bound=Callable[..., Any])


def config_options(function: _F) -> _F:
    """`--config` and `--isolated`."""
    for option in reversed(
        (
            click.option(
                "--config", "config", multiple=True, metavar="FILE|KEY=VALUE",
                help="A configuration file, or one setting such as fail-on=error (repeatable).",
            ),
            click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def selection_options(function: _F) -> _F:
    """`--select`, `--ignore` and `--extend-select`."""
    for option in reversed(
        (
            click.option(
                "--select", multiple=True, metavar="RULES", help="Run these rules only: codes, prefixes, names, ALL."
            ),
            click.option("--ignore", multiple=True, metavar="RULES", help="Do not run these rules."),
            click.option("--extend-select", multiple=True, metavar="RULES", help="Run these rules as well."),
        )
    ):
        function = option(function)
    return function


def split(values: Sequence[str]) -> list[str]:
    """Comma-separated and repeated flags as one list."""
    return [item.strip() for value in values for item in value.split(",") if item.strip()]


def overrides(config: Sequence[str], isolated: bool, **flags: object) -> Overrides:
    """What the command line says about configuration; a flag that was not given is None or empty.

    A `--config` argument without `=`, or that names an existing file, is a file. Raises ConfigError.
    """
    file: Path | None = None
    inline: list[str] = []
    for text in config:
        if Path(text).is_file() or ("=" not in text and text.endswith(".toml")):
            if file is not None:
                raise ConfigError(
                    f"--config: a second configuration file `{text}`; give one, and KEY=VALUE for the rest"
                )
            if not Path(text).is_file():
                raise ConfigError(f"--config: {text}: no such file")
            file = Path(text)
        else:
            inline.append(text)
    if file is not None and isolated:
        raise ConfigError("--config FILE and --isolated exclude each other")
    given: dict[str, object] = {}
    for name, value in flags.items():
        if isinstance(value, tuple):
            value = split(value) if value else None
        elif isinstance(value, Severity):
            value = str(value)
        if value is not None:
            given[name.replace("_", "-")] = value
    return Overrides(isolated=isolated, file=file, inline=tuple(inline), flags=given)
