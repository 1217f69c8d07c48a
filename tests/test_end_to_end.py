"""The whole command with the real engine: fixtures, notebooks, ignore comments, standard input, syntax errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from test_render_machine import REPORT

ROOT = Path(__file__).resolve().parent.parent

BAD = """\
import torch


def train(model, loader, criterion, optimizer):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / 4
        optimizer.zero_grad()
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
"""


def galint(folder: Path, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "galint", *args, "--no-cache"],
        cwd=folder, input=stdin, capture_output=True, text=True, check=False,
    )  # fmt: skip


def codes(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The codes of a JSON report, which must be well formed."""
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(REPORT).validate(report)
    return {d["code"] for d in report["diagnostics"]}


def test_fixtures_give_a_well_formed_report() -> None:
    done = galint(ROOT, "fixtures", "--isolated", "--output-format", "json")
    assert done.returncode == 1 and done.stderr == ""
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(REPORT).validate(report)
    assert report["summary"]["loops"] >= report["summary"]["understood"] > 50
    keys = [(d["filename"], d["location"]["row"], d["location"]["column"], d["code"]) for d in report["diagnostics"]]
    assert keys == sorted(keys)
    for d in report["diagnostics"]:
        lines = (ROOT / d["filename"]).read_text().splitlines()
        start, end = d["location"], d["end_location"]
        assert (start["row"], start["column"]) < (end["row"], end["column"])
        assert end["column"] <= len(lines[end["row"] - 1]) + 1
        assert (ROOT / d["url"]).is_file(), d["url"]


def test_several_files_give_the_same_report_in_a_pool() -> None:
    args = ("fixtures/GA101-zero-grad-in-window", "--isolated", "--output-format", "json")
    assert galint(ROOT, *args, "--jobs", "1").stdout == galint(ROOT, *args, "--jobs", "3").stdout


def test_a_loop_in_a_notebook_is_found_in_its_cell(tmp_path: Path) -> None:
    head, _, loop = BAD.partition("\n\n\n")
    cells = [["%matplotlib inline\n", head], ["!nvidia-smi"], loop.splitlines(keepends=True)]
    document = {
        "cells": [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells],
        "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    (tmp_path / "train.ipynb").write_text(json.dumps(document))
    done = galint(tmp_path, ".", "--select", "GA101", "--output-format", "json")
    assert codes(done) == {"GA101"}
    (found,) = json.loads(done.stdout)["diagnostics"]
    assert (found["cell"], found["location"]) == (3, {"row": 5, "column": 9})
    assert "train.ipynb:cell 3:5:9" in galint(tmp_path, ".", "--select", "GA101").stdout


def test_an_ignore_comment_silences_and_a_useless_one_is_noted(tmp_path: Path) -> None:
    text = BAD.replace(
        "        optimizer.zero_grad()\n", "        optimizer.zero_grad()  # galint: ignore[GA101] -- why\n"
    )
    text = text.replace("loss.backward()", "loss.backward()  # galint: ignore[GA301]")
    (tmp_path / "a.py").write_text(text)
    done = galint(tmp_path, "a.py", "--select", "GA1,GA3,GA001", "--output-format", "json")
    assert done.returncode == 0 and codes(done) == {"GA001"}
    assert json.loads(done.stdout)["diagnostics"][0]["location"]["row"] == 9


def test_standard_input_goes_the_same_way(tmp_path: Path) -> None:
    done = galint(tmp_path, "-", "--stdin-filename", "x.py", "--select", "GA101", stdin=BAD)
    assert done.returncode == 1 and "x.py:8:9" in done.stdout and "applied:     g4/4" in done.stdout


def test_a_syntax_error_is_a_finding_and_hides_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD + "def (:\n")
    (tmp_path / "b.py").write_text(BAD)
    done = galint(tmp_path, ".", "--select", "GA101", "--output-format", "json")
    assert done.returncode == 1 and done.stderr == "" and codes(done) == {"GA000", "GA101"}


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "latin-1"])
def test_line_ends_and_encodings_do_not_move_a_finding(tmp_path: Path, ending: str, encoding: str) -> None:
    line = "# -*- coding: latin-1 -*- é\n" if encoding == "latin-1" else "# é\n"
    (tmp_path / "a.py").write_bytes((line + BAD).replace("\n", ending).encode(encoding))
    done = galint(tmp_path, "a.py", "--select", "GA101", "--output-format", "concise")
    assert done.stdout.startswith("a.py:9:9: GA101 "), done.stdout + done.stderr


def test_rules_that_are_off_do_not_speak(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(BAD)
    (tmp_path / "pyproject.toml").write_text("[tool.galint]\nignore = ['GA1']\n")
    assert "GA101" not in codes(galint(tmp_path, ".", "--output-format", "json"))
