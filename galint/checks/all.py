"""The checks in the order of their codes: each rule of the registry has the module of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.registry import RULES

_SECOND = {"GA603": ("unsynchronised_tail",)}
"""Rules that ask a second witness have a second module."""


class Check(NamedTuple):
    """A rule's check and the witness it is asked of."""

    code: str
    witness: str
    run: Callable[[View], Iterator[Finding]]


def _check(code: str, module: str) -> Check:
    room = import_module(f"galint.checks.{module}")
    assert code == room.CODE, f"galint/checks/{module}.py says {room.CODE}, the registry {code}"
    return Check(room.CODE, room.WITNESS, room.check)


CHECKS: tuple[Check, ...] = tuple(
    _check(rule.code, module)
    for rule in RULES
    if rule.code >= "GA1"
    for module in (rule.name.replace("-", "_"), *_SECOND.get(rule.code, ()))
)
