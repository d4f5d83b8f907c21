"""`outlive serve`: the HTTP API of a store, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from outlive.cli.edge import Mistake, no_store, run, settings_with
from outlive.cli.worker import Stop, enter, json_formatter, leave_soon, log_to_stderr, traced

if TYPE_CHECKING:
    from outlive.config.settings import Settings
    from outlive.engine import Engine
    from outlive.errors.program import SettingProblem
    from outlive.http.limits import ApiLimits


@click.command()
@click.option("--store", "url", metavar="URL", help="sqlite:orders.db or postgresql://user@host/database.")
@click.option("--namespace", metavar="NAME", help="The tenant whose runs these are.")
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="0 for any that is free.  [default: 7717]")
@click.option("--allowed-hosts", metavar="NAMES", help="Other names that it answers for: outlive.example.com,outlive.")
@click.option(
    "--auth",
    type=click.Choice(["loopback", "keys"]),
    help="Who may ask: programs of this machine, or those with a key of `outlive keys`.  [default: loopback]",
)
@click.option("--auth-header", metavar="NAME", help="With --auth keys: a header in which a proxy says who asks.")
@click.option("--auth-proxies", metavar="ADDRESSES", help="Proxies in front of it: 10.0.0.5,10.1.0.0/24.")
@click.option(
    "--auth-header-scope",
    type=click.Choice(["viewer", "operator", "admin"]),
    help="What callers with that header may do.  [default: viewer]",
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
@click.option("--tracing", is_flag=True, help="Trace with OpenTelemetry what it ends: attempts of remote steps.")
def serve(
    *,
    url: str | None,
    namespace: str | None,
    host: str | None,
    port: int | None,
    allowed_hosts: str | None,
    auth: str | None,
    auth_header: str | None,
    auth_proxies: str | None,
    auth_header_scope: str | None,
    log_level: str | None,
    log_format: str | None,
    tracing: bool,
) -> None:
    """Serve the HTTP API of a store, and the dashboard, until asked to stop.

    It runs no workflows: start workers beside it. It listens on this machine alone, where no key is needed, and refuses
    another address as long as callers need none (--auth keys).

    What no option says is taken from OUTLIVE_... variables and from outlive.toml: see `outlive config show`.

    SIGTERM or SIGINT: answers what is under way, takes no more, exits with 0. Once more: exits at once. One line,
    `ready: ...`, goes to standard output when it answers.
    """
    from outlive.engine import Engine
    from outlive.errors import OutliveError
    from outlive.http.gate import LOCAL_HOSTS
    from outlive.http.proxies import Proxies
    from outlive.http.server import new_loop, new_server

    settings = settings_with(
        {
            "store": url,
            "namespace": namespace,
            "server.host": host,
            "server.port": port,
            "server.allowed_hosts": allowed_hosts,
            "auth.mode": auth,
            "auth.header": auth_header,
            "auth.proxies": auth_proxies,
            "auth.header_scope": auth_header_scope,
            "log.level": log_level,
            "log.format": log_format,
            "tracing.enabled": tracing or None,
        },
        check_server=_problems,
    )
    options = settings.engine_options() | traced(settings)
    if "url" not in options:
        raise Mistake(no_store())
    if options["url"].startswith("memory:"):
        raise Mistake("a store in memory belongs to its process; serve a file or a database")
    handler = log_to_stderr(settings["log.level"], settings["log.format"])
    try:
        engine = Engine(**(options | {"worker": False}))
        hosts_all = [*LOCAL_HOSTS, *settings["server.allowed_hosts"]]
        proxies = settings["auth.proxies"]
        app = engine.asgi(auth=_door(engine, settings), hosts=hosts_all, limits=_api_limits(settings), proxies=proxies)
        server = new_server(
            app,
            address=settings["server.host"],
            port=settings["server.port"],
            has_keys=settings["auth.mode"] == "keys",
            is_counted=True,
            is_proxy=Proxies(proxies),
            **{name: settings[f"server.{name}"] for name in CONNECTION_LIMITS},
        )
    except OutliveError as error:
        raise Mistake(str(error)) from error
    if settings["log.format"] == "json":
        handler.setFormatter(json_formatter(engine))
    stop = Stop("this server takes no more requests and stops when it has answered")
    run(_serve(engine, app, server, stop), is_service=True, new_loop=new_loop)


CONNECTION_LIMITS = ("connections_max", "keep_alive_seconds")
REQUEST_LIMITS = (
    "body_bytes_max",
    "open_body_bytes_max",
    "bodies_bytes_max",
    "open_bodies_bytes_max",
    "body_seconds",
    "read_seconds",
    "check_seconds",
    "search_seconds",
    "searches_waiting_max",
    "wait_seconds_max",
    "followers_max",
    "lists_max",
    "check_again_seconds",
)


def _api_limits(settings: Settings) -> ApiLimits:
    from outlive._kernel.model.limit import TokenBucket
    from outlive.http.limits import ApiLimits

    rate = settings["server.requests_per_second"]
    given = {name: settings[f"server.{name}"] for name in REQUEST_LIMITS}
    return ApiLimits(**given, rate=None if rate is None else TokenBucket(rate))


def _problems(settings: Settings) -> Iterator[SettingProblem]:
    """The settings that do not go together."""
    from outlive.errors import ConfigurationError
    from outlive.errors.program import SettingProblem
    from outlive.http.server import check_address

    def problem(name: str, reason: str) -> SettingProblem:
        return SettingProblem(settings.place(name), name, reason)

    has_keys, header, proxies = settings["auth.mode"] == "keys", settings["auth.header"], settings["auth.proxies"]
    if header is not None and not proxies:
        yield problem("auth.header", "it needs the addresses of the proxies that may send it; give --auth-proxies too")
    if header is not None and not has_keys:
        yield problem("auth.header", 'it is for servers that ask for keys; give --auth keys (auth.mode = "keys") too')
    try:
        check_address(settings["server.host"], has_keys=has_keys)
    except ConfigurationError as error:
        yield problem("server.host", str(error))


def _door(engine: Engine, settings: Settings) -> Any:
    from outlive.http.doors import StoredKeys, TrustedHeader
    from outlive.http.principal import first_of

    header = settings["auth.header"]
    if header is None:
        return settings["auth.mode"]
    trusted = TrustedHeader(header, proxies=settings["auth.proxies"], scope=settings["auth.header_scope"])
    return first_of(StoredKeys(engine), trusted)


async def _serve(engine: Engine, app: Any, server: Any, stop: Stop) -> None:
    from outlive.http import server as serving

    with stop.listening():
        if not await enter(engine, stop):
            return
        asked = asyncio.ensure_future(_stop_when_asked(app, server, stop))
        try:
            await serving.serve(server, ready=partial(_say_ready, engine))
        finally:
            asked.cancel()
            await engine.__aexit__(None, None, None)
            leave_soon()


def _say_ready(engine: Engine, place: str) -> None:
    from outlive.engine.url import shown

    click.echo(f"ready: {place}/api/v1 serves {shown(engine.url)}, dashboard at {place}/")


async def _stop_when_asked(app: Any, server: Any, stop: Stop) -> None:
    await stop.wait()
    app.close()
    server.should_exit = True
