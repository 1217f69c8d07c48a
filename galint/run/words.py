"""A pattern that is asked about the same few names again and again: each answer is kept."""

from __future__ import annotations

import re

_KEPT = 10_000
"""Answers of one pattern, before they are forgotten: some hundred files' worth."""


class Words:
    """What a name or a spelling must contain; `flags` as of `re.compile`."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = re.compile(pattern, flags)
        self._known: dict[str, bool] = {}

    def search(self, text: str) -> bool:
        """Whether the pattern is found anywhere in `text`."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            known = self._known[text] = self.pattern.search(text) is not None
        return known
