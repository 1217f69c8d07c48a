"""The language server (extra `galint[lsp]`): findings, fixes, hovers and inlay hints while a loop is being written."""

from __future__ import annotations


def serve() -> int:
    """Speak the language server protocol on standard input and output until the client leaves.

    Returns the protocol's exit code: 0 after `shutdown`, 1 when the client left without a word.
    """
    import os
    import sys

    from galint.server.app import build

    server = build()
    try:
        server.start_io()
    finally:
        # The connection is closed and so is standard output: nobody flushes what is not there.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return 0 if server.said_goodbye else 1
