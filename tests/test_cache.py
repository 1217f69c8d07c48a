"""The result cache: what makes an entry stale, what a broken or hostile one does, and that results survive the way."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from reports import report

from galint.cache import Cache, is_cache
from galint.config import Config, Selection
from galint.diagnostic import Report
from galint.rule import Severity


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def key(cache: Cache, data: bytes = b"x", config: Config | None = None, path: Path = Path("/p/a.py")) -> str:
    return cache.key(data, path.name, path, path.parent, config or Config())


def stored(cache: Cache, given: Report) -> str:
    name = key(cache)
    cache.put(name, given)
    return name


def test_a_report_comes_back_as_it_was(cache: Cache) -> None:
    given = replace(report(), files=1, followed=[])
    assert cache.get(stored(cache, given)) == given


def test_the_key_follows_content_name_settings_and_root(cache: Cache) -> None:
    base = key(cache)
    assert key(cache) == base
    assert key(cache, b"y") != base
    assert key(cache, path=Path("/q/a.py")) != base
    assert key(cache, config=Config(selection=(Selection(ignore=("GA1",)),))) != base
    assert key(cache, config=Config(severity=(("GA1", Severity.NOTE),))) != base
    assert key(cache, config=Config(fail_on=Severity.NOTE)) == base


def test_an_entry_is_stale_when_a_consulted_import_changes_appears_or_goes(cache: Cache, tmp_path: Path) -> None:
    there, missing = tmp_path / "there.py", tmp_path / "missing.py"
    there.write_text("a")
    given = replace(report(), files=1, followed=[str(there), str(missing)])
    name = stored(cache, given)
    assert cache.get(name) is not None
    there.write_text("b")
    assert cache.get(name) is None
    there.write_text("a")
    missing.write_text("new")
    assert cache.get(name) is None
    missing.unlink()
    there.unlink()
    assert cache.get(name) is None


def test_unknown_imports_and_internal_errors_are_not_stored(cache: Cache) -> None:
    assert cache.get(stored(cache, report())) is None
    assert cache.get(stored(cache, replace(report(), followed=[], internal_errors=["x"]))) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"followed": {}}', '{"followed": []}', '{"followed": {}, "diagnostics": [{}]}', "[" * 99999],
)
def test_a_broken_entry_counts_as_none(cache: Cache, tmp_path: Path, text: str) -> None:
    name = stored(cache, replace(report(), files=1, followed=[]))
    (file,) = (tmp_path / "cache").glob("??/*.json")
    file.write_text(text)
    assert cache.get(name) is None


def test_the_folder_is_marked_and_ignored_by_git(cache: Cache, tmp_path: Path) -> None:
    stored(cache, replace(report(), files=1, followed=[]))
    folder = tmp_path / "cache"
    assert (folder / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    assert (folder / ".gitignore").read_text() == "*\n"
    assert [path.suffix for path in folder.glob("??/*")] == [".json"]


def test_old_entries_go(cache: Cache, tmp_path: Path) -> None:
    stored(cache, replace(report(), files=1, followed=[]))
    folder = tmp_path / "cache"
    (old,) = folder.glob("??/*.json")
    os.utime(old, (1, 1))
    os.utime(folder / ".pruned", (1, 1))
    name = key(cache, b"other")
    cache.put(name, replace(report(), files=1, followed=[]))
    assert not old.exists() and cache.get(name) is not None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    cache = Cache(tmp_path / "cache")
    name = stored(cache, replace(report(), files=1, followed=[]))
    assert cache.get(name) is None


def test_entries_hold_plain_json(cache: Cache, tmp_path: Path) -> None:
    stored(cache, replace(report(), files=1, followed=[]))
    (file,) = (tmp_path / "cache").glob("??/*.json")
    assert set(json.loads(file.read_bytes())) == {
        "loops",
        "covered",
        "understood",
        "diagnostics",
        "not_understood",
        "elsewhere",
        "followed",
    }


def test_nothing_is_written_among_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    (tmp_path / ".gitignore").write_text("mine\n")
    stored(Cache(tmp_path), replace(report(), files=1, followed=[]))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitignore", "precious.txt"]
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_a_shipped_cache_steers_nothing_outside_it(cache: Cache, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "cache"
    outside.mkdir()
    (outside / "precious.json").write_text("x")
    os.utime(outside / "precious.json", (1, 1))
    stored(cache, replace(report(), files=1, followed=[]))
    shutil.rmtree(next(folder.glob("??")))
    os.utime(folder / ".pruned", (1, 1))
    for number in range(256):
        (folder / f"{number:02x}").symlink_to(outside)
    name = stored(cache, replace(report(), files=1, followed=[]))
    assert [path.name for path in outside.iterdir()] == ["precious.json"]
    assert cache.get(name) is None
    (folder / "CACHEDIR.TAG").unlink()
    (folder / "CACHEDIR.TAG").symlink_to("/dev/zero")
    assert not is_cache(folder)
