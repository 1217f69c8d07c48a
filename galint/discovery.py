"""Which files to lint: paths, excludes, .gitignore, and the byte pre-filter before any parsing."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from galint.config.loading import Resolver
from galint.config.model import Config
from galint.errors import ConfigError, SourceError
from galint.source import read_small

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".py", ".ipynb")
"""What a folder is searched for; a file named on the command line may have any suffix."""

GRADIENT_WORDS = (b"backward", b"zero_grad", b".accumulate", b"scaler", b"update_params")
"""A file with none of these has no loop that galint could speak about."""
STEP_WORDS = (b".step", b"step(", b"_step", b".accumulate", b"update_grad", b"Trainer)", b"update_params")
"""… it also needs one of these, by which a gradient gets applied …"""
FRAMEWORK_WORDS = (
    b"torch", b"lightning", b"accelerat", b"deepspeed", b"transformers", b"fabric", b"apex", b"timm", b".step(",
)  # fmt: skip
"""… and one of these (`.step(` for loops whose imports come through a project's own module)."""

_GRADIENT_CALLS = (
    (re.compile(rb"backward\s{0,20}\("), re.compile(rb"\.\s{0,20}(?:manual_)?\Z")),
    (re.compile(rb"zero_grad\s{0,20}\("), re.compile(rb"(?<!\w)\Z")),
    (re.compile(rb"accumulate\s{0,20}\("), re.compile(rb"\.\s{0,20}\Z")),
    (re.compile(rb"scaler\w{0,40}\s{0,20}\("), None),
    (re.compile(rb"update_params\s{0,20}\("), re.compile(rb"\.\s{0,20}\Z")),
)
"""Calls that speak of gradients, and what stands before each: patterns that begin with a word are searched fast."""
_WRAP_WORDS = (b"DDP(", b"FSDP(", b"DataParallel", b"fully_shard(")
_WRAP_CALL = re.compile(
    rb"(?<!class )(?<!def )\b(?:DistributedDataParallel|DDP|FullyShardedDataParallel|FSDP|fully_shard)\(\s*(?:module\s*=\s*)?\w"
)
_HELPER = re.compile(rb"(?<![\w.])(?<!def )((?:\w{0,40}_)?backward(?:_\w{0,40})?)\s{0,20}\(")
_STEP = re.compile(rb"step(?:\w{0,40}\s{0,20}(\()|\b)")
"""A name that ends so, called or not. What stands before it is looked at by hand: a pattern would try at each word."""
_OTHER_STEP = re.compile(rb"update_grad|\.\s{0,20}(?:accumulate|update_params)\s{0,20}\(")
_OWN_TRAINER = re.compile(rb"\bclass\s+\w+\([\w., ]*Trainer(?:\[[\w., ]*\])?\)")
_LONGEST_NAME = 80
_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_TEXTS_AND_COMMENTS = re.compile(
    rb"#[^\r\n]*|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    rb"|\"(?:[^\"\\\r\n]|\\.)*\"|'(?:[^'\\\r\n]|\\.)*'",
    re.DOTALL,
)

_PROJECT_MARKS = ("pyproject.toml", "galint.toml", ".git", ".hg", "setup.py", "setup.cfg")


@dataclass(frozen=True, slots=True)
class Target:
    """A file to lint: its absolute path, its name as shown, its settings, and the folder it may read imports from."""

    path: Path
    filename: str
    config: Config
    root: Path


_OTHER_FRAMEWORKS = (b"paddle", b"mindspore", b"jittor")
_OTHER_IMPORT = re.compile(rb"^[ \t]*(import|from)[ \t]+(" + b"|".join(_OTHER_FRAMEWORKS) + rb")\b", re.M)


def may_matter(data: bytes) -> bool:
    """False when the bytes lack a gradient, a step or a framework word: such a file is never parsed.

    Words decide for most files; only where all kinds occur, slower patterns ask for calls, first anywhere and then
    outside texts and comments (a library's documentation shows many loops).
    """
    words = _has_words(data)
    if not (words and _calls(data)) and not _launches(data) and not _hands_on(data):
        return False
    if b"import torch" not in data and b"from torch" not in data and _of_another_framework(data):
        return False  # whose `step` and `backward` may mean something else
    if data.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"{":  # a notebook: its code stands in texts
        return True
    code = _TEXTS_AND_COMMENTS.sub(b"''", data)
    return (words and _calls(code)) or _launches(code) or _hands_on(code)


def _of_another_framework(data: bytes) -> bool:
    return any(word in data for word in _OTHER_FRAMEWORKS) and _OTHER_IMPORT.search(data) is not None


def may_be_known(data: bytes) -> bool:
    """False where `may_matter` is certainly false, at a fraction of its cost: worth a look into the cache."""
    if b"torch" in data and (any(w in data for w in _WRAP_WORDS) or (b"backward" in data and b"optim" in data)):
        return True
    return _has_words(data)


def _has_words(data: bytes) -> bool:
    # Each search reads the whole file: the one that rules out most files comes first.
    stepped = b"step" in data or b".accumulate" in data or b"update_grad" in data
    if b"zero_grad" in data and b"backward" in data:  # the step, or the import of torch, may stand in another file
        return stepped or any(word in data for word in FRAMEWORK_WORDS)
    return stepped and all(any(word in data for word in kind) for kind in (GRADIENT_WORDS, STEP_WORDS, FRAMEWORK_WORDS))


def _launches(data: bytes) -> bool:
    """True for a launching file: what it wraps trains in a file that it imports."""
    return b"torch" in data and any(w in data for w in _WRAP_WORDS) and _WRAP_CALL.search(data) is not None


def _hands_on(data: bytes) -> bool:
    """True for a file that calls a function with `backward` in its name which another file defines, for some optimizer."""
    if not (b"backward" in data and b"optim" in data and b"torch" in data):
        return False
    called = {match[1] for match in _HELPER.finditer(data)}
    return any(re.search(rb"\bdef\s+" + name + rb"\s*\(", data) is None for name in called)


def _calls(data: bytes) -> bool:
    return _has_gradient_call(data) and (_has_step_call(data) or _clears_and_runs(data))


def _has_step_call(data: bytes) -> bool:
    """True where something with `step` in its name is called and not defined, or is an attribute; or its relatives."""
    for found in _STEP.finditer(data):
        start = found.start()
        before = data[max(start - _LONGEST_NAME - 10, 0) : start]
        outside = before.rstrip(_WORD)
        if found[1] is not None and len(before) - len(outside) <= _LONGEST_NAME and not outside.endswith(b"def "):
            return True
        after = data[start + 4 : start + 5]
        if len(outside) == len(before) and before.rstrip().endswith(b".") and (not after or after not in _WORD):
            return True
    return _OTHER_STEP.search(data) is not None or (b"Trainer" in data and _OWN_TRAINER.search(data) is not None)


def _clears_and_runs(data: bytes) -> bool:
    """True where gradients are computed and cleared: what steps may be a helper of another file, by any name."""
    return all(_has_gradient_call(data, kind) for kind in _GRADIENT_CALLS[:2])


def _has_gradient_call(data: bytes, *kinds: tuple[re.Pattern[bytes], re.Pattern[bytes] | None]) -> bool:
    for call, before in kinds or _GRADIENT_CALLS:
        for match in call.finditer(data):
            start = match.start()
            if before is None or before.search(data, max(start - 40, 0), start):
                return True
    return False


def find(paths: Sequence[str], resolver: Resolver, cwd: Path | None = None) -> Iterator[Target | SourceError]:
    """All files that `paths` mean, sorted within each folder, each one once.

    Yields a SourceError for a folder that cannot be listed and for a file that is no regular file.
    Raises ConfigError for a path that does not exist and for a broken configuration.
    """
    here = cwd or Path.cwd()
    starts = [Path(os.path.normpath(here / path)) for path in paths]
    for path, start in zip(paths, starts, strict=True):
        if not os.path.lexists(start):
            raise ConfigError(f"{path}: no such file or folder")
    seen: set[Path] = set()
    for start in starts:
        for item in _start(start, resolver, here):
            if isinstance(item, Target):
                if item.path in seen:
                    continue
                seen.add(item.path)
            yield item


def _start(start: Path, resolver: Resolver, here: Path) -> Iterator[Target | SourceError]:
    is_folder = start.is_dir()
    config = resolver.for_folder(start) if is_folder else resolver.for_file(start)
    if config.force_exclude and forced_out(start, is_folder, config, here):
        return
    if is_folder:
        yield from _walk(start, resolver, here)
    else:
        yield Target(start, show(start, here), config, project_root(start.parent, None))


def forced_out(path: Path, is_folder: bool, config: Config, here: Path) -> bool:
    """Whether excludes or .gitignore leave out a path that the command line names (`force-exclude`)."""
    top = config.root or here
    if config.excludes_above(path, top):
        return True
    return config.respect_gitignore and _Ignores.above(path).ignores_above(path, is_folder)


def _walk(start: Path, resolver: Resolver, here: Path) -> Iterator[Target | SourceError]:
    """Depth first without recursion; folders that are symbolic links are not entered, so no walk is endless."""
    # The mark of a project above is handed down: asking for it anew in each folder asks the disk for each parent.
    stack: list[tuple[Path, _Ignores, Path]] = [(start, _Ignores.above(start), project_root(start.parent, start))]
    real_start = os.path.realpath(start)
    while stack:
        current, rules, root = stack.pop()
        try:
            with os.scandir(current) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield SourceError(f"{show(current, here)}: cannot be listed ({error.strerror or error})")
            continue
        config = resolver.for_folder(current)
        if config.respect_gitignore and any(entry.name == ".gitignore" for entry in entries):
            rules = rules.with_file(current, current / ".gitignore")
        if any(entry.name in _PROJECT_MARKS for entry in entries):
            root = current
        folders: list[tuple[Path, _Ignores, Path]] = []
        prefix = "" if current == here else show(current, here).rstrip("/") + "/"
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.name.endswith(SUFFIXES):
                continue
            path = current / entry.name
            if config.excludes(path) or (config.respect_gitignore and rules.ignores(path, is_folder)):
                continue
            if is_folder:
                folders.append((path, rules, root))
                continue
            if entry.is_symlink() and not _stays_inside(path, real_start):
                continue
            try:
                # What the listing says of a plain file needs no further question to the disk.
                mode = stat.S_IFREG if entry.is_file(follow_symlinks=False) else entry.stat().st_mode
            except OSError as error:
                yield SourceError(f"{show(path, here)}: cannot be read ({error.strerror or error})")
                continue
            if stat.S_ISREG(mode):
                yield Target(path, prefix + entry.name, config, root)
            elif not stat.S_ISDIR(mode):
                yield SourceError(f"{show(path, here)}: is not a regular file")
        stack.extend(reversed(folders))


def _stays_inside(path: Path, real_start: str) -> bool:
    real = os.path.realpath(path)
    return real == real_start or real.startswith(real_start.rstrip(os.sep) + os.sep)


def project_root(folder: Path, limit: Path | None) -> Path:
    """The folder whose files may be read as imports: the nearest one with a project's mark.

    Without a mark it is `limit` (the folder that the command line names), or `folder` itself.
    """
    for candidate in (folder, *folder.parents):
        if any(os.path.lexists(candidate / mark) for mark in _PROJECT_MARKS):
            return candidate
    return limit or folder


def show(path: Path, here: Path) -> str:
    """`path` relative to the current folder where it lies below it, with forward slashes."""
    try:
        return path.relative_to(here).as_posix()
    except ValueError:
        return path.as_posix()


@dataclass(frozen=True, slots=True)
class _Ignores:
    """The .gitignore files in force at a folder, the deepest last."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, path: Path) -> _Ignores:
        """What the repository that holds `path` ignores, from its top down to the folder above `path`."""
        top = next((parent for parent in (path, *path.parents) if os.path.lexists(parent / ".git")), None)
        rules = cls()
        if top is None:
            return rules
        rules = rules.with_file(top, top / ".git" / "info" / "exclude")
        for parent in reversed(path.parents):
            if parent == top or top in parent.parents:
                rules = rules.with_file(parent, parent / ".gitignore")
        return rules

    def with_file(self, folder: Path, file: Path) -> _Ignores:
        """These rules and those of `file`, if it can be read and says anything."""
        try:
            text = read_small(file).decode("utf-8", "replace")
        except OSError:
            return self
        lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        if not lines:
            return self
        from pathspec import GitIgnoreSpec

        try:
            return _Ignores((*self.specs, (folder, GitIgnoreSpec.from_lines(lines))))
        except ValueError:  # git skips a line that it cannot read; so do we
            good = [line for line in lines if _readable(line)]
            return _Ignores((*self.specs, (folder, GitIgnoreSpec.from_lines(good))))

    def ignores(self, path: Path, is_folder: bool) -> bool:
        """Whether this very entry is ignored; the deepest file that speaks of it decides."""
        for folder, spec in reversed(self.specs):
            try:
                relative = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
            except ValueError:
                continue
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return bool(verdict)
        return False

    def ignores_above(self, path: Path, is_folder: bool) -> bool:
        """Whether the entry or any folder above it is ignored."""
        if not self.specs:
            return False
        return self.ignores(path, is_folder) or any(self.ignores(parent, True) for parent in path.parents)


def _readable(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
