"""`outlive move`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from outlive.cli.edge import json_option, new_store, open_store, print_json, run

if TYPE_CHECKING:
    from outlive._features.moving.moving import Moved


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def move(*, source: str, target: str, as_json: bool) -> None:
    """Carry a store over into another one, with the runs in flight.

    FROM and TO are URLs: sqlite:orders.db, postgresql://user@host/database. Stop all workers and programs that use FROM
    first. Killed half way, the same command goes on. Each tree is read back from TO and compared. When everything is in
    TO, FROM is paused as a whole, so that a worker that is started there by mistake runs nothing: point your programs
    to TO.

    Exit code 0: everything is in TO, and was verified. 1: it is not. 2: the command is wrong.
    """
    moved = run(_move(source, target, says=not as_json))
    if as_json:
        print_json(moved._asdict())


async def _move(source: str, target: str, *, says: bool) -> Moved:
    from outlive._features.moving.moving import move_store
    from outlive.engine.url import shown

    async with open_store(source) as old, new_store(target) as new:
        return await move_store(old, new, to=shown(target), said=click.echo if says else lambda _: None)
