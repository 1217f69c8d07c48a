"""The process in which slices run: no environment, no network, a temporary folder, a time limit from outside.

Started as `python -m galint.trace.confirm_child JOBS.json RESULTS.jsonl`; writes one JSON line a job.
"""

from __future__ import annotations

import base64
import contextlib
import json
import marshal
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from galint.trace.stage import SLICE

SECONDS = 15.0
"""Of the processor, for one slice; what it has shown until then counts, if a window was measured."""

_LOOPBACK = {"127.0.0.1", "localhost", "::1", ""}
_FORBIDDEN = {
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "subprocess.Popen",
    "pty.spawn",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(folder: Path) -> None:
    """Refuse sockets that leave this machine, new processes, and writing outside `folder`, for good."""
    root = os.path.realpath(folder)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in {"socket.connect", "socket.bind", "socket.sendto"}:
            address = args[1]
            host = address[0] if isinstance(address, tuple) and address else ""
            if isinstance(address, tuple) and host not in _LOOPBACK:
                raise PermissionError(f"a slice has no network ({host})")
        elif event == "socket.getaddrinfo" and args[0] not in (_LOOPBACK | {None}):
            raise PermissionError(f"a slice has no network ({args[0]})")
        elif event in _FORBIDDEN:
            raise PermissionError(f"a slice starts no process ({event})")
        elif event == "open":
            path, _, flags = args
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & _WRITES:
                real = os.path.realpath(os.fsdecode(path))
                if real != os.devnull and not real.startswith(root + os.sep) and not real.startswith("/dev/"):
                    raise PermissionError("a slice writes nothing outside its folder")

    sys.addaudithook(hook)


def main(argv: list[str]) -> int:
    """Run the jobs of a file."""
    jobs_file, results = Path(argv[0]), Path(argv[1])
    request = json.loads(jobs_file.read_text(encoding="utf-8"))
    warnings.simplefilter("ignore")
    import torch

    with contextlib.suppress(Exception):
        # Optimizers import it at their first use: a slice that is ended in between would leave half of it behind.
        __import__("torch._dynamo")
    torch.set_num_threads(1)
    wanted = request["device"]
    if wanted.startswith("cuda") and int(wanted.partition(":")[2] or 0) >= torch.cuda.device_count():
        sys.stderr.write(f"torch finds no device `{wanted}` here\n")
        return 1
    device = torch.device(wanted if wanted != "auto" else "cuda" if torch.cuda.is_available() else "cpu")
    rank, world = int(request["rank"]), int(request["world"])
    if any(job["ddp"] for job in request["jobs"]):
        _process_group(request["store"], rank, world, device)
    if any("accelerator" in job["kinds"].values() or job["accelerate"] for job in request["jobs"]):
        with contextlib.suppress(ImportError):
            __import__("accelerate")  # before the walls go up: it looks at the machine
    confine(results.parent)
    with results.open("w", encoding="utf-8") as stream:
        for job in request["jobs"]:
            for how in ("slice", "replay"):
                if job[how] is None:
                    continue
                stream.write(json.dumps({"job": job["id"], "how": how, **run(job, how, device, rank, world)}) + "\n")
                stream.flush()
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0


def _process_group(store: str, rank: int, world: int, device: Any) -> None:
    import torch.distributed as dist
    from torch._C._distributed_c10d import FileStore

    with contextlib.suppress(Exception):
        dist.init_process_group("gloo", store=FileStore(store, world), rank=rank, world_size=world)


def run(job: dict[str, Any], how: str, device: Any, rank: int, world: int) -> dict[str, Any]:
    """Run one program under the tracer; what it showed as JSON."""
    import torch

    from galint.trace import leftovers
    from galint.trace.hooks import Hooks
    from galint.trace.model import Trace, add, to_json
    from galint.trace.patching import Patches
    from galint.trace.recorder import Recorder, StopTracing
    from galint.trace.replay import Replayer
    from galint.trace.stage.library import names
    from galint.trace.stage.player import Player
    from galint.trace.stage.values import NoStage, StopStage, TooLong
    from galint.trace.stage.world import World

    torch.manual_seed(0)
    _forget()
    trace = Trace()
    replayer = Replayer() if job["norm"] else None
    patches = Patches()
    recorder = Recorder(
        lambda r: add(trace, r), limit=job["limit"], before_step=replayer.before_step if replayer else None
    )
    hooks = Hooks(recorder)
    hooks.install()
    if replayer is not None:
        replayer.install(patches, recorder)
    error, failed, stopped, line = "", "", False, 0
    stage: Any = None
    try:
        code = marshal.loads(base64.b64decode(job[how]))
        if how == "slice":
            stage = World(job, device, rank)
            space = names(stage, set(job["names"]))
        else:
            stage, space = Player(job, device, rank), {"__builtins__": {}}
        space["__galint__"] = stage
        with _alarm():
            exec(code, space)  # the slice: it knows nothing but the stage
        leftovers.finish(recorder)
    except StopTracing:
        stopped = True
    except (StopStage, StopIteration):  # a loader that is drawn by hand and runs out ends the loop
        if not recorder.stopped:
            leftovers.finish(recorder)
    except TooLong:
        failed = "" if any(w.measured for w in trace.windows) else f"it takes more than {SECONDS:g} seconds"
    except NoStage as problem:
        failed, line = str(problem), _line(problem)
    except (RuntimeError, AssertionError, ValueError) as problem:
        line = _line(problem)
        error = f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}"
    except RecursionError:
        failed = "the slice nests too deeply"
    except Exception as problem:
        failed, line = f"{type(problem).__name__}: {problem}", _line(problem)
    finally:
        patches.undo()
        hooks.remove()
    out: dict[str, Any] = {
        "windows": [to_json(w) for w in trace.windows],
        "verdicts": [to_json(v) for v in replayer.verdicts] if replayer is not None else [],
        "events": len(trace.events),
        "backwards": sum(e.kind == "backward" for e in trace.events),
        "steps": sum(e.kind == "step" for e in trace.events),
        "error": error,
        "failed": failed or (recorder.internal or ""),
        "line": line,
        "stopped": stopped,
        "device": str(device),
        "torch": torch.__version__,
        "assumed": sorted(getattr(stage, "assumed", ())),
        "hidden": bool(getattr(stage, "hidden", False)),
        "undecided": sorted(getattr(stage, "undecided", {})),
        "guessed": sorted(getattr(stage, "guessed", {})),
    }
    if world > 1:
        out["gap"] = _gap(recorder)
    return out


