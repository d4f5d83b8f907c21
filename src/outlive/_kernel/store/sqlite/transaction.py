"""The transaction of a step, on the writer's own connection.

While it is open the writer thread serves no other caller: it runs the step's statements as they come, and the other
write verbs wait in its queue. At the end everything that waits is written in the same transaction, then the step's own
changes, and one COMMIT makes it all durable: the end of a transaction is one more member of a group commit. If the
step's changes conflict, all of it is rolled back, and the others are written again without it.

Time
----
No process can write while it is open, or renew a lease. Others wait `BUSY_SECONDS` for their turn, so a transaction
gets less than that, and a process that has waited gets a moment before the next one may begin. A
transaction whose time is up is rolled back; its step hears of it with its next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, TypeVar

import apsw

from outlive._kernel.journal.codec import Row
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.sqlite.commit import COMMIT_CHANGES, Outcomes
from outlive._kernel.store.sqlite.connection import BUSY_SECONDS, UNAVAILABLE, Session
from outlive._kernel.store.sqlite.query import (
    BEGIN_WRITE,
    COMMIT,
    RELEASE_SAVEPOINT,
    ROLLBACK_TO_SAVEPOINT,
    SAVEPOINT,
)
from outlive._kernel.store.sqlite.thread import Job, explain, recover
from outlive._kernel.store.sqlite.writer import Refused, Writer, WriteVerb
from outlive._kernel.store.tables.handle import TaskHandle
from outlive._kernel.store.tables.journal_rows import Conflict
from outlive._kernel.store.tables.statement import StatementResult, run
from outlive._platform import pause
from outlive.errors.store import TransactionOverError
from outlive.telemetry import log

SECONDS_MAX = BUSY_SECONDS - 1
LONG_SECONDS = 0.05
"""A transaction that was open for longer has made others wait."""
MOMENT_SECONDS = 0.005
"""How long the file is left to others then; they look ten times meanwhile."""
STEPS_PER_LOOK = 10_000
"""Steps of SQLite's machine between two looks at the clock, in a statement that takes long."""


def _running() -> Future[Any]:
    """A future that cannot be cancelled: what was asked for is done."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


@dataclass(slots=True, eq=False)
class Statement:
    """Something that the step wants to be run."""

    query: str
    args: tuple[Any, ...]
    future: Future[StatementResult] = field(default_factory=_running)


@dataclass(slots=True, eq=False)
class End:
    """The step has ended: commit with these changes, or roll back if there are none."""

    changes: Sequence[Change]
    behind: Row | None = None
    future: Future[Outcomes] = field(default_factory=_running)


RequestT = TypeVar("RequestT", Statement, End)


class SqliteTransaction:
    """The step's side of a transaction; the writer thread has the other side."""

    def __init__(self) -> None:
        self.requests: SimpleQueue[Statement | End] = SimpleQueue()
        self.handle = TaskHandle(self._ask)
        self.ring: Callable[[Sequence[str]], None] | None = None
        """Called after a commit with the ids of the runs that other processes follow."""
        self._lock = Lock()
        self._over = ""

    async def commit(self, changes: Sequence[Change], *, behind: Row | None = None) -> list[tuple[Outcome, int]]:
        """See `Transaction`."""
        assert changes, "a transaction commits with a change of a journal"
        outcomes = await asyncio.wrap_future(self._submit(End(changes, behind)).future)
        if self.ring is not None and (rung := [change.rings for change in changes if change.rings]):
            self.ring(rung)
        return outcomes

    async def rollback(self) -> None:
        """See `Transaction`."""
        with suppress(TransactionOverError):
            await asyncio.wrap_future(self._submit(End(())).future)

    def gave_way(self, error: BaseException) -> bool:
        """See `Transaction`: never, because one transaction at a time writes."""
        return False

    def abandon(self) -> None:
        """Roll back soon; no caller waits for it."""
        self._submit(End(()))

    def _ask(self, query: str, args: tuple[Any, ...]) -> Future[StatementResult]:
        return self._submit(Statement(query, args)).future

    def _submit(self, request: RequestT) -> RequestT:
        with self._lock:
            if not self._over:
                self.requests.put(request)
                return request
        request.future.set_exception(TransactionOverError(self._over))
        return request

    def close(self, reason: str) -> None:
        """From now on every call fails with the reason; so do calls that came too late to be served."""
        with self._lock:
            self._over = self._over or reason
        while not self.requests.empty():
            self.requests.get().future.set_exception(TransactionOverError(reason))


