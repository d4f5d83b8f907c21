"""The values that a shell offers: programs of the folder, words of ours, and names in the store or behind the server
that the command line names so far, else the configuration.

A person who presses Tab changes nothing and is not kept waiting: a store is not migrated for it, and what gives no
answer in time, or an error, offers nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from outlive._kernel.store.contract import Store
    from outlive.remote import Remote

OFFERED_MAX = 50
ANSWER_SECONDS_MAX = 2.0
Offer = tuple[str, str]
"""A value, and what a shell says of it."""


def programs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell itself completes them: app.py, orders.flow.yaml."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def statuses(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The statuses of runs."""
    from click.shell_completion import CompletionItem

    from outlive._kernel.model.run import STORED

    return [CompletionItem(status.value) for status in STORED if status.value.startswith(incomplete)]


def run_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The newest runs whose ids begin so."""
    from outlive._kernel.model import RunFilter

    async def stored(store: Store) -> list[Offer]:
        found = await store.list_runs(RunFilter(id_prefix=incomplete, roots_only=True), limit=OFFERED_MAX)
        return [(run.id, f"{run.workflow} {run.status.value}") for run in found]

    async def served(server: Remote) -> list[Offer]:
        found = await server.list(id_prefix=incomplete or None, roots_only=True, limit=OFFERED_MAX)
        return [(run.id, f"{run.workflow} {run.status}") for run in found]

    return _offered(ctx, stored, served)


def queue_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The queues whose names begin so."""

    async def stored(store: Store) -> list[Offer]:
        return [(name, "") for name in sorted(await store.list_queues()) if name.startswith(incomplete)]

    async def served(server: Remote) -> list[Offer]:
        found = [info.name for info in await server.queues.list()]
        return [(name, "") for name in found if name.startswith(incomplete)]

    return _offered(ctx, stored, served)


def workflow_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The workflows whose names begin so, as workers have described them."""

    async def stored(store: Store) -> list[Offer]:
        from outlive._kernel.client.definitions import names_in

        return [(name, "") for name in await names_in(store) if name.startswith(incomplete)]

    async def served(server: Remote) -> list[Offer]:
        found = sorted({info.name for info in await server.workflows.list()})
        return [(name, "") for name in found if name.startswith(incomplete)]

    return _offered(ctx, stored, served)


def _offered(
    ctx: click.Context,
    stored: Callable[[Store], Awaitable[list[Offer]]],
    served: Callable[[Remote], Awaitable[list[Offer]]],
) -> list[CompletionItem]:
    import asyncio

    from click.shell_completion import CompletionItem

    from outlive.cli.edge import HTTP, place_named

    async def look() -> list[Offer]:
        url = place_named(ctx)
        if url is None:
            return []
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            if url.startswith(HTTP):
                from outlive.cli.edge import open_server

                async with open_server(url) as server:
                    return await served(server)
            return await _look_at_store(url, stored)

    try:
        found = asyncio.run(look())
    except Exception:  # Whatever it is, a person who types a command does not want to read it now.
        return []
    return [CompletionItem(value, help=said or None) for value, said in found[:OFFERED_MAX]]


async def _look_at_store(url: str, stored: Callable[[Store], Awaitable[list[Offer]]]) -> list[Offer]:
    from outlive._kernel.runtime.clock import SystemClock
    from outlive.cli.edge import place_of
    from outlive.engine.url import store_for

    store = store_for(place_of(url), clock=SystemClock().now)
    try:
        await store.open(migrate=False)
        return await stored(store)
    finally:
        await store.close()
