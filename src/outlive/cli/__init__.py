"""The command line: what people type.

A command is one line in its section of the table: its name, what it promises, and where it lives. Its module is
imported when the command is used and not before, so `outlive --help` stays fast however many commands there are.
"""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from outlive import __version__

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
NOT_WRITTEN = 74
"""The exit code if standard output does not take the answer, as `sysexits.h` has it."""
UNWRITTEN = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}
"""The errors of a full disk, of a limit and of a terminal that is gone."""


class Entry(NamedTuple):
    """One command before it is imported."""

    promise: str
    """The line of `outlive --help` about it."""
    module: str
    """Where it lives; the command has the name of its table entry, with '_' for '-'."""


DEVELOP: dict[str, Entry] = {
    "demo": Entry("Kill a worker in the middle of a charge and watch another one finish it.", "outlive.cli.demo"),
    "dev": Entry(
        "Run a program while you write it: worker, API and dashboard on this machine, with reload.", "outlive.cli.dev"
    ),
    "check": Entry("Find what breaks the replay of workflows, in their source.", "outlive.cli.check"),
    "check-deploy": Entry(
        "Replay the open runs of a store with new code, before it is deployed.", "outlive.cli.deploy"
    ),
    "flows": Entry("Check, test, run and publish flows.", "outlive.cli.flows"),
    "completion": Entry(
        "Print a script that lets a shell complete commands, options and their values.", "outlive.cli.completion"
    ),
}
RUN: dict[str, Entry] = {
    "run": Entry("Start a run of a workflow or a flow, follow it to its end, and print its result.", "outlive.cli.run"),
    "worker": Entry("Run the workflows of APP, and the flows of the store, until asked to stop.", "outlive.cli.worker"),
    "serve": Entry("Serve the HTTP API of a store, and the dashboard, until asked to stop.", "outlive.cli.serve"),
}
LOOK: dict[str, Entry] = {
    "runs": Entry("Find runs, see why they do not move, and act on one or on all that fit.", "outlive.cli.runs"),
    "batches": Entry("Show how far batches are, what failed, and retry that.", "outlive.cli.batches"),
    "approvals": Entry("Show what runs ask people for.", "outlive.cli.approvals"),
    "signal": Entry("Send a signal to a run.", "outlive.cli.messages"),
    "ask": Entry("Ask a run something, and print its answer.", "outlive.cli.messages"),
    "approve": Entry("Approve what a run asks for.", "outlive.cli.approvals"),
    "reject": Entry("Reject what a run asks for.", "outlive.cli.approvals"),
    "doctor": Entry(
        "Look for what is wrong: versions, settings, the store, and what stands still.", "outlive.cli.doctor"
    ),
}
OPERATE: dict[str, Entry] = {
    "queues": Entry("Show how full queues are, change their limits, pause and resume them.", "outlive.cli.queues"),
    "schedules": Entry("Show when workflows start by themselves, and pause or trigger that.", "outlive.cli.schedules"),
    "events": Entry(
        "Send events, which start runs of the workflows that have a trigger for them.", "outlive.cli.events"
    ),
    "workers": Entry("Show who works on a store, who is alive, and how much each owns.", "outlive.cli.workers"),
    "workflows": Entry("Show what workers can run.", "outlive.cli.workflows"),
    "namespaces": Entry("Show the tenants of a store, and how much each may start.", "outlive.cli.namespaces"),
    "keys": Entry("Create, list and revoke the API keys of a store.", "outlive.cli.keys"),
    "audit": Entry("Show who did what, and prove that nothing of it was changed.", "outlive.cli.audit"),
    "config": Entry(
        "Show the settings and where each comes from, and find all mistakes in them.", "outlive.cli.config"
    ),
}
STORE: dict[str, Entry] = {
    "migrate": Entry("Bring the schema of a store up to this release.", "outlive.cli.migrate"),
    "backup": Entry(
        "Copy a store into a file while workers go on, and prove that the copy is whole.", "outlive.cli.backup"
    ),
    "move": Entry("Carry a store over into another one, with the runs in flight.", "outlive.cli.move"),
    "fsck": Entry("Prove that a store is whole.", "outlive.cli.fsck"),
}
SECTIONS: dict[str, dict[str, Entry]] = {
    "Develop": DEVELOP,
    "Run": RUN,
    "Look and repair": LOOK,
    "Operate": OPERATE,
    "Store": STORE,
}
"""The commands as `outlive --help` shows them."""
COMMANDS: dict[str, Entry] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


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
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), entry.promise) for name, entry in entries.items()])


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
