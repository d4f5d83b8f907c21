"""`outlive runs`: what a person does to many runs at once."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Mistake, counted, json_option, place_of, print_json, print_table, run, store_option

if TYPE_CHECKING:
    from outlive.client.purging import Purge

_UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN = re.compile(r"(\d+)\s*(s|min|h|d|w)")


@click.group()
def runs() -> None:
    """Delete runs that ended long ago."""


@runs.command()
@store_option
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option(
    "--status", "statuses", multiple=True, metavar="STATUS", help="Only runs that ended like this; may be repeated."
)
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Only runs with this tag; may be repeated.")
@click.option("--id-prefix", metavar="TEXT", help="Only runs whose id begins with this.")
@click.option("--error", metavar="CLASS", help="Only runs that failed with an exception of this class.")
@click.option(
    "--older-than", default="1h", show_default=True, metavar="SPAN", help="Ended so long ago: 90min, 12h, 7d or 8w."
)
@click.option(
    "--limit", type=click.IntRange(1), default=1_000, show_default=True, help="At most so many, oldest first."
)
@click.option("--archive", metavar="FOLDER", help="Write them to a file in this folder before they are deleted.")
@click.option("--yes", "is_certain", is_flag=True, help="Delete them; without, only say what would be deleted.")
@json_option
def purge(
    *,
    url: str,
    older_than: str,
    limit: int,
    archive: str | None,
    is_certain: bool,
    as_json: bool,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    **filters: str | None,
) -> None:
    """Delete runs that have ended, with everything of them, for good.

    Without --yes nothing is deleted: the command says how many there are, of which workflows, and when the first and
    the last of them ended. Runs that an open run needs stay in any case.
    """
    wanted: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    if statuses:
        wanted["status"] = statuses
    if tags:
        wanted["tags"] = dict(_tag(tag) for tag in tags)
    if not wanted:
        raise Mistake("say which runs: --workflow, --status, --tag, --id-prefix or --error")
    options = {"older_than": _seconds(older_than), "limit": limit, "dry_run": not is_certain, "archive": archive}
    found = run(_purge(url, options | wanted))
    if as_json:
        print_json(_plain(found))
        return
    _print(found, is_certain=is_certain, limit=limit)


async def _purge(url: str, options: dict[str, Any]) -> Purge:
    from outlive.engine import Engine

    async with Engine(place_of(url), worker=False) as engine:
        return await engine.purge(**options)


def _print(found: Purge, *, is_certain: bool, limit: int) -> None:
    if not found.found or found.oldest is None or found.newest is None:
        click.echo("no run fits that ended so long ago")
        return
    rows = [[*name.rsplit(" ", 1), f"{count:,}"] for name, count in found.counts.items()]
    print_table(["workflow", "status", "runs"], rows)
    click.echo(f"ended from {found.oldest:%Y-%m-%d %H:%M:%S} to {found.newest:%Y-%m-%d %H:%M:%S} UTC")
    if found.found == limit:
        click.echo(f"... and perhaps more; --limit {limit * 10} takes them too")
    if not is_certain:
        click.echo(f"{counted(found.found, 'run')} would be deleted; say --yes to do it")
        return
    for file in found.files:
        click.echo(f"archived in {file}")
    kept = f"; {counted(found.kept, 'run')} stayed, because others need them" if found.kept else ""
    click.echo(f"{counted(found.deleted, 'run')} deleted{kept}")


def _plain(found: Purge) -> dict[str, Any]:
    return {
        "found": found.found,
        "deleted": found.deleted,
        "kept": found.kept,
        "oldest": None if found.oldest is None else found.oldest.astimezone(UTC).isoformat(),
        "newest": None if found.newest is None else found.newest.astimezone(UTC).isoformat(),
        "counts": found.counts,
        "files": list(found.files),
    }


def _tag(tag: str) -> tuple[str, str]:
    name, equals, value = tag.partition("=")
    if not equals or not name:
        raise Mistake(f"--tag {tag}: write it as NAME=VALUE")
    return name, value


def _seconds(span: str) -> int:
    match = _SPAN.fullmatch(span.strip())
    if match is None:
        raise Mistake(f"--older-than {span}: write a number and a unit, for example 90min, 12h, 7d or 8w")
    return int(match[1]) * _UNITS[match[2]]
