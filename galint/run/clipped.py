"""Clipping that is written by hand: gradients are multiplied by a bound over their own norm, where that is below one."""

from __future__ import annotations

import re

from galint import program as p
from galint.ledger import Coefficient, Guard
from galint.run.machine import Machine
from galint.run.reach import BACKWARD
from galint.source import Span

_MEASURED = re.compile(r"\.grad\b.*\bnorm|norm\w*\(.*\.grad\b")
"""A number made from the gradients' norm."""
_BOUNDED = re.compile(r"\b(clamp|clip|min|minimum)\(")
_ASKED = re.compile(r"[<>]")


def clips(factor: Coefficient, guards: list[Guard]) -> bool:
    """Whether gradients are multiplied by what shortens them where they are too long.

    Where no bound is asked for, they always get the same length: no sum of theirs is too large then.
    """
    measured = [name for name, _ in factor.symbols if _MEASURED.search(name)]
    asked = any(_ASKED.search(g.text) for g in guards[-2:] if not g.moduli)
    return bool(measured) and (asked or any(map(_BOUNDED.search, measured)))


def place_of_clip(m: Machine, span: Span) -> Span:
    """The call of the function that does it, where that is one for clipping and not the training's."""
    home = m.call_stack[-1] if m.call_stack else None
    if not isinstance(home, p.FunctionDef) or not m.call_spans or BACKWARD in m.static.tags(home):
        return span
    return m.call_spans[-1]
