"""Confirms findings by running their loops under `galint confirm`, in a process of its own: no code of the user runs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from galint import notebook
from galint.diagnostic import Diagnostic
from galint.server.documents import Page
from galint.server.study import Study


class NotConfirmed(Exception):
    """The script could not be run, or said nothing that can be read; its text is one line for the user."""


def can_run(interpreter: str) -> bool:
    """Whether there is something to run loops with: another interpreter, or torch in this one."""
    if interpreter:
        return Path(interpreter).exists()
    from importlib.util import find_spec

    return find_spec("torch") is not None


def saved(page: Page) -> str | None:
    """The text of a page as it lies on disk; None where it is no longer what it was. Raises OSError and SourceError."""
    assert page.path is not None
    data = page.path.read_bytes()
    if not page.is_notebook:
        return data.decode("utf-8", "replace").lstrip("\ufeff")
    book = notebook.load(data, page.filename)
    return book.source.text if book is not None else None


async def measure(path: Path, interpreter: str, timeout: float) -> list[dict[str, Any]]:
    """Run the loops behind a file's findings and return the verdicts about them. Raises NotConfirmed."""
    argv = [
        interpreter or sys.executable, "-m", "galint", "confirm", "--output-format", "json",
        "--timeout", str(timeout), "--", str(path),
    ]  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=path.parent, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout + 30)
    except TimeoutError:
        raise NotConfirmed(f"the loops did not finish in {timeout:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        verdicts = json.loads(out)["verdicts"]
        assert isinstance(verdicts, list)
    except (ValueError, KeyError, TypeError, AssertionError):
        lines = err.decode("utf-8", "replace").strip().splitlines()
        raise NotConfirmed(lines[-1] if lines else f"`galint confirm` exited with {process.returncode}") from None
    return [v for v in verdicts if isinstance(v, dict)]


def joined(study: Study, verdicts: list[dict[str, Any]]) -> dict[int, str]:
    """Index of a finding → what was measured about it."""
    out: dict[int, str] = {}
    for index, d in enumerate(study.report.diagnostics):
        verdict = next((v for v in verdicts if _about(v, d, study.page)), None)
        if verdict is None:
            verdict = next((v for v in verdicts if v.get("rule") == d.code), None)
        if verdict is not None and verdict.get("status") in ("confirmed", "refuted", "consistent"):
            numbers = "; ".join(str(verdict[key]) for key in ("measured", "reference") if verdict.get(key))
            out[index] = f"{_SAID[verdict['status']]}: {numbers or verdict.get('reason', '')}"
    return out


_SAID = {
    "confirmed": "confirmed by running",
    "refuted": "not confirmed by running",
    "consistent": "agrees with the run",
}


def _about(verdict: dict[str, Any], d: Diagnostic, page: Page) -> bool:
    finding = verdict.get("finding")
    cell, span = (None, d.span) if page.book is None else page.book.locate(d.span)
    return isinstance(finding, dict) and (finding.get("code"), finding.get("cell"), finding.get("line")) == (
        d.code,
        cell,
        span.row,
    )
