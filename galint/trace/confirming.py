"""From findings to numbers: slices and replays as jobs for the child process, and its windows back as verdicts."""

from __future__ import annotations

import ast
import base64
import json
import marshal
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from galint import program as p
from galint.analysis import Analysis
from galint.checks.all import CHECKS
from galint.diagnosing import view_of
from galint.diagnostic import Diagnostic
from galint.run.explore import EntryRuns
from galint.run.facts import RunResult
from galint.run.names import MICRO_SIZE, ONE_WINDOW
from galint.run.nodes import path_terminal, terminal
from galint.run.project import STRIDE
from galint.run.reach import BACKWARD, STEP
from galint.run.static import Static
from galint.trace.model import TraceError
from galint.trace.stage import SLICE
from galint.trace.stage.expressions import NoSlice, composed
from galint.trace.stage.replaying import operations, program
from galint.trace.stage.slicing import cut

MOST_WINDOWS = 7
_NOT_CODE = re.compile(r"[^\w.\[\]'\"()]")


@dataclass(slots=True)
class Job:
    """One abstract run to try, and the findings that it shows."""

    id: int
    run: RunResult
    entry: EntryRuns
    findings: list[Diagnostic] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    """The slice as text."""
    no_slice: str = ""
    files: list[int] = field(default_factory=list)
    """Numbers of the files that the slice's rows are in."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    ranks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def row(self, row: int) -> int:
        """The program's row of a row in the compiled slice."""
        index, inside = divmod(row, STRIDE)
        return self.files[index - 1] * STRIDE + inside if index else row


def jobs(analysis: Analysis, findings: Sequence[Diagnostic], first: int = 0) -> tuple[list[Job], list[Diagnostic]]:
    """The runs that show the findings, each once; and the findings whose run was not found."""
    out: dict[tuple[int, bool], Job] = {}
    left: list[Diagnostic] = []
    for diagnostic in findings:
        found = _run_of(analysis, diagnostic)
        if found is None:
            left.append(diagnostic)
            continue
        entry, run = found
        norm = diagnostic.code == "GA501"
        job = out.get((id(run), norm))
        if job is None:
            job = out[id(run), norm] = Job(first + len(out), run, entry)
        job.findings.append(diagnostic)
    for (_, norm), job in out.items():
        _fill(job, analysis, norm)
    return list(out.values()), left


def job_of(analysis: Analysis, entry: EntryRuns, run: RunResult, number: int, *, norm: bool = False) -> Job:
    """A job for one run whether or not a finding rests on it."""
    job = Job(number, run, entry)
    _fill(job, analysis, norm)
    return job


def _run_of(analysis: Analysis, diagnostic: Diagnostic) -> tuple[EntryRuns, RunResult] | None:
    """The witness whose run the rule reported."""
    for check in CHECKS:
        if check.code != diagnostic.code:
            continue
        for entry in analysis.exploration.entries:
            runs = (
                [r for _, r in entry.rares]
                if check.witness == "rare"
                else [entry.base if check.witness == "even" else entry.tail]
            )
            runs += [r for _, r in entry.flips]
            for run in runs:
                try:
                    spans = {f.span for f in check.run(view_of(analysis, run)) if f.code == diagnostic.code}
                except Exception:  # the linter has reported a check that fails
                    continue
                if diagnostic.span in spans:
                    return entry, run
    return None


