"""Writes `# galint: ignore[…]` comments for findings, each at the end of its logical line."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable

from galint.diagnostic import Diagnostic
from galint.fixes.textedit import Change, Lines, apply_changes

_OWN = re.compile(r"#\s*galint:\s*ignore\s*\[(?P<rules>[^\]#]*)\]")
_SKIP = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def with_ignores(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[str, int]:
    """The text with the findings silenced, and how many of them; GA000 and GA001 cannot be."""
    changes, count = ignores(text, diagnostics)
    return apply_changes(text, changes), count


def ignores(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[list[Change], int]:
    """The changes that silence the findings, and how many findings those are."""
    lines = Lines(text)
    ends = _ends(text)
    wanted: dict[int, set[str]] = {}
    count = 0
    for diagnostic in diagnostics:
        row = ends.get(diagnostic.span.row)
        if diagnostic.code >= "GA1" and row is not None:
            wanted.setdefault(row, set()).add(diagnostic.code)
            count += 1
    changes: list[Change] = []
    for row, codes in wanted.items():
        line = lines.line(row)
        known = _OWN.search(line)
        if known:
            rules = [rule for rule in re.split(r"[,\s]+", known["rules"]) if rule]
            start = lines.offset(row, known.start("rules"))
            merged = ", ".join([*rules, *sorted(codes - set(rules))])
            changes.append(Change(start, lines.offset(row, known.end("rules")), merged))
        else:
            bare = line.rstrip()
            place = lines.offset(row, len(bare))
            changes.append(Change(place, place, f"  # galint: ignore[{', '.join(sorted(codes))}]"))
    return changes, count


def _ends(text: str) -> dict[int, int]:
    """Row → last row of the logical line that holds it, where a comment can stand."""
    out: dict[int, int] = {}
    first: int | None = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
            if token.type == tokenize.NEWLINE:
                out.update((row, token.start[0]) for row in range(first or token.start[0], token.start[0] + 1))
                first = None
            elif token.type not in _SKIP and first is None:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass
    return out
