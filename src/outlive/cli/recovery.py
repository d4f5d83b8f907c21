"""`outlive recovery`: runs that do not move, and what a person can do about it.

Nothing here moves a run by itself. A request is put into the inbox of the run; it is durable when the command returns,
and the next worker that has the workflow follows it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import click

from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import (
    Group,
    Mistake,
    ask,
    counted,
    json_option,
    open_engine,
    place_option,
    print_json,
    print_table,
    run,
    say,
)
from outlive.cli.values import json_of

if TYPE_CHECKING:
    from outlive.client.recovery import Incomplete
    from outlive.engine import Engine

PAGE = 500


@click.group(cls=Group)
def recovery() -> None:
    """Show the runs that do not move and why, and let them go on."""


async def _each(engine: Engine) -> AsyncIterator[Incomplete]:
    before: str | None = None
    while page := await engine.recovery(limit=PAGE, before=before):
        for found in page:
            yield found
        before = page[-1].run.id


@recovery.command("list")
@place_option
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many to show, newest first.")
@json_option
def list_(*, url: str, limit: int, as_json: bool) -> None:
    """Runs that do not move, newest first, and why.

    `parked` stopped with a reason, quarantined ones too: resume it, skip its step, or cancel it. `interrupted` has lost
    its worker and waits for another. `damaged` has a row in the store that cannot be read: `outlive fsck --repair`
    writes it again from the journal. `undefined` is due, and no live worker has its workflow in its version.
    """
    found, is_all = run(_list(url, limit))
    if as_json:
        print_json([_plain(it) for it in found])
        return
    if not found:
        click.echo("every run is moving, waiting for something, or has ended")
        return
    rows = [[it.run.id, it.run.definition, it.kind, as_typed(it.reason)] for it in found]
    print_table(["run", "workflow", "kind", "why"], rows)
    if not is_all:
        click.echo(f"... and more; --limit {limit * 10} shows them")


async def _list(url: str, limit: int) -> tuple[list[Incomplete], bool]:
    found: list[Incomplete] = []
    async with open_engine(url) as engine:
        async for it in _each(engine):
            if len(found) == limit:
                return found, False
            found.append(it)
    return found, True


def _plain(it: Incomplete) -> dict[str, Any]:
    return {
        "run_id": it.run.id,
        "workflow": it.run.workflow,
        "version": it.run.version,
        "kind": it.kind,
        "reason": it.reason,
        "attempts": it.run.attempts,
        "worker": it.run.worker or None,
        "created_at": it.run.created_at,
        "updated_at": it.run.updated_at,
    }


@recovery.command()
@click.argument("run_id", required=False, shell_complete=complete.run_ids)
@click.option("--all", "is_all", is_flag=True, help="Every run that is parked.")
@place_option
@json_option
def resume(*, run_id: str | None, is_all: bool, url: str, as_json: bool) -> None:
    """Let a parked run go on, or all of them, for example with new code."""
    if (run_id is None) != is_all:
        raise Mistake("name one run, or say --all")
    if run_id is not None:
        ask(url, lambda engine: engine.resume(run_id))
        say(f"run {run_id} goes on as soon as a worker takes it", {"resumed": 1}, as_json=as_json)
    else:
        number = run(_resume_all(url))
        say(f"{counted(number, 'run')} resumed", {"resumed": number}, as_json=as_json)


@recovery.command()
@click.argument("run_id", shell_complete=complete.run_ids)
@place_option
@json_option
def retry(*, run_id: str, url: str, as_json: bool) -> None:
    """Try a quarantined run once more: its interruptions are counted from zero again.

    The same as `resume`, which any parked run understands.
    """
    ask(url, lambda engine: engine.resume(run_id))
    say(f"run {run_id} is tried again as soon as a worker takes it", {"id": run_id}, as_json=as_json)


async def _resume_all(url: str) -> int:
    from outlive.errors import OutliveError, RunFinishedError, RunNotFoundError, RunNotParkedError

    number = 0
    async with open_engine(url) as engine:
        async for it in _each(engine):
            if it.kind == "parked":
                try:
                    await engine.resume(it.run.id)
                except (RunNotParkedError, RunFinishedError, RunNotFoundError):
                    continue  # Another person was faster.
                except OutliveError as error:
                    click.echo(f"run {it.run.id} could not be resumed: {as_typed(str(error))}", err=True)
                    continue  # The others are not to suffer for it.
                number += 1
    return number


@recovery.command()
@click.argument("run_id", shell_complete=complete.run_ids)
@click.option(
    "--step", "call", metavar="CALL", help="Which step, as its history calls it; needed if there are several."
)
@click.option("--result", metavar="JSON", help="What the step is to have returned; without, the run gets StepSkipped.")
@place_option
@json_option
def skip(*, run_id: str, call: str | None, result: str | None, url: str, as_json: bool) -> None:
    """Let a parked run go on without the step that it cannot get past."""
    given = {} if result is None else {"result": json_of("--result", result)}
    ask(url, lambda engine: engine.skip_step(run_id, call, **given))
    said = f"run {run_id} goes on without the step as soon as a worker takes it"
    say(said, {"id": run_id, "step": call}, as_json=as_json)
