"""The command line: what people type.

Features declare their commands, and the table adds those of no feature: the name of a command, what it promises, and
where it lives. Its module is imported when the command is used and not before, so `outlive --help` stays fast.
"""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from outlive import __version__
from outlive._features import FEATURES
from outlive._kernel.feature import CliCommand

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
NOT_WRITTEN = 74
"""The exit code if standard output does not take the answer, as `sysexits.h` has it."""
UNWRITTEN = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}
"""The errors of a full disk, of a limit and of a terminal that is gone."""


DOORS: dict[str, CliCommand] = {
    "demo": CliCommand(
        "Develop", "Kill a worker in the middle of a charge and watch another one finish it.", "outlive.cli.demo"
    ),
    "dev": CliCommand(
        "Develop",
        "Run a program while you write it: worker, API and dashboard on this machine, with reload.",
        "outlive.cli.dev",
    ),
    "check": CliCommand("Develop", "Find what breaks the replay of workflows, in their source.", "outlive.cli.check"),
    "completion": CliCommand(
        "Develop",
        "Print a script that lets a shell complete commands, options and their values.",
        "outlive.cli.completion",
    ),
    "worker": CliCommand(
        "Run", "Run the workflows of APP, and the flows of the store, until asked to stop.", "outlive.cli.worker"
    ),
    "serve": CliCommand(
        "Run", "Serve the HTTP API of a store, and the dashboard, until asked to stop.", "outlive.cli.serve"
    ),
    "doctor": CliCommand(
        "Look and repair",
        "Look for what is wrong: versions, settings, the store, and what stands still.",
        "outlive.cli.doctor",
    ),
    "config": CliCommand(
        "Operate", "Show the settings and where each comes from, and find all mistakes in them.", "outlive.cli.config"
    ),
    "migrate": CliCommand("Store", "Bring the schema of a store up to this release.", "outlive.cli.migrate"),
}
"""The commands of no feature: they start processes, and look at settings and stores."""
COMMANDS: dict[str, CliCommand] = {
    **DOORS,
    **{name: command for feature in FEATURES for name, command in feature.commands.items()},
}
SECTIONS = ("Develop", "Run", "Look and repair", "Operate", "Store")
"""The sections of `outlive --help`."""


class UnusableFile(click.ClickException):
    """A file that was named cannot be read or written; exit code 2."""

    exit_code = click.UsageError.exit_code


class LazyGroup(click.Group):
    """A group that knows its commands from a table and imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None if the table does not have it."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command), f"{entry.module} has no command {cmd_name}"
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; bytes that are not text are refused here, for all commands: nothing can keep or send
        them."""
        for word in args:
            try:
                word.encode()
            except UnicodeEncodeError:
                raise click.UsageError(f"{word!a} is not UTF-8; write it again in a terminal that is", ctx) from None
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; for a word that is none, say which one may be."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = self._near(ctx, args[0])
            if not near:
                raise
            raise click.UsageError(f"{error.message.rstrip('.')}; is it `outlive {near}`?", ctx) from error

    def _near(self, ctx: click.Context, word: str) -> str:
        if near := get_close_matches(word, COMMANDS, 1):
            return near[0]
        runs = self.get_command(ctx, "runs")
        return f"runs {word}" if isinstance(runs, click.Group) and word in runs.list_commands(ctx) else ""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C has one exit code, also while the command is imported or reads what it was given.
        A file that cannot be read or written is one line, and a reader that has read enough ends the command well."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            if not _has_read_enough():
                raise
            sys.exit(0)
        except OSError as error:
            if error.filename is None:  # A bug.
                raise
            raise UnusableFile(f"{error.filename} cannot be used: {error.strerror}") from error

    def main(self, *args: Any, **options: Any) -> Any:
        """The whole program; output that a full disk does not take is one line."""
        try:
            return super().main(*args, **options)
        except OSError as error:
            if error.errno not in UNWRITTEN or error.filename is not None:
                raise
            # Python writes once more what is left, when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            click.echo(f"Error: the answer cannot be written: {error.strerror}; the command may be done", err=True)
            sys.exit(NOT_WRITTEN)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, in their sections, from the table alone."""
        width = max(map(len, COMMANDS))
        for section in SECTIONS:
            entries = [(name, entry) for name, entry in COMMANDS.items() if entry.section == section]
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), entry.promise) for name, entry in entries])


def _has_read_enough() -> bool:
    """Whether the reader of standard output is gone, as `head -1` is after a line; another pipe may have closed."""
    try:
        os.write(sys.stdout.fileno(), b"\n")  # A flush does not raise twice.
    except BrokenPipeError:
        # Python writes once more what is left, when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="outlive %(version)s")
def main() -> None:
    """Durable workflows: ordinary async Python that survives crashes."""
    from outlive.cli.terminal import guarded

    sys.stdout = guarded(sys.stdout)
