"""Join runtime verdicts to static findings: the same rule (or its family) at a line of the same loop."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from galint.diagnostic import Diagnostic
from galint.trace.judge import family
from galint.trace.model import Status, Verdict, Window

_ORDER = (Status.CONFIRMED, Status.CONSISTENT, Status.INCONCLUSIVE, Status.REFUTED)


def same_file(a: str, b: str) -> bool:
    """Whether two spellings name one file."""
    return a == b or os.path.realpath(a) == os.path.realpath(b)


def files_of(windows: Iterable[Window]) -> list[str]:
    """The user's files that took part in the windows."""
    places = {w.file for w in windows} | {m.file for w in windows for m in w.micros}
    return sorted(p for p in places if p and Path(p).is_file())


def join(verdicts: list[Verdict], diagnostics: Iterable[Diagnostic]) -> tuple[list[Verdict], list[Diagnostic]]:
    """Verdicts with their findings filled in, and the findings about which nothing was measured.

    A finding joins a verdict of its rule whose places are in its file, the nearest line first; a rule without
    a number of its own (a division after backward) takes that of its family.
    """
    answer = list(verdicts)
    left: list[Diagnostic] = []
    for diagnostic in diagnostics:
        best = _match(answer, diagnostic, diagnostic.code)
        if best is None and family(diagnostic.code) != diagnostic.code:
            best = _match(answer, diagnostic, family(diagnostic.code))
        if best is None:
            left.append(diagnostic)
            continue
        verdict = answer[best]
        finding = {
            "code": diagnostic.code,
            "name": diagnostic.name,
            "message": diagnostic.message,
            "filename": diagnostic.filename,
            "line": diagnostic.span.row,
            "column": diagnostic.span.column + 1,
            "applied": diagnostic.applied,
            "expected": diagnostic.expected,
            "configuration": diagnostic.configuration,
        }
        status = verdict.status
        proven = _confirmed(answer, family(verdict.rule)) or verdict.rule == "GA404"
        if verdict.rule == diagnostic.code and status is Status.CONSISTENT and proven:
            # The number and what the text tells together are the proof: the weights of GA201 and the line of the
            # division after backward; the steps of a scheduler and its horizon.
            status = Status.CONFIRMED
        joined = replace(verdict, rule=diagnostic.code, status=status, finding=finding)
        if verdict.finding is None and verdict.rule == diagnostic.code:
            answer[best] = joined
        else:
            answer.append(joined)
    return [v for v in answer if not _explained(v, answer)], left


def _explained(verdict: Verdict, verdicts: list[Verdict]) -> bool:
    """Whether a verdict without a finding only repeats the numbers of a joined one of its family."""
    return verdict.finding is None and any(
        v.finding and v.rule != verdict.rule and family(v.rule) == verdict.rule and v.status is verdict.status
        and v.optimizer == verdict.optimizer
        for v in verdicts
    )  # fmt: skip


def _confirmed(verdicts: list[Verdict], rule: str) -> bool:
    return any(v.rule == rule and v.status is Status.CONFIRMED for v in verdicts)


def _match(verdicts: list[Verdict], diagnostic: Diagnostic, rule: str) -> int | None:
    rows = [diagnostic.span.row, *(r.span.row for r in diagnostic.related if r.filename in (None, diagnostic.filename))]
    found: list[tuple[int, int, int]] = []
    for index, verdict in enumerate(verdicts):
        if verdict.rule != rule:
            continue
        lines = [n for f, n in [*verdict.lines, (verdict.filename, verdict.line)] if same_file(f, diagnostic.filename)]
        if not lines:
            continue
        distance = min(abs(row - n) for row in rows for n in lines)
        found.append((_ORDER.index(verdict.status), distance, index))
    return min(found)[2] if found else None
