"""What the commands share: the options that name a store, the shape of answers, and how an error is printed.

A person at a terminal wants one line and a program wants a number. So a mistake in the command itself (a wrong URL, a
file that cannot be imported) is one line and exit code 2, everything else that Outlive refuses is one line and exit
code 1, and only a bug shows a traceback.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from outlive._store.contract import Store

T = TypeVar("T")

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

store_option = click.option(
    "--store",
    "url",
    envvar="OUTLIVE_STORE",
    show_envvar=True,
    required=True,
    metavar="URL",
    help="sqlite:orders.db or postgresql://user@host/database.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


class Mistake(click.ClickException):
    """The command cannot be done as it was written; exit code 2."""

    exit_code = 2


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


@asynccontextmanager
async def new_store(url: str) -> AsyncIterator[Store]:
    """A store, which is created if it is not there."""
    from outlive._runtime.clock import SystemClock
    from outlive.engine.url import store_for

    store = store_for(url, clock=SystemClock().now)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command to its end; what Outlive refuses becomes one line and an exit code."""
    from outlive.errors import ConfigurationError, OutliveError, StoreUrlError

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (StoreUrlError, ConfigurationError) as error:
        raise Mistake(str(error)) from error
    except OutliveError as error:
        raise click.ClickException(str(error)) from error


def print_json(value: Any) -> None:
    """Print a value for programs."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their titles, for people: each on one line, which ends where the terminal does."""
    table = [[title.upper() for title in titles], *([" ".join(cell.split()) for cell in row] for row in rows)]
    # A pipe has no width: a search for a word in the output must find it.
    is_seen = sys.stdout.isatty() or "COLUMNS" in os.environ
    width_max = shutil.get_terminal_size().columns if is_seen else None
    widths = [max(len(row[column]) for row in table) for column in range(len(titles) - 1)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)]
        line = "  ".join([*cells, row[-1]]).rstrip()
        click.echo(line if width_max is None or len(line) <= width_max else f"{line[: width_max - 3]}...")


def counted(number: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
