"""The command group: `galint PATHS` is `galint check PATHS`; each command is imported only when it runs."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("galint.cli.check:command", "Lint files and folders (the default command)."),
    "explain": ("galint.cli.explain:command", "Show what each training loop does, micro-batch by micro-batch."),
    "rule": ("galint.cli.rule:command", "Show a rule's page."),
    "clean": ("galint.cli.clean:command", "Remove the result cache."),
    "server": ("galint.cli.server:command", "Run the language server for editors."),
    "confirm": ("galint.cli.confirm:command", "Run the loops behind findings on a tiny model and measure them."),
    "trace": ("galint.trace.command:trace", "Run a training script and measure what each step applies."),
    "replay": ("galint.trace.command:replay", "Run one window again, as it is and as the large batch."),
    "experiment": ("galint.trace.command:experiment", "Measure what a fault costs on a small model."),
}
"""Command → where its click command is (module:name), and its line in `--help`."""


class LazyGroup(click.Group):
    """A group whose first word may be a path or a flag of `check`, and which imports commands on use."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `check` where the first argument names no command."""
        if not args or (args[0] not in COMMANDS and args[0] not in ("--help", "-h", "--version", "-V")):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and return it."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from galint import __version__

        click.echo(f"galint {__version__}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V", "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version."
)
def cli() -> None:
    """galint finds the mistakes by which gradient accumulation silently trains something else.

    `galint PATHS…` is `galint check PATHS…`; without paths it checks the current folder.
    Exit codes: 0 no findings, 1 findings, 2 a mistake in the call or a file that could not be linted.
    """
