"""`galint server`: the language server on standard input and output."""

from __future__ import annotations

import click

from galint.errors import ConfigError


@click.command("server", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stdio", is_flag=True, help="Use standard input and output (always so; for clients that ask for it).")
def command(stdio: bool) -> int:
    """Run the language server for editors; it speaks LSP on standard input and output."""
    from importlib.util import find_spec

    if find_spec("pygls") is None:
        raise ConfigError("the language server needs pygls: install `galint[lsp]`")
    from galint.server import serve

    return serve()
