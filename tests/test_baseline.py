"""Baselines: old findings stay silent when lines move, new ones show, fixed ones are said to be removable."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from reports import TRAIN, lines, report, train_finding

from galint import baseline
from galint.diagnostic import Report
from galint.errors import ConfigError


def written(folder: Path, given: Report | None = None) -> Path:
    file = folder / "baseline.json"
    file.write_text(baseline.text(given or report(), lines, folder))
    return file


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_known_findings_disappear_and_nothing_is_removable(folder: Path) -> None:
    now = report()
    assert baseline.subtract(written(folder), now, lines, ["pkg/train.py", "pkg/wide.py", "run.ipynb"]) == []
    assert now.diagnostics == [] and now.files == 12


def shifted(by: int) -> Callable[[str, int | None], Sequence[str]]:
    return lambda filename, cell: [*[""] * by, *TRAIN.replace("    ", "\t").splitlines()]


def test_entries_survive_moved_and_reindented_lines(folder: Path) -> None:
    file = written(folder, Report([train_finding()]))
    finding = train_finding()
    moved = Report([replace(finding, span=finding.span._replace(row=8, end_row=8), message="now 2 of 3 are discarded")])
    assert baseline.subtract(file, moved, shifted(3), ["pkg/train.py"]) == []
    assert moved.diagnostics == []


def test_a_new_finding_shows_also_when_its_line_looks_like_a_known_one(folder: Path) -> None:
    file = written(folder)
    twice = Report([train_finding(), train_finding()])
    baseline.subtract(file, twice, lines, ["pkg/train.py"])
    assert len(twice.diagnostics) == 1
    other = Report([replace(train_finding(), code="GA201")])
    baseline.subtract(file, other, lines, ["pkg/train.py"])
    assert len(other.diagnostics) == 1


def test_a_fixed_entry_is_removable_only_when_its_file_was_linted_or_is_gone(folder: Path) -> None:
    file = written(folder)
    (folder / "pkg").mkdir()
    (folder / "pkg/wide.py").write_text("")
    (folder / "run.ipynb").write_text("")
    (removable,) = baseline.subtract(file, Report(), lines, [])
    assert "GA101 in pkg/train.py is fixed and can be removed" in removable
    both = baseline.subtract(file, Report(), lines, ["pkg/wide.py"])
    assert len(both) == 2 and "GA601 in pkg/wide.py" in both[1]


def test_names_count_from_the_baselines_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(folder)
    (folder / "pkg").mkdir()
    monkeypatch.chdir(folder / "pkg")
    here = Report([replace(train_finding(), filename="train.py")])
    baseline.subtract(file, here, lambda filename, cell: TRAIN.splitlines(), ["train.py"])
    assert here.diagnostics == []


def test_roundabout_names_mean_the_same_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder)
    (folder / "pkg").mkdir()
    monkeypatch.chdir(folder / "pkg")
    here = Report([replace(train_finding(), filename=f"{folder}/pkg/train.py")])
    baseline.subtract(Path("../pkg/../baseline.json"), here, lambda filename, cell: TRAIN.splitlines(), [])
    assert here.diagnostics == []
    assert baseline.folder_of(Path("../pkg/../baseline.json")) == folder


def test_the_file_is_sorted_and_names_its_version(folder: Path) -> None:
    document = json.loads(written(folder).read_text())
    names = [entry["filename"] for entry in document["findings"]]
    assert document["version"] == 1 and names == sorted(names) and len(names) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not valid JSON"),
        ("[]", "is not a galint baseline of version 1"),
        ('{"version": 2}', "is not a galint baseline of version 1"),
        ('{"version": 1, "findings": [{"code": "GA101"}]}', "has an entry without filename, code and line"),
        ('{"version": 1, "findings": [3]}', "has an entry without filename, code and line"),
    ],
)
def test_a_broken_baseline_is_one_clear_line(folder: Path, text: str, words: str) -> None:
    file = folder / "b.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        baseline.subtract(file, Report(), lines, [])


def test_a_missing_baseline_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        baseline.subtract(folder / "none.json", Report(), lines, [])
