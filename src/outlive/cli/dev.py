"""`outlive dev`: worker, API and dashboard of a program while it is written."""

from __future__ import annotations

import time
from pathlib import Path

import click

from outlive.cli.app import no_file
from outlive.cli.browser import open_page
from outlive.cli.completing import programs
from outlive.cli.edge import Mistake, no_store, run, settings_with
from outlive.cli.worker import Stop, log_to_stderr


@click.command()
@click.argument("places", nargs=-1, metavar="[APP] [FLOWS]...", shell_complete=programs)
@click.option("--store", "url", metavar="URL", help="Where the runs are.  [default: a file beside APP]")
@click.option("--namespace", metavar="NAME", help="The tenant whose runs these are.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), help="0 for any that is free.  [default: 7717, or the next free]"
)
@click.option("--browser/--no-browser", default=False, show_default=True, help="Open the dashboard in a browser.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What the worker writes to standard error.  [default: info]",
)
def dev(
    *,
    places: tuple[str, ...],
    url: str | None,
    namespace: str | None,
    port: int | None,
    browser: bool,
    log_level: str | None,
) -> None:
    """Run a program while you write it: worker, API and dashboard on this machine, with reload.

    APP is a file (app.py), a module (shop.workflows), or either with the name of an Engine in it (shop.app:engine).
    FLOWS are documents of flows (order.flow.yaml) and folders of them, which are published as they are saved. Without
    either: the dashboard of the configured store, and no worker.

    When a file changes that the program has imported, the next worker process takes over and the runs go on. A program
    that cannot be imported is shown with its error, and the last one goes on. A worker process that ends, also by
    kill -9, is replaced. A run that was parked because the code no longer fits its journal is tried again after each
    change.

    The store is --store, what OUTLIVE_STORE or outlive.toml name, or else a SQLite file beside APP: app.db for app.py.

    Ctrl-C ends everything. Steps that run get a second to finish; steps that need longer run again next time.
    """
    from outlive.dev.place import PlaceError, Places
    from outlive.dev.session import Session, Wanted
    from outlive.errors import OutliveError
    from outlive.http.server import new_server

    try:
        named = Places.of(places)
    except PlaceError as error:
        raise Mistake(str(error)) from error
    settings = settings_with(
        {
            "store": url,
            "namespace": namespace,
            "server.port": port,
            "log.level": log_level,
        }
    )
    options = settings.engine_options()
    if named.has_own_engine:
        if url is not None or namespace is not None:
            raise Mistake(f"{named.app} has a store of its own; leave out --store and --namespace")
        options.pop("url", None)
    elif "url" not in options:
        default = named.default_store()
        if default is None:
            raise Mistake(f"{no_store()}; or name a program: outlive dev app.py")
        options["url"] = default
    if options.get("url", "").startswith("memory:"):
        raise Mistake("a store in memory belongs to its process; give --store sqlite:app.db")
    source = Path((named.app or "").partition(":")[0])
    if source.suffix == ".py" and not source.is_file():
        raise Mistake(no_file(source))
    try:
        new_server(None)  # It refuses without the extra, before anything is started.
    except OutliveError as error:
        raise Mistake(str(error)) from error
    log_to_stderr("warning", "text")
    wanted = Wanted(
        places=named,
        options=options,
        namespace=namespace,
        level=log_level,
        port=settings["server.port"],
        is_port_fixed=port is not None,
    )

    def serve(place: str, store: str) -> None:
        click.echo(f"ready: dashboard {place}/")
        is_found = settings.place("store") not in ("--store", "default")
        hint = (
            ""
            if is_found or not store.startswith("sqlite:")
            else f" (for other commands: export OUTLIVE_STORE={store})"
        )
        click.echo(f"       store     {store}{hint}", err=True)
        click.echo("       Ctrl-C ends it", err=True)
        if browser:
            open_page(f"{place}/")

    async def work() -> None:
        stop = Stop("everything stops")
        with stop.listening():
            await Session(wanted, say=_say, on_serve=serve).run(stop.wait)

    run(work(), is_service=True)


def _say(text: str) -> None:
    now = time.strftime("%H:%M:%S")
    for line in text.splitlines():
        click.echo(f"{now} {line}", err=True)
