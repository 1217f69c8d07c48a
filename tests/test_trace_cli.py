"""`galint trace` and `galint replay` on whole scripts: exit codes, kept checkpoints, crashes, formats, ranks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from galint.trace.model import Status, read

RUN = """
import sys
import click
from galint.errors import GalintError
from galint.trace.command import experiment, replay, trace
group = click.Group(commands={"trace": trace, "replay": replay, "experiment": experiment})
try:
    sys.exit(group.main(standalone_mode=False) or 0)
except (GalintError, click.ClickException) as error:
    sys.stderr.write(f"galint: {error}\\n")
    sys.exit(2)
"""

TRAIN = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 32), {norm} nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
data = TensorDataset(torch.randn(320, 20), torch.randint(0, 5, (320,)))
N = 4
try:
    for epoch in range(2):
        for i, (x, y) in enumerate(DataLoader(data, batch_size=8)):
            loss = criterion(model(x), y) {scale}
            loss.backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
                {inside}
finally:
    torch.save(model.state_dict(), "last.pt")
print("arguments", sys.argv[1:], __name__)
"""


def script(folder: Path, *, norm: str = "", scale: str = "/ N", inside: str = "pass", text: str | None = None) -> Path:
    path = folder / "train.py"
    path.write_text(text if text is not None else TRAIN.format(norm=norm, scale=scale, inside=inside))
    return path


def galint(folder: Path, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parent.parent)
    paths = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    env = {**os.environ, "PYTHONPATH": paths, **environment}
    return subprocess.run(
        [sys.executable, "-c", RUN, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=240
    )


def test_a_right_script_exits_with_zero_and_is_stopped(tmp_path: Path) -> None:
    script(tmp_path)
    done = galint(tmp_path, "trace", "--no-lint", "--output", "t.jsonl", "--", "train.py", "--lr", "1")
    assert done.returncode == 0, done.stderr
    assert "0 confirmed in 3 measured windows of 3" in done.stdout
    assert "1, 1, 1, 1" in done.stdout
    assert "arguments" not in done.stdout  # stopped before its end
    assert done.stderr.count("window ") == 3  # told as it went
    trace = read(tmp_path / "t.jsonl")
    assert trace.end["how"] == "stopped"
    assert trace.header.argv == ["train.py", "--lr", "1"]
    assert len(trace.windows) == 3
    assert {e.kind for e in trace.events} >= {"backward", "step", "zero_grad"}
    assert all(e.file.endswith("train.py") and e.line for e in trace.events)


def test_a_wrong_script_exits_with_one_at_its_line(tmp_path: Path) -> None:
    path = script(tmp_path, scale="")
    done = galint(tmp_path, "trace", "--no-lint", "--", "train.py")
    assert done.returncode == 1
    line = 1 + path.read_text().splitlines().index("            loss.backward()")
    assert f"train.py:{line}: GA201" in done.stdout
    assert "confirmed" in done.stdout


def test_the_whole_script_can_run(tmp_path: Path) -> None:
    script(tmp_path)
    done = galint(tmp_path, "trace", "--no-lint", "--all-windows", "--", "train.py", "--lr", "1")
    assert done.returncode == 0
    assert "arguments ['--lr', '1'] __main__" in done.stdout
    assert "20 measured windows of 20" in done.stdout


def test_an_existing_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    script(tmp_path, inside='torch.save({"half": 1}, "last.pt"); assert torch.load("last.pt") == {"half": 1}')
    (tmp_path / "last.pt").write_bytes(b"precious")
    (tmp_path / "temporary").mkdir()
    done = galint(tmp_path, "trace", "--no-lint", "--", "train.py", TMPDIR=str(tmp_path / "temporary"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "last.pt").read_bytes() == b"precious"
    assert "not written, because the run was traced: last.pt" in done.stdout
    assert not list((tmp_path / "temporary").rglob("*last.pt"))  # checkpoints are large


def test_a_checkpoint_written_by_hand_is_protected(tmp_path: Path) -> None:
    inside = 'import os; open("new.ckpt.part", "wb").close(); os.replace("new.ckpt.part", "model.ckpt")'
    script(tmp_path, inside=inside)
    (tmp_path / "model.ckpt").write_bytes(b"precious")
    os.utime(tmp_path / "model.ckpt", (1e9, 1e9))
    done = galint(tmp_path, "trace", "--no-lint", "--", "train.py", GALINT_KEEP_TEMPORARY="1")
    assert (tmp_path / "model.ckpt").read_bytes() == b"precious"
    assert "the script was ended: galint trace keeps `model.ckpt`" in done.stdout


def test_a_crash_keeps_what_was_traced_and_exits_with_three(tmp_path: Path) -> None:
    script(tmp_path, inside='if i == 7: raise ValueError("broken")')
    done = galint(tmp_path, "trace", "--no-lint", "--output", "t.jsonl", "--windows", "9", "--", "train.py")
    assert done.returncode == 3
    assert "ValueError: broken" in done.stdout
    assert "train.py" in done.stderr and "galint/trace/child" not in done.stderr
    assert len(read(tmp_path / "t.jsonl").windows) == 2


def test_an_interrupted_script_is_reported(tmp_path: Path) -> None:
    # A terminal sends the signal to galint and to the script.
    script(
        tmp_path, inside="if i == 7: import os, signal; os.kill(os.getppid(), signal.SIGINT); raise KeyboardInterrupt"
    )
    done = galint(tmp_path, "trace", "--no-lint", "--output", "t.jsonl", "--windows", "9", "--", "train.py")
    assert done.returncode == 130
    assert "the script was ended: interrupted" in done.stdout and "2 measured windows of 2" in done.stdout
    assert "Traceback" not in done.stderr
    assert len(read(tmp_path / "t.jsonl").windows) == 2


def test_an_interrupt_that_only_galint_gets_ends_the_script(tmp_path: Path) -> None:
    inside = "if i == 7: import os, signal, time; os.kill(os.getppid(), signal.SIGINT); time.sleep(120)"
    script(tmp_path, inside=inside)
    began = time.monotonic()
    done = galint(tmp_path, "trace", "--no-lint", "--windows", "9", "--", "train.py")
    assert done.returncode == 130 and time.monotonic() - began < 100
    assert "the script was ended: interrupted" in done.stdout and "2 measured windows of 2" in done.stdout


def test_a_killed_script_keeps_what_was_traced(tmp_path: Path) -> None:
    script(tmp_path, inside="if i == 7: import os; os._exit(9)")
    done = galint(tmp_path, "trace", "--no-lint", "--output", "t.jsonl", "--windows", "9", "--", "train.py")
    assert done.returncode == 3
    assert "ended with status 9" in done.stdout
    assert len(read(tmp_path / "t.jsonl").windows) == 2


def test_a_confirmed_fault_outweighs_a_crash(tmp_path: Path) -> None:
    script(tmp_path, scale="", inside='if i == 7: raise ValueError("broken")')
    assert galint(tmp_path, "trace", "--no-lint", "--windows", "9", "--", "train.py").returncode == 1


def test_a_script_that_never_steps_is_inconclusive(tmp_path: Path) -> None:
    script(tmp_path, text="print('nothing here')\n")
    assert galint(tmp_path, "trace", "--no-lint", "--", "train.py").returncode == 4


def test_except_everything_does_not_keep_the_script_running(tmp_path: Path) -> None:
    text = TRAIN.format(norm="", scale="/ N", inside="pass").replace(
        "                optimizer.step()",
        "                try: optimizer.step()\n                except: pass",
    )
    script(tmp_path, text=text)
    done = galint(tmp_path, "trace", "--no-lint", "--windows", "2", "--output", "t.jsonl", "--", "train.py")
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "t.jsonl").windows) == 2
    assert "arguments" not in done.stdout