def _fill(job: Job, analysis: Analysis, norm: bool) -> None:
    run, entry, entry_runs = job.run, job.entry.entry, job.entry
    static = analysis.static
    bodies = static.bodies
    wraps = {getattr(m, "wrap", "") for m in run.modules.values()} - {""}
    synced = {
        n for n, uses in static.uses.items() if uses & {"no_sync", "require_backward_grad_sync", "no_backward_sync"}
    }
    ddp = (
        bool(wraps & {"ddp", "fsdp", "fsdp2", "apex-ddp"}) or bool(synced - {"accelerator", "fabric"}) or _flags(static)
    )
    names = {n for body in bodies for s in body for n in _names(static, s)}
    kinds = {n: k for n in names if (k := static.kind_of(n))}
    values = {k: _plain(v) for k, v in run.scenario.values.items()}
    known = {k: _plain(v) for k, v in run.known.items()}
    forced = dict(run.scenario.choices)
    owners = {o.modules for o in run.optimizers.values() if o.modules}
    several = [m for m in run.modules.values() if not getattr(m, "wrap", "") and getattr(m, "made", None) is not None]
    distinct = len(owners) > 1 or (
        bool(owners) and len(several) > 1 and any(d.code in {"GA102", "GA107"} for d in job.findings)
    )
    found = operations(run)
    scenario = run.scenario
    body: dict[str, Any] = {
        "id": job.id,
        "known": {k: v for k, v in known.items() if v is not None},
        "values": {k: v for k, v in values.items() if v is not None},
        "settings": {n: 2 if MICRO_SIZE.search(n) else scenario.window for n in names if ONE_WINDOW.search(n)},
        "terminals": _terminals(run, values, known),
        "kinds": kinds,
        "choices": {k: c.taken for k, c in run.choices.items()} | forced,
        "forced": forced,
        "rare": scenario.rare,
        "rare_at": scenario.rare_at,
        "rare_places": [[c.span.row, c.span.column] for c in run.choices.values() if c.key == scenario.rare],
        "usual": next((c.taken for k, c in entry_runs.base.choices.items() if k == scenario.rare), None),
        "places": [[c.span.row, c.span.column, c.taken] for c in run.choices.values()],
        "lengths": _lengths(run),
        "length": scenario.length,
        "window": scenario.window,
        "epochs": scenario.epochs,
        "roles": dict(run.roles),
        "wrapped": sorted(synced - {"self", "accelerator", "fabric"}),
        "distinct": distinct,
        "single": len([x for x in run.ledgers.values() if x.steps]) <= 1,
        "optimizers": [
            n for n, x in run.ledgers.items() if x.steps and not n.startswith("#") and n.replace(".", "").isidentifier()
        ],
        "ddp": ddp,
        "traffic": ddp,
        "norm": norm,
        "callbacks": _trainers(static),
        "accelerate": "accelerator" in kinds.values(),
        "n": _usual(run),
        "limit": MOST_WINDOWS,
        "operations": [[o.kind, o.row, o.optimizer, o.data] for o in found],
        "replay": _code(program(found), job) if any(o.kind == "backward" for o in found) else None,
        "slice": None,
        "names": [],
    }
    try:
        made = cut(bodies, static, entry.function, entry.owner, _calls(run, entry.function))
        body["slice"] = _code(made.tree, job)
        body["names"] = sorted(made.names)
        job.source = made.text
    except (NoSlice, SyntaxError, ValueError, TypeError, RecursionError) as error:
        job.no_slice = f"{error}"
    job.body = body


def _usual(run: RunResult) -> int:
    """How many micro-batches most windows of the abstract run have."""
    lengths = Counter(len(s.window) for ledger in run.ledgers.values() for s in ledger.steps if s.window)
    return lengths.most_common(1)[0][0] if lengths else 0


def _code(tree: ast.Module, job: Job) -> str:
    """The compiled tree. Code objects hold lines of 32 bits: its files are numbered from one."""
    for node in ast.walk(tree):
        row = getattr(node, "lineno", 0)
        if row >= STRIDE:
            index, inside = divmod(row, STRIDE)
            if index not in job.files:
                job.files.append(index)
            node.lineno = node.end_lineno = (job.files.index(index) + 1) * STRIDE + inside  # type: ignore[attr-defined]
    code = compile(tree, SLICE, "exec")
    return base64.b64encode(marshal.dumps(code)).decode("ascii")


def _flags(static: Static) -> bool:
    return any(
        isinstance(n, p.Attr) and n.name == "require_backward_grad_sync"
        for body in static.bodies
        for s in body
        for n in static.walk(s)
    )


def _trainers(static: Static) -> list[str]:
    """The slice's names of functions that run backward or step: no unknown function may call them unseen."""
    return [
        f"{static.method_of[f].name}__{f.name}" if f in static.method_of else f.name
        for group in static.functions.values()
        for f in group
        if static.tags(f) & {BACKWARD, STEP}
    ]


