"""Which files are found, in which order, what is left out, and what the byte pre-filter lets through."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import expects, fixtures

from galint.config import Overrides, Resolver
from galint.discovery import Target, find, may_matter, project_root
from galint.errors import ConfigError, SourceError
from galint.patterns import compile_pattern


def tree(root: Path, *names: str, **texts: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def found(root: Path, *paths: str, **overrides: object) -> list[str]:
    """Names relative to `root` of what is found; problems as `!message`."""
    resolver = Resolver(Overrides(flags=dict(overrides)), root)
    items = find(paths or (".",), resolver, root)
    return [item.filename if isinstance(item, Target) else f"!{item}" for item in items]


def test_folders_are_walked_in_order_and_files_found_once(tmp_path: Path) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/y.ipynb", "a/n.txt", "a/b/c.py")
    assert found(tmp_path) == ["b.py", "a/y.ipynb", "a/z.py", "a/b/c.py"]
    assert found(tmp_path, "a", "b.py", "./a/z.py") == ["a/y.ipynb", "a/z.py", "a/b/c.py", "b.py"]


def test_a_named_file_may_have_any_suffix(tmp_path: Path) -> None:
    tree(tmp_path, "train")
    assert found(tmp_path, "train") == ["train"]


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^nope.py: no such file or folder$"):
        found(tmp_path, "nope.py")


def test_default_excludes_leave_out_environments_and_builds(tmp_path: Path) -> None:
    tree(tmp_path, ".venv/a.py", "node_modules/a.py", "build/a.py", "src/__pycache__/a.py", "src/a.py")
    assert found(tmp_path) == ["src/a.py"]


def test_a_walk_that_starts_in_an_excluded_folder_is_meant(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.py", "build/build/b.py")
    assert found(tmp_path, "build") == ["build/a.py"]
    assert found(tmp_path / "build") == ["a.py"]


def test_exclude_replaces_and_extend_exclude_adds(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.py", "src/a.py", "src/gen/b.py", "src/gen_c.py")
    assert found(tmp_path, exclude=["gen*"]) == ["build/a.py", "src/a.py"]
    assert found(tmp_path, **{"extend-exclude": ["src/gen/*.py"]}) == ["src/a.py", "src/gen_c.py"]


def test_force_exclude_holds_for_named_files(tmp_path: Path) -> None:
    tree(tmp_path, "gen/a.py", "b.py")
    (tmp_path / "galint.toml").write_text("extend-exclude = ['gen']\n")
    assert found(tmp_path, "gen/a.py", "b.py") == ["gen/a.py", "b.py"]
    assert found(tmp_path, "gen/a.py", "b.py", **{"force-exclude": True}) == ["b.py"]


def test_gitignore_files_are_respected_with_negation_and_depth(tmp_path: Path) -> None:
    tree(tmp_path, ".git/x", "a.py", "out/b.py", "sub/c.py", "sub/keep.py", "sub/deep/d.py")
    (tmp_path / ".gitignore").write_text("# comment\n/out/\nsub/*.py\n")
    (tmp_path / "sub/.gitignore").write_text("!keep.py\ndeep\n")
    assert found(tmp_path) == ["a.py", "sub/keep.py"]
    assert found(tmp_path / "sub") == ["keep.py"]
    assert len(found(tmp_path, **{"respect-gitignore": False})) == 5


def test_gitignore_lines_that_git_cannot_read_are_skipped(tmp_path: Path) -> None:
    tree(tmp_path, ".git/info/x", "a.py", "b.py", "c.py")
    (tmp_path / ".gitignore").write_bytes(b"a.py\n!\n/\n\\\n[\n\xff\n")
    (tmp_path / ".git/info/exclude").write_text("b.py\n")
    assert found(tmp_path) == ["c.py"]


def test_force_exclude_also_follows_gitignore(tmp_path: Path) -> None:
    tree(tmp_path, ".git/x", "out/b.py")
    (tmp_path / ".gitignore").write_text("out/\n")
    assert found(tmp_path, "out/b.py") == ["out/b.py"]
    assert found(tmp_path, "out/b.py", **{"force-exclude": True}) == []


def test_links_make_no_circle_and_lead_nowhere_outside(tmp_path: Path) -> None:
    tree(tmp_path, "in/a.py", "outside/secret.py")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    (tmp_path / "in/out.py").symlink_to(tmp_path / "outside/secret.py")
    (tmp_path / "in/same.py").symlink_to(tmp_path / "in/a.py")
    assert found(tmp_path / "in") == ["a.py", "same.py"]


def test_fifos_and_broken_links_are_problems_not_hangs(tmp_path: Path) -> None:
    tree(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing.py")
    assert found(tmp_path) == [
        "a.py",
        "!gone.py: cannot be read (No such file or directory)",
        "!pipe.py: is not a regular file",
    ]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may list every folder")
def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "shut/b.py")
    (tmp_path / "shut").chmod(0)
    try:
        assert found(tmp_path) == ["a.py", "!shut: cannot be listed (Permission denied)"]
    finally:
        (tmp_path / "shut").chmod(0o755)


def test_a_folder_that_vanishes_during_the_walk_is_a_problem(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "sub/b.py")
    items = find(
        [
            ".",
        ],
        Resolver(Overrides(), tmp_path),
        tmp_path,
    )
    assert isinstance(next(items), Target)
    (tmp_path / "sub/b.py").unlink()
    (tmp_path / "sub").rmdir()
    (rest,) = list(items)
    assert isinstance(rest, SourceError) and "sub: cannot be listed" in str(rest)


def test_each_file_has_its_nearest_configuration_and_project(tmp_path: Path) -> None:
    tree(tmp_path, "one/a.py", "two/pkg/b.py")
    (tmp_path / "one/galint.toml").write_text("ignore = ['GA1']\n")
    (tmp_path / "two/setup.py").write_text("")
    targets = [t for t in find(["."], Resolver(Overrides(), tmp_path), tmp_path) if isinstance(t, Target)]
    by_name = {t.filename: t for t in targets}
    assert "GA101" not in by_name["one/a.py"].config.codes
    assert "GA101" in by_name["two/pkg/b.py"].config.codes
    assert by_name["two/pkg/b.py"].root == tmp_path / "two"


def test_without_a_project_mark_imports_stay_below_the_named_folder(tmp_path: Path) -> None:
    tree(tmp_path, "x/y/a.py")
    assert project_root(tmp_path / "x/y", tmp_path / "x") in (tmp_path / "x", *tmp_path.parents)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/x/y/c.py", True),
        ("a/**", "a/x/y", True),
        ("[ab]?.py", "bz.py", True),
        ("[!ab].py", "a.py", False),
        ("a.b", "aXb", False),
        ("[z-a]", "[z-a]", True),
        ("[", "[", True),
    ],
)
def test_patterns(pattern: str, path: str, expected: bool) -> None:
    assert bool(compile_pattern(pattern).match(path)) == expected


@given(st.text(alphabet="*?[]!^-\\a/.", max_size=12))
def test_any_pattern_compiles(pattern: str) -> None:
    compile_pattern(pattern).match("a/b.py")


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nloss.backward()\nopt.step()\n",
        "from accelerate import Accelerator\nwith accelerator.accumulate(m): pass\n",
        "from .common import *\ndef f():\n    loss.backward()\n    opt.step()\n",
        "from util import NativeScaler\nimport torch\nloss_scaler(loss, opt, update_grad=(i + 1) % accum_iter == 0)\n",
    ],
)
def test_training_code_passes_the_filter(text: str) -> None:
    assert may_matter(text.encode())


def test_every_marked_fixture_passes_the_filter() -> None:
    assert [p.name for p in fixtures() if expects(p.read_text("utf-8")) and not may_matter(p.read_bytes())] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import os\n",
        "import torch\nx = torch.zeros(3)\n",
        "import paddle\nfor b in d:\n    loss.backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
        "def backward(): pass\n",
        "import torch\nloss.backward()\n",
        "import lightning as L\nL.Trainer(accumulate_grad_batches=4)\n",
        "import torch\n# loss.backward(); optimizer.step()\n",
        "import torch\n'''\n>>> loss.backward()\n>>> optimizer.step()\n'''\n",
        "import torch\ndef backward(ctx): pass\nx.step()\n",
    ],
)
def test_other_files_never_reach_the_parser(text: str) -> None:
    assert not may_matter(text.encode())
