"""The contract's verbs, each handed to the thread that can do it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

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
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.sqlite import read
from outlive._kernel.store.sqlite.audit import APPEND_AUDIT, CARRY_AUDIT, PRUNE_AUDIT, list_audit, read_audit
from outlive._kernel.store.sqlite.beat import SqliteBeat
from outlive._kernel.store.sqlite.bells import READERS, WORKERS, Bells
from outlive._kernel.store.sqlite.cells import CHANGE_CELL, read_cell
from outlive._kernel.store.sqlite.checkpoints import APPEND_CHECKPOINT, CLEAR_CHECKPOINTS, read_checkpoints
from outlive._kernel.store.sqlite.claim import ClaimVerbs
from outlive._kernel.store.sqlite.commit import COMMIT_CHANGES, DELIVER, PUT_BLOBS
from outlive._kernel.store.sqlite.connection import Role, Session, check_version
from outlive._kernel.store.sqlite.deleting import (
    DELETE_BLOBS,
    DELETE_TREES,
    GIVE_BACK,
    KEEP_BLOBS,
    find_references,
)
from outlive._kernel.store.sqlite.examine import SqliteExaminer
from outlive._kernel.store.sqlite.hold import FileHold
from outlive._kernel.store.sqlite.inbox import REFUSE_MESSAGES
from outlive._kernel.store.sqlite.lock import WorkerLocks
from outlive._kernel.store.sqlite.migrate import check_database, open_database
from outlive._kernel.store.sqlite.queues import measure_queue
from outlive._kernel.store.sqlite.schedules import CHANGE_SCHEDULES, find_due_schedules, find_schedules, list_schedules
from outlive._kernel.store.sqlite.streams import APPEND_STREAMS, list_streams, read_stream
from outlive._kernel.store.sqlite.thread import Reader, Searcher, StoreThread
from outlive._kernel.store.sqlite.transaction import BEGIN, SqliteTransaction
from outlive._kernel.store.sqlite.watches import WATCH_ENDS
from outlive._kernel.store.sqlite.writer import Writer, WriteVerb
from outlive._kernel.store.streams import CHUNKS_READ_MAX, Appended, StreamAppend, StreamChunk, StreamLimits
from outlive._kernel.store.tables.claiming import ClaimRequest
from outlive._kernel.store.tables.searching import ListPlace, RunSearch
from outlive.errors import ConfigurationError, StoreError
from outlive.errors.store import StoreWentBackError

A = TypeVar("A")
T = TypeVar("T")


class SqliteStore:
    """A store in one file; any number of processes of one machine may share it.

    The contract of each verb is in `outlive._kernel.store.contract` and not repeated here.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], int]) -> None:
        # Links are followed once: the side files of SQLite lie beside the real file.
        self._path = Path(path).expanduser().resolve()
        self._clock = clock
        self._locks = WorkerLocks(self._path.with_name(self._path.name + "-workers"))
        self._workers = ClaimVerbs(self._locks)
        bells = self._path.with_name(self._path.name + "-bells")
        self._readers, self._watchers = Bells(bells, READERS), Bells(bells, WORKERS)
        self._writer: Writer | None = None
        self._reader: Reader | None = None
        self._searcher: Searcher | None = None
        self._file: tuple[int, int] | None = None
        self._hold: FileHold | None = None
        self._process = 0

    # -- Life ----------------------------------------------------------------------------------------------

    async def open(self, *, migrate: bool = True) -> None:
        """See `Store`."""
        self._check_process()
        if self._writer is not None:
            return
        check_version()
        self._process = os.getpid()
        writer = Writer(self._session(Role.WRITER), name="outlive-sqlite-writer", ring=self._watchers.ring)
        reader = Reader(self._session(Role.READER), name="outlive-sqlite-reader")
        searcher = Searcher(self._session(Role.READER), name="outlive-sqlite-searcher")
        await writer.start(lambda: self._prepare(writer.session, migrate=migrate))
        self._file = reader.session.file = searcher.session.file = writer.session.file
        started: list[StoreThread] = [writer]
        try:
            for thread in (reader, searcher):
                await thread.start(thread.session.open)
                started.append(thread)
        except BaseException:
            for one in reversed(started):
                await one.stop()
            raise
        self._writer, self._reader, self._searcher = writer, reader, searcher
        self._hold = FileHold(self._path)

    def _session(self, role: Role) -> Session:
        return Session(self._path, clock=self._clock, role=role)

    def _prepare(self, session: Session, *, migrate: bool) -> None:
        open_database(session) if migrate else check_database(session)
        self._locks.open()

    async def close(self) -> None:
        """See `Store`."""
        writer, reader, searcher = self._writer, self._reader, self._searcher
        if writer is None or reader is None or searcher is None or self._process != os.getpid():
            return
        self._readers.close()
        self._watchers.close()
        # If another process keeps the file locked, all that is queued has so long together, not each for itself.
        for thread in (writer, reader, searcher):
            thread.session.lock_wait.hurry(CLOSE_SECONDS)
        if self._locks.held:
            # A store that cannot even write this down has workers that look dead, and that is true enough.
            with suppress(StoreError):
                await self.write(self._workers.forget_locks, None)
        self._writer = self._reader = self._searcher = None
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.release()
        # The writer is the last to close: it takes the WAL with it if no other process is there.
        await searcher.stop()
        await reader.stop()
        await writer.stop()
        if hold is not None:
            hold.close()
        self._locks.close()
        # Closed by the process that opened it: a fork may open it again as its own.
        self._process = 0

    def now(self) -> int:
        """See `Store`."""
        return self._clock()

    def write(self, verb: WriteVerb[A, T], argument: A) -> asyncio.Future[T]:
        """Call a verb on the thread that writes; its result."""
        self._check_process()
        if self._writer is None:
            raise StoreError(f"{self._path} is not open")
        return self._writer.submit(verb, argument)

    def read(self, verb: Callable[[Session, A], T], argument: A) -> asyncio.Future[T]:
        """Call a verb on the thread that reads; its result."""
        self._check_process()
        if self._reader is None:
            raise StoreError(f"{self._path} is not open")
        return self._reader.submit(verb, argument)

    def search(self, verb: Callable[[Session, A], T], argument: A) -> asyncio.Future[T]:
        """Call a verb that may have to look at many rows, on a thread that other reads do not wait for; its result."""
        self._check_process()
        if self._searcher is None:
            raise StoreError(f"{self._path} is not open")
        return self._searcher.submit(verb, argument)

    def _find(self, wanted: RunFilter, verb: Callable[[Session, RunSearch], T], search: RunSearch) -> asyncio.Future[T]:
        return self.search(verb, search) if wanted.is_search else self.read(verb, search)

    def _check_process(self) -> None:
        if self._process and self._process != os.getpid():
            raise StoreError(
                f"{self._path} was opened by process {self._process} and is used by its fork {os.getpid()}; "
                f"open it after the fork only, or start the process another way (spawn)"
            )

    # -- Writing -------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        outcomes = await self.write(COMMIT_CHANGES, changes) if changes else []
        if rung := [change.rings for change in changes if change.rings]:
            self._readers.ring(rung)
        return outcomes

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """See `Store`."""
        return await self.write(DELIVER, (messages, starts, inbox_messages_max))

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """See `Store`."""
        await self.write(REFUSE_MESSAGES, (worker_id, refusals))

    async def begin(self, *, seconds_max: float = TRANSACTION_SECONDS_MAX) -> SqliteTransaction:
        """See `Store`. At most `transaction.SECONDS_MAX`, because no other process can write meanwhile."""
        beginning: asyncio.Future[SqliteTransaction] = self.write(BEGIN, seconds_max)
        try:
            transaction = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(_abandon)
            raise
        transaction.ring = self._readers.ring
        return transaction

    async def request_start(self, connection: Any, change: Change) -> Outcome:
        """See `Store`."""
        raise ConfigurationError(
            "a run cannot be started in a transaction of your own on SQLite, which has one writer for the whole file; "
            "start it after your commit with an id that you derive from your data, or write from a step with "
            "transaction=True, or use PostgreSQL"
        )

    async def request_message(self, connection: Any, message: Message, *, start: Change | None = None) -> Delivery:
        """See `Store`."""
        raise ConfigurationError(
            "a message cannot be sent in a transaction of your own on SQLite, which has one writer for the whole file; "
            "send it after your commit with a key that you derive from your data, or write from a step with "
            "transaction=True, or use PostgreSQL"
        )

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """See `Store`."""
        if blobs:
            await self.write(PUT_BLOBS, blobs)

    async def read_cell(self, name: str) -> bytes | None:
        """See `CellStore`."""
        return await self.read(read_cell, name)

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """See `Store`. On the thread of the writer."""
        return await self.write(CHANGE_CELL, (name, change, audit))

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        """See `CheckpointTable`."""
        return await self.write(APPEND_CHECKPOINT, (run_id, row))

    async def clear_checkpoints(self, run_id: str) -> None:
        """See `CheckpointTable`."""
        await self.write(CLEAR_CHECKPOINTS, run_id)

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """See `ScheduleTable`."""
        return await self.write(CHANGE_SCHEDULES, changes) if changes else []

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        """See `StreamTable`."""
        answers, root_ids = await self.write(APPEND_STREAMS, (appends, limits))
        if root_ids:
            self._readers.ring(root_ids)
        return answers

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `StreamTable`. SQLite tells no process what another one wrote, so that a writer tells it itself."""
        return self._readers.listen(ring)

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """See `Store`."""
        return await self.write(WATCH_ENDS, watches)

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        """See `Deletion`."""
        return await self.write(DELETE_TREES, (journals, ended_before, audit or {})) if journals else []

    async def append_audit(self, actions: Sequence[Action]) -> None:
        """See `AuditTable`."""
        await self.write(APPEND_AUDIT, actions)

    async def read_audit(self, *, after: int = 0, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self.read(read_audit, (after, limit))

    async def list_audit(self, wanted: AuditFilter, *, before: int | None = None, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self.search(list_audit, (wanted, before, limit))

    async def carry_audit(self, rows: Sequence[AuditRow]) -> bool:
        """See `AuditTable`."""
        return await self.write(CARRY_AUDIT, rows)

    async def prune_audit(self, *, before: int, limit: int, key: bytes | None = None) -> int:
        """See `AuditTable`."""
        return await self.write(PRUNE_AUDIT, (before, limit, key))

    async def give_back(self) -> bool:
        """See `Deletion`."""
        return await self.write(GIVE_BACK, None)

    async def find_references(self, *, after: str = "", limit: int) -> References:
        """See `Deletion`."""
        return await self.read(find_references, (after, limit))

    async def keep_blobs(self, ids: Collection[str]) -> None:
        """See `Deletion`."""
        if ids:
            await self.write(KEEP_BLOBS, ids)

    async def delete_blobs(self, *, kept_before: int, limit: int) -> int:
        """See `Deletion`."""
        return await self.write(DELETE_BLOBS, (kept_before, limit))

    def watch(self, ring: Callable[[str], None]) -> None:
        """See `Store`. The thread that writes rings for other processes, right after a commit."""
        self._watchers.listen(ring)

    async def ring(self, cell: str) -> None:
        """See `Store`."""
        self._watchers.ring([cell])

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
        return await self.write(self._workers.claim_runs, request)

    async def list_queues(self) -> list[str]:
        """See `Store`."""
        return await self.read(read.list_queues, None)

    async def measure_queue(self, name: str, *, limit: int, run_id: str = "") -> QueueMeasure:
        """See `Store`."""
        return await self.read(measure_queue, (name, limit, run_id))

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Store`."""
        await self.write(self._workers.register, (worker, lease_seconds))

    async def redefine_worker(self, worker_id: str, definitions: Sequence[str]) -> None:
        """See `Store`."""
        await self.write(self._workers.redefine, (worker_id, definitions))

    async def end_session(self, worker_id: str) -> None:
        """See `Store`."""
        await self.write(self._workers.retire, worker_id)

    def open_beat(self, worker_id: str) -> SqliteBeat:
        """See `Store`."""
        self._check_process()
        session = self._session(Role.BEAT)
        session.file = self._file
        return SqliteBeat(session, worker_id)

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """See `Store`. A file that is replaced is noticed by its connections, and one that goes back by a beat."""

    @property
    def examiner(self) -> SqliteExaminer:
        """See `Store`."""
        return SqliteExaminer(self)

    # -- Reading -------------------------------------------------------------------------------------------

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """See `Store`."""
        return await self.read(read.read_journal, (journal, after, limit))

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """See `Store`."""
        return await self.read(read.read_journals, journals)

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        """See `Store`."""
        return await self.read(read.read_inbox, journals)

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """See `Store`."""
        return await self.read(read.find_answers, asks)

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """See `Store`."""
        return await self.read(read.find_inboxes, worker_id)

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """See `Store`."""
        return await self.read(read.get_blobs, ids)

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        """See `CheckpointTable`."""
        return await self.read(read_checkpoints, run_id)

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """See `ScheduleTable`."""
        return await self.read(find_due_schedules, limit)

    async def find_schedules(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """See `ScheduleTable`."""
        return await self.read(find_schedules, names)

    async def list_schedules(self, *, after: str = "", limit: int) -> list[ScheduleRow]:
        """See `ScheduleTable`."""
        return await self.read(list_schedules, (after, limit))

    async def find_run(self, run_id: str) -> Run | None:
        """See `Store`."""
        return (await self.find_runs([run_id])).get(run_id)

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """See `Store`."""
        return await self.read(read.find_runs, run_ids)

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
        return await self._find(filter, read.list_runs, search)

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002 (the contract's name)
        """See `Store`."""
        return await self._find(filter, read.count_runs, RunSearch(filter=filter, limit=limit))

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
        return await self._find(filter, read.count_groups, search)

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """See `Store`."""
        return await self.read(read.read_items, (run_id, after, min(limit, PAGE_SIZE_MAX)))

    async def read_stream(
        self, run_id: str, name: str, *, after: int = 0, limit: int = CHUNKS_READ_MAX
    ) -> list[StreamChunk]:
        """See `StreamTable`."""
        return await self.read(read_stream, (run_id, name, after, limit))

    async def list_streams(self, run_id: str) -> dict[str, int]:
        """See `StreamTable`."""
        return await self.read(list_streams, run_id)

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """See `Store`."""
        return await self.read(partial(self._workers.list_workers, with_runs=with_runs), None)


def _abandon(beginning: asyncio.Future[SqliteTransaction]) -> None:
    """End a transaction whose caller has given up."""
    if not beginning.cancelled() and beginning.exception() is None:
        beginning.result().abandon()
