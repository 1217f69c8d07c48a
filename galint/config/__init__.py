"""`[tool.galint]`: the settings, where they come from, and how rules are selected."""

from galint.config.loading import Overrides, Resolver
from galint.config.model import DEFAULT_EXCLUDE, Config
from galint.config.selectors import ALL_CODES, Selection, expand, find_rule, resolve
from galint.config.settings import SETTINGS, json_schema

__all__ = [
    "ALL_CODES",
    "DEFAULT_EXCLUDE",
    "SETTINGS",
    "Config",
    "Overrides",
    "Resolver",
    "Selection",
    "expand",
    "find_rule",
    "json_schema",
    "resolve",
]
