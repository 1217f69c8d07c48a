"""What ships, what starting up may import, and that the README, the hooks and .ci/run say what is true."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import galint
from galint.registry import RULES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

HEAVY = {
    "libcst", "torch", "numpy", "matplotlib", "rich", "pygls", "lsprotocol", "pathspec", "asyncio", "multiprocessing",
    "concurrent", "tomllib", "json", "galint.engine", "galint.syntax", "galint.run", "galint.render",
}  # fmt: skip


def modules_of(*args: str, cwd: Path, stdin: str = "") -> set[str]:
    """The modules that a fresh `galint ARGS` has imported when it ends."""
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('\\n#modules', *sorted(sys.modules), file=sys.stderr))\n"
        "from galint.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=cwd, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return set(done.stderr.rpartition("#modules")[2].split())


def heavy(modules: set[str]) -> set[str]:
    return {name for name in HEAVY if name in modules}


def test_the_version_costs_nothing(tmp_path: Path) -> None:
    assert heavy(modules_of("--version", cwd=tmp_path)) == set()


def test_a_tree_without_training_code_never_loads_the_parser(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    assert heavy(modules_of(".", cwd=tmp_path)) <= {"galint.render", "json"}


def test_a_tree_with_training_code_loads_the_machine_but_no_framework(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nloss.backward()\noptimizer.step()\n")
    loaded = heavy(modules_of(".", cwd=tmp_path))
    assert "galint.engine" in loaded
    assert loaded.isdisjoint({"libcst", "torch", "numpy", "matplotlib", "rich", "pygls", "asyncio", "pathspec"})


def test_linting_needs_few_and_well_known_libraries() -> None:
    names = {re.split(r"[<>=!\[ ]", item)[0] for item in PROJECT["project"]["dependencies"]}
    assert names == {"click", "libcst", "pathspec", "rich"}
    assert {"trace", "lsp", "dev"} <= set(PROJECT["project"]["optional-dependencies"])


def test_the_package_is_typed_and_has_a_version() -> None:
    assert (ROOT / "galint/py.typed").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", galint.__version__)


@pytest.mark.slow
def test_the_wheel_holds_the_package_the_pages_and_the_schema(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"galint/rules/{path.name}" for path in (ROOT / "rules").glob("*.md")} <= names
    assert {"galint/py.typed", "galint/config/schema.json", "galint/cli/check.py", "galint/__main__.py"} <= names
    assert not any(name.startswith(("tests/", "fixtures/", "rules/")) for name in names)


def test_pages_are_found_in_the_source_tree() -> None:
    from galint import pages

    assert pages.folder() is not None
    assert pages.page(RULES[2]).startswith(f"# {RULES[2].name} ({RULES[2].code})")
    for rule in RULES:
        text = pages.page(rule)
        assert "expect:" not in text and "python fixed" not in text
        assert text.count("```") % 2 == 0 and text.count("  # <-- GA") == 1
    assert pages.url("GA101", "zero-grad-in-window") == "rules/GA101-zero-grad-in-window.md"


# --- README and .ci/run ------------------------------------------------------------------------


def test_the_readme_lists_every_rule_and_shows_what_galint_really_says() -> None:
    import regenerate

    assert README.count("| GA101 | zero-grad-in-window |") == 1 and "error[GA101] zero-grad-in-window: " in README
    assert regenerate.readme(README) == README, "run tests/regenerate.py"


def test_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci/run").read_text("utf-8")
    assert os.access(ROOT / ".ci/run", os.X_OK) and "<!-- test command -->" in script
    (command,) = re.findall(r"<!-- test command -->\n\n```bash\n(.*)\n```", README)
    assert command.endswith(".venv/bin/pytest") and "torch==2.13.0" in command and "[dev,frameworks]" in command


# --- pre-commit --------------------------------------------------------------------------------

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
GOOD = (
    BAD.replace("        optimizer.zero_grad()\n        loss", "        loss") + "            optimizer.zero_grad()\n"
)


def git(folder: Path, *args: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def hook(user: Path, repository: Path, name: str) -> subprocess.CompletedProcess[str]:
    """The real pre-commit runs the hook `name` of `repository` on what is staged in `user`."""
    environment = {**os.environ, "PRE_COMMIT_HOME": str(user.parent / "home")}
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "try-repo", str(repository), name, "--verbose"],
        cwd=user, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_hooks_file_is_valid() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_pre_commit_stops_a_bad_loop_and_passes_a_good_one(tmp_path: Path) -> None:
    repository, user = tmp_path / "galint", tmp_path / "user"
    repository.mkdir()
    for name in ("galint", "rules"):
        shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, repository / name)
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "galint")
    user.mkdir()
    git(user, "init", "-q")
    (user / "train.py").write_text(BAD)
    (user / "galint.toml").write_text("extend-exclude = ['generated']\n")
    git(user, "add", ".")
    bad = hook(user, repository, "galint")
    assert bad.returncode == 1 and "train.py:8:9" in bad.stdout and "GA101" in bad.stdout, bad.stdout + bad.stderr
    (user / "train.py").write_text(GOOD)
    (user / "generated").mkdir()
    (user / "generated/bad.py").write_text(BAD)
    git(user, "add", ".")
    good = hook(user, repository, "galint")
    assert good.returncode == 0, good.stdout + good.stderr
    (user / "train.py").write_text(BAD)
    git(user, "add", ".")
    fixed = hook(user, repository, "galint-fix")
    assert fixed.returncode == 1 and "files were modified" in fixed.stdout, fixed.stdout + fixed.stderr
    git(user, "add", ".")
    assert hook(user, repository, "galint").returncode == 0


def test_the_configuration_schema_ships() -> None:
    assert json.loads((ROOT / "galint/config/schema.json").read_text("utf-8"))["title"] == "galint"
