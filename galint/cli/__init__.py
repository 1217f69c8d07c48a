"""The command line: arguments, output and exit codes, nothing else."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit: 0 clean, 1 findings, 2 a mistake or a file that could not be linted."""
    # A shell may start us with a stream closed (`galint >&-`): what is written there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        from galint.cli.app import cli

        code = _run(cli, args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The reader is gone (`galint | head`): say nothing.
        _forget_output()
        code = 141
    raise SystemExit(code)


def _forget_output() -> None:
    """Keep the interpreter's own flush quiet: what could not be written is lost."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _run(cli: object, args: Sequence[str] | None) -> int:
    import click

    from galint.errors import GalintError

    assert isinstance(cli, click.Command)
    try:
        result = cli.main(list(args) if args is not None else None, prog_name="galint", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        sys.stderr.write(f"galint: {' '.join(error.format_message().split())}\n")
        return 2
    except GalintError as error:
        sys.stderr.write(f"galint: {error}\n")
        return 2
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            raise
        _forget_output()
        sys.stderr.write(f"galint: standard output cannot be written ({error.strerror})\n")
        return 2
