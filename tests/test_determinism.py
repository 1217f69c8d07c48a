"""The same files give the same bytes, whatever order Python's sets happen to have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def output(seed: str) -> bytes:
    folders = ["fixtures/GA201-unscaled-loss", "fixtures/GA401-step-cadence", "fixtures/runs"]
    done = subprocess.run(
        [sys.executable, "-m", "galint", "check", *folders, "--isolated", "--no-cache", "--output-format", "json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return done.stdout


def test_hash_seeds_change_nothing() -> None:
    assert output("1") == output("2")
