"""Writing results: standard output, `--output-file`, the texts for excerpts, and the progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from galint.driver import Outcome
from galint.errors import ConfigError, GalintError

READER_GONE = 141
"""Exit code when nobody reads the output any more, as after SIGPIPE."""


def write(text: str, file: Path | None) -> None:
    """Write to `file` (replaced as a whole, never left half-written) or to standard output."""
    # A lone surrogate (from a file name that is not UTF-8) becomes `\udcXX`, which is also valid JSON.
    if file is None:
        encoding = sys.stdout.encoding or "utf-8"
        data = text.encode(encoding, "backslashreplace")
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            try:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            except BrokenPipeError:
                # click would make it exit code 1, which says that something was found.
                raise click.exceptions.Exit(READER_GONE) from None
        else:
            sys.stdout.write(data.decode(encoding))
        return
    write_file(file, text.encode("utf-8", "backslashreplace"))


def write_file(file: Path, data: bytes) -> None:
    """Replace `file` by `data` in one step. Raises ConfigError."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        if file.exists() and not file.is_file():  # /dev/stdout, a FIFO: nothing to replace
            file.write_bytes(data)
            return
        temporary.write_bytes(data)
        temporary.replace(file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


def warn(text: str) -> None:
    """One line on standard error."""
    line = " ".join(text.splitlines())
    sys.stderr.write(f"galint: {line}\n".encode(errors="backslashreplace").decode())


class Texts:
    """The lines of files and notebook cells for excerpts, read once when first asked for."""

    def __init__(self, outcome: Outcome) -> None:
        self._given = outcome.texts
        self._paths = {target.filename: target.path for target in outcome.targets}
        self._known: dict[tuple[str, int | None], Sequence[str]] = {}

    def lines(self, filename: str, cell: int | None) -> Sequence[str]:
        """The lines of a file, or of a notebook's code cell; empty when it cannot be read any more."""
        key = (filename, cell)
        if key not in self._known:
            try:
                self._known[key] = self._load(filename, cell)
            except GalintError:
                self._known[key] = ()
        return self._known[key]

    def _load(self, filename: str, cell: int | None) -> Sequence[str]:
        from galint.source import Source, read_bytes

        if filename in self._given:
            data = self._given[filename]
        else:
            data = read_bytes(self._paths.get(filename, Path(filename)), filename)
        if cell is not None:
            from galint import notebook

            book = notebook.load(data, filename)
            return book.cell_lines(cell) if book is not None else ()
        return Source.from_bytes(data, filename).lines


class Progress:
    """A bar on standard error, once a run has taken a while and a person is watching."""

    _AFTER = 0.7
    """Seconds of work before the bar appears."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr.isatty()
        self._bar: object | None = None
        self._started: float | None = None

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` files are analysed."""
        if not self._wanted:
            return
        import time

        now = time.monotonic()
        if self._started is None:
            self._started = now
        if self._bar is None:
            if now - self._started < self._AFTER or done >= total:
                return
            self._bar = _new_bar(total)
        _update(self._bar, done)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            _stop(self._bar)


def _new_bar(total: int) -> object:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("Analysing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, auto_refresh=False,
    )  # fmt: skip
    bar.start()
    bar.add_task("files", total=total)
    return bar


def _update(bar: object, done: int) -> None:
    from rich.progress import Progress

    assert isinstance(bar, Progress)
    bar.update(bar.task_ids[0], completed=done, refresh=True)


def _stop(bar: object) -> None:
    from rich.progress import Progress

    assert isinstance(bar, Progress)
    bar.stop()
