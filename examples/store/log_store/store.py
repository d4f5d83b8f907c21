"""The store: the verbs of the contract on the log and the rules.

Every process holds the whole state in memory. A verb that reads applies what others have written since, and looks. A
verb that writes becomes the one writer, applies what others have written, applies itself, and appends one record. So
the log is the store, the state is what follows from it, and a verb is one transaction because it is one record.

One thread does all of this for a store: the log is a file, and waiting for a disk must not stop the event loop. Writes
that come while one is on its way wait in a queue, and go together into the next transaction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw
from msgspec.structs import replace

from examples.store.log_store.log import Leases, Log, LogBeat, Record
from examples.store.log_store.rules import (
    VERBS,
    Rules,
    changes_nothing,
    digest_of,
    encode,
    restore,
    take_snapshot,
)
from examples.store.log_store.transaction import LogTransaction
from outlive.errors import CommitUnknownError, ConfigurationError, StoreError, StoreUnavailableError
from outlive.stores import (
    Action,
    Answer,
    Appended,
    AuditFilter,
    AuditRow,
    Blob,
    CellChange,
    Change,
    CheckpointRow,
    Claims,
    Declared,
    Delivery,
    DueSchedules,
    Examiner,
    GroupField,
    InboxMessage,
    ItemResult,
    Message,
    MessageRefusal,
    Outcome,
    QueueMeasure,
    References,
    Repair,
    Row,
    Run,
    RunFilter,
    ScheduleChange,
    ScheduleRow,
    Store,
    StoreWentBackError,
    StreamAppend,
    StreamChunk,
    StreamLimits,
    TreeRows,
    Watch,
    WorkerInfo,
)

P = ParamSpec("P")
T = TypeVar("T")

WAIT_SECONDS = 60.0
"""How long a write waits for its turn among all processes."""
LOOK_SECONDS = 0.002
RECORDS_MAX = 5_000
"""Records that a new process has to apply; more become a snapshot."""
NO_SHARED = "a log has no transactions of others to share; starting a run in your own needs PostgreSQL"


@dataclass(eq=False)
class Write:
    """A write that waits for its turn."""

    change: Callable[[], Any]
    """Called on the thread of the store while it is the one writer; appends what it changes."""
    answer: asyncio.Future[Any]
    outcome: Any = None
    error: Exception | None = None

    def settle(self) -> None:
        """Let the caller have the answer, if it still waits."""
        if not self.answer.done():
            if self.error is None:
                self.answer.set_result(self.outcome)
            else:
                self.answer.set_exception(self.error)


@dataclass(eq=False)
class Begin:
    """A step that waits for a transaction."""

    seconds_max: float
    answer: asyncio.Future[LogTransaction] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Refused(Exception):
    """A change of a transaction conflicts: nothing of the transaction stays."""


class LogStore(Store):
    """A store in a file, for processes of one machine that hold all of it in memory.

    Args:
        path: the file; a second one beside it, with `-leases` behind its name, has the sessions of workers.
        clock: microseconds since 1970 UTC.
    """

    def __init__(self, path: str, *, clock: Callable[[], int]) -> None:
        self._path, self._clock = str(path), clock
        self._thread: ThreadPoolExecutor | None = None
        self.log: Log
        self._leases: Leases
        self._rules, self._position = Rules(), 0
        self._queue: deque[Write | Begin] = deque()
        self._pump: asyncio.Task[None] | None = None
        self.transaction: LogTransaction | None = None
        """The transaction of a step that is open."""

    # -- Opening and closing -----------------------------------------------------------------------------------

    async def open(self, *, migrate: bool = True) -> None:
        """See `Store`."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="log-store")
            try:
                await self._call(partial(self._open, migrate=migrate))
            except BaseException:
                self._thread.shutdown()
                self._thread = None
                raise

    def _open(self, *, migrate: bool) -> None:
        self.log = Log(self._path, migrate=migrate)
        self._leases = Leases(f"{self._path}-leases")
        self._reload()
        if migrate and self.log.count() > RECORDS_MAX and self.log.try_begin():
            self._compact()

    async def close(self) -> None:
        """See `Store`."""
        if self.transaction is not None:
            self.transaction.abandon("the store was closed")
        while self._pump is not None:
            await asyncio.wait([self._pump])
        if self._thread is not None:
            await self._call(self.log.close)
            await self._call(self._leases.close)
            self._thread.shutdown()
            self._thread = None

    def now(self) -> int:
        """See `Store`."""
        return self._clock()

    # -- The thread --------------------------------------------------------------------------------------------

    def on_thread(self, what: Callable[..., T], *args: Any) -> Future[T]:
        """Call something on the thread of the store."""
        if self._thread is None:
            raise StoreUnavailableError(self._path, "it is not open")
        return self._thread.submit(what, *args)

    async def _call(self, what: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.wrap_future(self.on_thread(what, *args))
        except apsw.Error as error:
            raise StoreUnavailableError(self._path, str(error)) from error

    def _reload(self) -> None:
        """Forget the state, and make it again from the log."""
        self._rules, self._position = Rules(), 0
        self._catch_up()

    def _catch_up(self) -> None:
        """Apply what others have written since."""
        if (found := self.log.snapshot_behind(self._position)) is not None:
            self._rules = Rules()
            self._position, data = found
            restore(self._rules.state, data)
        for record in self.log.read(self._position):
            answer = self._rules.apply(record.verb, record.args, record.at)
            if digest_of(answer) != record.answer:
                raise StoreError(
                    f"record {record.id} ({record.verb}) of {self._path} had another answer when it was written: by "
                    f"another release; let that one take a snapshot"
                )
            self._position = record.id

    def _compact(self) -> None:
        """Let a snapshot stand for all records; the transaction is open."""
        self._catch_up()
        self.log.put_snapshot(self._position, take_snapshot(self._rules.state))
        self.log.commit()

    # -- Reading -----------------------------------------------------------------------------------------------

    async def _read(
        self, verb: Callable[Concatenate[Rules, P], Coroutine[Any, Any, T]], *args: P.args, **options: P.kwargs
    ) -> T:
        """The answer of a verb of the rules, by the state as it is now."""
        return await self._call(partial(self._look, verb, *args, **options))

    def _look(self, verb: Callable[..., Coroutine[Any, Any, T]], *args: Any, **options: Any) -> T:
        self._catch_up()
        return self._rules.call(verb, self._rules, *args, at=self.now(), **options)

    # -- Writing -----------------------------------------------------------------------------------------------

    async def _write(self, verb: str, *args: Any) -> Any:
        """The answer of a writing verb, when its record is durable."""
        data = encode(args, enc_hook=list)  # At once: the caller may change what it has given.
        return await self._submit(partial(self._apply, verb, data))

    async def _submit(self, change: Callable[[], Any]) -> Any:
        self.on_thread(lambda: None)  # Raises if the store is closed.
        write = Write(change, asyncio.get_running_loop().create_future())
        self._queue.append(write)
        self._go_on()
        return await write.answer

    def _apply(self, verb: str, args: bytes) -> Any:
        """Change the state, and append the record."""
        at = self.now()
        answer = self._rules.apply(verb, args, at)
        if not changes_nothing(verb, answer):
            self._position = self.log.append(Record(0, at, verb, args, digest_of(answer)))
        return answer

    def _go_on(self) -> None:
        if self._pump is None:
            self._pump = asyncio.ensure_future(self._empty_queue())

    async def _empty_queue(self) -> None:
        try:
            while self._queue and self.transaction is None:
                if isinstance(self._queue[0], Begin):
                    await self._begin(self._queue.popleft())  # type: ignore[arg-type]
                else:
                    await self._write_some()
        finally:
            self._pump = None

    async def _become_writer(self) -> None:
        """Begin a transaction of the log, when no other process has one."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not await self._call(self.log.try_begin):
                await asyncio.sleep(LOOK_SECONDS)

    async def _write_some(self) -> None:
        writes = self._take_writes(until_begin=True)
        try:
            await self._become_writer()
            await self._call(self._perform, writes)
        except (StoreError, TimeoutError) as error:
            for write in writes:
                write.error = (
                    error if isinstance(error, StoreError) else StoreUnavailableError(self._path, "it is busy")
                )
        for write in writes:
            write.settle()

    def _take_writes(self, *, until_begin: bool) -> list[Write]:
        """The writes that wait: those in front of the next transaction, or all."""
        found: list[Write] = []
        rest: deque[Write | Begin] = deque()
        while self._queue:
            if isinstance(self._queue[0], Write):
                found.append(self._queue.popleft())  # type: ignore[arg-type]
            elif until_begin:
                break
            else:
                rest.append(self._queue.popleft())
        self._queue.extendleft(reversed(rest))
        return found

    def _perform(self, writes: Sequence[Write]) -> None:
        """Make these writes in one transaction, which is open; each is judged alone."""
        is_ending = False
        try:
            self._catch_up()
            self._change(writes)
            is_ending = True
            self.log.commit()
        except BaseException as error:
            self.log.roll_back()
            self._reload()
            if is_ending and isinstance(error, apsw.IOError):
                raise CommitUnknownError(self._path, str(error)) from error
            raise

    def _change(self, writes: Sequence[Write]) -> None:
        for write in writes:
            write.error = None
            try:
                write.outcome = write.change()
            except apsw.Error:
                raise
            except Exception as error:  # The caller's own function: of a cell, for example.
                write.error = error

    # -- Transactions of steps ---------------------------------------------------------------------------------

    async def begin(self, *, seconds_max: float = 30.0) -> LogTransaction:
        """See `Store`."""
        self.on_thread(lambda: None)
        begin = Begin(seconds_max)
        self._queue.append(begin)
        self._go_on()
        try:
            return await begin.answer
        except asyncio.CancelledError:
            if begin.answer.done() and not begin.answer.cancelled():
                begin.answer.result().abandon("its step was cancelled")
            raise

    async def _begin(self, begin: Begin) -> None:
        if begin.answer.done():
            return
        try:
            await self._become_writer()
            await self._call(self._catch_up)
        except (StoreError, TimeoutError):
            if not begin.answer.done():
                begin.answer.set_exception(StoreUnavailableError(self._path, "no transaction is to be had"))
            return
        if begin.answer.done():
            await self._call(self.log.roll_back)
            return
        self.transaction = LogTransaction(self, seconds_max=begin.seconds_max)
        begin.answer.set_result(self.transaction)

    async def end_transaction(
        self, changes: Sequence[Change] = (), behind: Row | None = None
    ) -> list[tuple[Outcome, int]]:
        """Commit with these changes, and with the writes that wait; or roll back, if there are none."""
        writes = self._take_writes(until_begin=False) if changes else []
        conflicts = [(Outcome.CONFLICT, change.journal) for change in changes]
        data = encode([list(changes)])
        try:
            if not changes:
                await self._call(self.log.roll_back)
                return []
            outcomes = await asyncio.wrap_future(self.on_thread(self._commit_step, writes, data, behind))
        except Refused:
            self._queue.extendleft(reversed(writes))
            return conflicts
        except apsw.ConstraintError:
            self._queue.extendleft(reversed(writes))
            raise
        except apsw.Error as error:
            self._queue.extendleft(reversed(writes))
            raise CommitUnknownError(self._path, str(error)) from error
        else:
            for write in writes:
                write.settle()
            return outcomes
        finally:
            self.transaction = None
            self._go_on()

    def end_transaction_soon(self) -> None:
        """Roll back; no caller waits for it."""
        asyncio.ensure_future(self.end_transaction())  # noqa: RUF006 (the queue goes on when it has ended)

    def _commit_step(self, writes: Sequence[Write], data: bytes, behind: Row | None) -> list[tuple[Outcome, int]]:
        try:
            self._change(writes)
            (changes,) = VERBS["commit"].decode(data)
            tree = self._rules.state.trees.get(changes[0].journal)
            if behind is not None and (tree is None or tree.rows[-1] != behind):
                raise Refused
            outcomes: list[tuple[Outcome, int]] = self._apply("commit", data)
            if any(outcome is not Outcome.COMMITTED for outcome, _ in outcomes):
                raise Refused
            self.log.commit()
        except BaseException:
            self.log.roll_back()
            self._reload()
            raise
        return outcomes

    # -- The contract: what is written --------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        answer: list[tuple[Outcome, int]] = await self._write("commit", list(changes))
        return answer

    async def deliver(
        self, messages: Sequence[Message], *, starts: Sequence[Change] = (), inbox_messages_max: int
    ) -> list[Delivery]:
        """See `Store`."""
        answer: list[Delivery] = await self._write("deliver", list(messages), list(starts), inbox_messages_max)
        return answer

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
        """See `Store`. A worker asks several times a second: where nothing is due, nothing is locked and written."""
        names = list(definitions)
        if queues is None and (later := await self._call(self._nothing_due, names)) is not None:
            return later
        own = None if queues is None else list(queues)
        request = (worker_id, names, limit, orphans_max, stale_seconds, sorted(declined), own, declared)
        answer: Claims = await self._submit(partial(self._claim, *request))
        return answer

    def _nothing_due(self, definitions: list[str]) -> Claims | None:
        """The answer to a claim where nothing is due; None if something is."""
        self._catch_up()
        return self._rules.nothing_due(definitions, self.now())

    def _claim(self, *request: Any) -> Claims:
        """Claim, and append the record if that has changed anything."""
        rules, at = self._rules, self.now()
        before, number = rules.fingerprint(), rules.state.claims
        data = encode((self._leases.list_sessions(), number, *request))
        answer: Claims = rules.apply("claim", data, at)
        if before != rules.fingerprint():
            self._position = self.log.append(Record(0, at, "claim", data, digest_of(answer)))
        return answer

    async def read_cell(self, name: str) -> bytes | None:
        """See `CellStore`."""
        return await self._read(Rules.read_cell, name)

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        """See `CellStore`. The log has what the function has made, because it cannot have the function."""

        def write() -> T:
            before = self._rules.state.cells.get(name)
            after, answer = change(before, self.now())
            if after != before:
                self._apply("cell", encode((name, after, audit)))
            return answer

        found: T = await self._submit(write)
        return found

    async def watch_ends(self, watches: Sequence[Watch]) -> dict[str, Run]:
        """See `Store`."""
        answer: dict[str, Run] = await self._write("watch_ends", list(watches))
        return answer

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        """See `Store`."""
        await self._write("refuse_messages", worker_id, list(refusals))

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        """See `StreamTable`."""
        answer: list[Appended] = await self._write("append_streams", list(appends), limits)
        return answer

    async def change_schedules(self, changes: Sequence[ScheduleChange]) -> list[Outcome]:
        """See `ScheduleTable`."""
        answer: list[Outcome] = await self._write("change_schedules", list(changes))
        return answer

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        """See `CheckpointTable`."""
        answer: bool = await self._write("append_checkpoint", run_id, row)
        return answer

    async def clear_checkpoints(self, run_id: str) -> None:
        """See `CheckpointTable`."""
        await self._write("clear_checkpoints", run_id)

    async def append_audit(self, actions: Sequence[Action]) -> None:
        """See `AuditTable`."""
        await self._write("append_audit", list(actions))

    async def prune_audit(self, *, before: int, limit: int, key: bytes | None = None) -> int:
        """See `AuditTable`. The rules say what goes and what comes, and the log has that without the key."""

        def write() -> int:
            rules, rows = self._rules, list(self._rules.state.audit)
            pruned: int = rules.call(rules.prune_audit, at=self.now(), before=before, limit=limit, key=key)
            added = [row for row in rules.state.audit if row.number > (rows[-1].number if rows else 0)]
            rules.state.audit = rows
            if pruned:
                self._apply("audit", encode((pruned, added)))
            return pruned

        found: int = await self._submit(write)
        return found

    async def carry_audit(self, rows: Sequence[AuditRow]) -> bool:
        """See `AuditTable`."""

        def write() -> bool:
            rules, before = self._rules, list(self._rules.state.audit)
            fits: bool = rules.call(rules.carry_audit, list(rows), at=self.now())
            added, rules.state.audit = rules.state.audit[len(before) :], before
            if added:
                self._apply("audit", encode((0, added)))
            return fits

        found: bool = await self._submit(write)
        return found

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """See `Store`."""
        await self._write("put_blobs", list(blobs))

    async def keep_blobs(self, ids: Collection[str]) -> None:
        """See `Deletion`."""
        await self._write("keep_blobs", sorted(ids))

    async def delete_blobs(self, *, kept_before: int, limit: int) -> int:
        """See `Deletion`."""
        answer: int = await self._write("delete_blobs", kept_before, limit)
        return answer

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        """See `Deletion`."""
        answer: list[int] = await self._write(
            "delete_trees", list(journals), ended_before, None if audit is None else dict(audit)
        )
        return answer

    async def give_back(self) -> bool:
        """See `Deletion`: a snapshot takes the place of many records."""
        if await self._call(self.log.count) > RECORDS_MAX and self.transaction is None and not self._queue:
            await self._become_writer()
            await self._call(self._compact)
        return False

    # -- Sessions of workers -----------------------------------------------------------------------------------

    async def register_worker(self, worker: WorkerInfo, *, lease_seconds: float) -> None:
        """See `Store`."""
        await self._call(partial(self._leases.register, worker, now=self.now(), lease_seconds=lease_seconds))

    async def redefine_worker(self, worker_id: str, definitions: Sequence[str]) -> None:
        """See `Store`."""
        await self._call(self._leases.redefine, worker_id, list(definitions))

    def open_beat(self, worker_id: str) -> LogBeat:
        """See `Store`."""
        return LogBeat(f"{self._path}-leases", worker_id, self.now)

    async def end_session(self, worker_id: str) -> None:
        """See `Store`."""
        await self._call(partial(self._leases.retire, worker_id, now=self.now()))

    async def list_workers(self, *, with_runs: bool = True) -> list[WorkerInfo]:
        """See `Store`."""

        def look() -> list[WorkerInfo]:
            self._catch_up()
            owners = [tree.root.owner for tree in self._rules.state.active.values()] if with_runs else []
            found = [
                replace(it, is_live=not is_retired and self.now() < it.expires_at, runs=owners.count(it.id))
                for it, is_retired in self._leases.list_all()
            ]
            return [worker for worker in found if worker.is_live or worker.runs]

        return await self._call(look)

    # -- Hints -------------------------------------------------------------------------------------------------
    # A store may ring: then others look at once. A log in a file does not, and they look when their poll is due.

    def watch(self, ring: Callable[[str], None]) -> None:
        """See `Store`: never rings."""

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """See `Store`: a file is not another one all of a sudden."""

    async def ring(self, cell: str) -> None:
        """See `Store`: no other process hears it."""

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `StreamTable`: never rings."""
        return False

    # -- Transactions of users ---------------------------------------------------------------------------------

    async def request_start(self, connection: Any, change: Change) -> Outcome:
        """See `Store`."""
        raise ConfigurationError(NO_SHARED)

    async def request_message(self, connection: Any, message: Message, *, start: Change | None = None) -> Delivery:
        """See `Store`."""
        raise ConfigurationError(NO_SHARED)

    # -- The contract: what is read ----------------------------------------------------------------------------

    async def list_queues(self) -> list[str]:
        """See `Store`."""
        return await self._read(Rules.list_queues)

    async def measure_queue(self, name: str, *, limit: int, run_id: str = "") -> QueueMeasure:
        """See `Store`."""
        return await self._read(Rules.measure_queue, name, limit=limit, run_id=run_id)

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        """See `Store`."""
        return await self._read(Rules.read_inbox, journals)

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        """See `Store`."""
        return await self._read(Rules.find_answers, asks)

    async def find_inboxes(self, worker_id: str) -> list[int]:
        """See `Store`."""
        return await self._read(Rules.find_inboxes, worker_id)

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """See `Store`."""
        return list(await self._read(Rules.read_journal, journal, after=after, limit=limit))

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """See `Store`."""
        return await self._read(Rules.read_journals, journals)

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """See `Store`."""
        return await self._read(Rules.get_blobs, ids)

    async def find_run(self, run_id: str) -> Run | None:
        """See `Store`."""
        return await self._read(Rules.find_run, run_id)

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """See `Store`."""
        return await self._read(Rules.find_runs, run_ids)

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002
        *,
        limit: int = 100,
        before: tuple[int, str] | None = None,
        after: tuple[int, str] | None = None,
        oldest_first: bool = False,
    ) -> list[Run]:
        """See `Store`."""
        return await self._read(
            Rules.list_runs, filter, limit=limit, before=before, after=after, oldest_first=oldest_first
        )

    async def count_runs(self, filter: RunFilter, *, limit: int) -> int:  # noqa: A002
        """See `Store`."""
        return await self._read(Rules.count_runs, filter, limit=limit)

    async def count_groups(
        self,
        filter: RunFilter,  # noqa: A002
        by: GroupField,
        *,
        limit: int,
        groups_max: int,
    ) -> dict[str, int]:
        """See `Store`."""
        return await self._read(Rules.count_groups, filter, by, limit=limit, groups_max=groups_max)

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = 1_000) -> list[ItemResult]:
        """See `Store`."""
        return await self._read(Rules.read_items, run_id, after=after, limit=limit)

    async def read_stream(self, run_id: str, name: str, *, after: int = 0, limit: int = 256) -> list[StreamChunk]:
        """See `StreamTable`."""
        return await self._read(Rules.read_stream, run_id, name, after=after, limit=limit)

    async def list_streams(self, run_id: str) -> dict[str, int]:
        """See `StreamTable`."""
        return await self._read(Rules.list_streams, run_id)

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """See `ScheduleTable`."""
        return await self._read(Rules.find_due_schedules, limit=limit)

    async def find_schedules(self, names: Sequence[str]) -> dict[str, ScheduleRow]:
        """See `ScheduleTable`."""
        return await self._read(Rules.find_schedules, names)

    async def list_schedules(self, *, after: str = "", limit: int) -> list[ScheduleRow]:
        """See `ScheduleTable`."""
        return await self._read(Rules.list_schedules, after=after, limit=limit)

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        """See `CheckpointTable`."""
        return await self._read(Rules.read_checkpoints, run_id)

    async def read_audit(self, *, after: int = 0, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self._read(Rules.read_audit, after=after, limit=limit)

    async def list_audit(self, wanted: AuditFilter, *, before: int | None = None, limit: int) -> list[AuditRow]:
        """See `AuditTable`."""
        return await self._read(Rules.list_audit, wanted, before=before, limit=limit)

    async def find_references(self, *, after: str = "", limit: int) -> References:
        """See `Deletion`."""
        return await self._read(Rules.find_references, after=after, limit=limit)

    @property
    def examiner(self) -> Examiner:
        """See `Store`."""
        return LogExaminer(self._read, self._write)


class LogExaminer:
    """The questions of a checker. See `Examiner`."""

    def __init__(self, read: Callable[..., Any], write: Callable[..., Any]) -> None:
        self._read, self._write = read, write

    async def _ask(self, question: str, *args: Any, **options: Any) -> Any:
        return await self._read(lambda rules: getattr(rules.examiner, question)(*args, **options))

    async def check_database(self) -> list[str]:
        """See `Examiner`."""
        found: list[str] = await self._ask("check_database")
        return found

    async def list_journals(self, *, after: int = -(2**63), limit: int) -> list[int]:
        """See `Examiner`."""
        found: list[int] = await self._ask("list_journals", after=after, limit=limit)
        return found

    async def examine(self, journals: Sequence[int]) -> list[TreeRows]:
        """See `Examiner`."""
        found: list[TreeRows] = await self._ask("examine", journals)
        return found

    async def list_watches(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Watch]:
        """See `Examiner`."""
        found: list[Watch] = await self._ask("list_watches", after=after, limit=limit)
        return found

    async def list_checkpoints(self, *, after: bytes = b"", limit: int) -> list[bytes]:
        """See `Examiner`."""
        found: list[bytes] = await self._ask("list_checkpoints", after=after, limit=limit)
        return found

    async def list_cells(self, *, after: str | None = None, limit: int) -> list[str]:
        """See `Examiner`."""
        found: list[str] = await self._ask("list_cells", after=after, limit=limit)
        return found

    async def repair(self, repair: Repair) -> bool:
        """See `Examiner`."""
        found: bool = await self._write("repair", repair)
        return found
