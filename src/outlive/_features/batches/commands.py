"""`outlive batches`: how far batches are, which of their items failed, and another try of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive.cli.advice import as_typed
from outlive.cli.completing import statuses as complete_statuses
from outlive.cli.edge import Group, ask, json_option, place_option, print_json, print_table, say
from outlive.cli.filters import status_of
from outlive.cli.values import moment_of

if TYPE_CHECKING:
    from outlive._features.batches.values import ItemFailure

FAILED_SHOWN_MAX = 1_000


@click.group(cls=Group)
def batches() -> None:
    """Show how far batches are, what failed, and retry that."""


@batches.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    metavar="STATUS",
    shell_complete=complete_statuses,
    help="Only batches in this status; may be repeated.",
)
@click.option("--since", metavar="WHEN", help="Created then or later: 2h (ago), 2026-11-01.")
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most so many.")
@click.option("--after", metavar="CURSOR", help="The next page: what the page before said.")
@place_option
@json_option
def list_(
    *, statuses: tuple[str, ...], since: str | None, limit: int, after: str | None, url: str, as_json: bool
) -> None:
    """List batches, the newest first: how many rows have succeeded and failed."""
    wanted: dict[str, Any] = {"status": [status_of(status) for status in statuses] or None}
    wanted["since"] = None if since is None else moment_of("--since", since)
    page = ask(url, lambda engine: engine.batches.list(limit=limit, after=after, **wanted))
    if as_json:
        print_json({"batches": page, "next": page.next})
        return
    if page:
        rows = [[it.id, it.work, it.status, *map(str, (it.succeeded, it.failed, it.total))] for it in page]
        print_table(["batch", "each row", "status", "succeeded", "failed", "rows"], rows)
    else:
        click.echo("no batch fits", err=True)
    if page.next is not None:
        click.echo(f"... and more; --after {page.next} shows the next page", err=True)


@batches.command()
@click.argument("batch_id", metavar="ID")
@place_option
@json_option
def show(*, batch_id: str, url: str, as_json: bool) -> None:
    """Show how far a batch is, and the items that have failed: the place of the row, and the error."""

    async def look(engine: Any) -> tuple[str, list[ItemFailure]]:
        why = await engine.get(batch_id).why()
        return why, await engine.batches.get(batch_id).failures(limit=FAILED_SHOWN_MAX)

    why, failed = ask(url, look)
    if as_json:
        print_json({"id": batch_id, "why": as_typed(why), "failed": failed})
        return
    click.echo(as_typed(why))
    if failed:
        rows = [[str(it.index), it.error.name, it.error.message] for it in failed]
        print_table(["row", "error", "message"], rows)


@batches.command()
@click.argument("batch_id", metavar="ID")
@click.option("--id", "new_id", help="Of the new batch; made up unless given.")
@place_option
@json_option
def retry(*, batch_id: str, new_id: str | None, url: str, as_json: bool) -> None:
    """Start another batch of the rows of this one that have not succeeded, and print its id."""
    found = ask(url, lambda engine: engine.batches.get(batch_id).retry(id=new_id)).id
    say(found, {"id": found}, as_json=as_json)
