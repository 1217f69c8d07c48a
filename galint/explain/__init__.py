"""What each training loop of a file does, micro-batch by micro-batch, as typed data for any renderer."""

from galint.explain.loops import at_line, views
from galint.explain.model import (
    EffectiveBatch,
    Happening,
    LedgerView,
    LoopView,
    MicroRow,
    Variant,
    WindowView,
)

__all__ = [
    "EffectiveBatch",
    "Happening",
    "LedgerView",
    "LoopView",
    "MicroRow",
    "Variant",
    "WindowView",
    "at_line",
    "views",
]
