"""Memory while files are linted: the garbage collector looks seldom, and the frames of deep calls have room."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SELDOM = (300_000, 20, 50)
"""A file's program and runs are many objects that live as long as it is linted: looking in between finds no garbage."""
_MANY = 20_000
"""Objects that a file leaves behind, from which on looking is worth it."""


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


def tidy() -> None:
    """Collect what the file that is done left behind; for use inside `seldom`, after each file."""
    if gc.get_count()[0] > _MANY:
        gc.collect(1)


_ROOM = 70_000
"""Words of a frame that takes more than half a MiB, so that CPython keeps it in a chunk of one, with room behind it."""


def _call(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    return function(*args, **kwargs)


_call_with_room = FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals(), "_call_with_room")


def with_room(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """`function(*args, **kwargs)`, whose calls find room for their frames.

    CPython (3.11 and later) keeps the frames of Python calls in chunks of 16 KiB, and gives a chunk back as soon as its
    first frame is left: a recursion that goes up and down there maps and unmaps memory at each call. A frame as large
    as this one's gets a chunk of 1 MiB, and those above it stay in that one; memory that is not touched costs nothing.
    """
    result: R = _call_with_room(function, *args, **kwargs)
    return result
