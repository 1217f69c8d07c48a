"""The runtime half: run a training loop under hooks and measure the gradient each step applies.

    with galint.trace.watch(model, optimizer) as t:
        train_a_few_windows()
    t.assert_large_batch()

Importing this package does not import torch; `watch` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from galint.trace.model import Event, Header, Micro, Status, Trace, Verdict, Window

if TYPE_CHECKING:
    from galint.trace.watching import NotTheLargeBatch, Watch, watch

__all__ = [
    "Event",
    "Header",
    "Micro",
    "NotTheLargeBatch",
    "Status",
    "Trace",
    "Verdict",
    "Watch",
    "Window",
    "watch",
]

_NEEDS_TORCH = ("NotTheLargeBatch", "Watch", "watch")


def __getattr__(name: str) -> Any:
    """Import the torch-bound names on first use (PEP 562)."""
    if name in _NEEDS_TORCH:
        from galint.trace import watching

        return getattr(watching, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
