"""`outlive serve`: the HTTP API of a store, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Mistake, run, store_option
from outlive.cli.worker import Stop, leave_soon

if TYPE_CHECKING:
    from outlive.engine import Engine

PORT = 7717


@click.command()
@store_option
@click.option("--bind", "address", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0 for any that is free.")
@click.option(
    "--host-name", "hosts", multiple=True, metavar="NAME", help="Another name that it answers for; may be repeated."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What to write to standard error.",
)
def serve(*, url: str, address: str, port: int, hosts: tuple[str, ...], log_level: str) -> None:
    """Serve the HTTP API of a store until asked to stop.

    It runs no workflows: start workers beside it. It listens on this machine alone, where no key is needed, and refuses
    another address as long as callers need none.

    SIGTERM or SIGINT: answers what is under way, takes no more, exits with 0. Once more: exits at once. One line,
    `ready: ...`, goes to standard output when it answers.
    """
    from outlive.engine import Engine
    from outlive.errors import OutliveError
    from outlive.http.gate import LOCAL_HOSTS
    from outlive.http.server import new_server

    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if url.startswith("memory:"):
        raise Mistake("a store in memory belongs to its process; serve a file or a database")
    try:
        engine = Engine(url, worker=False)
        app = engine.asgi(hosts=[*LOCAL_HOSTS, *hosts])
        server = new_server(app, address=address, port=port)
    except OutliveError as error:
        raise Mistake(str(error)) from error
    stop = Stop("this server takes no more requests and stops when it has answered")
    run(_serve(engine, app, server, stop), is_service=True)


async def _serve(engine: Engine, app: Any, server: Any, stop: Stop) -> None:
    from outlive.engine.url import shown
    from outlive.http import server as serving

    stop.listen()
    async with engine:
        asked = asyncio.ensure_future(_stop_when_asked(app, server, stop))
        try:
            await serving.serve(
                server, ready=lambda place: click.echo(f"ready: {place}/api/v1 serves {shown(engine.url)}")
            )
        finally:
            asked.cancel()
            leave_soon()


async def _stop_when_asked(app: Any, server: Any, stop: Stop) -> None:
    await stop.wait()
    app.close()
    server.should_exit = True
