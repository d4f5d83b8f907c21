"""`outlive schedules`: when workflows start by themselves, and what a person can do about it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Mistake, counted, json_option, place_of, print_json, print_table, run, store_option

if TYPE_CHECKING:
    from outlive.client.schedules.info import ScheduleInfo
    from outlive.client.schedules.verbs import Schedules

PAGE = 100


@click.group()
def schedules() -> None:
    """Show when workflows start by themselves, and pause or trigger that."""


@asynccontextmanager
async def _schedules(url: str) -> AsyncIterator[Schedules]:
    from outlive.engine import Engine

    async with Engine(place_of(url), worker=False) as engine:
        yield engine.schedules


@schedules.command("list")
@store_option
@json_option
def list_(*, url: str, as_json: bool) -> None:
    """All schedules by name, with their last outcomes (the newest first), and when each fires next or what stands in
    its way."""
    found = run(_list(url))
    if as_json:
        print_json([_plain(info) for info in found])
        return
    if not found:
        click.echo("there are no schedules on this store")
        return
    rows = [
        [info.name, f"{info.workflow}@{info.version}", " ".join(each.status for each in info.last[:3]) or "-", info.why]
        for info in found
    ]
    print_table(["schedule", "workflow", "last", "why"], rows)


async def _list(url: str) -> list[ScheduleInfo]:
    found: list[ScheduleInfo] = []
    async with _schedules(url) as all_:
        while page := await all_.list(after=found[-1].name if found else "", limit=PAGE):
            found += page
    return found


def _plain(info: ScheduleInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "workflow": info.workflow,
        "version": info.version,
        "is_paused": info.is_paused,
        "is_tripped": info.is_tripped,
        "next_fires": info.next_fires,
        "last": info.last,
        "open": info.open,
        "waiting": info.waiting,
        "failures": info.failures,
        "skipped": info.skipped,
        "missed": info.missed,
        "why": info.why,
    }


@schedules.command()
@click.argument("name")
@click.option("--by", default="", help="Who does that.")
@click.option("--note", default="", help="Why.")
@store_option
def pause(*, name: str, by: str, note: str, url: str) -> None:
    """Let a schedule start nothing more."""

    async def work() -> None:
        async with _schedules(url) as all_:
            await all_.pause(name, by=by, note=note)

    run(work())
    click.echo(f"schedule {name} is paused")


@schedules.command()
@click.argument("name")
@store_option
def resume(*, name: str, url: str) -> None:
    """Let a schedule go on that was paused or has tripped."""

    async def work() -> ScheduleInfo:
        async with _schedules(url) as all_:
            await all_.resume(name)
            return await all_.get(name)

    click.echo(f"schedule {name}: {run(work()).why}")


@schedules.command()
@click.argument("name")
@click.option("--overlap", type=click.Choice(["allow", "terminate_previous"]), help="If a run of it is open.")
@store_option
def trigger(*, name: str, overlap: Any, url: str) -> None:
    """Start a run of a schedule now."""

    async def work() -> str:
        async with _schedules(url) as all_:
            return (await all_.trigger(name, overlap=overlap)).id

    click.echo(f"run {run(work())} is started as soon as a worker takes it")


@schedules.command()
@click.argument("name")
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@click.option("--overlap", type=click.Choice(["allow", "buffer_all"]), help="All at once, or one after the other.")
@store_option
def backfill(*, name: str, start: str, end: str, overlap: Any, url: str) -> None:
    """Start the runs of past ticks that have none, from FROM on and before TO: 2026-11-01 or 2026-11-01T06:00+01:00."""
    first, last = _instant(start), _instant(end)

    async def work() -> int:
        async with _schedules(url) as all_:
            return await all_.backfill(name, first, last, overlap=overlap)

    click.echo(f"schedule {name}: {counted(run(work()), 'tick')} to run")


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Mistake(f"{text} is no time; write 2026-11-01 or 2026-11-01T06:00+01:00") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@schedules.command()
@click.argument("name")
@store_option
def delete(*, name: str, url: str) -> None:
    """Delete a schedule; its runs stay. One that is still in the code comes back: pause it instead."""

    async def work() -> None:
        async with _schedules(url) as all_:
            await all_.delete(name)

    run(work())
    click.echo(f"schedule {name} is deleted")
