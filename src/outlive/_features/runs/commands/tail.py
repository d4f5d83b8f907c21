"""`outlive runs tail`: follows a run until it ends, a line for each event."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from outlive._features.runs.commands.show import event_line, plain_event
from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import REFUSED, STUCK, json_option, open_engine, place_option, run

if TYPE_CHECKING:
    from outlive._kernel.client.handle import RunHandle


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=complete.run_ids)
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="How many earlier events to show first.",
)
@place_option
@json_option
def tail(*, run_id: str, lines: int, url: str, as_json: bool) -> None:
    """Follow a run until it ends: a line for each event, and with --json a line of JSON.

    Exit code 0: it has succeeded. 1: it has failed, timed out or was cancelled. 3: it is parked, and goes on when a
    person resumes it.
    """
    sys.exit(run(_tail(url, run_id, lines, as_json=as_json)))


async def _tail(url: str, run_id: str, lines: int, *, as_json: bool) -> int:
    async with open_engine(url) as engine:
        handle = engine.get(run_id)
        info = await handle.info()
        say = _print_json if as_json else lambda event: click.echo(event_line(event, info.root_id))
        before = await handle.history()
        for event in before[len(before) - min(lines, len(before)) :]:
            say(event)
        code = await follow(handle, say, after=before[-1].seq)
        if not as_json:
            click.echo(as_typed(await handle.why()), err=True)
        return code


async def follow(handle: RunHandle[Any], say: Callable[[Any], None], *, after: int = -1) -> int:
    """Say every event behind a position until the run has ended; the exit code."""
    from outlive.errors import RunParkedError
    from outlive.errors.run import RunDamagedError

    try:
        async for event in handle.follow(after=after):
            say(event)
    except (RunParkedError, RunDamagedError):
        return STUCK
    return 0 if await handle.status() in ("succeeded", "continued") else REFUSED


def _print_json(event: Any) -> None:
    import msgspec

    from outlive.cli.terminal import shown_json

    click.echo(shown_json(msgspec.json.encode(plain_event(event))))
