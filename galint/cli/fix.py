"""`--fix` and its companions: fixes applied to files or standard input, shown as diffs, or only attached."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from galint.cli.options import split
from galint.cli.output import warn, write
from galint.config.loading import Resolver
from galint.config.model import Config
from galint.config.selectors import expand
from galint.diagnostic import Diagnostic, Report
from galint.discovery import project_root
from galint.driver import Outcome, with_severities
from galint.errors import ConfigError, SourceError
from galint.render.style import counted
from galint.source import Source, read_bytes

_F = TypeVar("_F", bound=Callable[..., Any])

ATTACHING = frozenset({"json", "json-lines", "sarif", "rdjson", "lsp"})
"""Output formats that carry fixes, so that they are worth proving."""

_OPTIONS = (
    click.option("--fix", is_flag=True, help="Apply safe fixes; what remains is reported."),
    click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also fixes that change logs or cost."),
    click.option("--diff", is_flag=True, help="Write nothing: print the fixes as unified diffs, and what remains."),
    click.option("--fix-only", is_flag=True, help="Apply fixes and report nothing (implies --fix)."),
    click.option("--show-fixes", is_flag=True, help="Say which fixes there are, or which were applied."),
    click.option("--fixable", multiple=True, metavar="RULES", help="Fix these rules only."),
    click.option("--unfixable", multiple=True, metavar="RULES", help="Do not fix these rules."),
    click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 when something was fixed."),
    click.option("--add-ignore", is_flag=True, help="Write ignore comments for the findings and exit."),
)


@dataclass(frozen=True, slots=True)
class FixOptions:
    """The flags about fixing, as given."""

    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    fix_only: bool = False
    show_fixes: bool = False
    fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    exit_non_zero_on_fix: bool = False
    add_ignore: bool = False

    @property
    def applies(self) -> bool:
        """Whether fixes are to be made, on disk or in a diff."""
        return self.fix or self.fix_only or self.diff

    def wanted(self, output_format: str | None) -> bool:
        """Whether fixes are worth proving at all."""
        return self.applies or self.show_fixes or self.add_ignore or output_format in ATTACHING

    @property
    def codes(self) -> frozenset[str]:
        """The rules that may be fixed. Raises UnknownRule."""
        named = split(self.fixable) or ["ALL"]
        codes = frozenset[str]().union(*map(expand, named))
        return codes.difference(*map(expand, split(self.unfixable)))


def fix_options(function: _F) -> _F:
    """Adds the flags to a command; it gets them as one argument `fixing`."""
    names = ("fix", "unsafe_fixes", "diff", "fix_only", "show_fixes", "fixable", "unfixable", "exit_non_zero_on_fix",
             "add_ignore")  # fmt: skip

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, fixing=FixOptions(**{name: kwargs.pop(name) for name in names}), **kwargs)

    result: Any = wrapper
    for option in reversed(_OPTIONS):
        result = option(result)
    return result  # type: ignore[no-any-return]


@dataclass(slots=True)
class Done:
    """What fixing did. `diffs` and `stdin` (standard input as fixed) go to standard output."""

    applied: list[Diagnostic] = field(default_factory=list)
    diffs: str = ""
    stdin: bytes | None = None
    ignores: int = 0


@dataclass(frozen=True, slots=True)
class _Item:
    """One linted file that has findings. `path` is None for standard input."""

    filename: str
    data: bytes
    path: Path | None
    config: Config
    root: Path | None


def fix_outcome(outcome: Outcome, fixing: FixOptions, resolver: Resolver) -> Done:
    """Apply, show or attach fixes; `outcome` then holds what remains.

    Files that cannot be written become problems of the outcome. Raises ConfigError.
    """
    if fixing.add_ignore and fixing.applies:
        raise ConfigError("--add-ignore stands alone: it cannot be combined with --fix, --diff or --fix-only")
    codes = fixing.codes
    done = Done()
    by_file: dict[str, list[Diagnostic]] = {}
    for diagnostic in outcome.report.diagnostics:
        by_file.setdefault(diagnostic.filename, []).append(diagnostic)
    if not outcome.targets and (fixing.applies or fixing.add_ignore) and not fixing.diff:
        done.stdin = next(iter(outcome.texts.values()), b"")
    for item in _items(outcome, by_file, resolver):
        try:
            by_file[item.filename] = _one(item, by_file[item.filename], fixing, codes, outcome, done)
        except SourceError as error:
            outcome.problems.append(str(error))
    outcome.report.diagnostics = [d for found in by_file.values() for d in found]
    return done


def _items(outcome: Outcome, by_file: dict[str, list[Diagnostic]], resolver: Resolver) -> list[_Item]:
    """The files with findings; without targets, standard input under its name."""
    items: list[_Item] = []
    if not outcome.targets:
        for name in by_file:
            path = Path.cwd() / name
            root = project_root(path.parent, None)
            items.append(_Item(name, outcome.texts[name], None, resolver.for_file(path), root))
        return items
    for target in outcome.targets:
        if target.filename in by_file:
            try:
                data = read_bytes(target.path, target.filename)
            except SourceError as error:
                outcome.problems.append(str(error))
                continue
            items.append(_Item(target.filename, data, target.path, target.config, target.root))
    return items


def _one(
    item: _Item, found: list[Diagnostic], fixing: FixOptions, codes: frozenset[str], outcome: Outcome, done: Done
) -> list[Diagnostic]:
    """The findings of one file that remain."""
    from galint.fixes import allowed, attach, fix_source

    if item.filename.endswith(".ipynb"):
        return _notebook(item, found, fixing, codes, outcome, done)
    # Standard input is linted as if it were the file of its name, so its path takes part in per-file ignores.
    source = Source.from_bytes(item.data, item.filename, item.path or Path.cwd() / item.filename)
    if fixing.add_ignore:
        return _ignored(item, source, found, outcome, done)
    if not fixing.applies:
        report = attach(Report(list(found)), source, item.config, item.root)
        return [d if d.code in codes else replace(d, fix=None) for d in report.diagnostics]
    fixed = fix_source(source, item.config, item.root, allowed(fixing.unsafe_fixes, codes))
    new = source.encode(fixed.text)
    if fixed.applied:
        if fixing.diff:
            done.diffs += _diff(source, fixed.text)
        elif item.path is not None:
            _write(item, new)
        outcome.texts[item.filename] = new
        done.applied += fixed.applied
    if item.path is None and not fixing.diff:
        done.stdin = new
    return with_severities(fixed.report, item.config).diagnostics


def _write(item: _Item, new: bytes) -> None:
    from galint.errors import ParseError
    from galint.fixes.write import replace_file
    from galint.syntax import parse

    assert item.path is not None
    try:
        parse(Source.from_bytes(new, item.filename).text)
    except ParseError as error:
        raise SourceError(f"{item.filename}: the fixed text would not parse ({error}); not fixed") from None
    replace_file(item.path, item.data, new, item.filename)


def _ignored(item: _Item, source: Source, found: list[Diagnostic], outcome: Outcome, done: Done) -> list[Diagnostic]:
    from galint.fixes.ignoring import with_ignores

    text, count = with_ignores(source.text, found)
    if count and text != source.text:
        new = source.encode(text)
        if item.path is not None:
            _write(item, new)
        outcome.texts[item.filename] = new
        done.ignores += count
    if item.path is None:
        done.stdin = source.encode(text)
    return [d for d in found if d.code < "GA1"]


def _notebook(
    item: _Item, found: list[Diagnostic], fixing: FixOptions, codes: frozenset[str], outcome: Outcome, done: Done
) -> list[Diagnostic]:
    """The findings of a notebook that remain."""
    from galint.fixes import allowed, fix_notebook
    from galint.fixes.write import replace_file

    if fixing.add_ignore:
        return found
    may = allowed(fixing.unsafe_fixes, codes) if fixing.applies else _none
    fixed = fix_notebook(item.data, item.filename, item.path, item.config, item.root, may)
    if fixed.applied:
        if fixing.diff:
            done.diffs += _cell_diffs(item, fixed.data)
        elif item.path is not None:
            replace_file(item.path, item.data, fixed.data, item.filename)
        outcome.texts[item.filename] = fixed.data
        done.applied += fixed.applied
    remaining = with_severities(fixed.report, item.config).diagnostics
    if not fixed.applied:
        fixes = {(d.code, d.cell, d.span): d.fix for d in remaining}
        remaining = [replace(d, fix=fixes.get((d.code, d.cell, d.span))) for d in found]
    return [d if d.code in codes else replace(d, fix=None) for d in remaining]


def _none(diagnostic: Diagnostic) -> bool:
    return False


def _cell_diffs(item: _Item, new: bytes) -> str:
    from galint import notebook

    before, after = notebook.load(item.data, item.filename), notebook.load(new, item.filename)
    assert before is not None and after is not None
    out = ""
    for old, fresh in zip(before.cells, after.cells, strict=True):
        name = f"{item.filename}:cell {old.number}"
        for line in difflib.unified_diff(old.lines, fresh.lines, name, name, lineterm=""):
            out += f"{line}\n"
    return out


def _diff(source: Source, text: str) -> str:
    """A unified diff; a last line without its end says so, as `diff` does."""
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    out: list[str] = []
    for line in difflib.unified_diff(before, after, source.filename, source.filename):
        out.append(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n")
    return "".join(out)


def tell(done: Done, fixing: FixOptions) -> None:
    """Write the diffs, or standard input as fixed; say on standard error what was done."""
    if done.diffs:
        write(done.diffs, None)
    if done.stdin is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(done.stdin)
        sys.stdout.buffer.flush()
    if fixing.add_ignore:
        warn(f"silenced {counted(done.ignores, 'finding')}")
    if not fixing.applies:
        return
    if fixing.show_fixes or done.applied:
        warn(f"{'would fix' if fixing.diff else 'fixed'} {counted(len(done.applied), 'finding')}")
    if fixing.show_fixes:
        for diagnostic in done.applied:
            assert diagnostic.fix is not None
            place = f"{diagnostic.filename}:{diagnostic.span.row}"
            warn(f"  {place}: {diagnostic.code} {diagnostic.name}: {diagnostic.fix.message}")


def exit_code(done: Done, fixing: FixOptions, outcome: Outcome) -> int | None:
    """The exit code that fixing alone decides; None leaves it to what remains."""
    if outcome.problems and (fixing.fix_only or fixing.add_ignore):
        return 2
    if done.applied and (fixing.exit_non_zero_on_fix or fixing.diff) and not outcome.problems:
        return 1
    return 0 if fixing.fix_only or fixing.add_ignore else None
