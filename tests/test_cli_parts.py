"""Parts of the command line that a plain run never meets: broken streams, full disks, the bar, a watched tree, `confirm`."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from galint import cli as command_line
from galint.cli import confirm, output, watch
from galint.config.loading import Overrides, Resolver
from galint.discovery import Target
from galint.driver import Outcome
from galint.errors import ConfigError

WRONG = (
    "import torch\nfrom torch import nn\n\nnet = nn.Linear(4, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n\n\n"
    "def train(loader):\n    for i, (x, y) in enumerate(loader):\n"
    "        loss = nn.functional.mse_loss(net(x), y)\n        loss.backward()\n"
    "        if (i + 1) % 4 == 0:\n            opt.step()\n            opt.zero_grad()\n"
)
RIGHT = WRONG.replace("loss.backward()", "(loss / 4).backward()")


# --- what is written ---------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_stream_without_bytes_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    output.write("größe \udc80\n", None)
    assert stream.getvalue() == "größe \\udc80\n"


def test_what_the_streams_encoding_lacks_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output.write("ö\n", None)
    assert raw.getvalue() == b"\\xf6\n"


def test_a_written_file_leaves_nothing_beside_it(tmp_path: Path) -> None:
    output.write("one\n", tmp_path / "out.txt")
    output.write("two \udc80\n", tmp_path / "out.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    assert (tmp_path / "out.txt").read_bytes() == b"two \\udc80\n"


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    output.write("said\n", fifo)
    assert os.read(reader, 100) == b"said\n"
    os.close(reader)
    assert fifo.is_fifo()


@pytest.mark.parametrize("name", ["missing/out.txt", "folder"])
def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=f"{name}: cannot be written"):
        output.write("text", tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.warn("two\nlines \udc80")
    assert capsys.readouterr().err == "galint: two lines \\udc80\n"


def test_texts_for_excerpts_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("one\ntwo\n")
    book = {"cells": [{"cell_type": "code", "source": ["x = 1\n", "y = 2"], "metadata": {}, "outputs": [], "execution_count": None}],
            "metadata": {}, "nbformat": 4, "nbformat_minor": 5}  # fmt: skip
    (tmp_path / "b.ipynb").write_text(json.dumps(book))
    (tmp_path / "c.ipynb").write_text("no notebook")
    targets = [Target(path, "a.py", None, None), Target(tmp_path / "b.ipynb", "b.ipynb", None, None)]  # type: ignore[arg-type]
    outcome = Outcome()
    outcome.targets, outcome.texts = targets, {"<stdin>": b"given\n"}
    texts = output.Texts(outcome)
    assert list(texts.lines("a.py", None))[:2] == ["one", "two"]
    path.unlink()
    assert list(texts.lines("a.py", None))[:2] == ["one", "two"]
    assert list(texts.lines("<stdin>", None))[:1] == ["given"]
    assert list(texts.lines("b.ipynb", 1)) == ["x = 1", "y = 2"]
    assert list(texts.lines(str(tmp_path / "c.ipynb"), 1)) == []
    assert list(texts.lines(str(tmp_path / "gone.py"), None)) == []


# --- the bar -----------------------------------------------------------------------------------


def bar(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, calls: list[tuple[float, int]], total: int) -> str:
    """What a bar leaves on standard error for calls at times."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with output.Progress(True) as progress:
        for at, done in calls:
            now[0] = at
            progress(done, total)
    return stream.getvalue()


def test_a_bar_appears_when_a_run_takes_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    said = bar(monkeypatch, Terminal(), [(0.0, 1), (0.5, 2), (0.8, 3), (0.9, 7)], 9)
    assert "Analysing" in said and "3/9" in said and "7/9" in said
    assert "1/9" not in said and "2/9" not in said


@pytest.mark.parametrize("calls", [[(0.0, 1), (0.1, 9)], [(0.0, 1), (5.0, 9)]])
def test_no_bar_for_a_short_run(monkeypatch: pytest.MonkeyPatch, calls: list[tuple[float, int]]) -> None:
    assert bar(monkeypatch, Terminal(), calls, 9) == ""


def test_no_bar_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bar(monkeypatch, io.StringIO(), [(0.0, 1), (5.0, 2)], 9) == ""


# --- how a call ends ---------------------------------------------------------------------------


def failing(error: BaseException) -> click.Command:
    def body() -> None:
        raise error

    return click.Command("galint", callback=body)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (click.Abort(), 130, ""),
        (click.UsageError("no\nsuch thing"), 2, "galint: no such thing\n"),
        (ConfigError("galint.toml: odd"), 2, "galint: galint.toml: odd\n"),
        (click.exceptions.Exit(4), 4, ""),
    ],
)
def test_an_end_has_its_exit_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("galint.cli.app.cli", failing(error))
    with pytest.raises(SystemExit) as stop:
        command_line.main([])
    assert stop.value.code == code
    assert capsys.readouterr().err == said


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*given: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "_run", interrupted)
    with pytest.raises(SystemExit) as stop:
        command_line.main([])
    assert stop.value.code == 130 and capsys.readouterr().err == ""


def test_another_error_of_the_system_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galint.cli.app.cli", failing(OSError(errno.EMFILE, "too many")))
    with pytest.raises(OSError, match="too many"):
        command_line.main([])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WRONG)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "galint", "a.py"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"galint: standard output cannot be written") and done.stderr.count(b"\n") == 1


