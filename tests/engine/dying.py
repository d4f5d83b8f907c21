"""Processes that die at a commit: before it is written, or after it is written and before anybody hears of it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import outlive
from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import Change, Outcome, Store, Transaction
from tests.engine.inside import crash
from tests.engine.support import Place, in_time

Outcomes = list[tuple[Outcome, int]]
BURIALS = {"open", "close", "end_session"}
"""What the test does with the store of a dead process."""


class DyingStore:
    """Any store; at the `last` commit of journal events everything stands still, and `dead` is set."""

    def __init__(self, inner: Store, *, last: int, is_done: bool) -> None:
        self.inner = inner
        self.dead = asyncio.Event()
        self._last, self._is_done, self._commits = last, is_done, 0
        self._transactions: list[Transaction] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(verb) or name in BURIALS:
            return verb
        return partial(self._do, verb)

    async def _do(self, verb: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        if self.dead.is_set():
            await _stand_still()
        return await verb(*args, **options)

    async def commit(self, changes: Sequence[Change]) -> Outcomes:
        """Commit, unless this is the moment."""
        return await self.live_through(partial(self.inner.commit, changes))

    async def begin(self, **options: Any) -> Transaction:
        """Begin a transaction whose commit counts too."""
        self._transactions.append(await self._do(self.inner.begin, **options))
        return DyingTransaction(self, self._transactions[-1])

    async def forget_transactions(self) -> None:
        """What a database does when a process has died: whatever it had open is gone."""
        for transaction in self._transactions:
            await transaction.rollback()

    async def live_through(self, commit: Callable[[], Awaitable[Outcomes]]) -> Outcomes:
        """Commit here or there, and die before or after it."""
        self._commits += 1
        if self._commits < self._last:
            return await commit()
        if self._commits == self._last and self._is_done:
            await commit()
        self.dead.set()
        return await _stand_still()


async def _stand_still() -> NoReturn:
    while True:
        await asyncio.Event().wait()


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

            async def run(engine: outlive.Engine, run_id: str = run_id) -> None:
                handle = await engine.start(workflow, *args, id=run_id)
                with suppress(outlive.errors.RunFailedError):
                    await handle.result()

            is_dead = await _live(place, run, last=last, is_done=is_done)
            yield run_id
            if not is_dead:
                return
    raise AssertionError("it never ended")


async def die_at_each_commit(place: Place, run_id: str, **options: Any) -> AsyncIterator[None]:
    """Let worker after worker die at one of its commits, in both ways, until the run has ended; yields after each."""

    async def wait(engine: outlive.Engine) -> None:
        with suppress(outlive.errors.RunFailedError):
            await engine.get(run_id).result()

    for turn in range(10_000):
        # Two commits now and then, or no test would ever see what a worker does after its first one.
        is_dead = await _live(place, wait, last=2 if turn % 5 == 4 else 1, is_done=bool(turn % 2), **options)
        yield
        if not is_dead:
            return
    raise AssertionError("the run does not come to an end")


async def _live(
    place: Place, work: Callable[[outlive.Engine], Awaitable[None]], *, last: int, is_done: bool, **options: Any
) -> bool:
    """One life of an engine, until it dies or its work is done; whether it died."""
    stores: list[DyingStore] = []

    def wrap(inner: Store) -> Any:
        stores.append(DyingStore(inner, last=last, is_done=is_done))
        return stores[-1]

    engine = await place.engine(wrap=wrap, **options).__aenter__()
    working = asyncio.ensure_future(work(engine))
    dying = asyncio.ensure_future(stores[0].dead.wait())
    await in_time(asyncio.wait([working, dying], return_when=asyncio.FIRST_COMPLETED))
    is_dead = stores[0].dead.is_set()
    for task in (working, dying):
        task.cancel()
    await asyncio.gather(working, dying, return_exceptions=True)
    await stores[0].forget_transactions()
    await crash(engine)
    return is_dead
