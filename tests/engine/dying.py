"""A process that dies at a commit of its own choice: just before it, or just after."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import outlive
from outlive._journal.codec import Row
from outlive._store.contract import Change, Outcome, Store, Transaction
from tests.engine.support import Place, crash, in_time

Outcomes = list[tuple[Outcome, int]]


class DyingStore:
    """Any store; at the `last` commit of journal events everything stands still, and `dead` is set."""

    def __init__(self, inner: Store, *, last: int, is_done: bool) -> None:
        self.inner = inner
        self.dead = asyncio.Event()
        self._last, self._is_done, self._commits = last, is_done, 0
        self._transactions: list[Transaction] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def commit(self, changes: Sequence[Change]) -> Outcomes:
        """Commit, unless this is the moment."""
        return await self.live_through(partial(self.inner.commit, changes))

    async def begin(self, **options: Any) -> Transaction:
        """Begin a transaction whose commit counts too."""
        self._transactions.append(await self.inner.begin(**options))
        return DyingTransaction(self, self._transactions[-1])

    async def forget_transactions(self) -> None:
        """What a database does when a process has died: whatever it had open is gone."""
        for transaction in self._transactions:
            await transaction.rollback()

    async def live_through(self, commit: Callable[[], Awaitable[Outcomes]]) -> Outcomes:
        """Commit here or there, and die before or after it."""
        self._commits += 1
        if self._commits != self._last:
            return await commit()
        if self._is_done:
            await commit()
        self.dead.set()
        never: asyncio.Future[Outcomes] = asyncio.get_running_loop().create_future()
        return await never


class DyingTransaction:
    """A transaction of a dying store."""

    def __init__(self, store: DyingStore, inner: Transaction) -> None:
        self._store, self.inner = store, inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> Outcomes:
        """Commit, unless this is the moment."""
        return await self._store.live_through(partial(self.inner.commit, changes, behind=behind))


async def deaths(place: Place, workflow: Any, *args: Any) -> AsyncIterator[str]:
    """Run a workflow once for every commit that it makes, and die there, before it and after it.

    Gives the id of the run each time, and is over when a run has come to its end alive.
    """
    for last in range(1, 100):
        for is_done in (False, True):
            run_id = f"run-{last}-{'after' if is_done else 'before'}"
            stores: list[DyingStore] = []
            wrap = partial(_wrap, stores, last=last, is_done=is_done)
            engine = await place.engine(wrap=wrap).__aenter__()
            running = asyncio.create_task(_run(engine, workflow, args, run_id))
            dying = asyncio.create_task(stores[0].dead.wait())
            await in_time(asyncio.wait([running, dying], return_when=asyncio.FIRST_COMPLETED))
            is_dead = stores[0].dead.is_set()
            for task in (running, dying):
                task.cancel()
            await asyncio.wait([running, dying])
            await stores[0].forget_transactions()
            await crash(engine)
            yield run_id
            if not is_dead:
                return
    raise AssertionError("it never ended")


def _wrap(stores: list[DyingStore], inner: Store, *, last: int, is_done: bool) -> Any:
    stores.append(DyingStore(inner, last=last, is_done=is_done))
    return stores[-1]


async def _run(engine: outlive.Engine, workflow: Any, args: tuple[Any, ...], run_id: str) -> None:
    run = await engine.start(workflow, *args, id=run_id)
    with suppress(outlive.RunFailed):
        await run.result()
