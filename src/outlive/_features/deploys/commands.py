"""`outlive check-deploy`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from outlive.cli.completing import programs
from outlive.cli.edge import HTTP, Mistake, json_option, place_of, print_json, run, server_flag, store_flag

if TYPE_CHECKING:
    from outlive.testing.deploy import DeployReport

WOULD_DIVERGE = 1


@click.command("check-deploy")
@click.argument("app", shell_complete=programs)
@store_flag(help="Where the runs are.")
@server_flag
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="So many runs at most, the oldest ones.")
@click.option(
    "--sample", type=click.IntRange(1), metavar="N", help="So many runs of each workflow and version at most."
)
@click.option("--processes", type=click.IntRange(1), metavar="N", help="How many replay.  [default: one per processor]")
@json_option
def check_deploy(
    *,
    app: str,
    url: str | None,
    workflow: str | None,
    limit: int | None,
    sample: int | None,
    processes: int | None,
    as_json: bool,
) -> None:
    """Replay the open runs of a store with new code, before it is deployed.

    APP is the new code: a file (app.py), a module (shop.workflows), or either with the name of an Engine in it, or of a
    function that makes one (shop.app:engine), whose store and codecs count then. No step is called and nothing is
    written: workers may use the store meanwhile. The runs that would not go on are listed in groups, with what their
    journals have and what the code asks for. Through a server, OUTLIVE_KEY has the key of an admin, and the server
    writes into its audit log which runs were read.

    Exit code 0: all runs go on. 1: some would not. 2: the command is wrong, or the runs cannot be read.
    """
    from outlive.errors import OutliveError

    try:
        report = run(_check(app, url, workflow, limit, sample, processes, says=not as_json))
    except click.ClickException as error:
        # 1 means that runs would diverge, and nothing else.
        raise Mistake(error.message) from error
    except OutliveError as error:
        raise Mistake(str(error)) from error
    if as_json:
        print_json(report.plain())
    else:
        click.echo(str(report))
    sys.exit(0 if report.is_fine else WOULD_DIVERGE)


async def _check(
    app: str,
    url: str | None,
    workflow: str | None,
    limit: int | None,
    sample: int | None,
    processes: int | None,
    *,
    says: bool,
) -> DeployReport:
    from outlive.testing.deploy import DeployCheck, engine_in

    engine = engine_in(app, url)
    place = url if url is not None and url.startswith(HTTP) else place_of(url or engine.url)
    is_watched = says and sys.stderr.isatty()
    progress = _show if is_watched else _say_nothing
    check = DeployCheck(place, workflow=workflow, limit=limit, sample=sample, progress=progress)
    return await check.with_app(engine, app, processes=processes)


def _show(done: int, total: int) -> None:
    click.echo(f"\rreplayed {done:,} of {total:,}", nl=done == total, err=True)


def _say_nothing(done: int, total: int) -> None:
    """No person looks."""
