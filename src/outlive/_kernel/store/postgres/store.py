"""The contract's verbs, each with a session of the pool that it belongs to.

Commits go one after the other over a connection of their own, so that what is given to the store first is written
first. Everything else shares a few connections, of which searches for runs have some at most; steps that write in a
transaction of their own have others, because their time is not known.

A verb that is cancelled never happens if it has no connection yet. Otherwise it goes on to its end: the caller stops
waiting, the connection is not disturbed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.run import GroupField
from outlive._kernel.store.audit import AuditFilter, AuditRow
from outlive._kernel.store.contract import (
    CLOSE_SECONDS,
    PAGE_SIZE_MAX,
    TRANSACTION_SECONDS_MAX,
    Action,
    Answer,
    CellChange,
    Change,
    Claims,
    Declared,
    Delivery,
    InboxMessage,
    ItemResult,
    Message,
    MessageRefusal,
    Outcome,
    QueueMeasure,
    Watch,
    WorkerInfo,
)
from outlive._kernel.store.deleting import References
from outlive._kernel.store.pending_write import PENDING_WRITE
from outlive._kernel.store.postgres import audit as audit_log
from outlive._kernel.store.postgres import (
    checkpoints,
    claim,
    commit,
    deleting,
    queues,
    read,
    requests,
    schedules,
    streams,
)
from outlive._kernel.store.postgres.address import parse_address
from outlive._kernel.store.postgres.beat import PostgresBeat
from outlive._kernel.store.postgres.cells import CellQueue, read_cell
from outlive._kernel.store.postgres.connection import CONNECT_SECONDS, USER_SETTINGS, Session
from outlive._kernel.store.postgres.examine import PostgresExaminer
from outlive._kernel.store.postgres.incarnation import Incarnation
from outlive._kernel.store.postgres.listen import Listener
from outlive._kernel.store.postgres.migrate import check_database, open_database
from outlive._kernel.store.postgres.moment import Moment
from outlive._kernel.store.postgres.pool import Pool, SessionVerb
from outlive._kernel.store.postgres.rows import to_text
from outlive._kernel.store.postgres.time import StoreTime
from outlive._kernel.store.postgres.transaction import PostgresTransaction
from outlive._kernel.store.postgres.watches import watch_ends
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.streams import CHUNKS_READ_MAX, Appended, StreamAppend, StreamChunk, StreamLimits
from outlive._kernel.store.tables.claiming import ClaimRequest
from outlive._kernel.store.tables.searching import ListPlace, RunSearch
from outlive._tasks import own_task
from outlive.errors import StoreError, StoreUnavailableError
from outlive.errors.store import StoreWentBackError

SHARED_SESSIONS_MAX = 4
SEARCHES_MAX = 2
"""How many of the shared sessions find runs at once: the others are for verbs that do not take long."""
SHARED_PATIENCE_SECONDS = 0.05
"""How long a verb waits for a connection that another verb has before it makes one more."""
STEP_SESSIONS_MAX = 16
POOLED_STEP_SESSIONS_MAX = 4
"""Behind a pooler, whose connections (20 by default) are for all engines together."""
MOMENTS_TRIED = 20

T = TypeVar("T")


class Pools(NamedTuple):
    """The connections of an open store, by what they are for."""

    writer: Pool
    """One connection, over which commits go one after the other."""
    shared: Pool
    """For all other verbs."""
    steps: Pool
    """For steps that write in a transaction of their own."""


class PostgresStore:
    """A store in one schema of a PostgreSQL database; any number of processes on any number of machines may share it.

    The contract of each verb is in `outlive._kernel.store.contract` and not repeated here.

    Args:
        url: `postgresql://user@host/database?schema=outlive`, see `outlive._kernel.store.postgres.address`.
        schema: the schema, if the address does not name it.
        clock: for tests: the only clock that counts. Else the server's clock does, and `local_clock` is corrected by
        it.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str | None = None,
        clock: Callable[[], int] | None = None,
        local_clock: Callable[[], int] | None = None,
    ) -> None:
        local = clock or local_clock
        assert local is not None, "a store needs a clock"
        self._address = parse_address(url, schema=schema)
        self._time = StoreTime(local, is_given=clock is not None)
        channel = None if self._address.pgbouncer else self._address.schema
        rings_channel = None if channel is None else streams.channel_of(channel)
        self._writing = commit.Writing(self._time.given, channel, [], rings_channel)
        self._cells = CellQueue(self._write, self._time.given)
        self._verbs: set[asyncio.Task[Any]] = set()
        self._commits: set[asyncio.Task[Any]] = set()
        self._appending: dict[asyncio.Task[bool], str] = {}
        """Checkpoints on their way, and whose they are."""
        self._pools: Pools | None = None
        self._searches = asyncio.Semaphore(SEARCHES_MAX)
        self._listener: Listener | None = None
        self._claims = 0
        self._process = 0
        self._incarnation = Incarnation()
        self._changed: Callable[[StoreWentBackError], None] = lambda _: None

    # -- Life ----------------------------------------------------------------------------------------------

    async def open(self, *, migrate: bool = True) -> None:
        """See `Store`."""
        self._check_process()
        if self._pools is not None:
            return
        self._process = os.getpid()
        writer = Pool(self._address, size=1)
        try:
            async with writer.session(is_write=False) as session:
                await (open_database(session) if migrate else check_database(session))
                await self._time.measure(session)
                await self._look_at(session)
        except BaseException:
            await writer.close()
            raise
        shared = Pool(self._address, size=SHARED_SESSIONS_MAX, patience=SHARED_PATIENCE_SECONDS)
        steps_max = POOLED_STEP_SESSIONS_MAX if self._address.pgbouncer else STEP_SESSIONS_MAX
        steps = Pool(self._address, size=steps_max, settings=USER_SETTINGS, kept=0)
        self._pools = pools = Pools(writer, shared, steps)
        self._searches = asyncio.Semaphore(SEARCHES_MAX)  # The one before may be of another event loop.
        for pool in pools:
            pool.others = [other for other in pools if other is not pool]
            pool.connected, pool.is_left = self._look_at, self._incarnation.is_left
        self._listener = Listener(self._address, is_own=self._is_own)

    async def close(self) -> None:
        """See `Store`."""
        pools = self._pools
        if pools is None or self._process != os.getpid():
            return
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
        loop = asyncio.get_running_loop()
        closed_at = loop.time() + CLOSE_SECONDS
        if self._verbs:
            await asyncio.wait(self._verbs, timeout=CLOSE_SECONDS)
        self._pools = None
        await asyncio.gather(*(pool.close(seconds=closed_at - loop.time()) for pool in pools))
        for verb in self._verbs:
            verb.cancel()  # It waits for a connection.

    @asynccontextmanager
    async def one_moment(self, *, makes_requested: bool = True) -> AsyncIterator[None]:
        """Let all verbs that read see the store as it is now, until this ends; no verb may write meanwhile.

        Args:
            makes_requested: whether runs that transactions of users have asked for are made before; without, that is
                left to a worker, and nothing at all is written.

        Raises:
            StoreUnavailableError: the server is away, or runs were asked for that are not made.
        """
        pools, moment = self.pools, Moment(self._address)
        try:
            for _ in range(MOMENTS_TRIED):
                if makes_requested:
                    await self.count_runs(RunFilter(), limit=1)
                if await moment.begin():
                    break
            else:
                reason = "transactions of users have asked for runs, and no worker makes them"
                raise StoreUnavailableError(str(self._address), reason)
            self._pools = pools._replace(shared=moment)
            yield
        finally:
            self._pools = pools
            await moment.end()

    def now(self) -> int:
        """See `Store`."""
        return self._time.now()

    def _is_own(self, pid: int) -> bool:
        return self._pools is not None and any(pid in pool.pids for pool in self._pools)

    def _check_process(self) -> None:
        if self._process and self._process != os.getpid():
            raise StoreError(
                f"{self._address} was opened by process {self._process} and is used by its fork {os.getpid()}; "
                f"open it after the fork only, or start the process another way (spawn)"
            )

    def _spawn(self, verb: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = own_task(verb, name="outlive-postgres-verb")
        self._verbs.add(task)
        task.add_done_callback(self._forget)
        return task

    async def _end_of(self, verb: asyncio.Future[T], *, is_one: bool = False) -> T:
        """The result of a verb, which goes on if its caller is cancelled, unless it still waits for a connection.

        `is_one`: it waits for one connection only, so that nothing of it has happened then.

        Raises:
            StoreUnavailableError: the store was closed, and the verb had no connection.
        """
        try:
            return await asyncio.shield(verb)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if verb.cancelled() and not (caller and caller.cancelling()):
                # `close` has cancelled it, and not the caller, which must not end as if it were.
                raise StoreUnavailableError(str(self._address), "it was closed meanwhile") from None
            if self._pools is not None and any(verb in pool.waiting for pool in self._pools):
                verb.cancel()  # The server was not asked yet.
                if is_one and (write := PENDING_WRITE.get()) is not None:
                    write.wait()
            raise

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._verbs.discard(task)
        self._commits.discard(task)
        if not task.cancelled():
            task.exception()  # Its caller may have given up.

    @property
    def pools(self) -> Pools:
        """Its connections.

        Raises:
            StoreError: it is not open, or was opened by another process.
        """
        return self._check_open()

    def _check_open(self) -> Pools:
        self._check_process()
        if self._pools is None:
            raise StoreError(f"{self._address} is not open")
        return self._pools

    async def _write(self, verb: SessionVerb[T], *arguments: Any) -> T:
        return await self._end_of(self._spawn(self.pools.shared.do(verb, *arguments, is_write=True)), is_one=True)

    async def _read(self, verb: SessionVerb[T], *arguments: Any) -> T:
        shared = self.pools.shared
        return await self._end_of(self._spawn(shared.do_repeatable(verb, *arguments, is_write=False)))

    async def _find(self, wanted: RunFilter, verb: SessionVerb[T], search: RunSearch) -> T:
        if not wanted.is_search:
            return await self._read(verb, search, self._writing)
        return await self._end_of(self._spawn(self._search(verb, search)))

    async def _search(self, verb: SessionVerb[T], search: RunSearch) -> T:
        shared, task = self.pools.shared, asyncio.current_task()
        shared.waiting.add(task)
        try:
            await self._searches.acquire()
        finally:
            shared.waiting.discard(task)
        try:
            return await shared.do_repeatable(verb, search, self._writing, is_write=False)
        finally:
            self._searches.release()

    # -- Writing -------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        writer = self.pools.writer
        if not changes:
            return []
        task = self._spawn(writer.do(commit.commit, changes, self._writing, is_write=True))
        self._commits.add(task)
        return await self._end_of(task, is_one=True)

    async def begin(self, *, seconds_max: float = TRANSACTION_SECONDS_MAX) -> PostgresTransaction:
        """See `Store`."""
        transaction = PostgresTransaction(
            self._address, self.pools.steps, self._writing, flush=self._flush, end=self._end_backend
        )
        return await transaction.begin(seconds_max=seconds_max)

    async def _flush(self, seconds_max: float | None) -> bool:
        """Wait until every commit that was asked for before has been answered; False if that takes too long."""
        self._check_open()
        return not self._commits or not (await asyncio.wait(self._commits, timeout=seconds_max))[1]

    def _end_backend(self, pid: int) -> None:
        """Let the server end a session that is lost to us, and may be in the middle of a statement."""
        if self._pools is not None and not self._address.pgbouncer:
            self._spawn(self._pools.shared.do_repeatable(_end_backend, pid, is_write=False))

    async def request_start(self, connection: Any, change: Change) -> Outcome:
        """See `Store`."""
        self._check_process()
        # Not in the user's transaction: a writer of an equal blob would have to wait for it.
        await self.put_blobs(change.blobs)
        change = replace(change, blobs=[])
        return await requests.request_start(
            connection, change, schema=self._address.schema, channel=self._writing.channel
        )

    async def request_message(self, connection: Any, message: Message, *, start: Change | None = None) -> Delivery:
        """See `Store`."""
        self._check_process()
        await self.put_blobs([*message.blobs, *([] if start is None else start.blobs)])
        change = None if start is None else replace(start, blobs=[])
        request = commit.RequestedMessage(replace(message, blobs=()), change)
        return await requests.request_message(
            connection, request, schema=self._address.schema, channel=self._writing.channel
        )

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """See `Store`."""
        if blobs:
            # A blob that exists is left as it is, so putting it there twice does no harm.
            shared = self.pools.shared
            await self._end_of(self._spawn(shared.do_repeatable(commit.put_blobs, blobs, self._writing, is_write=True)))

    async def read_cell(self, name: str) -> bytes | None:
        """See `CellStore`."""
        return await self._read(read_cell, name)

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """See `Store`."""
        self._check_open()
        answer: asyncio.Future[T] = self._cells.add(name, change, audit)
        if not self._cells.is_busy:
            self._cells.is_busy = True
            self._spawn(self._cells.run())
        try:
            return await self._end_of(answer)
        except asyncio.CancelledError:
            answer.cancel()  # It happens all the same if it has a connection.
            raise

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        """See `CheckpointTable`."""
        appending = self._spawn(checkpoints.append_checkpoint(self.pools.shared, run_id, row))
        self._appending[appending] = run_id
        appending.add_done_callback(self._appending.pop)
        return await self._end_of(appending)

    async def clear_checkpoints(self, run_id: str) -> None:
        """See `CheckpointTable`."""
        # Verbs whose callers have given up: they came before, and must not write what is then never cleared.
        if before := [appending for appending, of in self._appending.items() if of == run_id]:
            await asyncio.wait(before)
        await self._write(checkpoints.clear_checkpoints, run_id)

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """See `ScheduleTable`."""
        return await self._write(schedules.change_schedules, changes, self._writing) if changes else []

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        """See `StreamTable`. May be repeated: each append has a mark."""
        shared = self.pools.shared
        verb = shared.do_repeatable(streams.append_streams, appends, limits, self._writing.rings_channel, is_write=True)
        return await self._end_of(self._spawn(verb))

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """See `Store`."""
        return await self._write(commit.deliver, messages, starts, inbox_messages_max, self._writing)

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """See `Store`."""
        # Keeping a watch twice does no harm.
        shared = self.pools.shared
        return await self._end_of(self._spawn(shared.do_repeatable(watch_ends, watches, self._writing, is_write=True)))

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """See `Store`."""
        shared = self.pools.shared
        refusing = shared.do_repeatable(commit.refuse_messages, worker_id, refusals, is_write=True)
        await self._end_of(self._spawn(refusing))

    async def claim_runs(
        self,
        worker_id: str,
        definitions: Sequence[str],
        *,
        limit: int,
        orphans_max: int | None = None,
        stale_seconds: float = 0,
        declined: Collection[tuple[int, int]] = (),
        queues: Sequence[str] | None = None,
        declared: Declared | None = None,
    ) -> Claims:
        """See `Store`."""
        most = limit + 1 if orphans_max is None else orphans_max
        request = ClaimRequest(worker_id, definitions, limit, most, stale_seconds, declined, queues, declared)
        return await self._write(self._claim, request)

    async def _claim(self, session: Session, request: ClaimRequest) -> Claims:
        session.is_doubtful = False
        await self._time.measure(session)
        self._claims += 1
        return await claim.claim_runs(session, request, self._writing, claim_number=self._claims)

    async def list_queues(self) -> list[str]:
        """See `Store`."""
        return await self._read(read.list_queues)

    async def measure_queue(self, name: str, *, limit: int, run_id: str = "") -> QueueMeasure:
        """See `Store`."""
        return await self._read(queues.measure_queue, name, limit, run_id)

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Store`."""
        await self._write(claim.register_worker, worker, lease_seconds, self._writing)

    async def redefine_worker(self, worker_id: str, definitions: Sequence[str]) -> None:
        """See `Store`."""
        await self._write(claim.redefine_worker, worker_id, definitions)

    async def end_session(self, worker_id: str) -> None:
        """See `Store`."""
        await self._write(claim.end_session, worker_id, self._writing)

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        """See `Deletion`."""
        if not journals:
            return []
        return await self._write(deleting.delete_trees, journals, ended_before, audit or {}, self._writing)

    async def append_audit(self, actions: Sequence[Action]) -> None:
        """See `AuditTable`."""
        if actions:
            await self._write(audit_log.append_audit, actions, self._time.given())

    async def read_audit(self, *, after: int = 0, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self._read(audit_log.read_audit, after, limit)

    async def list_audit(self, wanted: AuditFilter, *, before: int | None = None, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self._read(audit_log.list_audit, wanted, before, limit)

    async def carry_audit(self, rows: Sequence[AuditRow]) -> bool:
        """See `AuditTable`."""
        return await self._write(audit_log.carry_audit, rows)

    async def prune_audit(self, *, before: int, limit: int, key: bytes | None = None) -> int:
        """See `AuditTable`."""
        return await self._write(audit_log.prune_audit, before, limit, key, self._time.given())

    async def give_back(self) -> bool:
        """See `Deletion`. Autovacuum does that."""
        return False

    async def find_references(self, *, after: str = "", limit: int) -> References:
        """See `Deletion`."""
        return await self._read(deleting.find_references, after, limit)

    async def keep_blobs(self, ids: Collection[str]) -> None:
        """See `Deletion`."""
        if ids:
            await self._write(deleting.keep_blobs, ids, self._writing)

    async def delete_blobs(self, *, kept_before: int, limit: int) -> int:
        """See `Deletion`."""
        return await self._write(deleting.delete_blobs, kept_before, limit)

    def open_beat(self, worker_id: str) -> PostgresBeat:
        """See `Store`."""
        self._check_process()
        return PostgresBeat(self._address, worker_id, time=self._time, incarnation=self._incarnation)

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """See `Store`."""
        self._changed = changed

    async def _look_at(self, session: Session) -> None:
        if (change := await self._incarnation.look(session, timeout=CONNECT_SECONDS)) is not None:
            self._writing.handles.clear()
            self._changed(change)

    def watch(self, ring: Callable[[str], None]) -> None:
        """See `Store`."""
        if self._listener is not None and not self._address.pgbouncer:
            self._listener.watch(ring)

    async def ring(self, cell: str) -> None:
        """See `Store`."""
        if self._writing.channel is not None:
            await self._read(_notify, self._writing.channel, to_text(cell))

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `StreamTable`."""
        if self._listener is None or self._writing.rings_channel is None:
            return False
        self._listener.follow(self._writing.rings_channel, ring)
        return True

    @property
    def examiner(self) -> PostgresExaminer:
        """See `Store`."""
        return PostgresExaminer(self._read, self._write, time=self._time.given)

    # -- Reading -------------------------------------------------------------------------------------------

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """See `Store`."""
        return await self._read(read.read_journal, journal, after, limit)

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """See `Store`."""
        return await self._read(read.read_journals, journals)

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        """See `Store`."""
        return await self._read(read.read_inbox, journals)

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """See `Store`."""
        return await self._read(read.find_answers, asks)

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """See `Store`."""
        return await self._read(read.find_inboxes, worker_id)

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """See `Store`."""
        return await self._read(read.get_blobs, ids)

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        """See `CheckpointTable`."""
        return await self._read(checkpoints.read_checkpoints, run_id)

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """See `ScheduleTable`."""
        return await self._read(schedules.find_due_schedules, limit, self._time.given())

    async def find_schedules(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """See `ScheduleTable`."""
        return await self._read(schedules.find_schedules, names)

    async def list_schedules(self, *, after: str = "", limit: int) -> list[ScheduleRow]:
        """See `ScheduleTable`."""
        return await self._read(schedules.list_schedules, after, limit)

    async def find_run(self, run_id: str) -> Run | None:
        """See `Store`."""
        return (await self.find_runs([run_id])).get(run_id)

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """See `Store`."""
        return await self._read(requests.find_runs, run_ids, self._writing)

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        *,
        limit: int = 100,
        before: ListPlace | None = None,
        after: ListPlace | None = None,
        oldest_first: bool = False,
    ) -> list[Run]:
        """See `Store`."""
        most = min(limit, PAGE_SIZE_MAX)
        search = RunSearch(filter=filter, limit=most, before=before, after=after, oldest_first=oldest_first)
        return await self._find(filter, requests.list_runs, search)

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002 (the contract's name)
        """See `Store`."""
        return await self._find(filter, requests.count_runs, RunSearch(filter=filter, limit=limit))

    async def count_groups(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        by: GroupField,
        *,
        limit: int,
        groups_max: int,
    ) -> dict[str, int]:
        """See `Store`."""
        search = RunSearch(filter=filter, limit=limit, by=by, groups_max=groups_max)
        return await self._find(filter, requests.count_groups, search)

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """See `Store`."""
        return await self._read(read.read_items, run_id, after, min(limit, PAGE_SIZE_MAX))

    async def read_stream(
        self, run_id: str, name: str, *, after: int = 0, limit: int = CHUNKS_READ_MAX
    ) -> list[StreamChunk]:
        """See `StreamTable`."""
        return await self._read(streams.read_stream, run_id, name, after, limit)

    async def list_streams(self, run_id: str) -> dict[str, int]:
        """See `StreamTable`."""
        return await self._read(streams.list_streams, run_id)

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """See `Store`."""
        return await self._read(partial(claim.list_workers, with_runs=with_runs), self._time.given())


async def _notify(session: Session, channel: str, what: str) -> None:
    await session.fetch("notify", channel, what)


async def _end_backend(session: Session, pid: int) -> None:
    await session.fetch("end_backend", pid)
