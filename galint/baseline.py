"""Baselines: remember today's findings, and show only those that are new."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from galint.config.loading import show
from galint.diagnostic import Diagnostic, Report
from galint.errors import ConfigError
from galint.source import read_small

Lines = Callable[[str, int | None], Sequence[str]]
_VERSION = 1


def context_hash(diagnostic: Diagnostic, lines: Sequence[str]) -> str:
    """Twelve hex digits of the finding's own line without its spacing: they survive moved lines.

    Equal lines give equal digits; a baseline counts them.
    """
    row = diagnostic.span.row
    line = lines[row - 1] if 1 <= row <= len(lines) else ""
    return hashlib.sha256("".join(line.split()).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _key(diagnostic: Diagnostic, lines: Lines, folder: Path) -> tuple[str, str, str]:
    found = context_hash(diagnostic, lines(diagnostic.filename, diagnostic.cell))
    return (_relative(diagnostic.filename, folder), diagnostic.code, found)


def _relative(filename: str, folder: Path) -> str:
    """The file's name relative to the baseline's folder, so that the call's folder does not matter."""
    path = Path(os.path.normpath(Path.cwd() / filename))
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return path.as_posix()


def folder_of(file: Path) -> Path:
    """The folder that a baseline's file names count from, absolute and without `..`."""
    return Path(os.path.normpath(file.absolute())).parent


def text(report: Report, lines: Lines, folder: Path) -> str:
    """The baseline of a report as JSON, sorted so that it merges well."""
    counts = Counter(_key(d, lines, folder) for d in report.diagnostics)
    messages = {_key(d, lines, folder): d.message for d in report.diagnostics}
    entries = [
        {"filename": key[0], "code": key[1], "line": key[2], "count": number, "message": messages[key]}
        for key, number in sorted(counts.items())
    ]
    return json.dumps({"version": _VERSION, "findings": entries}, indent=2, ensure_ascii=False) + "\n"


def subtract(file: Path, report: Report, lines: Lines, linted: Collection[str]) -> list[str]:
    """Take the findings that `file` knows out of `report`.

    Returns a line for each entry that can be removed: its file is among the `linted` (or is gone)
    and the finding is fixed. Raises ConfigError when the baseline cannot be read.
    """
    file = Path(os.path.normpath(file))
    known = _load(file)
    folder = folder_of(file)
    left = Counter({key: number for key, (number, _) in known.items()})
    new: list[Diagnostic] = []
    for diagnostic in report.diagnostics:
        key = _key(diagnostic, lines, folder)
        if left[key] > 0:
            left[key] -= 1
        else:
            new.append(diagnostic)
    report.diagnostics = new
    seen = {_relative(filename, folder) for filename in linted}
    out = []
    for (filename, code, line), number in sorted(left.items()):
        if number > 0 and (filename in seen or not (folder / filename).exists()):
            message = known[filename, code, line][1]
            out.append(f"{show(file)}: the entry {code} in {filename} is fixed and can be removed ({message})")
    return out


def _load(file: Path) -> dict[tuple[str, str, str], tuple[int, str]]:
    try:
        document = json.loads(read_small(file))
    except OSError as error:
        raise ConfigError(f"baseline {show(file)}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError):
        raise ConfigError(f"baseline {show(file)}: is not valid JSON") from None
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise ConfigError(f"baseline {show(file)}: is not a galint baseline of version {_VERSION}")
    out: dict[tuple[str, str, str], tuple[int, str]] = {}
    findings = document.get("findings")
    for entry in findings if isinstance(findings, list) else ():
        key, number, message = _entry(entry, file)
        out[key] = (out.get(key, (0, ""))[0] + number, message)
    return out


def _entry(entry: Any, file: Path) -> tuple[tuple[str, str, str], int, str]:
    try:
        key = (str(entry["filename"]), str(entry["code"]), str(entry["line"]))
        return key, int(entry.get("count", 1)), str(entry.get("message", ""))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ConfigError(f"baseline {show(file)}: has an entry without filename, code and line") from None