@pytest.mark.parametrize("args", [["trace"], ["trace", "--", "missing.py"], ["trace", "--plot", "x.bmp", "--", "a.py"]])
def test_mistakes_in_the_call_exit_with_two(tmp_path: Path, args: list[str]) -> None:
    done = galint(tmp_path, *args)
    assert done.returncode == 2
    assert done.stderr.startswith("galint: ")


def test_a_module_is_run_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    script(tmp_path / "package", scale="")
    done = galint(tmp_path, "trace", "--no-lint", "-m", "package.train", "--", "--lr", "1")
    assert done.returncode == 1, done.stderr
    assert "package/train.py:" in done.stdout


def test_json_is_one_document_and_the_script_prints_elsewhere(tmp_path: Path) -> None:
    script(tmp_path, scale="", inside="print('noise')")
    done = galint(tmp_path, "trace", "--no-lint", "--output-format", "json", "--", "train.py")
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == 1
    assert document["windows"][0]["nw"] == pytest.approx([4, 4, 4, 4])
    assert {v["status"] for v in document["verdicts"]} >= {"confirmed", "refuted"}
    assert "noise" in done.stderr


def test_sarif_carries_the_verdict_as_properties(tmp_path: Path) -> None:
    script(tmp_path, scale="")
    done = galint(tmp_path, "trace", "--no-lint", "--output-format", "sarif", "--", "train.py")
    (run,) = json.loads(done.stdout)["runs"]
    result = next(r for r in run["results"] if r["ruleId"] == "GA201")
    assert result["kind"] == "fail" and result["level"] == "error"
    assert result["properties"]["verdict"]["measured"] == "N·w = 4, 4, 4, 4"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"
    refuted = next(r for r in run["results"] if r["ruleId"] == "GA101")
    assert refuted["kind"] == "pass" and refuted["level"] == "none"


