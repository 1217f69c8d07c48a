"""The table of settings: each key's parser, its JSON schema and its one-line description."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from galint.config.selectors import expand, known_selectors
from galint.errors import ConfigError, UnknownRule
from galint.patterns import anchor
from galint.rule import Severity

Parser = Callable[[str, object, Path], object]
"""(key, TOML value, folder that relative paths count from) → the value that Config holds."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of `[tool.galint]`."""

    key: str
    parse: Parser
    schema: Callable[[], dict[str, Any]]
    summary: str


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def _strings(key: str, value: object, root: Path) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"`{key}` must be a list of strings, not {_kind(value)}")
    for item in value:
        if not isinstance(item, str):
            raise ConfigError(f"`{key}` must be a list of strings, but holds {_kind(item)}")
        if not item:
            raise ConfigError(f"`{key}` holds an empty string")
    return tuple(value)


def _rules(key: str, value: object, root: Path) -> tuple[str, ...]:
    selectors = _strings(key, value, root)
    for selector in selectors:
        _rule(key, selector)
    return selectors


def _rule(key: str, selector: str) -> str:
    try:
        expand(selector)
    except UnknownRule as error:
        raise ConfigError(f"`{key}`: {error}") from None
    return selector


def _patterns(key: str, value: object, root: Path) -> tuple[str, ...]:
    return tuple(anchor(pattern, root) for pattern in _strings(key, value, root))


def _boolean(key: str, value: object, root: Path) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"`{key}` must be true or false, not {_kind(value)}")
    return value


def _positive(key: str, value: object, root: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        shown = value if isinstance(value, int) and not isinstance(value, bool) else _kind(value)
        raise ConfigError(f"`{key}` must be an integer of at least 1, not {shown}")
    return value


def _severity(key: str, value: object, root: Path) -> Severity:
    if not isinstance(value, str):
        raise ConfigError(f"`{key}` must be one of error, warning, note, not {_kind(value)}")
    try:
        return Severity(value)
    except ValueError:
        raise ConfigError(f"`{key}` has the unknown severity `{value}`{nearest(value, list(Severity))}") from None


def _path(key: str, value: object, root: Path) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"`{key}` must be a path, not {_kind(value) if value else 'empty'}")
    return root / value


def _table(key: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"`{key}` must be a table, not {_kind(value)}")
    return value


def _per_file(key: str, value: object, root: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    pairs = []
    for pattern, selectors in _table(key, value).items():
        sign = "!" if pattern.startswith("!") else ""
        pairs.append((sign + anchor(pattern.removeprefix("!"), root), _rules(f"{key}.{pattern}", selectors, root)))
    return tuple(pairs)


def _severities(key: str, value: object, root: Path) -> tuple[tuple[str, Severity], ...]:
    table = _table(key, value)
    return tuple(
        (_rule(key, selector), _severity(f"{key}.{selector}", level, root)) for selector, level in table.items()
    )


def _list_schema(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_TEXT = {"type": "string", "minLength": 1}
_LEVEL = {"enum": [str(level) for level in Severity]}


def _any_rule() -> dict[str, Any]:
    return {"enum": list(known_selectors())}


def _text_list() -> dict[str, Any]:
    return _list_schema(_TEXT)


def _rule_list() -> dict[str, Any]:
    return _list_schema(_any_rule())


def _flag() -> dict[str, Any]:
    return {"type": "boolean"}


def _file() -> dict[str, Any]:
    return {**_TEXT, "pattern": "^[^\\u0000]*$"}


SETTINGS: tuple[Setting, ...] = (
    Setting("extend", _path, _file, "another configuration file that this one builds on"),
    Setting("select", _rules, _rule_list, "the rules to run: codes, prefixes, names or ALL"),
    Setting("extend-select", _rules, _rule_list, "rules to run besides the selected ones"),
    Setting("ignore", _rules, _rule_list, "rules not to run"),
    Setting(
        "per-file-ignores",
        _per_file,
        lambda: {"type": "object", "additionalProperties": _rule_list()},
        "file pattern → rules not to run there; `!pattern` means all other files",
    ),
    Setting("exclude", _patterns, _text_list, "files and folders to leave out, instead of the default list"),
    Setting("extend-exclude", _patterns, _text_list, "files and folders to leave out besides `exclude`"),
    Setting("respect-gitignore", _boolean, _flag, "leave out what .gitignore files ignore"),
    Setting("force-exclude", _boolean, _flag, "exclude files even when the command line names them"),
    Setting(
        "severity",
        _severities,
        lambda: {"type": "object", "propertyNames": _any_rule(), "additionalProperties": _LEVEL},
        "rule selector → error, warning or note",
    ),
    Setting("fail-on", _severity, lambda: _LEVEL, "the least severity that makes the exit code 1"),
    Setting("optimizers", _strings, _text_list, "names of the project's own optimizer classes and factories"),
    Setting("scalers", _strings, _text_list, "names of the project's own gradient scalers"),
    Setting("loss-helpers", _strings, _text_list, "names of functions that return a mean loss"),
    Setting(
        "target-micro-batch",
        _positive,
        lambda: {"type": "integer", "minimum": 1},
        "samples from which BatchNorm statistics count as good (GA501)",
    ),
    Setting("baseline", _path, _file, "file of known findings, written by --write-baseline"),
    Setting("cache-dir", _path, _file, "folder of the result cache"),
)

_FEW = 5
_BY_KEY = {setting.key: setting for setting in SETTINGS}


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for the nearest known word; without one, all of them where they are few."""
    words = list(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; it is one of {', '.join(words)}" if len(words) <= _FEW else ""


def parse(table: object, root: Path) -> dict[str, Any]:
    """Validate one `[tool.galint]` table: setting key → parsed value. Raises ConfigError."""
    out: dict[str, Any] = {}
    if not isinstance(table, dict):
        raise ConfigError(f"`tool.galint` must be a table, not {_kind(table)}")
    for key, value in table.items():
        setting = _BY_KEY.get(key)
        if setting is None:
            hint = nearest(key, _BY_KEY) or "; `galint --show-settings` lists the known ones"
            if key == "tool" and isinstance(value, dict) and "galint" in value:
                hint = ": the keys of `[tool.galint]` stand at the top of galint.toml, without that header"
            raise ConfigError(f"unknown setting `{key}`{hint}")
        out[key] = setting.parse(key, value, root)
    return out


def json_schema() -> dict[str, Any]:
    """The JSON schema of a `[tool.galint]` table, made from the same table that the parser uses."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "galint",
        "description": "The [tool.galint] table of pyproject.toml, or galint.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": {s.key: {**s.schema(), "description": s.summary} for s in SETTINGS},
    }
