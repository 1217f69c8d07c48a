"""Linting executes nothing of what it reads and opens nothing outside the project, whatever the project says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

AUDITED = """
import json, sys
events = []
def hook(name, args):
    if name == "open" and isinstance(args[0], (str, bytes)):
        path = args[0] if isinstance(args[0], str) else args[0].decode("utf-8", "replace")
        events.append(["open", path, str(args[1])])
    elif name in ("subprocess.Popen", "os.exec", "os.system", "os.posix_spawn", "socket.connect", "pickle.find_class"):
        events.append([name, "", ""])
    elif name == "import":
        events.append(["import", str(args[0]), ""])
    elif name in ("compile", "exec") and args and "hostile" in repr(args):
        events.append([name, "", ""])
sys.addaudithook(hook)
from galint.cli import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write("\\n#events" + json.dumps(events))
"""

HOSTILE = """\
import torch, pathlib
from secret import helper
from . import sibling
from hostile_plugin import hook

pathlib.Path("executed").write_text("hostile")


def train(model, loader, criterion, optimizer):
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % 4 == 0:
            helper(optimizer)
            optimizer.step()
            optimizer.zero_grad()
"""


def events_of(folder: Path, *args: str) -> tuple[int, list[list[str]]]:
    """Exit code and audited events of a fresh `galint ARGS` in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", AUDITED, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    _, mark, listed = done.stderr.rpartition("#events")
    assert mark, done.stderr
    return done.returncode, json.loads(listed)


def project(tmp_path: Path) -> Path:
    """A project with hostile files, beside a folder that it must not make galint read."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("password = 1\n")
    inside = tmp_path / "project"
    inside.mkdir()
    (inside / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (inside / "hostile.py").write_text(HOSTILE)
    (inside / "sibling.py").write_text(HOSTILE)
    (inside / "hostile_plugin.py").write_text("raise SystemExit('executed')\n")
    (inside / "conftest.py").write_text("raise SystemExit('executed')\n")
    (inside / "sitecustomize.py").write_text("raise SystemExit('executed')\n")
    (inside / "evil.pth").write_text("import os; os.system('touch executed')\n")
    (inside / "secret.py").symlink_to(outside / "secret.py")
    (inside / "folder").symlink_to(outside)
    return inside


def test_nothing_is_executed_or_opened_outside(tmp_path: Path) -> None:
    inside = project(tmp_path)
    code, events = events_of(inside, ".", "--no-cache", "--jobs", "1")
    assert code == 1
    assert not (inside / "executed").exists()
    # `compile` without `exec` is CPython's parser at work: it makes a tree and runs nothing.
    assert [event for event in events if event[0] not in ("open", "import", "compile")] == []
    own = {"hostile", "hostile_plugin", "sibling", "secret", "conftest", "sitecustomize"}
    assert [event for event in events if event[0] == "import" and event[1].split(".")[0] in own] == []
    allowed = [Path(sys.prefix), Path(sys.base_prefix), ROOT, inside, *(Path(entry) for entry in sys.path if entry)]
    opened = [(inside / path).resolve() for kind, path, _ in events if kind == "open"]
    strange = [path for path in opened if not any(path.is_relative_to(root.resolve()) for root in allowed)]
    assert [path for path in strange if not str(path).startswith(("/dev/", "/proc/", "/etc/"))] == []
    assert tmp_path / "outside/secret.py" not in opened


def test_linting_writes_nothing_without_a_cache(tmp_path: Path) -> None:
    inside = project(tmp_path)
    _, events = events_of(inside, ".", "--no-cache", "--jobs", "1")
    written = [path for kind, path, mode in events if kind == "open" and set(mode) & set("wax+")]
    assert [path for path in written if not path.endswith(".pyc") and "__pycache__" not in path] == []


def test_a_configuration_can_neither_run_nor_overwrite_anything(tmp_path: Path) -> None:
    inside = project(tmp_path)
    (tmp_path / "outside/.gitignore").write_text("mine\n")
    (inside / "galint.toml").write_text("cache-dir = '../outside'\nexclude = ['*.md']\n")
    before = sorted(path.name for path in (tmp_path / "outside").iterdir())
    code, events = events_of(inside, ".", "--jobs", "1")
    assert code == 1
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == before
    assert (tmp_path / "outside/.gitignore").read_text() == "mine\n"
    code, _ = events_of(inside, "clean")
    assert code == 2 and sorted(path.name for path in (tmp_path / "outside").iterdir()) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        (".gitignore", None, ""),
        (".git/info/exclude", None, ""),
        ("galint.toml", None, ""),
        ("other.toml", 'extend = "other.toml"', "other.toml: cannot be read (not a regular file)"),
        ("known.json", 'baseline = "known.json"', "known.json: cannot be read (not a regular file)"),
        (".galint_cache/CACHEDIR.TAG", None, ""),
        ("sibling.py", None, ""),
        ("x.ipynb", None, ""),
    ],
)
def test_a_pipe_or_device_in_the_project_hangs_nothing(
    tmp_path: Path, kind: str, name: str, settings: str | None, said: str
) -> None:
    (tmp_path / "train.py").write_text("from sibling import helper\n" + HOSTILE)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    if settings is not None:
        (tmp_path / "galint.toml").write_text(settings)
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", sys.executable, "-m", "galint", "."],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert said in done.stderr and "Traceback" not in done.stderr
    if said:
        assert done.returncode == 2 and done.stderr.count("\n") == 1
    else:
        assert "GA201" in done.stdout
