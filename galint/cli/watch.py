"""`galint check --watch`: runs the check again whenever a file of the tree or a setting changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from galint.config.loading import Resolver
from galint.discovery import Target, find
from galint.errors import ConfigError, GalintError

_PAUSE = 0.4
"""Seconds between two looks; a look that takes long makes its pause longer."""
_LONGEST = 5.0
_SETTINGS = ("pyproject.toml", "galint.toml", ".gitignore")

Snapshot = dict[str, tuple[int, int]]
"""Path → (modification time in ns, size)."""


def watch(once: Callable[[], int], paths: Sequence[str], resolver: Callable[[], Resolver]) -> int:
    """Run `once` now and after every change, until Ctrl-C; unchanged files come from the cache."""
    if "-" in paths:
        raise ConfigError("--watch needs files or folders, not standard input")
    last = None
    while True:
        start = time.monotonic()
        now = snapshot(paths, resolver)
        looking = time.monotonic() - start
        if now != last:
            _again(once, first=last is None)
            last = now
        time.sleep(min(max(_PAUSE, 4 * looking), _LONGEST))


def _again(once: Callable[[], int], *, first: bool) -> None:
    if sys.stdout.isatty() and not first:
        sys.stdout.write("\033[2J\033[H")
    try:
        once()
    except GalintError as error:  # a setting that is half typed must not end the watch
        sys.stderr.write(f"galint: {error}\n")
    sys.stderr.write("galint: watching for changes, Ctrl-C ends\n")
    sys.stderr.flush()


def snapshot(paths: Sequence[str], resolver: Callable[[], Resolver]) -> Snapshot:
    """The state of every file that would be linted and of the settings beside them."""
    out: Snapshot = {}
    folders: set[Path] = {Path.cwd()}
    try:
        for target in find(paths, resolver()):
            if isinstance(target, Target):
                folders.add(target.path.parent)
                _note(target.path, out)
    except ConfigError as error:
        out[str(error)] = (0, 0)
    for folder in folders:
        for name in _SETTINGS:
            _note(folder / name, out)
    return out


def _note(path: Path, out: Snapshot) -> None:
    try:
        found = os.stat(path)
    except OSError:
        return
    out[str(path)] = (found.st_mtime_ns, found.st_size)
