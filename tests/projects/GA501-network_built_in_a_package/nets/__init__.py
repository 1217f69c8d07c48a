"""The networks of the project."""

from .making import build_network

__all__ = ["build_network"]
