"""Parses a file and lowers it to the loop program with exact spans; the only importer of libcst."""

from __future__ import annotations

from galint.syntax.guard import deep
from galint.syntax.parsing import parse
from galint.syntax.portions import MANY_BACKWARDS, portions
from galint.syntax.recovering import parse_any, recovered

__all__ = ["MANY_BACKWARDS", "deep", "parse", "parse_any", "portions", "recovered"]
