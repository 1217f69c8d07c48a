"""The signature that all meanings share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from galint.run.site import Site
from galint.run.values import Value

if TYPE_CHECKING:
    from galint.run.calls import Calls

Meaning = Callable[["Calls", Site], Value | None]
