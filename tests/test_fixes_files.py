"""`--fix` on files and standard input: nothing is lost, and the flags do what their help says."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from galint.cli.app import cli
from galint.errors import SourceError
from galint.fixes import write
from galint.fixes.write import replace_file

BAD = """import torch


def train(model, loader, loss_fn, accum: int):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for i in range(accum * 8):
            x, y = next(loader)
            loss = loss_fn(model(x), y)
            loss.backward()
            if (i + 1) % accum == 0:
                opt.step()
                opt.zero_grad()
"""
GOOD = BAD.replace("            loss.backward()", "            (loss / accum).backward()")
BATCHNORM = BAD.replace("def train(model, loader", "def train(loader").replace(
    "    opt =", "    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))\n    opt ="
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_bytes(BAD.encode())
    return tmp_path


def run(*args: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["--isolated", "--no-cache", *args], input=given, standalone_mode=False)


def code(result: Result) -> Any:
    if result.exception is not None:
        raise result.exception
    return result.return_value


def test_fix_writes_and_reports_what_remains(folder: Path) -> None:
    result = run("--fix", "--show-fixes", "train.py")
    assert code(result) == 0
    assert (folder / "train.py").read_text() == GOOD
    assert "fixed 1 finding" in result.stderr
    assert "GA201" in result.stderr
    assert "No findings" in result.stdout
    assert code(run("--fix", "train.py")) == 0


def test_exit_non_zero_on_fix(folder: Path) -> None:
    assert code(run("--fix", "--exit-non-zero-on-fix", "train.py")) == 1
    assert code(run("--fix", "--exit-non-zero-on-fix", "train.py")) == 0


def test_diff_writes_nothing(folder: Path) -> None:
    result = run("--diff", "train.py")
    assert code(result) == 1
    assert (folder / "train.py").read_text() == BAD
    assert "-            loss.backward()\n+            (loss / accum).backward()\n" in result.stdout
    assert "--- train.py" in result.stdout
    (folder / "train.py").write_text(GOOD)
    assert code(run("--diff", "train.py")) == 0


def test_fix_only_is_silent(folder: Path) -> None:
    (folder / "train.py").write_text(BATCHNORM)
    result = run("--fix-only", "train.py")
    assert code(result) == 0
    assert result.stdout == ""
    assert "(loss / accum).backward()" in (folder / "train.py").read_text()


@pytest.mark.parametrize("flag", [["--unfixable", "GA2"], ["--fixable", "GA101,unused-ignore"]])
def test_rules_that_may_not_be_fixed_are_reported(folder: Path, flag: list[str]) -> None:
    result = run("--fix", *flag, "train.py")
    assert code(result) == 1
    assert (folder / "train.py").read_text() == BAD
    assert "GA201" in result.stdout
    assert "= fix:" not in result.stdout


def test_unsafe_fixes_wait_for_their_flag(folder: Path) -> None:
    text = GOOD.replace("range(accum * 8)", "range(len(loader))").replace("next(loader)", "loader[i]")
    head = "        for i in range(len(loader)):\n            x, y = loader[i]"
    text = text.replace(head, "        for i, (x, y) in enumerate(loader):")
    (folder / "train.py").write_text(text)
    run("--fix", "train.py")
    assert (folder / "train.py").read_text() == text
    run("--fix", "--unsafe-fixes", "train.py")
    assert "or i + 1 == len(loader)" in (folder / "train.py").read_text()


def test_standard_input_comes_out_fixed(folder: Path) -> None:
    result = run("--fix", "-", given=BAD.replace("\n", "\r\n").encode())
    assert code(result) == 0
    assert result.stdout_bytes == GOOD.replace("\n", "\r\n").encode()
    assert "No findings" in result.stderr


def test_standard_input_without_findings_comes_out_as_it_was(folder: Path) -> None:
    for text in (b"x = 1", GOOD.encode()):
        result = run("--fix", "-", given=text)
        assert result.stdout_bytes == text


def test_json_carries_the_fix(folder: Path) -> None:
    found = json.loads(run("--output-format", "json", "train.py").stdout)
    fixes = [d["fix"] for d in (found if isinstance(found, list) else found["diagnostics"]) if d["code"] == "GA201"]
    assert fixes[0]["applicability"] == "safe"
    assert fixes[0]["edits"]


def test_add_ignore_silences(folder: Path) -> None:
    result = run("--add-ignore", "train.py")
    assert code(result) == 0
    assert "silenced 1 finding" in result.stderr
    assert "loss.backward()  # galint: ignore[GA201]\n" in (folder / "train.py").read_text()
    assert code(run("train.py")) == 0
    assert isinstance(run("--add-ignore", "--fix", "train.py").exception, Exception)


def book(*cells: str, lines: bool = True) -> dict[str, object]:
    """A notebook's document; `lines` stores each cell as Jupyter does."""
    out: list[dict[str, object]] = [{"cell_type": "markdown", "metadata": {}, "source": ["# Trainüng\n"]}]
    for text in cells:
        source = text.splitlines(keepends=True) if lines else text
        out.append(
            {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [{"a": 1.5e-05}], "source": source}
        )
    return {"cells": out, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


STYLES = [
    {"indent": 1, "ensure_ascii": False}, {"indent": 2}, {"indent": "\t", "ensure_ascii": False}, {},
    {"separators": (",", ":")},
]  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("lines", [True, False])
def test_a_notebook_is_fixed_and_nothing_else_in_it_changes(folder: Path, style: dict[str, Any], lines: bool) -> None:
    file = folder / "book.ipynb"
    file.write_text(json.dumps(book("!pip list\n", BAD.rstrip("\n"), "x = 1", lines=lines), **style) + "\n")
    shown = run("--diff", "book.ipynb")
    assert "--- book.ipynb:cell 2\n" in shown.stdout and code(shown) == 1
    result = run("--fix", "book.ipynb")
    assert code(result) == 0 and "fixed 1 finding" in result.stderr
    wanted = book("!pip list\n", GOOD.rstrip("\n"), "x = 1", lines=lines)
    assert file.read_text() == json.dumps(wanted, **style) + "\n"


# --- files ---------------------------------------------------------------------------------------


def test_mode_stays_and_symlink_is_followed(folder: Path) -> None:
    target = folder / "train.py"
    target.chmod(0o754)
    (folder / "sub").mkdir()
    link = folder / "sub" / "link.py"
    link.symlink_to(target)
    run("--fix", "sub/link.py")
    assert link.is_symlink()
    assert target.read_text() == GOOD
    assert stat.S_IMODE(target.stat().st_mode) == 0o754
    assert sorted(os.listdir(folder)) == ["sub", "train.py"]
    assert os.listdir(folder / "sub") == ["link.py"]


def test_read_only_file_keeps_its_text(folder: Path) -> None:
    (folder / "train.py").chmod(0o444)
    result = run("--fix", "train.py")
    assert code(result) == 2
    assert "read-only" in result.stderr
    assert (folder / "train.py").read_text() == BAD


def test_file_that_changed_meanwhile_keeps_its_new_text(folder: Path) -> None:
    path = folder / "train.py"
    with pytest.raises(SourceError, match="changed"):
        replace_file(path, b"what was linted", GOOD.encode())
    assert path.read_text() == BAD
    assert os.listdir(folder) == ["train.py"]


@pytest.mark.parametrize("point", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_interrupt_leaves_the_old_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, point: str, error: type[BaseException]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(write.os, point, fail)
    path = folder / "train.py"
    with pytest.raises((KeyboardInterrupt, SourceError)):
        replace_file(path, BAD.encode(), GOOD.encode())
    monkeypatch.undo()
    assert path.read_text() == BAD
    assert os.listdir(folder) == ["train.py"]


@pytest.mark.skipif(os.name == "nt", reason="a console's Ctrl-C reaches the test as well")
def test_interrupted_run_leaves_each_file_old_or_fixed(folder: Path) -> None:
    """Ctrl-C while many files are fixed: what was done stays, nothing is half done, nothing lies about."""
    (folder / "train.py").unlink()
    files = [folder / f"train_{k:02}.py" for k in range(24)]
    for path in files:
        path.write_text(BAD)
    process = subprocess.Popen(
        [sys.executable, "-m", "galint", "--isolated", "--no-cache", "--fix", "."],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    until = time.monotonic() + 60
    while files[0].read_text() == BAD and time.monotonic() < until:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    texts = [path.read_text() for path in files]
    assert process.returncode == 130
    assert texts[0] == GOOD and texts[-1] == BAD and set(texts) == {GOOD, BAD}
    assert sorted(os.listdir(folder)) == [path.name for path in files]


def test_text_that_would_not_parse_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import galint.fixes
    from galint.diagnostic import Report
    from galint.fixes import Fixed
    from galint.source import Source

    def broken(source: Source, *args: object) -> Fixed:
        report = Report()
        from galint.config import Config
        from galint.engine import lint

        return Fixed(Source(source.filename, "def f(:\n"), report, lint(source, Config()).diagnostics, 1)

    monkeypatch.setattr(galint.fixes, "fix_source", broken)
    result = run("--fix", "train.py")
    assert code(result) == 2
    assert "would not parse" in result.stderr
    assert (folder / "train.py").read_text() == BAD
