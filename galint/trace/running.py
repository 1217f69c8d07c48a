"""Run a script in a traced child process and follow its trace as it is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from galint.diagnostic import Diagnostic
from galint.trace.judge import judge
from galint.trace.model import INTERRUPTED, Record, Trace, TraceError, Verdict, add, from_json

POLL = 0.05
GRACE = 5.0
"""Seconds that a script has to end after Ctrl-C."""
WAIT_FOR_RANKS = 120.0
"""Seconds that rank 0 waits for the other ranks' traces."""


@dataclass(slots=True)
class Request:
    """What to run and how. `output` is where the trace is kept (None: nowhere)."""

    argv: list[str]
    module: bool = False
    windows: int | None = 3
    output: Path | None = None
    replay: bool = False
    replay_window: int = 0
    events_only: bool = False
    timeout: float | None = None
    script_to_stderr: bool = False


@dataclass(slots=True)
class Result:
    """A trace with its verdicts. `rank` is not 0 in the processes of torchrun that do not report."""

    trace: Trace
    verdicts: list[Verdict]
    rank: int = 0


def run(request: Request, on_record: Callable[[Record], None]) -> Result:
    """Run the script traced; `on_record` is called with each record as it comes. Raises TraceError.

    Under torchrun every rank writes its own trace and rank 0 merges them.
    """
    if not request.module and not Path(request.argv[0]).is_file():
        raise TraceError(f"{request.argv[0]}: no such script")
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    with tempfile.TemporaryDirectory(prefix="galint-") as folder:
        path = request.output or Path(folder) / "trace.jsonl"
        if world > 1:
            if request.output is None:
                path = _shared(world)
            from galint.trace.ranks import rank_path

            own = rank_path(path, rank)
            Path(f"{own}.samples").unlink(missing_ok=True)
        else:
            own = path
        own.unlink(missing_ok=True)
        try:
            own.touch()
        except OSError as error:
            raise TraceError(f"cannot write the trace `{own}`: {error.strerror}") from error
        trace = _follow(request, own, Path(folder), on_record)
        if world > 1:
            return _merged(path, rank, world, trace)
        verdicts = judge(trace) + trace.verdicts
        return Result(trace, verdicts)


def _shared(world: int) -> Path:
    """A place that all ranks of one torchrun on this machine agree on without talking."""
    name = f"galint-{os.environ.get('TORCHELASTIC_RUN_ID', 'run')}-{os.environ.get('MASTER_PORT', '0')}-{world}.jsonl"
    return Path(tempfile.gettempdir()) / name


def _merged(path: Path, rank: int, world: int, own: Trace) -> Result:
    if rank != 0:
        return Result(own, [], rank)
    from galint.trace.ranks import merge, rank_path, wait_for

    missing = wait_for(path, world, WAIT_FOR_RANKS)
    if missing:
        own.end["error"] = f"no trace came from ranks {', '.join(map(str, missing))}"
        own.end["how"] = "failed"
        return Result(own, judge(own))
    trace, diverged = merge(path, list(range(world)))
    for each in range(world):
        Path(f"{rank_path(path, each)}.samples").unlink(missing_ok=True)
    found = judge(trace)
    if diverged:
        found = [v for v in found if v.rule != "GA603"]
    return Result(trace, diverged + found)


def _follow(request: Request, path: Path, saved: Path, on_record: Callable[[Record], None]) -> Trace:
    options: dict[str, Any] = {
        "output": str(path.resolve()),
        "saved": str(saved.resolve()),
        "windows": request.windows,
        "module": request.module,
        "replay": request.replay,
        "replay_window": request.replay_window,
        "events_only": request.events_only,
    }
    command = [sys.executable, "-m", "galint.trace.child", json.dumps(options), *request.argv]
    environment = dict(os.environ)
    # The child must find this galint even when it is not installed in the script's environment.
    here = str(Path(__file__).resolve().parent.parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(p for p in (here, environment.get("PYTHONPATH", "")) if p)
    trace = Trace()
    started = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr if request.script_to_stderr else None)
    timed_out = False
    try:
        with path.open(encoding="utf-8") as stream, _first_interrupt() as interrupted:
            for record in _records(stream, process):
                add(trace, record)
                if not isinstance(record, dict):
                    on_record(record)
                if request.timeout is not None and time.monotonic() - started > request.timeout:
                    process.kill()
                    timed_out = True
                if interrupted and time.monotonic() - interrupted[0] > GRACE:
                    process.terminate()
    finally:
        if process.poll() is None:
            process.terminate()
        status = process.wait()
    if interrupted and not trace.end:
        trace.end = {"type": "end", "how": "stopped", "why": INTERRUPTED}
    if not trace.end:
        why = f"more than {request.timeout} s" if timed_out else _ending(status)
        trace.end = {"type": "end", "how": "killed", "error": why}
    return trace


@contextmanager
def _first_interrupt() -> Iterator[list[float]]:
    """Keeps the first Ctrl-C, which the script gets as well: what was traced until then is reported.

    Holds when it came; the second one ends galint.
    """
    came: list[float] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(time.monotonic())

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


def _ending(status: int) -> str:
    return f"the process was killed by signal {-status}" if status < 0 else f"the process ended with status {status}"


def _records(stream: Any, process: subprocess.Popen[bytes]) -> Iterator[Record | dict[str, Any]]:
    """Records as they are written; an empty dict at each pause, so that the caller can look at the clock."""
    pending = ""
    while True:
        running = process.poll() is None
        chunk = stream.read()
        pending += chunk
        *lines, pending = pending.split("\n")
        for line in lines:
            yield from_json(json.loads(line))
        if not running and not chunk:
            return
        if not chunk:
            time.sleep(POLL)
            yield {}


def findings(files: list[str]) -> list[Diagnostic]:
    """What the linter says about the files of a trace; nothing when it cannot read them."""
    from galint.config.loading import Overrides, Resolver
    from galint.driver import run as lint

    return lint(files, Resolver(Overrides())).report.diagnostics if files else []
