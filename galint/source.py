"""Text of one file: decoding, the line index, and spans in rows and code-point columns."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from galint.errors import SourceError

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_SMALL = 16 << 20
"""Bytes that a configuration, ignore or baseline file may have."""


class Span(NamedTuple):
    """A half-open stretch of text: rows are 1-based, columns are 0-based code points."""

    row: int
    column: int
    end_row: int
    end_column: int


@dataclass(frozen=True)
class Source:
    """One file as it is linted: a name to show, the decoded text (line endings kept, no BOM).

    `path` is where the file really lies, None for standard input and unsaved buffers; `cells` are the first rows of a
    notebook's code cells.
    """

    filename: str
    text: str
    path: Path | None = None
    encoding: str = "utf-8"
    bom: bool = False
    cells: tuple[int, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes, filename: str, path: Path | None = None) -> Source:
        """Decode `data` as Python itself would (PEP 263).

        Raises SourceError where the declared or default encoding does not fit.
        """
        text, encoding, bom = decode(data, filename)
        return cls(filename, text, path, encoding, bom)

    @classmethod
    def read(cls, path: Path, filename: str | None = None) -> Source:
        """Read and decode the file at `path`. Raises SourceError."""
        name = filename if filename is not None else str(path)
        return cls.from_bytes(read_bytes(path, name), name, path)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends, split where Python splits them (not at form feeds)."""
        return split_lines(self.text)

    def encode(self, text: str) -> bytes:
        """The bytes to write for `text`, in the file's own encoding and with its BOM."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    def offset(self, row: int, column: int) -> int:
        """Index into `text` of a 1-based row and 0-based column, clamped to the text."""
        if row < 1:
            return 0
        starts = self._starts
        if row > len(starts):
            return len(self.text)
        return min(starts[row - 1] + min(column, len(self.lines[row - 1])), len(self.text))

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]


_BACKPORTS = frozenset({"future_fstrings", "future_annotations"})
"""Encodings of the packages `future-fstrings` and `future-annotations`, which brought new syntax to old Pythons: UTF-8."""


def read_bytes(path: Path | str, filename: str) -> bytes:
    """The bytes of a regular file. Raises SourceError for FIFOs, directories and unreadable files."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            what = "is a directory" if os.path.isdir(path) else "is not a regular file"
            raise SourceError(f"{filename}: {what if os.path.exists(path) else 'does not exist'}")
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except (FileNotFoundError, NotADirectoryError):
        raise SourceError(f"{filename}: does not exist") from None
    except OSError as error:
        raise SourceError(f"{filename}: cannot be read ({error.strerror or error})") from None


def read_small(path: Path) -> bytes:
    """The bytes of a file beside the sources, which a repository may have made a FIFO or a link to a device.

    Raises OSError when it is no regular file, has more than 16 MiB or cannot be read.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if found.st_size > _SMALL:
        raise OSError(errno.EFBIG, "larger than 16 MiB")
    return path.read_bytes()


def decode(data: bytes, filename: str) -> tuple[str, str, bool]:
    """Decode by BOM, coding line or UTF-8: (text, encoding, had a BOM). Raises SourceError."""
    bom = data.startswith(codecs.BOM_UTF8)
    if bom:
        data = data[len(codecs.BOM_UTF8) :]
    declared = _declared(data)
    encoding = "utf-8"
    if declared is not None and declared.replace("-", "_").lower() not in _BACKPORTS:
        try:
            encoding = codecs.lookup(declared).name
        except LookupError:
            raise SourceError(f"{filename}: declares the unknown encoding `{declared}`") from None
        if bom and encoding not in ("utf-8", "utf-8-sig"):
            raise SourceError(f"{filename}: has a UTF-8 byte order mark but declares `{declared}`")
        if encoding == "utf-8-sig":
            encoding = "utf-8"
    if b"\0" in data:
        raise SourceError(f"{filename}: contains NUL bytes; it is not Python source")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{filename}: line {row} is not valid {encoding}") from None
    except LookupError:  # bytes-to-bytes codecs such as `hex` are found but do not decode text
        raise SourceError(f"{filename}: declares `{declared}`, which is not a text encoding") from None
    except (ValueError, OverflowError):
        raise SourceError(f"{filename}: is not valid {encoding}") from None
    return text, encoding, bom


def _declared(data: bytes) -> str | None:
    """The coding line's encoding, looked for in the first two lines as PEP 263 says."""
    for line in re.split(rb"\r\n|\r|\n", data[:4096], maxsplit=2)[:2]:
        if match := _CODING.match(line):
            return match.group(1).decode("ascii", "replace")
        if not _BLANK.match(line):
            return None
    return None


def split_lines(text: str) -> list[str]:
    """Split at \\n, \\r\\n and \\r only, as Python's tokenizer does; never an empty list."""
    return _NEWLINE.split(text)


def utf16_column(line: str, column: int) -> int:
    """Code-point column → UTF-16 code units, as the language server protocol counts."""
    return len(line[:column].encode("utf-16-le", "surrogatepass")) // 2


def column_from_utf16(line: str, units: int) -> int:
    """UTF-16 code units → code-point column; a place inside a surrogate pair is its start."""
    seen = 0
    for column, char in enumerate(line):
        seen += 2 if ord(char) > 0xFFFF else 1
        if seen > units:
            return column
    return len(line)


def byte_column(line: str, column: int) -> int:
    """Code-point column → UTF-8 bytes, as `ast` and UTF-8 clients count."""
    return len(line[:column].encode("utf-8", "surrogatepass"))


def column_from_bytes(line: str, offset: int) -> int:
    """UTF-8 bytes → code-point column; a place inside a character is its start."""
    return len(line.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))
