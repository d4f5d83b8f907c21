"""The parts that commands share: where the runs are, the shape of answers, and how an error is printed.

A person at a terminal wants one line and a program wants a number. So a mistake in the command itself (a wrong URL, a
file that cannot be imported) is one line and exit code 2, everything else that Outlive refuses is one line and exit
code 1, and only a bug shows a traceback.

Commands talk to an object with the verbs of an engine, and `open_engine` is the only place that knows what it is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from outlive.cli import INTERRUPTED
from outlive.cli.advice import as_typed
from outlive.cli.paint import painted

if TYPE_CHECKING:
    import asyncio

    from outlive._kernel.store.contract import Store
    from outlive.config.reading import ServerCheck
    from outlive.config.settings import Settings
    from outlive.engine import Engine
    from outlive.remote import Remote

T = TypeVar("T")

REFUSED, WRONG, STUCK = 1, 2, 3
"""Exit codes beside 0 and that of Ctrl-C: Outlive refuses it or the run has failed; the command is wrong; a run that
the command follows is parked, and a person has to act."""
BROKEN = 70
"""The exit code of a service that an error ended which Outlive does not know: its supervisor is to start it again."""
STORES_SHOWN_MAX = 3
SENTENCE_CHARACTERS_MAX = 300


SERVER = "outlive.server"
"""Where a command keeps the address of a server that a person has named."""
SERVER_VARIABLE = "OUTLIVE_SERVER"
HTTP = ("http://", "https://")
UNAUTHENTICATED = 401
SERVER_SECONDS = 10.0
"""How long a server may be away before a person hears of it."""


def store_flag(*, help: str, is_needed: bool = False) -> Callable[[Any], Any]:  # noqa: A002 (as click has it)
    """`--store` and `--namespace`: what a person gives, else what the configuration names: OUTLIVE_STORE and
    OUTLIVE_NAMESPACE, or a file. The command gets one address. For a command that has `--server` too, that goes before
    what is configured."""

    def value_of(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
        if context.resilient_parsing:
            return url
        is_given = _is_typed(context, parameter.name or "")
        server, namespace = context.meta.get(SERVER), context.meta.get(NAMESPACE)
        if server and is_given and _is_typed(context, "server"):
            raise Mistake("give --store or --server, not both")
        if server and not is_given:
            return _server_url(server, namespace)
        found = _place(url if is_given else None, namespace)
        if found is None and is_needed:
            raise Mistake(no_store())
        return found

    store = click.option(
        "--store", "url", envvar="OUTLIVE_STORE", show_envvar=True, metavar="URL", callback=value_of, help=help
    )
    return lambda command: namespace_option(store(command))


NAMESPACE = "outlive.namespace"
"""Where the value of `--namespace` lies until `--store` is read."""


def _keep_namespace(context: click.Context, _: click.Parameter, name: str | None) -> None:
    context.meta[NAMESPACE] = name


namespace_option = click.option(
    "--namespace",
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=_keep_namespace,
    help="The tenant whose runs these are.",
)


def server_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--server`, beside a `store_flag`, which gives the command the address of either."""

    def keep(context: click.Context, _: click.Parameter, server: str | None) -> None:
        context.meta[SERVER] = server

    option = click.option(
        "--server",
        envvar=SERVER_VARIABLE,
        show_envvar=True,
        metavar="URL",
        callback=keep,
        expose_value=False,
        is_eager=True,  # --store looks at it.
        help="`outlive serve` there, with the key in OUTLIVE_KEY; instead of a store.",
    )
    with_it: Callable[..., Any] = option(command)
    return with_it


