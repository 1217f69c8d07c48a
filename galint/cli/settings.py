"""`--show-settings`: the settings in force, in the spelling of the configuration file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from galint.config.model import Config
from galint.config.settings import SETTINGS


def settings_text(config: Config) -> str:
    """One `key = value` line a setting, values as TOML; where they came from and which rules run first."""
    source = config.source.as_posix() if config.source is not None else "none (defaults)"
    out = [f"# configuration file: {source}", f"# rules that run: {', '.join(sorted(config.codes))}"]
    for setting in SETTINGS:
        if setting.key in ("extend", "select", "extend-select", "ignore"):
            continue
        value = getattr(config, setting.key.replace("-", "_"))
        if setting.key in ("per-file-ignores", "severity"):
            value = dict(value)
        out.append(f"{setting.key} = {_toml(value)}" if value is not None else f"# {setting.key} is not set")
    return "\n".join(out) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        pairs = ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int):
        return str(value)
    text = value.as_posix() if isinstance(value, Path) else str(value.value if isinstance(value, Enum) else value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'
