"""Replaces a file in one step: all of the new text or all of the old, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from galint.errors import SourceError


def replace_file(path: Path, old: bytes, new: bytes, filename: str = "") -> None:
    """Put `new` where the file at `path` (a symlink's target) holds `old`, with its mode and owner.

    Raises SourceError, the file untouched, when it is read-only, has changed since `old` was read, or cannot
    be written.
    """
    name = filename or str(path)
    temporary: str | None = None
    try:
        real = path.resolve(strict=True)
        status = real.stat()
        if not stat.S_IMODE(status.st_mode) & 0o222 or not os.access(real, os.W_OK):
            raise SourceError(f"{name}: is read-only; not fixed")
        handle, temporary = tempfile.mkstemp(prefix=f".{real.name[:100]}.", suffix=".galint", dir=real.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):  # only root may give a file away; the mode is what counts
                os.chown(temporary, status.st_uid, status.st_gid)
                os.chmod(temporary, stat.S_IMODE(status.st_mode))
        if real.read_bytes() != old:
            raise SourceError(f"{name}: changed while it was analysed; not fixed")
        os.replace(temporary, real)
        temporary = None
    except OSError as error:
        raise SourceError(f"{name}: cannot be written ({error.strerror or error}); not fixed") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
