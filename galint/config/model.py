"""The settings of one file's lint run, after all layers are merged."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from galint import patterns
from galint.config.selectors import Selection, expand, resolve
from galint.rule import Rule, Severity

DEFAULT_EXCLUDE: tuple[str, ...] = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pants.d",
    ".pytest_cache", ".pytype", ".ruff_cache", ".galint_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__",
    "__pypackages__", "_build", "build", "buck-out", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip
"""Folders that hold no code of the project itself; `exclude` replaces them, `extend-exclude` adds."""


@dataclass(frozen=True)
class Config:
    """All settings, immutable and picklable; `Config()` is what `--isolated` gives.

    `optimizers`, `scalers` and `loss_helpers` are dotted or plain names of a project's own classes and
    functions that galint shall treat as an optimizer, a gradient scaler, or a helper that returns a mean
    loss. `target_micro_batch` is the number of samples from which BatchNorm statistics count as good
    enough (None: GA501 speaks whatever the size).
    """

    selection: tuple[Selection, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    severity: tuple[tuple[str, Severity], ...] = ()
    fail_on: Severity = Severity.WARNING
    optimizers: tuple[str, ...] = ()
    scalers: tuple[str, ...] = ()
    loss_helpers: tuple[str, ...] = ()
    target_micro_batch: int | None = None
    baseline: Path | None = None
    cache_dir: Path | None = None
    root: Path | None = None
    """Folder of the configuration file; None when there is none."""
    source: Path | None = None
    """The configuration file itself; None when there is none."""

    @cached_property
    def codes(self) -> frozenset[str]:
        """The rules that run before per-file ignores."""
        return resolve(self.selection)

    def codes_for(self, path: Path | str | None) -> frozenset[str]:
        """The rules that run on `path` (None or standard input: no per-file ignores apply)."""
        if path is None or not self.per_file_ignores:
            return self.codes
        absolute = Path(path).absolute()
        ignored: set[str] = set()
        for pattern, selectors in self.per_file_ignores:
            negated = pattern.startswith("!")
            if (patterns.names_above(absolute, [pattern.removeprefix("!")], self.root) is None) == negated:
                ignored.update(*map(expand, selectors))
        return self.codes - ignored

    def severity_of(self, rule: Rule) -> Severity:
        """The rule's severity after overrides; the longest selector that names it wins."""
        return self._severities.get(rule.code, rule.severity)

    @cached_property
    def _severities(self) -> dict[str, Severity]:
        chosen: dict[str, tuple[int, Severity]] = {}
        for selector, severity in self.severity:
            codes = expand(selector)
            weight = -len(codes)
            for code in codes:
                if code not in chosen or weight >= chosen[code][0]:
                    chosen[code] = (weight, severity)
        return {code: severity for code, (_, severity) in chosen.items()}

    def excludes(self, path: Path) -> str | None:
        """The pattern that excludes this very file or folder (absolute), or None."""
        return patterns.names(path, (*self.exclude, *self.extend_exclude))

    def excludes_above(self, path: Path, top: Path) -> str | None:
        """The pattern that excludes the absolute `path` or a folder between it and `top`, or None."""
        return patterns.names_above(path, (*self.exclude, *self.extend_exclude), top)

    def fingerprint(self) -> str:
        """A text that changes whenever a setting that can change a finding does (the cache's key)."""
        outside = {
            "exclude",
            "extend_exclude",
            "respect_gitignore",
            "force_exclude",
            "fail_on",
            "baseline",
            "cache_dir",
        }
        return repr([(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in outside])
