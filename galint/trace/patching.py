"""Replace attributes for the time of a trace and put every one of them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MISSING = object()


class Patches:
    """A stack of replaced attributes. `undo` restores them in reverse order and can be called twice."""

    def __init__(self) -> None:
        self._saved: list[tuple[Any, str, Any, Any]] = []

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> bool:
        """Put `wrap(original)` in place of `owner.name`; False when there is no such attribute."""
        original = getattr(owner, name, _MISSING)
        if original is _MISSING:
            return False
        own = owner.__dict__.get(name, _MISSING) if isinstance(owner, type) else original
        made = wrap(original)
        self._saved.append((owner, name, own, made))
        setattr(owner, name, made)
        return True

    def undo(self) -> None:
        """Restore what is still ours; what somebody replaced after us stays as it is."""
        while self._saved:
            owner, name, original, made = self._saved.pop()
            if getattr(owner, name, None) is not made:
                continue
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
