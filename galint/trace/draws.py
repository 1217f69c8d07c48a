"""How far a data loader is: where its epochs end among the micro-batches."""

from __future__ import annotations


class Draws:
    """How far one data loader iterator is, and how many micro-batches it fed."""

    __slots__ = ("drawn", "length", "micros")

    def __init__(self, length: int | None) -> None:
        self.length = length
        self.drawn = 0
        self.micros = 0