def place_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store` and `--server`, for commands whose verbs are there over HTTP too; `open_engine` takes either."""
    both: Callable[..., Any] = store_option(server_flag(command))
    return both


def place_named(context: click.Context) -> str | None:
    """The store or the server that a command line names so far, else what is configured; None if neither does.

    Raises:
        Mistake: it cannot be one.
    """
    url, is_given = context.params.get("url"), _is_typed(context, "url")
    server, namespace = context.meta.get(SERVER), context.meta.get(NAMESPACE)
    return _server_url(server, namespace) if server and not is_given else _place(url if is_given else None, namespace)


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _server_url(server: str, namespace: str | None) -> str:
    if namespace:
        raise Mistake("--namespace is for a store: a server is the server of one namespace")
    if not server.startswith(HTTP):
        raise Mistake(f"--server {server}: it is an address like https://runs.example.com")
    return server


def _place(url: str | None, namespace: str | None) -> str | None:
    if url is None:
        settings = settings_with({})
        url, namespace = settings["store"], namespace or settings["namespace"]
    return None if url is None else tenant_url(url, namespace)


def tenant_url(url: str, namespace: str | None) -> str:
    """The address of a namespace in a store; the store itself if there is no namespace.

    Raises:
        Mistake: one of the two cannot be one.
    """
    from outlive.engine.namespace import in_namespace
    from outlive.errors import InvalidArgumentError
    from outlive.errors.store import StoreUrlError

    try:
        return in_namespace(url, namespace)
    except (InvalidArgumentError, StoreUrlError) as error:
        raise Mistake(str(error)) from error


def settings_with(flags: Mapping[str, Any], *, check_server: ServerCheck | None = None) -> Settings:
    """The configuration, with what flags say on top.

    Args:
        flags: the values by the names of the settings, None for a flag that was not given. A list is a text with
            commas, as in a variable.
        check_server: what checks the settings of a server together, where one is started.

    Raises:
        Mistake: there are mistakes in it; it names all.
    """
    from outlive.config.setting import BY_NAME, TEXTS
    from outlive.config.settings import Given
    from outlive.engine.configured import read_configuration
    from outlive.errors import InvalidSettingsError

    said = {BY_NAME[name]: value for name, value in flags.items() if value is not None}
    given = {it.name: Given(it.from_text(value) if it.kind == TEXTS else value, it.flag) for it, value in said.items()}
    try:
        return read_configuration(flags=given, check_server=check_server)
    except InvalidSettingsError as error:
        raise Mistake(str(error)) from error


def no_store() -> str:
    """A message that no store is named, how to name one, and which ones are in this folder.

    A command that a server can answer does not come here while OUTLIVE_SERVER is set.
    """
    here = sorted(file.name.removesuffix("-workers") for file in Path.cwd().glob("*.db-workers"))
    found = f"; here are {', '.join(f'sqlite:{name}' for name in here[:STORES_SHOWN_MAX])}" if here else ""
    other = (
        f"; {SERVER_VARIABLE} does not help: this command needs the store itself"
        if SERVER_VARIABLE in os.environ
        else ""
    )
    ways = 'give --store URL, set OUTLIVE_STORE, or write store = "..." into outlive.toml'
    return f"no store is named; {ways}{found}{other}"


def _whole_store(context: click.Context, parameter: click.Parameter, url: str | None) -> str | None:
    if context.resilient_parsing:
        return url
    found: str | None = url if _is_typed(context, parameter.name or "") else settings_with({})["store"]
    if found is None:
        raise Mistake(no_store())
    return found


STORE_HELP = "sqlite:orders.db or postgresql://user@host/database."
store_option = store_flag(help=STORE_HELP, is_needed=True)
whole_store_option = click.option(
    "--store", "url", envvar="OUTLIVE_STORE", show_envvar=True, metavar="URL", callback=_whole_store, help=STORE_HELP
)
"""`--store` of commands that are about the namespaces in it: one that is configured has none of its own."""
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


class Group(click.Group):
    """A group of commands whose help has the first sentence of each of them in full, in the order of its program."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order in which it was added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of its commands; click would cut their sentences off at the end of a line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, it.get_short_help_str(limit=SENTENCE_CHARACTERS_MAX)) for name, it in commands if it]
            )


class Mistake(click.ClickException):
    """The command cannot be done as it was written; exit code 2."""

    exit_code = WRONG


def place_of(url: str) -> str:
    """The URL, if there is something to look at: a command that only looks creates nothing.

    Raises:
        Mistake: there is no such file, or it cannot be seen from outside.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "memory":
        raise Mistake("a store in memory belongs to its process; there is nothing to see from outside")
    if scheme == "sqlite" and not rest.startswith("//") and not Path(rest).expanduser().exists():
        raise Mistake(f"there is no file {rest}")
    return url


def open_store(url: str) -> AbstractAsyncContextManager[Store]:
    """A store that is there."""
    return new_store(place_of(url))


def open_engine(url: str) -> AbstractAsyncContextManager[Engine]:
    """The verbs of an engine on a store that is there, or behind a server. It runs nothing itself."""
    if url.startswith(HTTP):
        # It has those verbs of an engine that commands with `place_option` use.
        return cast("AbstractAsyncContextManager[Engine]", open_server(url))
    return new_engine(place_of(url))


@asynccontextmanager
async def open_server(url: str) -> AsyncIterator[Remote]:
    """A connection to a server by its address; the key is in OUTLIVE_KEY."""
    from outlive.errors import ServerError
    from outlive.remote import connect

    async with connect(url, timeout=SERVER_SECONDS) as remote:
        try:
            yield remote
        except ServerError as error:
            if error.status == UNAUTHENTICATED:
                error.add_note("a command takes it from OUTLIVE_KEY")
            raise


def person(url: str, by: str) -> str:
    """The person of `--by` who acts; empty if a server knows the owner of the key, and the flag was not typed."""
    is_typed = click.get_current_context().get_parameter_source("by") is ParameterSource.COMMANDLINE
    return "" if url.startswith(HTTP) and os.environ.get("OUTLIVE_KEY") and not is_typed else by


@asynccontextmanager
async def new_engine(url: str) -> AsyncIterator[Engine]:
    """An engine on a store, which is created if it does not exist."""
    from outlive.engine import Engine

    async with Engine(url, worker=False, redact=redacted(), store_seconds=store_seconds()) as engine:
        yield engine


def store_seconds() -> float:
    """How long a verb of a command waits for a store that says nothing; to be used behind `redacted`."""
    seconds: float = settings_with({})["store_seconds"]
    return seconds


def redacted() -> tuple[str, ...]:
    """The fields that people may not see. A configuration with mistakes is refused: it could mean to hide more."""
    try:
        return tuple(settings_with({})["redact"])
    except Mistake as error:
        look = "OUTLIVE_CONFIG=/dev/null looks without a file, and hides what OUTLIVE_REDACT names alone"
        raise Mistake(f"{error.message}\nit says which values are hidden; {look}") from error


def ask(url: str, verb: Callable[[Engine], Awaitable[T]]) -> T:
    """The answer of a verb of the engine, or of several."""

    async def work() -> T:
        async with open_engine(url) as engine:
            return await verb(engine)

    return run(work())


@asynccontextmanager
async def new_store(url: str) -> AsyncIterator[Store]:
    """A store, which is created if it is not there."""
    from outlive._kernel.runtime.clock import SystemClock
    from outlive.engine.url import store_for

    store = store_for(url, clock=SystemClock().now)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def run(
    work: Coroutine[Any, Any, T],
    *,
    is_service: bool = False,
    new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> T:
    """Run a command to its end, on Python's own event loop unless another is given; what Outlive refuses becomes one
    line and an exit code, and advises commands. An unexpected error of a service has an exit code of its own.

    What it changes is in the audit log under the name of the person who typed it, unless it is a service.
    """
    import asyncio
    import logging

    from outlive._interrupts import run_to_end
    from outlive._kernel.client.acting import acting
    from outlive.errors import ConfigurationError, OutliveError
    from outlive.errors.store import StoreUrlError

    try:
        if is_service:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                return run_to_end(runner, work)
        with acting(shell_user(), via="cli"):
            return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (StoreUrlError, ConfigurationError) as error:
        raise Mistake(as_typed(error)) from error
    except OutliveError as error:
        raise click.ClickException("; ".join([as_typed(error), *getattr(error, "__notes__", ())])) from error
    except click.ClickException:
        raise
    except Exception:
        if not is_service:
            raise
        logging.getLogger("outlive").exception("this process ends because of an unexpected error; start it again")
        sys.exit(BROKEN)


def shell_user() -> str:
    """The person at this terminal, and the machine."""
    import socket

    return f"{_user()}@{socket.gethostname()}"[:200]


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container may know no name for the user that it runs as.
        return "unknown"


# A container and a timer of the system set no USER: the name is asked for then.
by_option = click.option(
    "--by", default=_user, envvar="USER", help="Who does that; the user of the shell unless given, or whose the key is."
)


def print_json(value: Any) -> None:
    """Print a value for programs."""
    import msgspec

    from outlive.cli.terminal import shown_json

    click.echo(shown_json(msgspec.json.format(msgspec.json.encode(value), indent=2)))


def print_file(text: str) -> None:
    """Print what is a file in a pipe: byte for byte there, and on a terminal as text for people."""
    click.echo(text if sys.stdout.isatty() else text.encode(), nl=False)


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their titles, for people: each on one line, which ends where the terminal does. What stands
    under STATUS or STATE has its colour."""
    table = [[title.upper() for title in titles], *([" ".join(cell.split()) for cell in row] for row in rows)]
    # A pipe has no width: a search for a word in the output must find it.
    is_seen = sys.stdout.isatty() or "COLUMNS" in os.environ
    width_max = shutil.get_terminal_size().columns if is_seen else None
    widths = [max(len(row[column]) for row in table) for column in range(len(titles) - 1)]
    coloured = next((column for column, title in enumerate(titles) if title.upper() in ("STATUS", "STATE")), None)
    begin = 0 if coloured is None else sum(widths[:coloured]) + 2 * coloured
    for number, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        line = "  ".join([*cells, row[-1]]).rstrip()
        line = line if width_max is None or len(line) <= width_max else f"{line[: width_max - 3]}..."
        if number and coloured is not None:
            end = begin + len(row[coloured])
            line = line[:begin] + painted(line[begin:end], row[coloured]) + line[end:]
        click.echo(line)


def say(text: str, plain: Any, *, as_json: bool) -> None:
    """The answer of a command that does something: one line for people, or the facts for programs."""
    if as_json:
        print_json(plain)
    else:
        click.echo(text)


def counted(number: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