def _names(static: Static, stmt: p.Stmt) -> set[str]:
    out: set[str] = set()
    for node in static.walk(stmt):
        if isinstance(node, p.Name):
            out.add(node.id)
        elif isinstance(node, p.Attr):
            out.add(node.name)
        elif isinstance(node, p.Param):
            out.add(node.name)
        elif isinstance(node, p.Subscript):
            out.add(terminal(node))
    return out


def _plain(value: Any) -> Any:
    """Numbers as JSON can carry them; what is no number or text is left out."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value if isinstance(value, bool | int | float | str) else None


def _terminals(run: RunResult, values: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Settings by their last name, where that is unique."""
    out: dict[str, set[Any]] = {}
    for path, value in [
        *values.items(),
        *((k, v) for k, v in known.items() if run.roles.get(k) in {"window", "epochs"}),
    ]:
        name = path_terminal(path)
        if value is not None and name and not composed(path) and path.endswith((name, f"{name}']")):
            out.setdefault(name, set()).add(value)
    return {k: next(iter(v)) for k, v in out.items() if len(v) == 1}


def _lengths(run: RunResult) -> list[list[int]]:
    """How often each loop of the abstract run went round."""
    out: dict[tuple[int, int], int] = {}
    for event in run.events:
        if event.kind == "loop_end":
            key = (event.span.row, event.span.column)
            out[key] = max(out.get(key, 0), int(event.data["iterations"]))
    return [[r, c, n] for (r, c), n in out.items()]


def _calls(run: RunResult, function: p.FunctionDef | None) -> str:
    if function is None:
        return "once"
    if any(m.path and m.path[0][0] == function.span for m in run.micros.values()):
        return "batch"
    return "twice" if run.facts.get("called_twice") else "once"


# --- the child ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """Where and how long slices may run. `seconds` is for one process."""

    device: str = "auto"
    seconds: float = 60.0


def perform(work: Sequence[Job], limits: Limits) -> str:
    """Run jobs in a child process; their results are filled in. A reason when the child did not finish."""
    if not work:
        return ""
    trouble = _spawn(work, limits, 1)
    apart = [j for j in work if any(d.code == "GA603" for d in j.findings)]
    if apart:
        _spawn(apart, limits, 2)
    return trouble


def _spawn(work: Sequence[Job], limits: Limits, world: int) -> str:
    with tempfile.TemporaryDirectory(prefix="galint-") as name:
        folder = Path(name)
        processes = []
        for rank in range(world):
            here = folder / f"rank{rank}"
            here.mkdir()
            request = {
                "device": limits.device if world == 1 else "cpu",
                "rank": rank,
                "world": world,
                "store": str(folder / "store"),
                "jobs": [j.body for j in work],
            }
            (here / "jobs.json").write_text(json.dumps(request), encoding="utf-8")
            processes.append(_start(here))
        trouble = ""
        for rank, process in enumerate(processes):
            try:
                _, errors = process.communicate(timeout=limits.seconds)
                if process.returncode and not trouble:
                    trouble = (errors.strip().splitlines() or [f"it ended with status {process.returncode}"])[-1]
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                trouble = f"it took more than {limits.seconds:g} seconds"
            _collect(folder / f"rank{rank}" / "results.jsonl", work, rank, world)
        return trouble


def _start(folder: Path) -> subprocess.Popen[str]:
    """A child with nothing of the user's environment but what finds Python's libraries and the GPU."""
    kept = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "SYSTEMROOT", "PATH", "COVERAGE_PROCESS_START")
    environment = {k: os.environ[k] for k in kept if k in os.environ}
    root = str(Path(__file__).resolve().parent.parent.parent)
    environment |= {
        "PYTHONPATH": root, "HOME": str(folder), "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0",
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "galint.trace.confirm_child",
        str(folder / "jobs.json"),
        str(folder / "results.jsonl"),
    ]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _collect(path: Path, work: Sequence[Job], rank: int, world: int) -> None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    known = {j.id: j for j in work}
    for line in lines:
        try:
            result = json.loads(line)
        except ValueError:
            return
        job = known[result["job"]]
        if world == 1:
            job.results[result["how"]] = result
        elif rank == 0:
            job.ranks[result["how"]] = result


__all__ = ["SLICE", "Job", "Limits", "TraceError", "jobs", "perform", "replace"]
