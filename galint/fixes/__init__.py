"""Fixes that are proved before they are offered: rewrites, the proof on paper, and applying to a fixpoint."""

from __future__ import annotations

from galint.fixes.apply import Fixed, allowed, fix_source
from galint.fixes.attach import attach
from galint.fixes.notebooks import fix_notebook

__all__ = ["Fixed", "allowed", "attach", "fix_notebook", "fix_source"]
