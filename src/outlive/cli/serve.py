"""`outlive serve`: the HTTP API of a store, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import NO_STORE, Mistake, run, settings_with
from outlive.cli.worker import Stop, json_formatter, leave_soon, log_to_stderr

if TYPE_CHECKING:
    from outlive.engine import Engine


@click.command()
@click.option("--store", "url", metavar="URL", help="sqlite:orders.db or postgresql://user@host/database.")
@click.option("--namespace", metavar="NAME", help="The tenant whose runs these are.")
@click.option("--bind", "address", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="0 for any that is free.  [default: 7717]")
@click.option(
    "--host-name", "hosts", multiple=True, metavar="NAME", help="Another name that it answers for; may be repeated."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What to write to standard error.  [default: info]",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="Lines for people, or one JSON object for each record.  [default: text]",
)
def serve(
    *,
    url: str | None,
    namespace: str | None,
    address: str | None,
    port: int | None,
    hosts: tuple[str, ...],
    log_level: str | None,
    log_format: str | None,
) -> None:
    """Serve the HTTP API of a store until asked to stop.

    It runs no workflows: start workers beside it. It listens on this machine alone, where no key is needed, and refuses
    another address as long as callers need none.

    What no option says is taken from OUTLIVE_... variables and from outlive.toml: see `outlive config show`.

    SIGTERM or SIGINT: answers what is under way, takes no more, exits with 0. Once more: exits at once. One line,
    `ready: ...`, goes to standard output when it answers.
    """
    from outlive.engine import Engine
    from outlive.errors import OutliveError
    from outlive.http.gate import LOCAL_HOSTS
    from outlive.http.server import new_server

    settings = settings_with(
        {
            "store": ("--store", url),
            "namespace": ("--namespace", namespace),
            "server.host": ("--bind", address),
            "server.port": ("--port", port),
            "server.allowed_hosts": ("--host-name", list(hosts) or None),
            "logging.level": ("--log-level", log_level),
            "logging.format": ("--log-format", log_format),
        }
    )
    options = settings.engine_options()
    if "url" not in options:
        raise Mistake(NO_STORE)
    if options["url"].startswith("memory:"):
        raise Mistake("a store in memory belongs to its process; serve a file or a database")
    handler = log_to_stderr(settings["logging.level"], settings["logging.format"])
    try:
        engine = Engine(**options, worker=False)
        app = engine.asgi(hosts=[*LOCAL_HOSTS, *settings["server.allowed_hosts"]])
        server = new_server(app, address=settings["server.host"], port=settings["server.port"])
    except OutliveError as error:
        raise Mistake(str(error)) from error
    if settings["logging.format"] == "json":
        handler.setFormatter(json_formatter(engine))
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
