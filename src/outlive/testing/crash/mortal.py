"""A store whose process dies at a given write.

It counts what it writes. At its point it dies: the write is not done (`BEFORE`), or is done and not answered (`AFTER`).
From then on no verb does anything or ever returns, as for a process that is no more; what waits is cancelled.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import (
    CellChange,
    Change,
    Claims,
    Message,
    MessageRefusal,
    Outcome,
    Store,
    Transaction,
    Watch,
    WorkerInfo,
)
from outlive._kernel.store.streams import Appended, StreamAppend
from outlive.testing.crash.journal import event_of, title
from outlive.testing.watched_store import LIFE, SYNC_VERBS


class Moment(enum.Enum):
    """When, relative to a write, the process dies."""

    BEFORE = "right before"
    AFTER = "right after"


@dataclass(frozen=True, slots=True)
class Death:
    """Where a process dies: at which of its writes, counted from 1, and when."""

    write: int
    moment: Moment


@dataclass(frozen=True, slots=True)
class Write:
    """A write of a process that lived."""

    what: str
    is_claim: bool = False
    """A claim is known to write only when it has: there is no point right before it."""


class MortalStore:
    """Any store, until it dies."""

    def __init__(self, inner: Store, death: Death | None) -> None:
        self.inner = inner
        self.death = death
        self.writes: list[Write] = []
        self.died = asyncio.Event()
        self.acknowledged: dict[tuple[int, int], Row] = {}
        """The rows of which the engine heard that they are durable, by journal and seq."""
        self.given: dict[tuple[int, int], Row] = {}
        """The rows of journals that were there, whether or not anybody heard what became of them."""
        self.workers: list[str] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.inner, name)
        if name.startswith("_") or name in SYNC_VERBS or name in LIFE or not callable(verb):
            return verb
        return partial(self._read, verb)

    async def close(self) -> None:
        """The opener of the inner store closes it, when the process is dead or has ended."""

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        return await self.write_changes(partial(self.inner.commit, changes), changes)

    async def write_changes(
        self, verb: Callable[[], Awaitable[list[tuple[Outcome, int]]]], changes: Sequence[Change]
    ) -> list[tuple[Outcome, int]]:
        """Write changes, if it lives, and note what was acknowledged."""
        what = "commit of " + ", ".join(_title(change) for change in changes)
        self.given.update(((change.journal, row[0]), row) for change in changes for row in change.rows)
        outcomes: list[tuple[Outcome, int]] = await self._write(verb, what)
        for change, (outcome, journal) in zip(changes, outcomes, strict=True):
            if outcome is Outcome.COMMITTED:
                self.acknowledged.update(((journal, row[0]), row) for row in change.rows)
        return outcomes

    async def deliver(self, messages: Sequence[Message], **options: Any) -> Any:
        """See `Store`."""
        what = "delivery of " + ", ".join(f"{it.kind.value} {it.name}".strip() for it in messages)
        return await self._write(partial(self.inner.deliver, messages, **options), what)

    async def watch_ends(self, watches: Sequence[Watch]) -> Any:
        """See `Store`."""
        what = "watch of " + ", ".join(watch.run_id for watch in watches)
        return await self._write(partial(self.inner.watch_ends, watches), what)

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """See `Store`."""
        what = f"refusal of {len(refusals)} asks"
        await self._write(partial(self.inner.refuse_messages, worker_id, refusals), what)

    async def change_cell(self, name: str, change: CellChange[Any], **options: Any) -> Any:
        """See `CellStore`."""
        return await self._write(partial(self.inner.change_cell, name, change, **options), f"change of cell {name}")

    async def append_streams(self, appends: Sequence[StreamAppend], **options: Any) -> list[Appended]:
        """See `StreamTable`."""
        what = "items of " + ", ".join(it.said.name for it in appends)
        answers: list[Appended] = await self._write(partial(self.inner.append_streams, appends, **options), what)
        return answers

    async def claim_runs(self, *args: Any, **options: Any) -> Claims:
        """See `Store`."""
        claims: Claims = await self._read(self.inner.claim_runs, *args, **options)
        if claims.claims:
            self.writes.append(Write("claim of " + ", ".join(it.run.id for it in claims.claims), is_claim=True))
            if self.death is not None and len(self.writes) == self.death.write:
                await self._die()
        return claims

    async def register_worker(self, worker: WorkerInfo, **options: Any) -> None:
        """See `Store`."""
        self.workers.append(worker.id)
        await self._read(self.inner.register_worker, worker, **options)

    async def begin(self, **options: Any) -> Transaction:
        """See `Store`."""
        return MortalTransaction(self, await self._read(self.inner.begin, **options))

    async def _write(self, verb: Callable[[], Awaitable[Any]], what: str) -> Any:
        await self._check_alive()
        self.writes.append(Write(what))
        dies_here = self.death is not None and len(self.writes) == self.death.write
        if dies_here and self.death is not None and self.death.moment is Moment.BEFORE:
            await self._die()
        answer = await verb()
        if dies_here:
            await self._die()
        return answer

    async def _read(self, verb: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        await self._check_alive()
        answer = await verb(*args, **options)
        await self._check_alive()
        return answer

    async def _die(self) -> None:
        self.died.set()
        await self._check_alive()

    async def _check_alive(self) -> None:
        if self.died.is_set():
            await asyncio.get_running_loop().create_future()


class MortalTransaction:
    """A transaction of a store that may die: nothing that was written in it stays then, unless it was committed."""

    def __init__(self, store: MortalStore, inner: Transaction) -> None:
        self._store, self._inner = store, inner

    @property
    def handle(self) -> Any:
        """See `Transaction`."""
        return self._inner.handle

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> list[tuple[Outcome, int]]:
        """See `Transaction`."""
        try:
            return await self._store.write_changes(partial(self._inner.commit, changes, behind=behind), changes)
        except asyncio.CancelledError:
            # The database of a dead process rolls its transactions back.
            await self._inner.rollback()
            raise

    async def rollback(self) -> None:
        """See `Transaction`."""
        await self._inner.rollback()

    def gave_way(self, error: BaseException) -> bool:
        """See `Transaction`."""
        return self._inner.gave_way(error)


def _title(change: Change) -> str:
    return " + ".join(title(event_of(row)) for row in change.rows)
