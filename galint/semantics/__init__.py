"""What calls mean: a file a framework, each a table of names and small functions.

A new framework is a new module here with `FUNCTIONS` (dotted name or `*.Terminal` → meaning) and
`METHODS` ((kind, method) → meaning), added to `_ROOMS`. A meaning returns the call's value, or None when it
has nothing to say.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from galint.semantics import (
    accelerate,
    amp,
    backward,
    clipping,
    configured,
    containers,
    contexts,
    deepspeed,
    fabric,
    finite,
    helpers,
    hf_trainer,
    ignite,
    iterables,
    leaves,
    lightning,
    loaders,
    losses,
    mmengine,
    modules,
    optim,
    parallel,
    python,
    settings,
    tensors,
    torchtune,
)
from galint.semantics.types import Meaning

_ROOMS: tuple[Any, ...] = (
    python,
    iterables,
    containers,
    settings,
    backward,
    tensors,
    losses,
    leaves,
    modules,
    optim,
    amp,
    clipping,
    parallel,
    contexts,
    accelerate,
    fabric,
    finite,
    deepspeed,
    lightning,
    ignite,
    hf_trainer,
    mmengine,
    torchtune,
    helpers,
    loaders,
)

FUNCTIONS: dict[str, Meaning] = {}
METHODS: dict[tuple[str, str], Meaning] = {}
for _room in _ROOMS:
    FUNCTIONS.update(getattr(_room, "FUNCTIONS", {}))
    METHODS.update(getattr(_room, "METHODS", {}))


def function_meaning(name: str) -> Meaning | None:
    """The meaning of a function or class of another package, by its dotted name; the configuration speaks first."""
    return configured.meaning_of(name) or _documented(name)


@lru_cache(maxsize=8192)
def _documented(name: str) -> Meaning | None:
    exact = FUNCTIONS.get(name)
    if exact is not None:
        return exact
    root, _, _ = name.partition(".")
    last = name.rpartition(".")[2]
    found = FUNCTIONS.get(f"{root}.*.{last}") or FUNCTIONS.get(f"*.{last}")
    if found is not None:
        return found
    for room in _ROOMS:
        guess = getattr(room, "guess", None)
        if guess is not None:
            meaning: Meaning | None = guess(name)
            if meaning is not None:
                return meaning
    return None


def method_meaning(kind: str, name: str) -> Meaning | None:
    """The meaning of a method on a thing of some kind."""
    return METHODS.get((kind, name)) or METHODS.get(("*", name))


__all__ = ["FUNCTIONS", "METHODS", "contexts", "function_meaning", "method_meaning"]
