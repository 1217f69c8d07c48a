"""The command line where something is odd: standard input, a second configuration, broken settings, files that go."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_cli_parts import RIGHT, WRONG

from galint import pages
from galint.cli import main
from galint.config import Config
from galint.config.loading import Overrides, Resolver, find_in
from galint.driver import lint_bytes, run
from galint.errors import ConfigError, SourceError
from galint.registry import RULES
from galint.source import Source

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs `galint` in an empty project: exit code, what it printed, what it complained of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    Path("galint.toml").write_text("")

    def run(*args: str, given: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        with pytest.raises(SystemExit) as stop:
            main(args)
        printed = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, printed.out, printed.err

    return run


def test_importing_the_module_that_runs_galint_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A spawned worker imports it."""
    sys.modules.pop("galint.__main__", None)
    import galint.__main__  # noqa: F401

    assert capsys.readouterr() == ("", "")


def test_the_commands_are_listed(call: Call) -> None:
    code, out, _ = call("--help")
    assert code == 0 and all(name in out for name in ("check", "explain", "rule", "clean"))


def test_explain_reads_standard_input(call: Call) -> None:
    code, out, _ = call("explain", "-", given=WRONG.encode())
    assert code == 0 and "large batch: (g1 + g2 + g3 + g4)/4" in out


def test_a_second_configuration_file_is_one_too_many(call: Call) -> None:
    Path("a.toml").write_text("")
    Path("b.toml").write_text("")
    code, _, err = call("--config", "a.toml", "--config", "b.toml", ".")
    assert code == 2 and "a second configuration file `b.toml`" in err


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("galint.toml", b"select = ['\xff']\n", "is not UTF-8"),
        ("pyproject.toml", b"[tool]\ngalint = 3\n", "`tool.galint` must be a table"),
    ],
)
def test_a_broken_configuration_is_one_line(call: Call, name: str, data: bytes, said: str) -> None:
    Path("galint.toml").unlink()
    Path(name).write_bytes(data)
    Path("a.py").write_text(RIGHT)
    code, out, err = call("a.py")
    assert code == 2 and said in err and len(err.splitlines()) == 1 and not out


def test_a_huge_project_file_is_no_configuration(tmp_path: Path) -> None:
    """A repository cannot make galint read gigabytes in search of a setting."""
    (tmp_path / "pyproject.toml").write_text("[tool.galint]\nselect = ['GA1']\n")
    assert find_in(tmp_path) == tmp_path / "pyproject.toml"
    os.truncate(tmp_path / "pyproject.toml", 17 << 20)
    assert find_in(tmp_path) is None


def test_ignores_are_added_to_standard_input(call: Call) -> None:
    code, out, _ = call("check", "--add-ignore", "--select", "GA201", "-", given=WRONG.encode())
    assert "loss.backward()  # galint: ignore[GA201]" in out
    assert out.replace("  # galint: ignore[GA201]", "") == WRONG


def notebook(*cells: str) -> bytes:
    made = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None} for text in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def test_a_notebook_on_standard_input_is_fixed(call: Call) -> None:
    head, loop = WRONG.split("\n\n\n")
    name = ["--stdin-filename", "train.ipynb"]
    _, out, _ = call("check", "--fix", "--select", "GA201", *name, "-", given=notebook(head, loop))
    cells = [cell["source"] for cell in json.loads(out)["cells"]]
    assert "".join(cells[0]) == head and "(loss / 4).backward()" in "".join(cells[1])
    _, out, _ = call("check", "--add-ignore", "--select", "GA201", *name, "-", given=notebook(head, loop))
    cells = [cell["source"] for cell in json.loads(out)["cells"]]
    assert "loss.backward()  # galint: ignore[GA201]" in "".join(cells[1])


def test_a_notebook_of_another_language_has_no_findings() -> None:
    book = json.loads(notebook("loss.backward()\noptimizer.step()\nzero_grad()\n"))
    book["metadata"] = {"kernelspec": {"language": "julia"}, "language_info": {"name": "julia"}}
    report = lint_bytes(json.dumps(book).encode(), "a.ipynb", Config(), None, None)
    assert report.files == 1 and not report.diagnostics and not report.loops


@pytest.mark.parametrize("cached", [False, True])
def test_a_file_that_goes_while_it_is_read_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    """Found by the walk, gone when it is opened: the others are still linted."""
    from galint import driver

    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(WRONG)
    Path("b.py").write_text(WRONG)
    read = driver.read_bytes

    def gone(path: Path | str, filename: str) -> bytes:
        if filename == "a.py":
            raise SourceError("a.py: does not exist")
        return read(path, filename)

    monkeypatch.setattr(driver, "read_bytes", gone)
    outcome = run(["."], Resolver(Overrides()), jobs=1, cached=cached)
    assert outcome.problems == ["a.py: does not exist"]
    assert {d.filename for d in outcome.report.diagnostics} == {"b.py"}


def test_a_cache_that_cannot_be_removed_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.py").write_text(WRONG)
    assert call("a.py")[0] == 1
    [cache] = [path for path in Path().iterdir() if path.is_dir()]

    def fails(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", fails)
    code, _, err = call("clean")
    assert code == 2 and f"{cache}: cannot be removed (Permission denied)" in err


def test_a_rule_without_an_installed_page_is_described_by_its_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = next(rule for rule in RULES if rule.code == "GA201")
    monkeypatch.setattr(pages, "folder", lambda: tmp_path)
    text = pages.page(rule)
    assert text.startswith("# unscaled-loss (GA201)\n\n## What it does\n\n") and rule.summary[1:] in text


def test_a_coding_line_may_name_the_byte_order_mark() -> None:
    source = Source.from_bytes(b"# -*- coding: utf-8-sig -*-\nx = '\xc3\xb6'\n", "a.py")
    assert source.text.endswith("'ö'\n") and source.encode(source.text).endswith(b"'\xc3\xb6'\n")


def test_a_place_before_the_text_is_its_start() -> None:
    assert Source("a.py", "abc\n").offset(0, 3) == 0


def test_a_reader_that_goes_ends_galint_quietly(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from galint import cli

    def broken(*args: object) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(cli, "_run", broken)
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    assert call("a.py") == (141, "", "")


def test_a_configuration_of_the_wrong_kind_is_refused() -> None:
    from galint.config.settings import parse

    with pytest.raises(ConfigError, match="must be a table"):
        parse([], Path())
