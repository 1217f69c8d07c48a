"""Finding and merging configuration: nearest file, `extend`, `--config`, command-line flags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from galint.config.model import Config
from galint.config.selectors import Selection
from galint.config.settings import parse
from galint.errors import ConfigError
from galint.source import read_small

_SELECTION = ("select", "extend-select", "ignore")
_ADDING = ("extend-exclude",)
_MAX_EXTENDS = 20


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says: `inline` are `--config KEY=VALUE`, `flags` the setting keys of flags."""

    isolated: bool = False
    file: Path | None = None
    inline: tuple[str, ...] = ()
    flags: dict[str, object] = field(default_factory=dict)


class Resolver:
    """The configuration of any path: the nearest file above it, under the command line's overrides."""

    def __init__(self, overrides: Overrides | None = None, cwd: Path | None = None) -> None:
        self._overrides = overrides or Overrides()
        if self._overrides.file is not None:
            self._overrides = replace(self._overrides, file=self._overrides.file.absolute())
        self._cwd = cwd or Path.cwd()
        self._by_folder: dict[Path, Config] = {}
        self._by_file: dict[Path, Config] = {}
        self.read: set[Path] = set()
        """The configuration files that were read so far, extended ones among them."""
        self._layers = self._override_layers()
        self._fixed: Config | None = None
        if self._overrides.isolated:
            self._fixed = _merge(Config(), self._layers)
        elif self._overrides.file is not None:
            self._fixed = self._load(self._overrides.file, root=self._cwd)

    def for_folder(self, folder: Path) -> Config:
        """The configuration of files in the absolute `folder`. Raises ConfigError."""
        if self._fixed is not None:
            return self._fixed
        known = self._by_folder.get(folder)
        if known is not None:
            return known
        found = find_in(folder)
        if found is not None:
            config = self._load(found)
        elif folder.parent != folder:
            config = self.for_folder(folder.parent)
        else:
            config = _merge(Config(), self._layers)
        self._by_folder[folder] = config
        return config

    def for_file(self, path: Path) -> Config:
        """The configuration of the absolute file `path`. Raises ConfigError."""
        return self.for_folder(path.parent)

    def _load(self, file: Path, root: Path | None = None) -> Config:
        if file not in self._by_file:
            base = Config(root=root or file.parent, source=file)
            layers = file_layers(file, self.read, named=file == self._overrides.file)
            self._by_file[file] = _merge(base, [*layers, *self._layers])
        return self._by_file[file]

    def _override_layers(self) -> list[dict[str, Any]]:
        layers = []
        for text in self._overrides.inline:
            layers.append(_checked(parse_inline(text), self._cwd, "--config"))
        if self._overrides.flags:
            layers.append(_checked(dict(self._overrides.flags), self._cwd, ""))
        return layers


def find_in(folder: Path) -> Path | None:
    """The configuration file of this very folder: galint.toml, or pyproject.toml with `[tool.galint]`."""
    own = folder / "galint.toml"
    if own.is_file():
        return own
    project = folder / "pyproject.toml"
    if not project.is_file():
        return None
    try:
        mentions = b"galint" in read_small(project)
    except OSError:
        return None
    return project if mentions and _tool_table(project, _toml(project)) is not None else None


def file_layers(file: Path, read: set[Path] | None = None, *, named: bool = False) -> list[dict[str, Any]]:
    """The parsed layers of a file and of those that it extends, the farthest first; `read` gets their paths.

    `named` on the command line, the first may be a pipe. Raises ConfigError.
    """
    layers: list[dict[str, Any]] = []
    seen: list[Path] = []
    current: Path | None = file
    while current is not None:
        resolved = current.resolve()
        if resolved in seen or len(seen) >= _MAX_EXTENDS:
            raise ConfigError(f"{show(file)}: `extend` leads back to {show(current)}")
        seen.append(resolved)
        if read is not None:
            read.add(current)
        try:
            table = _tool_table(current, _toml(current, named and current is file))
        except ConfigError as error:
            raise error if current is file else ConfigError(f"{show(file)}: `extend`: {error}") from None
        layer = _checked(table if table is not None else {}, current.parent, show(current))
        layers.insert(0, layer)
        current = layer.pop("extend", None)
    return layers


def parse_inline(text: str) -> dict[str, Any]:
    """`KEY=VALUE` with a TOML value; a bare word counts as a string. Raises ConfigError."""
    import tomllib

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--config: `{text}` is neither a file nor KEY=VALUE")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        pass
    try:
        quoted = '"' + value.strip().replace("\\", "\\\\").replace('"', '\\"') + '"'
        return tomllib.loads(f"{key} = {quoted}")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--config: `{text}` is not valid TOML ({error})") from None


def show(path: Path) -> str:
    """`path` relative to the current folder where it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _toml(file: Path, any_kind: bool = False) -> dict[str, Any]:
    import tomllib

    try:
        data = file.read_bytes() if any_kind else read_small(file)
        return tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{show(file)}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{show(file)}: is not UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{show(file)}: is not valid TOML ({str(error).splitlines()[0]})") from None


def _tool_table(file: Path, document: dict[str, Any]) -> object | None:
    if file.name != "pyproject.toml":
        return document
    tool = document.get("tool", {})
    return tool.get("galint") if isinstance(tool, dict) else None


def _checked(table: object, root: Path, where: str) -> dict[str, Any]:
    try:
        return parse(table, root)
    except ConfigError as error:
        text = f"{where}: {error}" if where else str(error).replace("`", "`--", 1)
        raise ConfigError(text) from None


def _merge(base: Config, layers: list[dict[str, Any]]) -> Config:
    changes: dict[str, Any] = {}
    selection: list[Selection] = []
    for layer in layers:
        if any(key in layer for key in _SELECTION):
            select, extend, ignore = (layer.get(key) for key in _SELECTION)
            selection.append(Selection(select, extend or (), ignore or ()))
        for key, value in layer.items():
            if key in _SELECTION or key == "extend":
                continue
            attribute = key.replace("-", "_")
            changes[attribute] = (*changes.get(attribute, ()), *value) if key in _ADDING else value
    return replace(base, selection=tuple(selection), **changes)
