"""A wheel compiled by mypyc says what the plain package says, and ends as it does.

`GALINT_COMPILED` names a folder with the unpacked wheel (`.ci/run` makes one); without it nothing here runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMPILED = os.environ.get("GALINT_COMPILED", "")

compiled = pytest.mark.skipif(not COMPILED, reason="GALINT_COMPILED names no unpacked compiled wheel")


def python(package: str | Path, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(package), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)


def lint(package: str | Path, *paths: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return python(package, "-m", "galint", "check", "--isolated", "--no-cache", "-q", *paths, cwd=cwd)


@compiled
@pytest.mark.parametrize("module", ["run.evaluate", "program.expressions", "semantics.optim", "checks.tails", "ledger"])
def test_the_wheel_is_compiled(module: str, tmp_path: Path) -> None:
    code = f"import galint.{module} as m; print(m.__file__)"
    assert not python(COMPILED, "-c", code, cwd=tmp_path).stdout.strip().endswith(".py")
    assert python(ROOT, "-c", code, cwd=tmp_path).stdout.strip().endswith(".py")


@compiled
@pytest.mark.parametrize("folder", ["fixtures", "tests/projects"])
def test_findings_and_fixes_are_the_same(folder: str) -> None:
    plain = lint(ROOT, "--output-format", "json", folder)
    compiled = lint(COMPILED, "--output-format", "json", folder)
    assert compiled.stderr == plain.stderr
    assert compiled.returncode == plain.returncode == 1
    assert len(json.loads(plain.stdout)["diagnostics"]) > 100
    assert compiled.stdout == plain.stdout


LOOP = """
import torch
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters())
{before}
def train(loader, args):
    for i, batch in enumerate(loader):
        x = {value}
        loss = model(batch).mean()
        loss.backward()
        if i % args.accum == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
CALLS = "".join(f"def f{k}(x): return {'max(' * 150}f{k + 1}(x){')' * 150}\n" for k in range(60))


@pytest.mark.parametrize("package", [ROOT, pytest.param(COMPILED, marks=compiled)], ids=["plain", "compiled"])
@pytest.mark.parametrize(
    "text",
    [
        LOOP.format(before="", value="max(" * 190 + "1" + ")" * 190),
        LOOP.format(before="", value="x" + ".a" * 900),
        LOOP.format(before="", value="not " * 900 + "x"),
        LOOP.format(before="", value="x" + "(1)" * 400),
        LOOP.format(before=CALLS, value="f0(1)"),
        LOOP.format(before="def f(x): return g(f(x))\ndef g(x): return f(g(x))", value="f(1)"),
        LOOP.format(before="x = []\nfor _ in range(100_000):\n    x = [x]", value="sum(x)"),
    ],
    ids=["brackets", "attributes", "nots", "calls", "calls-of-calls", "recursion", "lists-of-lists"],
)
def test_depth_ends_no_process(text: str, package: str | Path, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(text)
    (tmp_path / "other.py").write_text(LOOP.format(before="", value="1"))
    found = lint(package, "--output-format", "json", "deep.py", "other.py", cwd=tmp_path)
    assert found.returncode == 1, found.stderr
    assert "other.py" in found.stdout
    assert "GA999" not in found.stdout + found.stderr
