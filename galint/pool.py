"""A process pool that ends at once on Ctrl-C and notices a worker that died."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_IN_FLIGHT = 4
"""Items handed out per worker: enough that none starves, few enough that a lost worker costs little."""


def run_pool(work: Callable[[_T], _R], items: Sequence[_T], jobs: int, lost: Callable[[_T], _R]) -> Iterator[_R]:
    """Results in the order of completion; `lost` gives the result of an item whose worker was killed.

    When a worker dies the items that were in flight run again, each in a pool of its own, so that only
    the one that kills its worker is lost.
    """
    waiting = list(reversed(items))
    suspects: list[_T] = []
    while waiting:
        yield from _round(work, waiting, suspects, min(jobs, len(waiting)))
        while suspects:
            suspect = suspects.pop()
            again: list[_T] = []
            yield from _round(work, [suspect], again, 1)
            if again:
                yield lost(suspect)


def _round(work: Callable[[_T], _R], waiting: list[_T], broken: list[_T], jobs: int) -> Iterator[_R]:
    """Empty `waiting` through one pool; when the pool breaks, what was in flight goes to `broken`."""
    # Forking shares the modules that are already imported, but is only sound without other threads.
    method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
    context = multiprocessing.get_context(method)
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker)
    pending: dict[Future[_R], _T] = {}
    try:
        while waiting or pending:
            try:
                while waiting and len(pending) < jobs * _IN_FLIGHT:
                    item = waiting.pop()
                    try:
                        pending[executor.submit(work, item)] = item
                    except BrokenProcessPool:
                        waiting.append(item)
                        raise
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    del pending[future]
                    yield result
            except BrokenProcessPool:
                broken += pending.values()
                return
    except BaseException:
        _kill(executor)
        raise
    finally:
        # Waiting ends its threads, so that a next round may fork again; what still runs was killed above.
        executor.shutdown(wait=True, cancel_futures=True)


def _kill(executor: ProcessPoolExecutor) -> None:
    """End the workers now: on Ctrl-C nobody waits for the file at hand."""
    for process in list((getattr(executor, "_processes", None) or {}).values()):
        process.kill()


def _start_worker() -> None:
    """Ctrl-C is the parent's affair; a worker whose parent is gone ends itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)
