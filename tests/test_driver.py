"""The process-level run: pool, killed workers, Ctrl-C, broken pipes, the progress bar and the cache in use."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from galint.collecting import with_room

STANDIN = [sys.executable, str(Path(__file__).parent / "standin.py")]
CODE = "import torch\nloss.backward()\noptimizer.step()\n"


def galint(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*STANDIN, *args], cwd=folder, capture_output=True, text=True, check=False, timeout=50)


def files(folder: Path, count: int, **special: str) -> None:
    for number in range(count):
        (folder / f"f{number:03}.py").write_text(CODE)
    for name, text in special.items():
        (folder / f"{name}.py").write_text(CODE + text)


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: object, what: str) -> None:
    """Poll a callable for at most half a minute."""
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(what)


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_the_order_does_not_depend_on_the_workers(tmp_path: Path, jobs: str) -> None:
    files(tmp_path, 30)
    done = galint(tmp_path, "--jobs", jobs, "--output-format", "json", "--no-cache")
    report = json.loads(done.stdout)
    assert [d["filename"] for d in report["diagnostics"]] == [f"f{number:03}.py" for number in range(30)]
    assert report["summary"] == {"files": 30, "loops": 30, "understood": 30, "not_understood": []}


def test_a_killed_worker_costs_its_own_file_only(tmp_path: Path) -> None:
    files(tmp_path, 20, deadly="# standin: die\n")
    done = galint(tmp_path, "--jobs", "2", "--output-format", "concise", "--no-cache")
    assert done.returncode == 2
    assert done.stderr == "galint: deadly.py: the worker process that analysed it was killed\n"
    assert done.stdout.count("GA101") == 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_when_galint_ends_no_worker_stays(tmp_path: Path, number: signal.Signals) -> None:
    files(tmp_path, 0, a="# standin: sleep\n", b="# standin: sleep\n", c="# standin: sleep\n")
    with subprocess.Popen(
        [*STANDIN, "--jobs", "2", "--no-cache"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_until(lambda: len(children_of(process.pid)) >= 2, "no workers were started")
        workers = children_of(process.pid)
        time.sleep(0.2)
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert out == b"" and err.strip() == b""
    wait_until(lambda: not any(map(alive, workers)), "a worker was left behind")
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py", "c.py"]


def test_ctrl_c_ends_a_serial_run_too(tmp_path: Path) -> None:
    files(tmp_path, 0, a="# standin: sleep\n")
    sleeps = tmp_path / "sleeps"
    with subprocess.Popen(
        [*STANDIN, "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "STANDIN_SLEEPS": str(sleeps)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        wait_until(sleeps.exists, "the run never reached its file")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["check"], ["rule", "--all"], ["--help"]])
def test_a_full_disk_is_one_line(tmp_path: Path, command: list[str]) -> None:
    files(tmp_path, 2)
    with open("/dev/full", "w") as full:
        done = subprocess.run([*STANDIN, *command], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"galint: standard output cannot be written (No space left on device)\n"


@pytest.mark.parametrize("stream", [1, 2])
def test_a_closed_stream_is_no_error(tmp_path: Path, stream: int) -> None:
    files(tmp_path, 2)
    closing = ["sh", "-c", f'exec "$@" {stream}>&-', "sh"]
    done = subprocess.run([*closing, *STANDIN, "--no-cache", "-v"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1 and b"Traceback" not in done.stderr
    assert (b"GA" in done.stdout) == (stream == 2)


def test_a_broken_pipe_is_silent(tmp_path: Path) -> None:
    files(tmp_path, 200)
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*STANDIN, "--jobs", "1", "--no-cache"], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(write)
    assert done.stderr == b"" and done.returncode == 141


def test_the_cache_is_filled_used_switched_off_and_cleaned(tmp_path: Path) -> None:
    files(tmp_path, 3)
    (tmp_path / "galint.toml").write_text("")
    first = galint(tmp_path)
    entries = sorted((tmp_path / ".galint_cache").glob("??/*.json"))
    assert len(entries) == 3
    for entry in entries:  # a marked entry shows that the second run reads it
        entry.write_text(entry.read_text().replace("it is bad", "it was bad"))
    second = galint(tmp_path)
    assert second.stdout == first.stdout.replace("it is bad", "it was bad")
    assert galint(tmp_path, "--no-cache").stdout == first.stdout
    (tmp_path / "f000.py").write_text(CODE + "# changed\n")
    assert galint(tmp_path).stdout.count("it is bad") == 1
    assert galint(tmp_path, "clean").returncode == 0 and not (tmp_path / ".galint_cache").exists()
    galint(tmp_path, "--cache-dir", "elsewhere")
    assert not (tmp_path / ".galint_cache").exists() and len(list((tmp_path / "elsewhere").glob("??/*.json"))) == 3


def test_a_run_without_a_cache_leaves_no_trace(tmp_path: Path) -> None:
    files(tmp_path, 2)
    galint(tmp_path, "--no-cache")
    assert sorted(os.listdir(tmp_path)) == ["f000.py", "f001.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_long_run_in_a_terminal_shows_its_progress(tmp_path: Path) -> None:
    files(tmp_path, 4)
    code = (
        "import sys, standin, time, types\n"
        "from galint.cli import main, output\n"
        "output.Progress._AFTER = 0\n"
        "engine = types.ModuleType('galint.engine'); engine.lint = standin.lint\n"
        "sys.modules['galint.engine'] = engine\n"
        "main(sys.argv[1:])\n"
    )
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "TERM": "xterm", "COLUMNS": "80"}
    for quiet in (False, True):
        args = ["--no-cache", "--jobs", "1", *(["-q"] if quiet else [])]
        done = subprocess.run(
            [sys.executable, "-c", code, *args],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=slave,
            env=environment,
            check=False,
        )
        assert done.stdout.count(b"GA101]") == 4
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 100_000).decode()
        except BlockingIOError:
            shown = ""
        assert bool(re.search(r"Analysing.*2/4", shown)) is not quiet
    os.close(master)
    os.close(slave)


def test_calls_with_room_are_calls() -> None:
    def nested(depth: int, *, wanted: int) -> int:
        return depth if depth == wanted else nested(depth + 1, wanted=wanted)

    assert with_room(nested, 0, wanted=500) == 500
    with pytest.raises(ZeroDivisionError):
        with_room(lambda: 1 // 0)


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted by Linux")
def test_a_recursion_with_room_maps_no_memory_at_each_call() -> None:
    def down(depth: int) -> None:
        if depth:
            down(depth - 1)

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for depth in range(400):
            for _ in range(20):
                down(depth)  # some depth begins a chunk, whose memory is new each time
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with_room(faults)
    assert with_room(faults) < faults() / 2