def _line(problem: BaseException) -> int:
    """The slice's row that an error came from; 0 when it came from none."""
    rows = [f.lineno or 0 for f in traceback.extract_tb(problem.__traceback__) if f.filename == SLICE]
    return rows[-1] if rows else 0


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Ends one slice that does not come to its end; the others still run.

    One that waits is ended by the limit of the process, as is any where there are no signals.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def late(*_: Any) -> None:
        from galint.trace.stage.values import TooLong

        raise TooLong

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _forget() -> None:
    """Accelerate keeps its state for the process; each slice starts anew."""
    module = sys.modules.get("accelerate.state")
    if module is not None:
        with contextlib.suppress(Exception):
            module.AcceleratorState._reset_state(True)
            module.GradientState._reset_state()


def _gap(recorder: Any) -> float | None:
    """The largest relative difference between the ranks' parameters; every rank takes part."""
    import torch
    import torch.distributed as dist

    parameters = [
        p.detach().flatten().double().cpu() for o in recorder.states for g in o.param_groups for p in g["params"]
    ]
    if not parameters or not dist.is_initialized():
        return None
    mine = torch.cat(parameters)
    sizes: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, mine.tolist())
    if len({len(s) for s in sizes}) != 1:
        return None
    first = torch.tensor(sizes[0], dtype=torch.float64)
    scale = float(first.norm()) or 1.0
    return max(float((torch.tensor(s, dtype=torch.float64) - first).norm()) / scale for s in sizes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
