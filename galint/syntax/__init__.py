"""The only importer of libcst: parses a file and lowers it to the loop program with exact spans."""

from __future__ import annotations

from galint.syntax.guard import deep
from galint.syntax.module import CstModule, cst_module, nodes_at, parse

__all__ = ["CstModule", "cst_module", "deep", "nodes_at", "parse"]
