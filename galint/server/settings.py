"""The client's settings and the configuration files of the workspace, read again when they change."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from galint.config import Config
from galint.config.loading import Overrides, Resolver
from galint.errors import ConfigError

_OWN = {"configuration", "isolated", "inlay-hints", "debounce", "interpreter", "confirm-timeout"}
_FILES = ("galint.toml", "pyproject.toml")


@dataclass(slots=True)
class Settings:
    """What the client sets: the server's own settings, and overrides of galint's configuration."""

    inlay_hints: bool = True
    debounce: float = 0.05
    """Seconds: keystrokes closer together than this are analysed together, once they pause."""
    interpreter: str = ""
    """The Python that runs a script to confirm a finding; empty for the server's own."""
    confirm_timeout: float = 120.0
    overrides: Overrides = field(default_factory=Overrides)


def read(value: object) -> Settings:
    """Settings from initializationOptions or `workspace/configuration`. Raises ConfigError.

    Keys are the configuration's, in kebab-case, snake_case or camelCase, and the server's own:
    configuration, isolated, inlayHints, debounce (milliseconds), interpreter, confirmTimeout (seconds).
    """
    while isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        if next(iter(value)) not in ("galint", "settings"):
            break
        value = inner
    if value is None:
        return Settings()
    if not isinstance(value, dict):
        raise ConfigError("the editor's galint settings are not an object")
    table = {_kebab(str(key)): item for key, item in value.items() if item is not None}
    out = Settings()
    out.inlay_hints = _flag(table, "inlay-hints", True)
    out.debounce = _number(table, "debounce", 50) / 1000
    out.confirm_timeout = _number(table, "confirm-timeout", 120)
    out.interpreter = str(table.get("interpreter", ""))
    file = table.get("configuration")
    flags = {key: item for key, item in table.items() if key not in _OWN}
    path = Path(file) if isinstance(file, str) and file else None
    out.overrides = Overrides(isolated=_flag(table, "isolated", False), file=path, flags=flags)
    Resolver(out.overrides)  # a mistake in them is said now
    return out


def _kebab(key: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", key).replace("_", "-").lower()


def _flag(table: dict[str, Any], key: str, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise ConfigError(f"`{key}` is true or false, not {value!r}")
    return value


def _number(table: dict[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 3_600_000:
        raise ConfigError(f"`{key}` is a number that is not negative, not {value!r}")
    return float(value)


class Configs:
    """The configuration of any file; configuration files that changed since are read again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._resolver = Resolver(settings.overrides)
        self._seen: dict[Path, tuple[frozenset[Path], dict[Path, tuple[int, int]]]] = {}

    def reset(self) -> None:
        """Forget everything that was read."""
        self._resolver = Resolver(self.settings.overrides)
        self._seen.clear()

    def of(self, folder: Path) -> Config:
        """The configuration of files in an absolute folder. Raises ConfigError."""
        if folder in self._seen:
            read, stamp = self._seen[folder]
            if stamp != _stamp(folder, read):
                self.reset()
        try:
            return self._resolver.for_folder(folder)
        finally:
            now = frozenset(self._resolver.read)
            self._seen[folder] = (now, _stamp(folder, now))


def _stamp(folder: Path, read: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Time and size of every file that can configure a folder, and of those that were `read` for any folder."""
    out = {}
    names = [parent / name for parent in (folder, *folder.parents) for name in _FILES]
    for path in (*names, *read):
        try:
            stat = path.stat()
        except OSError:
            continue
        out[path] = (stat.st_mtime_ns, stat.st_size)
    return out
