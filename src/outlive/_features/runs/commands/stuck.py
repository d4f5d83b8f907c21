"""`outlive runs list --stuck`: runs that do not move by themselves, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive._features.runs.commands.view import plain_run
from outlive.cli.advice import typed
from outlive.cli.edge import ask, print_json, print_table

if TYPE_CHECKING:
    from outlive._kernel.client.recovery import Incomplete


def list_stuck(url: str, *, limit: int, after: str | None, only_ids: bool, as_json: bool) -> None:
    """Print a page of them, the newest first; `after` is the id of the last one of the page before."""
    found = ask(url, lambda engine: engine.list_stuck(limit=limit, before=after))
    next_page = found[-1].run.id if len(found) == limit else None
    if as_json:
        print_json({"runs": [_plain(it) for it in found], "next": next_page})
        return
    if only_ids:
        for it in found:
            click.echo(it.run.id)
    elif found:
        rows = [[it.run.id, it.run.definition, it.kind, typed(it.reason, it.advice)] for it in found]
        print_table(["run", "workflow", "kind", "why"], rows)
    else:
        click.echo("every run is moving, waiting for something, or has ended", err=True)
    if next_page is not None:
        click.echo(f"... and perhaps more; --after {next_page} shows the next page", err=True)


def _plain(it: Incomplete) -> dict[str, Any]:
    return {**plain_run(it.run), "kind": it.kind, "why": typed(it.reason, it.advice)}
