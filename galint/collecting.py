"""The garbage collector while many files are linted: it looks seldom, and never at what start-up has made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (50_000, 20, 50)
"""Programs and runs are many objects and little garbage: with Python's own 700 a seventh of the time goes into looking."""


@contextmanager
def seldom() -> Iterator[None]:
    """Let the collector rest inside the block; processes that are forked there inherit it."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
