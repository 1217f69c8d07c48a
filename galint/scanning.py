"""Which of many files are worth parsing: their bytes are looked through, in several processes where that pays."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from galint.discovery import Target, may_be_known, may_matter
from galint.errors import SourceError
from galint.source import read_bytes

_WORKERS_FROM = 2_000
"""Files from which worker processes pay for their start: a file takes some 90 µs, the processes some 60 ms."""
_CHUNK = 256

Verdict = int | str
"""The bytes of a file that is worth more than a look, 0 for any other file, or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some of the files: the first one's number, and (path, name as shown) of each."""

    first: int
    files: tuple[tuple[str, str], ...]
    matter: bool
    """Whether `may_matter` decides, or the quicker `may_be_known`."""


def scan(targets: Sequence[Target], jobs: int, *, known: bool, on_hit: Callable[[], object]) -> list[Verdict]:
    """A verdict for each target; with `known` on what may be in the cache, a superset of what matters.

    `on_hit` is called once, as soon as workers found a file: what its analysis needs can be loaded meanwhile.
    """
    chunks = [
        _Chunk(first, tuple([(str(t.path), t.filename) for t in targets[first : first + _CHUNK]]), not known)
        for first in range(0, len(targets), _CHUNK)
    ]
    # Only forked workers are ready at once, and forking is sound without other threads only.
    forks = sys.platform == "linux" and threading.active_count() == 1
    verdicts: list[Verdict] = [0] * len(targets)
    if jobs == 1 or len(targets) < _WORKERS_FROM or not forks:
        for chunk in chunks:
            _, verdicts[chunk.first : chunk.first + len(chunk.files)] = _look(chunk)
        return verdicts
    from galint.pool import run_pool

    hit = False
    for first, found in run_pool(_look, chunks, jobs, lost=_look):
        verdicts[first : first + len(found)] = found
        if not hit and any(isinstance(verdict, int) and verdict for verdict in found):
            hit = True
            on_hit()
    return verdicts


def _look(chunk: _Chunk) -> tuple[int, list[Verdict]]:
    test = may_matter if chunk.matter else may_be_known
    out: list[Verdict] = []
    for path, filename in chunk.files:
        try:
            data = read_bytes(path, filename)
        except SourceError as error:
            out.append(str(error))
        else:
            out.append(len(data) if test(data) else 0)
    return chunk.first, out
