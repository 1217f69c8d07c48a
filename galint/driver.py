"""From paths to one report: reads files, spares the parser what cannot matter, runs serially or in a pool."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from galint.collecting import seldom, tidy, with_room
from galint.config.loading import Resolver
from galint.config.model import Config
from galint.diagnostic import Diagnostic, Report
from galint.discovery import Target, find, may_matter
from galint.errors import SourceError
from galint.registry import RULES
from galint.scanning import scan
from galint.source import Source, read_bytes

_RULE_BY_CODE = {rule.code: rule for rule in RULES}
_POOL_FROM_BYTES = 100_000 if sys.platform == "linux" else 800_000
"""Source bytes to analyse from which worker processes pay: forked ones are ready at once, spawned ones import anew."""
_MAX_JOBS = 16

Progress = Callable[[int, int], None]
"""Called with (files done, files in all)."""


@dataclass(slots=True)
class Outcome:
    """A run's report, its problems (one line each, for stderr) and the stdin text when there was one."""

    report: Report = field(default_factory=Report)
    problems: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    """Filename → bytes, for files that cannot be read again."""
    targets: list[Target] = field(default_factory=list)


def lint_bytes(data: bytes, filename: str, config: Config, path: Path | None, root: Path | None) -> Report:
    """Lint one file's bytes, notebook or script, with severities overridden. Raises SourceError.

    An exception inside galint becomes one GA999 line in `internal_errors`.
    """
    if not may_matter(data):
        return Report(files=1)
    if filename.endswith(".ipynb"):
        from galint import notebook

        book = notebook.load(data, filename)
        if book is None:
            return Report(files=1)
        return book.relocate(_guarded(replace(book.source, path=path), config, root))
    return _guarded(Source.from_bytes(data, filename, path), config, root)


def _guarded(source: Source, config: Config, root: Path | None) -> Report:
    try:
        from galint.engine import lint

        return with_severities(with_room(lint, source, config, root), config)
    except Exception as error:
        return Report(files=1, internal_errors=[internal_error(source.filename, error)])


def internal_error(filename: str, error: BaseException) -> str:
    """One line that says what broke and where, fit for a bug report."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())[:200]
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{filename}: GA999 internal error: {what}{place}; please report this line with the file"


def with_severities(report: Report, config: Config) -> Report:
    """The report with the configuration's severity overrides applied."""
    if config.severity:
        report.diagnostics = [_override(diagnostic, config) for diagnostic in report.diagnostics]
        report.elsewhere = [_override(diagnostic, config) for diagnostic in report.elsewhere]
    return report


def _override(diagnostic: Diagnostic, config: Config) -> Diagnostic:
    rule = _RULE_BY_CODE.get(diagnostic.code)
    severity = config.severity_of(rule) if rule is not None else diagnostic.severity
    return diagnostic if severity == diagnostic.severity else replace(diagnostic, severity=severity)


def run(
    paths: Sequence[str],
    resolver: Resolver,
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    cached: bool = False,
) -> Outcome:
    """Lint every file that `paths` mean. Raises ConfigError; files that cannot be read become problems.

    With `cached`, results are taken from and stored in each project's cache folder.
    """
    outcome = Outcome()
    for target in find(paths, resolver):
        if isinstance(target, SourceError):
            outcome.problems.append(str(target))
        else:
            outcome.targets.append(target)
    count = jobs if jobs is not None else min(os.cpu_count() or 1, _MAX_JOBS)
    sizes: list[tuple[int, Target]] = []
    for target, verdict in zip(outcome.targets, scan(outcome.targets, count, known=cached, on_hit=_load), strict=True):
        if isinstance(verdict, str):
            outcome.problems.append(verdict)
            continue
        outcome.report.files += 1
        if verdict and not (cached and _answered(target, outcome)):
            sizes.append((verdict, target))
    # The longest files first, so that no worker is left alone with one at the end.
    work = [target for _, target in sorted(sizes, key=lambda item: -item[0])]
    size = sum(length for length, _ in sizes)
    pooled = len(work) > 1 and count > 1 and (size >= _POOL_FROM_BYTES if jobs is None else True)
    lint_one = _lint_and_store if cached else _lint_target
    with seldom():
        results = _pooled(lint_one, work, count) if pooled else map(lint_one, work)
        _collect(results, len(work), outcome, progress)
    return outcome