def test_closed_streams_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WRONG)
    done = subprocess.run(
        ["sh", "-c", '"$0" -m galint a.py >&- 2>&-', sys.executable], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 1


# --- watching ----------------------------------------------------------------------------------


def resolver() -> Resolver:
    return Resolver(Overrides())


def test_a_snapshot_sees_files_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    first = watch.snapshot(["."], resolver)
    assert watch.snapshot(["."], resolver) == first
    (tmp_path / "b.py").write_text("x = 1\n")
    second = watch.snapshot(["."], resolver)
    assert len(second) == len(first) + 1
    (tmp_path / "galint.toml").write_text('ignore = ["GA101"]\n')
    assert len(watch.snapshot(["."], resolver)) == len(second) + 1
    (tmp_path / "galint.toml").write_text("ignore = [\n")
    broken = watch.snapshot(["."], resolver)
    assert broken != second and any("galint.toml" in text for text in broken)


def watched(monkeypatch: pytest.MonkeyPatch, once: Callable[[], int], steps: list[Callable[[], None]]) -> None:
    """Watch the current folder; each pause does the next of `steps`, and the last pause is a Ctrl-C."""

    def pause(seconds: float) -> None:
        assert seconds > 0
        if not steps:
            raise KeyboardInterrupt
        steps.pop(0)()

    monkeypatch.setattr("time.sleep", pause)
    with pytest.raises(KeyboardInterrupt):
        watch.watch(once, ["."], resolver)


def test_a_change_runs_the_check_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runs: list[int] = []
    watched(
        monkeypatch,
        lambda: runs.append(1) or 0,  # type: ignore[func-returns-value]
        [lambda: None, lambda: (tmp_path / "a.py").write_text("x = 1\n") and None, lambda: None],
    )
    assert len(runs) == 2
    assert capsys.readouterr().err == "galint: watching for changes, Ctrl-C ends\n" * 2


def test_a_mistake_in_a_setting_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def once() -> int:
        raise ConfigError("galint.toml: half typed")

    watched(monkeypatch, once, [])
    assert capsys.readouterr().err.splitlines()[0] == "galint: galint.toml: half typed"


def test_a_terminal_is_cleared_before_the_next_run_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    watched(
        monkeypatch,
        lambda: stream.write("run\n"),
        [lambda: (tmp_path / "a.py").write_text("x = 1\n") and None],
    )
    assert stream.getvalue() == "run\n\033[2J\033[Hrun\n"


# --- galint confirm ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "file", "numbers"),
    [
        ("a.py", "a.py", []),
        ("a.py:12", "a.py", [12]),
        ("a.py:12:3", "a.py", [12, 3]),
        ("a.py:12:", "a.py", [12]),
        ("C:\\x\\a.py:7", "C:\\x\\a.py", [7]),
        ("a.py:x", "a.py:x", []),
    ],
)
def test_a_place_is_a_file_and_a_line(given: str, file: str, numbers: list[int]) -> None:
    assert confirm.split(given) == (file, numbers)


def test_a_file_whose_name_looks_like_a_place(tmp_path: Path) -> None:
    path = tmp_path / "a:12"
    path.write_text("")
    assert confirm.split(str(path)) == (str(path), [])


def confirming(*arguments: str) -> Any:
    return CliRunner().invoke(confirm.command, ["--isolated", *arguments], standalone_mode=False)


def test_confirm_needs_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "find_spec", lambda name: None)
    assert "needs torch" in str(confirming("a.py").exception)


def test_confirm_knows_its_devices() -> None:
    pytest.importorskip("torch")
    found = confirming("--device", "tpu", "a.py").exception
    assert isinstance(found, ConfigError) and "--device: `tpu`" in str(found)


def test_confirm_measures_the_finding_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four undivided micro-batches apply four times the large batch's gradient."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(WRONG)
    done = confirming("--output-format", "json", "--show-slice", "--device", "cpu", "a.py:11")
    assert done.return_value == 1, done.output
    [verdict] = json.loads(done.stdout)["verdicts"]
    assert (verdict["rule"], verdict["status"], verdict["finding"]["line"]) == ("GA201", "confirmed", 11)
    there = confirming("--device", "cpu", "a.py:2")
    assert there.return_value == 0 and "a.py:2: the linter finds nothing there" in there.stderr


def test_confirm_reads_a_folder_and_says_what_it_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("right.py").write_text(RIGHT)
    os.mkfifo("pipe.py")
    Path("book.ipynb").write_text("{")
    done = confirming("--output-file", "out.sarif", "--output-format", "sarif", "--select", "GA201", ".")
    assert done.return_value == 2
    assert "book.ipynb: is not a notebook" in done.stderr and "pipe.py: is not a regular" in done.stderr
    assert json.loads(Path("out.sarif").read_text())["runs"][0]["results"] == []
    assert confirming("--select", "GA201", "right.py").return_value == 0
    assert "gone.py: no such file" in str(confirming("gone.py").exception)


def test_watch_pauses_by_how_long_it_looked_not_by_how_long_the_check_took(monkeypatch: pytest.MonkeyPatch) -> None:
    from galint.cli import watch as module

    now, slept = [0.0], []

    def check() -> int:
        now[0] += 60.0
        return 0

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    looks = iter([0.1, 30.0])

    def look(*_: object) -> dict[str, tuple[int, int]]:
        now[0] += next(looks)
        return {"a.py": (1, 1)}

    monkeypatch.setattr(module, "snapshot", look)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", sleep)
    with pytest.raises(KeyboardInterrupt):
        module.watch(check, ["."], lambda: None)  # type: ignore[arg-type, return-value]
    assert slept == pytest.approx([0.4, 5.0])
