"""What each training loop of a file does, micro-batch by micro-batch, as typed data for any renderer."""

from galint.explain.automatic import automatic
from galint.explain.loops import acquitted, at_line, happenings, launched, listed, views
from galint.explain.model import (
    EffectiveBatch,
    Happening,
    LedgerView,
    LoopView,
    MicroRow,
    Variant,
    Weight,
    WindowView,
)

__all__ = [
    "EffectiveBatch",
    "Happening",
    "LedgerView",
    "LoopView",
    "MicroRow",
    "Variant",
    "Weight",
    "WindowView",
    "acquitted",
    "at_line",
    "automatic",
    "happenings",
    "launched",
    "listed",
    "views",
]