def run_text(data: bytes, filename: str, resolver: Resolver) -> Outcome:
    """Lint standard input as if it were the file `filename`. Raises ConfigError and SourceError."""
    from galint.discovery import forced_out, project_root

    outcome = Outcome()
    path = Path.cwd() / filename
    config = resolver.for_file(path)
    if config.force_exclude and forced_out(path, False, config, Path.cwd()):
        return outcome
    outcome.report = lint_bytes(data, filename, config, path, project_root(path.parent, None))
    outcome.report.files = 1
    outcome.problems += outcome.report.internal_errors
    outcome.texts[filename] = data
    outcome.report.diagnostics.sort(key=_order)
    return outcome


def _lint_target(target: Target) -> Report | str:
    """One file's report, or the problem that kept it from being read."""
    try:
        data = read_bytes(target.path, target.filename)
        return lint_bytes(data, target.filename, target.config, target.path, target.root)
    except SourceError as error:
        return str(error)
    finally:
        tidy()


def _collect(results: Iterable[Report | str], total: int, outcome: Outcome, progress: Progress | None) -> None:
    for done, result in enumerate(results, 1):
        if isinstance(result, str):
            outcome.problems.append(result)
        else:
            result.files = 0  # counted when the file was read
            outcome.report.extend(result)
        if progress is not None:
            progress(done, total)
    outcome.problems += outcome.report.internal_errors
    outcome.report.gather({target.filename for target in outcome.targets})
    outcome.report.diagnostics.sort(key=_order)
    outcome.report.not_understood.sort(key=lambda loop: (loop.filename, loop.cell or 0, loop.span))


def _order(diagnostic: Diagnostic) -> tuple[object, ...]:
    return (diagnostic.filename, diagnostic.cell or 0, diagnostic.span, diagnostic.code, diagnostic.message)


def _lint_and_store(target: Target) -> Report | str:
    """As `_lint_target`, and the result goes to the cache."""
    from galint.cache import Cache

    try:
        data = read_bytes(target.path, target.filename)
        report = lint_bytes(data, target.filename, target.config, target.path, target.root)
    except SourceError as error:
        return str(error)
    cache = Cache(cache_folder(target.config, target.root))
    cache.put(cache.key(data, target.filename, target.path, target.root, target.config), report)
    return report


def _answered(target: Target, outcome: Outcome) -> bool:
    """Whether nothing is left to do for a file: the cache knows it, or it only looked as if it might.

    Finding a file in the cache costs less than telling that it matters, and only files that matter are in there.
    """
    from galint.cache import Cache

    try:
        data = read_bytes(target.path, target.filename)
    except SourceError as error:  # it went between two looks
        outcome.problems.append(str(error))
        return True
    cache = Cache(cache_folder(target.config, target.root))
    known = cache.get(cache.key(data, target.filename, target.path, target.root, target.config))
    if known is None:
        return not may_matter(data)
    known.files = 0
    outcome.report.extend(known)
    return True


def _pooled(lint_one: Callable[[Target], Report | str], work: list[Target], jobs: int) -> Iterable[Report | str]:
    from galint.pool import run_pool

    _load()
    return run_pool(lint_one, work, jobs, _killed)


def _load() -> None:
    """Import what an analysis needs here, where forked workers share it."""
    import galint.engine  # noqa: F401


def _killed(target: Target) -> str:
    return f"{target.filename}: the worker process that analysed it was killed"


def cache_folder(config: Config, folder: Path) -> Path:
    """Where results of a project are cached: `cache-dir`, or `.galint_cache` beside its configuration."""
    return config.cache_dir or (config.root or folder) / ".galint_cache"
