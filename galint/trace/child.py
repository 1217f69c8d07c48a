"""The traced process: run the user's script under hooks and write one trace.

Started as `python -m galint.trace.child OPTIONS-JSON script.py args…`. The script sees its own `sys.argv`,
`__main__` and working folder, as if python had started it.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from galint.trace import leftovers
from galint.trace.hooks import Hooks
from galint.trace.keeping import Keeper, KeptCheckpoint
from galint.trace.model import INTERRUPTED, Header, Record, Window, to_line
from galint.trace.patching import Patches
from galint.trace.recorder import Recorder, StopTracing

SWALLOWED = 3
"""How often a script may swallow StopTracing before the process is ended without asking."""


MOST_WAITING = 256
"""Events that wait for their window to be written."""


class _Stream:
    """Writes the lines of each window when it ends, together and flushed, so that a crash loses none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("w", encoding="utf-8")
        self.waiting: list[Record] = []

    def __call__(self, record: Record) -> None:
        self.waiting.append(record)
        if isinstance(record, Window | Header) or len(self.waiting) >= MOST_WAITING:
            self._write()

    def _write(self) -> None:
        self.file.writelines(to_line(record) + "\n" for record in self.waiting)
        self.file.flush()
        self.waiting = []

    def end(self, **body: Any) -> None:
        self._write()
        self.file.write(json.dumps({"type": "end", **body}) + "\n")
        self.file.close()


def rank_and_world() -> tuple[int, int]:
    """Rank and world size as torchrun tells them to a process."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def main(argv: list[str]) -> int:
    """Trace `argv[1:]` with the options in `argv[0]` (a JSON object). The exit status is the script's kind of end."""
    options = json.loads(argv[0])
    rank, world = rank_and_world()
    stream = _Stream(Path(options["output"]))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    stream(Header(argv[1:], torch.__version__, rank, world, device))
    replayer = None
    if options.get("replay"):
        from galint.trace.replay import Replayer

        replayer = Replayer(options.get("replay_window", 0))
    samples = None
    if world > 1:
        from galint.trace.ranks import SampleFile

        samples = SampleFile(Path(options["output"] + ".samples"))
    recorder = Recorder(
        stream,
        rank=rank,
        sampling=not options.get("events_only"),
        limit=options.get("windows"),
        on_window=samples,
        before_step=replayer.before_step if replayer else None,
    )
    hooks = Hooks(recorder)
    patches = Patches()
    keeper = Keeper(Path(options["saved"]))
    hooks.install()
    keeper.install(patches)
    if replayer is not None:
        replayer.install(patches, recorder)
    end: dict[str, Any] = {"how": "finished"}

    def finish() -> None:
        if replayer is not None:
            for verdict in replayer.verdicts:
                stream(verdict)
            end["replay"] = replayer.outcome
        end.update(internal=recorder.internal, kept=keeper.redirected[:20], events=recorder.events)
        stream.end(**end)
        if samples is not None:
            samples.save()
        sys.stdout.flush()
        sys.stderr.flush()

    def swallowed(times: int) -> None:
        if times >= SWALLOWED:
            end["how"] = "stopped"
            keeper.stop()
            finish()
            os._exit(0)

    recorder.on_swallowed = swallowed
    try:
        _run(argv[1:], bool(options.get("module")))
        leftovers.finish(recorder)
    except StopTracing:
        end = {"how": "stopped"}
    except SystemExit as error:
        code = error.code
        if recorder.stopped:
            end = {"how": "stopped"}
        elif code not in (None, 0):
            end = {"how": "failed", "error": f"SystemExit: {code}"}
    except BaseException as error:
        if recorder.stopped or isinstance(error, KeptCheckpoint):
            end = {"how": "stopped"} | ({"why": str(error)} if isinstance(error, KeptCheckpoint) else {})
        elif isinstance(error, KeyboardInterrupt):
            end = {"how": "stopped", "why": INTERRUPTED}
        else:
            end = {"how": "failed", "error": f"{type(error).__name__}: {error}"}
            traceback.print_exception(error.with_traceback(_users(error.__traceback__)))
    finally:
        keeper.stop()
        hooks.remove()
        patches.undo()
    finish()
    if end["how"] == "stopped":
        # Threads, worker processes and collectives of a run that was cut short need not end by themselves.
        os._exit(0)
    return 0 if end["how"] == "finished" else 1


def _users(tb: Any) -> Any:
    """The traceback from the script's own first frame on."""
    while tb is not None and (tb.tb_frame.f_code.co_filename == __file__ or "runpy" in tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return tb


def _run(argv: list[str], module: bool) -> None:
    sys.argv = list(argv)
    if module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = str(Path(argv[0]).resolve().parent)
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
