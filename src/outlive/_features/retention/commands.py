"""`outlive runs purge`: deletes runs that ended long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive._features.bulk.following_commands import do_in_background, has_worker
from outlive.cli.edge import Mistake, ask, counted, json_option, print_json, print_table, store_option
from outlive.cli.filters import filter_options, filters_of
from outlive.cli.values import seconds_of

if TYPE_CHECKING:
    from outlive._features.retention.values import Purge
    from outlive.engine import Engine


@click.command()
@store_option
@filter_options
@click.option(
    "--older-than", default="1h", show_default=True, metavar="SPAN", help="Ended so long ago: 90s, 5m, 1h30m or 7d."
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
    **filters: Any,
) -> None:
    """Delete runs that have ended, with everything of them, for good.

    Without --yes nothing is deleted: the command says how many there are, of which workflows, and when the first and
    the last of them ended. Runs that an open run needs stay in any case. With --yes live workers delete them, and go on
    if this command is killed; it does so itself if no worker is alive, or with --archive.
    """
    wanted = filters_of(filters)
    if not wanted:
        raise Mistake("say which runs: --workflow, --status, --tag, --id-prefix or --error")
    wanted |= {"older_than": seconds_of("--older-than", older_than), "limit": limit}

    async def work(engine: Engine) -> Purge | None:
        if is_certain and archive is None and await has_worker(engine):
            # Runs that the engine has made for itself go with the rest.
            await do_in_background(engine, "purge", "deleted", as_json=as_json, internal=True, **wanted)
            return None
        return await engine.purge(dry_run=not is_certain, archive=archive, **wanted)

    found = ask(url, work)
    if found is not None and as_json:
        print_json(found)
    elif found is not None:
        _print(found, is_certain=is_certain, limit=limit)


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
