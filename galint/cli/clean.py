"""`galint clean`: remove result caches."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from galint.cache import is_cache
from galint.cli.options import config_options, overrides
from galint.cli.output import warn
from galint.config.loading import Resolver, show
from galint.driver import cache_folder
from galint.errors import ConfigError


@click.command("clean", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, metavar="[FOLDERS]...")
@click.option("--cache-dir", metavar="FOLDER", help="Folder of the result cache.")
@config_options
def command(paths: tuple[str, ...], cache_dir: str | None, config: tuple[str, ...], isolated: bool) -> int:
    """Remove the result cache of FOLDERS (default: the current folder)."""
    resolver = Resolver(overrides(config, isolated, cache_dir=cache_dir))
    for name in paths or (".",):
        folder = Path.cwd() / name
        if not folder.is_dir():
            raise ConfigError(f"{name}: no such folder")
        cache = cache_folder(resolver.for_folder(folder.resolve()), folder.resolve())
        if not cache.is_dir():
            continue
        if not is_cache(cache):
            raise ConfigError(f"{show(cache)}: is not a cache of galint; nothing was removed")
        try:
            shutil.rmtree(cache)
        except OSError as error:
            raise ConfigError(f"{show(cache)}: cannot be removed ({error.strerror or error})") from None
        warn(f"removed {show(cache)}")
    return 0