def test_replay_names_the_module_that_couples_samples(tmp_path: Path) -> None:
    script(tmp_path, norm="nn.BatchNorm1d(32),")
    done = galint(tmp_path, "replay", "--no-lint", "--", "train.py")
    assert done.returncode == 1, done.stderr
    assert "`1 (BatchNorm1d)` couples the samples of a batch" in done.stdout


def test_the_replayed_window_is_the_one_asked_for(tmp_path: Path) -> None:
    script(tmp_path, norm="nn.BatchNorm1d(32),")
    done = galint(tmp_path, "replay", "--no-lint", "--window", "1", "--output-format", "json", "--", "train.py")
    assert done.returncode == 1, done.stderr
    (found,) = [v for v in json.loads(done.stdout)["verdicts"] if v["rule"] == "GA501"]
    assert (found["status"], found["windows"]) == (Status.CONFIRMED, [1])


def test_events_only_records_calls_and_measures_nothing(tmp_path: Path) -> None:
    script(tmp_path, scale="")
    done = galint(tmp_path, "trace", "--no-lint", "--events-only", "--output", "t.jsonl", "--", "train.py")
    assert done.returncode == 4, done.stderr
    trace = read(tmp_path / "t.jsonl")
    assert {e.kind for e in trace.events} >= {"backward", "step", "zero_grad"}
    assert len(trace.windows) == 3 and all(w.w == [] for w in trace.windows)


def test_replay_refutes_where_nothing_couples_samples(tmp_path: Path) -> None:
    script(tmp_path, norm="nn.LayerNorm(32),")
    done = galint(tmp_path, "replay", "--no-lint", "--output-format", "json", "--", "train.py")
    assert done.returncode == 0, done.stderr
    found = {v["rule"]: v["status"] for v in json.loads(done.stdout)["verdicts"]}
    assert found["GA501"] == found["GA502"] == Status.REFUTED


def test_a_time_limit_ends_the_script(tmp_path: Path) -> None:
    script(tmp_path, text="import time\ntime.sleep(60)\n")
    done = galint(tmp_path, "trace", "--no-lint", "--timeout", "6", "--", "train.py")
    assert done.returncode == 3
    assert "more than 6" in done.stdout


RANKS = textwrap.dedent(
    """
    import sys
    from contextlib import nullcontext
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    how = sys.argv[1]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + rank)
    for i in range(12):
        x, y = torch.randn(8, 20), torch.randint(0, 5, (8,))
        last = (i + 1) % 4 == 0
        quiet = model.no_sync() if not last or how == "diverge" else nullcontext()
        with quiet:
            loss = F.cross_entropy(model(x), y) / (1 if how == "unscaled" else 4)
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    dist.destroy_process_group()
    """
)


def two_ranks(folder: Path, how: str) -> subprocess.CompletedProcess[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    script(folder, text=RANKS)
    root = str(Path(__file__).parent.parent)
    processes = []
    for rank in range(2):
        env = {**os.environ, "PYTHONPATH": root, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        arguments = ["trace", "--no-lint", "--output", "t.jsonl", "--", "train.py", how]
        command = [sys.executable, "-c", RUN, *arguments]
        processes.append(subprocess.Popen(command, cwd=folder, env=env, stdout=-1, stderr=-1, text=True))
    results = [(p, *p.communicate(timeout=240)) for p in processes]
    first = results[0]
    return subprocess.CompletedProcess([], first[0].returncode, first[1], first[2] + results[1][2])


@pytest.mark.parametrize(("how", "code", "weights"), [("right", 0, 1.0), ("unscaled", 1, 4.0)])
def test_two_ranks_are_merged_into_one_trace(tmp_path: Path, how: str, code: int, weights: float) -> None:
    done = two_ranks(tmp_path, how)
    assert done.returncode == code, done.stdout + done.stderr
    trace = read(tmp_path / "t.jsonl")
    assert {e.rank for e in trace.events} == {0, 1}
    assert len(trace.windows) == 3
    for window in trace.windows:
        assert window.nw == pytest.approx([weights] * 4, rel=1e-3)
        assert window.residual is not None and window.residual < 1e-5
    assert (tmp_path / "t.rank0.jsonl").exists() and (tmp_path / "t.rank1.jsonl").exists()


def test_ranks_that_diverge_are_confirmed_by_their_parameters(tmp_path: Path) -> None:
    done = two_ranks(tmp_path, "diverge")
    assert done.returncode == 1, done.stdout + done.stderr
    verdict: Any = next(v for v in read(tmp_path / "t.jsonl").verdicts if v.rule == "GA603")
    assert verdict.status is Status.CONFIRMED
    assert "parameters of 2 ranks differ" in verdict.measured
