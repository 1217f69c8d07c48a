"""The result cache: findings by content, consulted imports, settings and version; JSON only, so it can run nothing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from galint import __version__
from galint.config.model import Config
from galint.diagnostic import Applicability, Diagnostic, Edit, Fix, NotUnderstood, Related, Report
from galint.rule import Severity
from galint.source import Span, read_small

_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder holds results of galint and can be removed.\n"
_KEPT_SECONDS = 30 * 24 * 3600
_PRUNED = ".pruned"


class Cache:
    """The entries of one folder. Every failure to read or write it is silent: the file is then linted anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self, data: bytes, filename: str, path: Path, root: Path, config: Config) -> str:
        """What a result depends on besides the imports that were consulted."""
        codes = ",".join(sorted(config.codes_for(path)))
        parts = (_package_stamp(), filename, str(path), str(root), codes, config.fingerprint())
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
        digest.update(b"\0" + data)
        return digest.hexdigest()

    def get(self, key: str) -> Report | None:
        """The stored report, if there is one and the imports that it consulted are as they were."""
        try:
            entry = json.loads((self._folder / key[:2] / f"{key}.json").read_bytes())
            if any(_state(path) != state for path, state in entry["followed"].items()):
                return None
            return _report(entry)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, key: str, report: Report) -> None:
        """Store a report that knows what it consulted and had no internal error."""
        if report.followed is None or report.internal_errors:
            return
        entry = _entry(report)
        entry["followed"] = {path: _state(path) for path in report.followed}
        data = json.dumps(entry).encode("ascii")
        target = self._folder / key[:2] / f"{key}.json"
        temporary = target.with_name(f".{key}.{os.getpid()}")
        try:
            self._prepare()
            target.parent.mkdir(exist_ok=True)
            if target.parent.is_symlink():  # a repository that ships a cache must not steer what is written where
                raise NotADirectoryError(target.parent)
            temporary.write_bytes(data)
            temporary.replace(target)
        except OSError:
            temporary.unlink(missing_ok=True) if temporary.parent.is_dir() else None

    def _prepare(self) -> None:
        """Mark the folder as a cache (for `galint clean`, backups and git), and prune it now and then."""
        if not is_cache(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            if any(self._folder.iterdir()):  # a hostile or mistaken `cache-dir`: never write among foreign files
                raise NotADirectoryError(self._folder)
            (self._folder / ".gitignore").write_text("*\n")
            (self._folder / "CACHEDIR.TAG").write_text(_TAG)
        stamp = self._folder / _PRUNED
        now = time.time()
        if stamp.is_symlink():
            raise FileExistsError(stamp)
        if stamp.exists() and now - stamp.stat().st_mtime < _KEPT_SECONDS / 30:
            return
        stamp.touch()
        for folder in self._folder.glob("??"):
            if folder.is_symlink():
                continue
            for file in folder.iterdir():
                if now - file.lstat().st_mtime > _KEPT_SECONDS:
                    file.unlink(missing_ok=True)


def is_cache(folder: Path) -> bool:
    """Whether galint made this folder: then it may write to it and remove it."""
    try:
        return read_small(folder / "CACHEDIR.TAG") == _TAG.encode()
    except OSError:
        return False


def _state(path: str) -> str:
    """A file's content as a digest; `absent` where none can be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "absent"
        with open(path, "rb", buffering=0) as file:
            return hashlib.sha256(file.readall()).hexdigest()
    except (OSError, ValueError):
        return "absent"


@lru_cache(maxsize=1)
def _package_stamp() -> str:
    """Changes with the version and with every edit of galint's own files (an editable install)."""
    digest = hashlib.sha256(__version__.encode())
    for folder, folders, names in os.walk(Path(__file__).parent):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            found = os.stat(os.path.join(folder, name))
            digest.update(f"{name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return digest.hexdigest()


# --- JSON --------------------------------------------------------------------------------------


def _entry(report: Report) -> dict[str, Any]:
    return {
        "loops": report.loops,
        "understood": report.understood,
        "diagnostics": [_from_diagnostic(d) for d in report.diagnostics],
        "elsewhere": [_from_diagnostic(d) for d in report.elsewhere],
        "covered": [[name, _from_span(span)] for name, span in report.covered],
        "not_understood": [[n.filename, _from_span(n.span), n.reason, n.cell] for n in report.not_understood],
    }


def _report(entry: dict[str, Any]) -> Report:
    return Report(
        diagnostics=[_to_diagnostic(item) for item in entry["diagnostics"]],
        elsewhere=[_to_diagnostic(item) for item in entry["elsewhere"]],
        covered=[(str(name), _to_span(span)) for name, span in entry["covered"]],
        files=1,
        loops=int(entry["loops"]),
        understood=int(entry["understood"]),
        not_understood=[NotUnderstood(str(f), _to_span(s), str(r), c) for f, s, r, c in entry["not_understood"]],
        followed=list(entry["followed"]),
    )


def _from_span(span: Span) -> list[int]:
    return [span.row, span.column, span.end_row, span.end_column]


def _to_span(numbers: list[int]) -> Span:
    row, column, end_row, end_column = map(int, numbers)
    return Span(row, column, end_row, end_column)


def _from_diagnostic(d: Diagnostic) -> dict[str, Any]:
    fix = d.fix and [d.fix.message, str(d.fix.applicability), [[_from_span(e.span), e.content] for e in d.fix.edits]]
    return {
        "code": d.code,
        "name": d.name,
        "severity": str(d.severity),
        "message": d.message,
        "filename": d.filename,
        "span": _from_span(d.span),
        "applied": d.applied,
        "expected": d.expected,
        "related": [[_from_span(r.span), r.message, r.filename, r.cell] for r in d.related],
        "assumptions": list(d.assumptions),
        "configuration": d.configuration,
        "fix": fix,
        "cell": d.cell,
    }


def _to_diagnostic(item: dict[str, Any]) -> Diagnostic:
    fix = None
    if item["fix"] is not None:
        message, applicability, edits = item["fix"]
        fix = Fix(message, Applicability(applicability), tuple(Edit(_to_span(s), str(text)) for s, text in edits))
    return Diagnostic(
        code=str(item["code"]),
        name=str(item["name"]),
        severity=Severity(item["severity"]),
        message=str(item["message"]),
        filename=str(item["filename"]),
        span=_to_span(item["span"]),
        applied=item["applied"],
        expected=item["expected"],
        related=tuple(Related(_to_span(s), str(m), f, c) for s, m, f, c in item["related"]),
        assumptions=tuple(map(str, item["assumptions"])),
        configuration=item["configuration"],
        fix=fix,
        cell=item["cell"],
    )
