"""`outlive migrate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from outlive.cli.edge import REFUSED, json_option, place_of, print_json, run, store_option

if TYPE_CHECKING:
    from outlive.errors.store import SchemaTooOldError


@click.command()
@store_option
@click.option("--check", "is_check", is_flag=True, help="Only say whether it is needed; nothing is written.")
@json_option
def migrate(*, url: str, is_check: bool, as_json: bool) -> None:
    """Bring the schema of a store up to this release.

    An engine does it by itself when it opens a store. Do it beforehand where workers have no right to change a schema,
    or to choose the moment. Safe beside workers, and when it is killed half way. `outlive backup` comes first.

    Exit code 0: the schema is the one of this release. 1: it is older (with --check), or newer. 2: the command is
    wrong.
    """
    old = run(_migrate(place_of(url), is_check=is_check))
    if as_json:
        found = None if old is None else {"found": old.found, "needed": old.known}
        print_json({"old": found, "migrated": old is not None and not is_check})
    elif old is None:
        click.echo("the schema is the one of this release; nothing was changed")
    elif is_check:
        click.echo(f"the schema is {old.found}, and this release needs {old.known}: `outlive migrate` brings it there")
    else:
        click.echo(f"the schema was {old.found}, and is {old.known} now")
    sys.exit(REFUSED if old is not None and is_check else 0)


async def _migrate(url: str, *, is_check: bool) -> SchemaTooOldError | None:
    """The error about the old schema of the store; None if it is up to date."""
    from outlive._kernel.runtime.clock import SystemClock
    from outlive.engine.url import store_for
    from outlive.errors.store import SchemaTooOldError

    store = store_for(url, clock=SystemClock().now)
    try:
        await store.open(migrate=False)
    except SchemaTooOldError as error:
        if not is_check:
            await store.open()
        return error
    finally:
        await store.close()
    return None
