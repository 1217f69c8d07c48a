"""The language server (extra `galint[lsp]`): findings, fixes, hovers and inlay hints while a loop is being written."""

from __future__ import annotations

import contextlib
from typing import BinaryIO, cast


class _Out:
    """Standard output that is silent once the client has closed its end; its leaving ends the reading side."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Send bytes, if anybody is there."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._stream.write(data)
            self._stream.flush()

    def flush(self) -> None:
        """Every write is flushed."""

    def close(self) -> None:
        """Close, whatever could not be sent."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._stream.close()


def serve() -> int:
    """Speak the language server protocol on standard input and output until the client leaves.

    Returns the protocol's exit code: 0 after `shutdown`, 1 when the client left without a word.
    """
    import logging
    import os
    import sys

    from galint.server.app import build

    # What goes wrong is told to the client's log; the library's own tracebacks would only fill stderr.
    logging.getLogger("pygls").addHandler(logging.NullHandler())
    logging.getLogger("pygls").propagate = False
    server = build()
    try:
        server.start_io(stdout=cast(BinaryIO, _Out(sys.stdout.buffer)))
    finally:
        # The connection is closed and so is standard output: nobody flushes what is not there.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return 0 if server.said_goodbye else 1
