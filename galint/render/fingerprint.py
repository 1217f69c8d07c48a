"""Fingerprints of findings: stable when lines move, unique within a report."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from galint.diagnostic import Diagnostic
from galint.render import Context


def fingerprints(diagnostics: Sequence[Diagnostic], context: Context) -> list[str]:
    """32 hex digits for each finding, from file, rule, the text of its line and its number among equals."""
    seen: Counter[str] = Counter()
    out = []
    for d in diagnostics:
        lines = context.lines(d.filename, d.cell)
        line = lines[d.span.row - 1] if d.span.row <= len(lines) else ""
        key = "\0".join((d.filename, d.code, "".join(line.split())))
        seen[key] += 1
        data = f"{key}\0{seen[key]}".encode("utf-8", "surrogatepass")
        out.append(hashlib.sha256(data).hexdigest()[:32])
    return out
