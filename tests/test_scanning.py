"""The look through many files: the same verdicts from workers and without, and none lost with a worker."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from galint import scanning
from galint.config import Config
from galint.discovery import Target
from galint.scanning import scan

TRAINS = b"import torch\nloss.backward()\noptimizer.step()\n"
TALKS = b'"""loss.backward() and optimizer.step() of torch"""\n'
PLAIN = b"x = 1\n"


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """Ten files in chunks of three; the fifth is gone, the tenth trains."""
    monkeypatch.setattr(scanning, "_WORKERS_FROM", 4)
    monkeypatch.setattr(scanning, "_CHUNK", 3)
    for number in range(10):
        (tmp_path / f"f{number}.py").write_bytes({2: TALKS, 9: TRAINS}.get(number, PLAIN))
    (tmp_path / "f4.py").unlink()
    return [Target(tmp_path / f"f{n}.py", f"f{n}.py", Config(), tmp_path) for n in range(10)]


@pytest.mark.parametrize("jobs", [1, 3])
def test_only_what_matters_has_a_size(targets: list[Target], jobs: int) -> None:
    wanted = [0, 0, 0, 0, "f4.py: does not exist", 0, 0, 0, 0, len(TRAINS)]
    assert scan(targets, jobs, known=False, on_hit=lambda: None) == wanted


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_may_be_in_the_cache_is_told_by_words_alone(targets: list[Target], jobs: int) -> None:
    found = scan(targets, jobs, known=True, on_hit=lambda: None)
    assert (found[2], found[9], found[0]) == (len(TALKS), len(TRAINS), 0)


def test_a_find_is_told_once_while_workers_look(targets: list[Target], monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread that an earlier test left behind (tqdm's monitor) would keep the scan from forking.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    (targets[0].path).write_bytes(TRAINS)
    said: list[int] = []
    scan(targets, 2, known=False, on_hit=lambda: said.append(os.getpid()))
    assert said == [os.getpid()]
    said.clear()
    scan(targets, 1, known=False, on_hit=lambda: said.append(0))
    assert said == []  # nothing else would run meanwhile


def test_no_verdict_is_lost_with_a_worker(targets: list[Target], monkeypatch: pytest.MonkeyPatch) -> None:
    parent = os.getpid()
    read = scanning.read_bytes

    def deadly(path: Path | str, filename: str) -> bytes:
        if os.getpid() != parent and filename == "f9.py":
            os.kill(os.getpid(), signal.SIGKILL)
        return read(path, filename)

    monkeypatch.setattr(scanning, "read_bytes", deadly)
    assert scan(targets, 2, known=False, on_hit=lambda: None)[8:] == [0, len(TRAINS)]


def test_nothing_is_forked_beside_other_threads(targets: list[Target], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        assert scan(targets, 3, known=False, on_hit=lambda: None)[9] == len(TRAINS)
    finally:
        waiting.set()
        thread.join()
