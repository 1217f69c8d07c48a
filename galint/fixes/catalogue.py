"""Which rewrites each rule has: the function of the rule's name, in whichever module of `rewrites/` it stands."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module

from galint.fixes import rewrites
from galint.fixes.situation import Candidate, Situation
from galint.registry import RULES

Rewrite = Callable[[Situation], Iterator[Candidate]]


def _named() -> dict[str, Rewrite]:
    """Every public function that a module of `rewrites/` defines, by its name."""
    found: dict[str, Rewrite] = {}
    for module in pkgutil.iter_modules(rewrites.__path__, f"{rewrites.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if inspect.isfunction(value) and value.__module__ == module.name and not name.startswith("_"):
                found[name] = value
    return found


def _catalogue() -> dict[str, Rewrite]:
    named = _named()
    return {rule.code: named[name] for rule in RULES if (name := rule.name.replace("-", "_")) in named}


REWRITES: dict[str, Rewrite] = _catalogue()
