"""galint: find the mistakes by which gradient accumulation silently trains something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from galint.config import Config as Config
    from galint.diagnostic import Diagnostic as Diagnostic
    from galint.diagnostic import Report as Report
    from galint.engine import lint as lint
    from galint.source import Source as Source

__version__ = "0.1.0"
__all__ = ["Config", "Diagnostic", "Report", "Source", "__version__", "lint"]

_HOMES = {"Config": "config", "Diagnostic": "diagnostic", "Report": "diagnostic", "Source": "source", "lint": "engine"}


def __getattr__(name: str) -> object:
    """The public names, imported on first use so that `import galint` costs nothing."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'galint' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"galint.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
