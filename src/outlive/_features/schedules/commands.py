"""`outlive schedules`: when workflows start by themselves, and what a person can do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive.cli.advice import typed
from outlive.cli.edge import (
    Group,
    ask,
    by_option,
    counted,
    json_option,
    open_engine,
    person,
    place_option,
    print_json,
    print_table,
    run,
    say,
)
from outlive.cli.values import moment_of

if TYPE_CHECKING:
    from outlive._features.schedules.values import Schedule

PAGE = 100


@click.group(cls=Group)
def schedules() -> None:
    """Show when workflows start by themselves, and pause or trigger that."""


@schedules.command("list")
@place_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """List all schedules by name, with their last outcomes, and when each fires next or what stands in its way."""
    found = run(_list(url))
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("there are no schedules on this store")
        return
    rows = [
        [it.name, it.definition, " ".join(each.status for each in it.last[:3]) or "-", typed(it.why, it.advice)]
        for it in found
    ]
    print_table(["schedule", "workflow", "last", "why"], rows)


async def _list(url: str) -> list[Schedule]:
    found: list[Schedule] = []
    async with open_engine(url) as engine:
        while page := await engine.schedules.list(after=found[-1].name if found else "", limit=PAGE):
            found += page
    return found


@schedules.command()
@click.argument("name")
@by_option
@click.option("--reason", default="", help="Why.")
@place_option
@json_option
def pause(*, name: str, by: str, reason: str, url: str, as_json: bool) -> None:
    """Let a schedule start nothing more."""
    by = person(url, by)
    ask(url, lambda engine: engine.schedules.pause(name, by=by, reason=reason))
    info = ask(url, lambda engine: engine.schedules.get(name))
    say(f"schedule {name} is paused", info, as_json=as_json)


@schedules.command()
@click.argument("name")
@place_option
@json_option
def resume(*, name: str, url: str, as_json: bool) -> None:
    """Let a schedule go on that was paused or has tripped."""
    ask(url, lambda engine: engine.schedules.resume(name))
    info = ask(url, lambda engine: engine.schedules.get(name))
    say(f"schedule {name}: {typed(info.why, info.advice)}", info, as_json=as_json)


@schedules.command()
@click.argument("name")
@click.option(
    "--overlap",
    type=click.Choice(["allow", "terminate_previous"]),
    help="When a run of it is open: start another one beside it, or end that one first.",
)
@place_option
@json_option
def trigger(*, name: str, overlap: Any, url: str, as_json: bool) -> None:
    """Start a run of a schedule now."""
    run_id = ask(url, lambda engine: engine.schedules.trigger(name, overlap=overlap)).id
    say(f"run {run_id} is started as soon as a worker takes it", {"schedule": name, "id": run_id}, as_json=as_json)


@schedules.command()
@click.argument("name")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--overlap", type=click.Choice(["allow", "buffer_all"]), help="All at once, or one after the other.")
@place_option
@json_option
def backfill(*, name: str, start: str, end: str, overlap: Any, url: str, as_json: bool) -> None:
    """Start the runs of past ticks that have none, from FROM on and before TO: 2026-11-01 or 2026-11-01T06:00+01:00."""
    first, last = moment_of("FROM", start), moment_of("TO", end)
    ticks = ask(url, lambda engine: engine.schedules.backfill(name, first, last, overlap=overlap))
    say(f"schedule {name}: {counted(ticks, 'tick')} to run", {"schedule": name, "ticks": ticks}, as_json=as_json)


@schedules.command()
@click.argument("name")
@place_option
@json_option
def delete(*, name: str, url: str, as_json: bool) -> None:
    """Delete a schedule; its runs stay. One that is still in the code comes back: pause it instead."""
    ask(url, lambda engine: engine.schedules.delete(name))
    say(f"schedule {name} is deleted", {"schedule": name, "deleted": True}, as_json=as_json)