class _Sitting:
    """The writer's side of one transaction."""

    def __init__(self, writer: Writer, seconds_max: float) -> None:
        self._writer = writer
        self._session: Session = writer.session
        self._seconds = min(seconds_max, SECONDS_MAX)
        self._deadline = writer.time() + self._seconds
        self._trouble: apsw.Error | None = None
        self.transaction = SqliteTransaction()

    def serve(self) -> None:
        """Run what the step asks for, until it ends or its time is up."""
        connection = self._session.connection
        connection.set_progress_handler(self._is_late, STEPS_PER_LOOK)
        try:
            request = self._serve_statements()
        finally:
            connection.set_progress_handler(None)
        if self._trouble is not None:
            recover(self._session, self._trouble)
        if request is not None and request.changes:
            self._commit(request)
        else:
            self._session.roll_back()
            if request is not None:
                self.transaction.close("it was rolled back")
                request.future.set_result([])

    def _serve_statements(self) -> End | None:
        """The end that the step wants; None if it came to another one."""
        transaction = self.transaction
        while True:
            try:
                request = transaction.requests.get(timeout=max(0.0, self._deadline - self._writer.time()))
            except Empty:
                transaction.close(self._lateness())
                return None
            if isinstance(request, End):
                return request
            if self._is_late():
                transaction.close(self._lateness())
                request.future.set_exception(TransactionOverError(self._lateness()))
                return None
            error = self._run(request)
            if isinstance(error, UNAVAILABLE):
                self._trouble = error
            # SQLite ends a transaction by itself when the disk is full, and when a statement says so.
            if self._trouble is not None or not self._session.connection.in_transaction:
                transaction.close(self._lateness() if self._is_late() else f"SQLite gave it up ({error})")
                return None

    def _run(self, statement: Statement) -> Exception | None:
        try:
            statement.future.set_result(run(self._session.connection, statement.query, statement.args))
        except Exception as error:
            is_late = isinstance(error, apsw.InterruptError)
            statement.future.set_exception(TransactionOverError(self._lateness()) if is_late else error)
            return error
        return None

    def _is_late(self) -> bool:
        return self._writer.time() >= self._deadline

    def _lateness(self) -> str:
        return (
            f"it was open for {self._seconds:g} s, while no other process can write, and was rolled back; "
            f"do what takes long in another step"
        )

    # -- The end -------------------------------------------------------------------------------------------

    def _commit(self, end: End) -> None:
        writer, session = self._writer, self._session
        others = writer.take_queue()
        self.transaction.close("it has ended")
        try:
            writer.write_within(others)
            outcomes = self._append(end.changes) if self._is_behind(end) else [(Outcome.CONFLICT, 0)]
            if all(outcome is Outcome.COMMITTED for outcome, _ in outcomes):
                writer.bound(COMMIT)
                writer.settle(others)
                end.future.set_result(outcomes)
                return
            end.future.set_result([(Outcome.CONFLICT, change.journal) for change in end.changes])
        except Refused as refusal:
            session.roll_back()
            for job in others:
                job.error = refusal.explain(session)
            writer.settle(others)
            end.future.set_exception(refusal.explain(session))
            return
        except apsw.ConstraintError as error:
            end.future.set_exception(error)  # A constraint of the user's own: it is judged when the transaction ends.
        except Exception as error:
            end.future.set_exception(explain(session, error))
        # Nothing of the step stays, and that is not a reason for the others to fail.
        session.roll_back()
        for job in others:
            job.error = None
        writer.write(others)
        writer.settle(others)

    def _is_behind(self, end: End) -> bool:
        """Whether the changes come after what their writer says."""
        if end.behind is None:
            return True
        return self._session.fetch("read_rows", end.changes[0].journal, end.behind[0] - 1, 1) == end.behind

    def _append(self, changes: Sequence[Change]) -> Outcomes:
        connection = self._session.connection
        connection.execute(SAVEPOINT)
        try:
            (outcomes,) = COMMIT_CHANGES.run(self._session, [changes], careful=False)
        except (Conflict, apsw.ConstraintError):
            connection.execute(ROLLBACK_TO_SAVEPOINT)
            (outcomes,) = COMMIT_CHANGES.run(self._session, [changes], careful=True)
        connection.execute(RELEASE_SAVEPOINT)
        result: Outcomes = outcomes
        return result


def _begin(writer: Writer, job: Job) -> None:
    """Serve one transaction from its beginning to its end."""
    if job.future.done():
        return  # Its caller has given up.
    try:
        writer.bound(BEGIN_WRITE)
    except Refused as refusal:
        job.error = refusal.explain(writer.session)
        writer.settle([job])
        return
    began_at = writer.time()
    sitting = _Sitting(writer, job.argument)
    job.result = sitting.transaction
    writer.settle([job])
    try:
        sitting.serve()
    except Exception:  # The thread has to live on, and others wait for their turn.
        log.exception("the transaction of a step failed")
    sitting.transaction.close("the store failed, and nothing of it stays")
    writer.session.roll_back()
    if writer.time() - began_at > LONG_SECONDS:
        pause(MOMENT_SECONDS)


def _never(session: Session, arguments: list[Any], /, *, careful: bool) -> Sequence[Any]:
    raise AssertionError("a transaction of a step is not part of a group")


BEGIN = WriteVerb(_never, serve=_begin)
