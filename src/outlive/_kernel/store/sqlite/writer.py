"""The thread that writes: group commit and checkpoints.

Group commit
------------
Whatever is queued while a transaction is being committed goes into the next one, whichever verbs it is. The
one wait for the disk and the one call back into the event loop are shared by all of it. If anything in a group
fails, the group is rolled back and each job is done again in a transaction of its own, so that no job fails
because of another one.

A verb is given the arguments of all its jobs in the group at once: `commit` makes a handful of statements of
them. If one statement is all that a group needs, that statement is the transaction.

A transaction that a step has open (`transaction`) keeps the thread until it ends: SQLite has one writer, and a second
connection would wait for ever for changes that are queued behind it. What is queued by then is written with its end.

Checkpoints move pages from the WAL into the file, and wait for the disk too. They are made after the jobs have
been answered and when no job waits; only a WAL that has grown far too large makes jobs wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import apsw

from outlive._kernel.store.sqlite.connection import UNAVAILABLE, Session, translate
from outlive._kernel.store.sqlite.query import (
    BEGIN_WRITE,
    COMMIT,
    RELEASE_SAVEPOINT,
    ROLLBACK_TO_SAVEPOINT,
    SAVEPOINT,
    Value,
)
from outlive._kernel.store.sqlite.thread import Job, StoreThread, begin, explain, recover
from outlive._kernel.store.tables.journal_rows import Conflict
from outlive.errors import InternalError, StoreError
from outlive.errors.store import StoreMovedError
from outlive.telemetry import log

A = TypeVar("A")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
CHECKPOINT_PAGES = 1_000
"""Pages written before the writer makes a checkpoint, if no job waits."""
CHECKPOINT_PAGES_MAX = 8_000
"""Pages written before it makes one in any case."""


class WriteRun(Protocol[A, T_co]):
    """The work of a verb in a transaction: it answers for all arguments, in order."""

    def __call__(self, session: Session, arguments: list[A], /, *, careful: bool) -> Sequence[T_co]:
        """Raises `Conflict` unless `careful`; then it finds out for whom."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteVerb(Generic[A, T]):
    """Something that the writer can do."""

    run: WriteRun[A, T]
    plan: Callable[[list[A]], tuple[list[tuple[str, list[Value]]], Sequence[T]] | None] = lambda _: None
    """All statements, and the answers if none of them fails; None if that cannot be known beforehand."""
    serve: Callable[[Writer, Job], None] | None = None
    """For a verb that is not a part of a group and keeps the thread for as long as it takes."""


def each(do: Callable[[Session, A], T]) -> WriteVerb[A, T]:
    """A verb that answers one call after the other, and has nothing to be careful about."""

    def run(session: Session, arguments: list[A], *, careful: bool) -> list[T]:
        del careful
        return [do(session, argument) for argument in arguments]

    return WriteVerb(run)


class Writer(StoreThread):
    """Does all jobs of a group in one transaction."""

    def __init__(self, session: Session, *, name: str, ring: Callable[[], None]) -> None:
        super().__init__(session, name=name)
        self._ring = ring
        self._pages_at_checkpoint = 0
        self._waiting: deque[Job] = deque()

    def work(self, jobs: list[Job]) -> None:
        """Do all at once; then the verbs that keep the thread for themselves, one after the other."""
        self._waiting += [job for job in jobs if job.verb.serve is not None]
        if not self._waiting:
            self.write(jobs)
            return
        ordinary = [job for job in jobs if job.verb.serve is None]
        while True:
            self.write(ordinary)
            self.settle(ordinary)
            if not self._waiting:
                return
            self.rest(is_busy=True)
            job = self._waiting.popleft()
            job.verb.serve(self, job)
            # Others have waited for it, and more of its kind may wait behind them.
            ordinary = self.take_queue()

    def take_queue(self) -> list[Job]:
        """Everything that can be written now; who wants the thread for himself has to wait on."""
        jobs, is_open = self._take_jobs(at_once=True)
        if not is_open:
            self._queue.put(None)
        self._waiting += [job for job in jobs if job.verb.serve is not None]
        return [job for job in jobs if job.verb.serve is None]

    def write(self, jobs: list[Job]) -> None:
        """Do all at once; if anything is in the way, each alone."""
        if not jobs:
            return
        try:
            self._write(jobs)
        except Refused as refusal:
            for job in jobs:
                job.error = refusal.explain(self.session)
        except Conflict:
            for job in jobs:
                self._write_alone(job, tries=(True,) if len(jobs) == 1 else (False, True))
        except Exception as error:
            explained = explain(self.session, error)
            if len(jobs) == 1:
                jobs[0].error = explained
                return
            for job in jobs:
                self._write_alone(job, tries=(False, True))

    def _write_alone(self, job: Job, *, tries: tuple[bool, ...]) -> None:
        """Do one job in a transaction of its own; `tries` says for each try whether it is a careful one."""
        for careful in tries:
            try:
                self._write([job], careful=careful)
            except Conflict as conflict:
                job.error = InternalError(f"a careful write found a conflict that it cannot explain: {conflict!r}")
            except Refused as refusal:
                job.error = refusal.explain(self.session)
                return
            except Exception as error:
                job.error = explain(self.session, error)
                return
            else:
                job.error = None
                return

    def write_within(self, jobs: list[Job]) -> None:
        """Do all in the transaction that is open, and leave it open; no job fails because of another one.

        Raises:
            apsw.Error: the store refuses, and nothing of the transaction may be committed.
        """
        if jobs and not self._write_guarded(jobs):
            for job in jobs:
                if not self._write_guarded([job]):
                    self._write_guarded([job], careful=True)

    def _write_guarded(self, jobs: list[Job], *, careful: bool = False) -> bool:
        """Write in a savepoint; False if that failed, and then nothing of it was written."""
        connection = self.session.connection
        connection.execute(SAVEPOINT)
        error: Exception | None = None
        try:
            self._run_groups(_group(begin(jobs)), careful=careful)
        except UNAVAILABLE:
            raise
        except Exception as failure:
            connection.execute(ROLLBACK_TO_SAVEPOINT)
            error = translate(failure, self.session.path) if isinstance(failure, apsw.Error) else failure
        connection.execute(RELEASE_SAVEPOINT)
        for job in jobs:
            job.error = error
        return error is None

    def _write(self, jobs: list[Job], *, careful: bool = False) -> None:
        groups = _group(jobs)
        try:
            if careful or not self._write_plan(groups):
                self.bound(BEGIN_WRITE)
                # Another process may have kept the file for seconds: who has given up since has begun nothing.
                self._run_groups(_group(begin(jobs)), careful=careful)
                self.bound(COMMIT)
        except BaseException:
            self.session.roll_back()
            raise

    def _run_groups(self, groups: dict[WriteVerb[Any, Any], list[Job]], *, careful: bool) -> None:
        for verb, group in groups.items():
            _note(group, verb.run(self.session, [job.argument for job in group], careful=careful))

    def _write_plan(self, groups: dict[WriteVerb[Any, Any], list[Job]]) -> bool:
        """Write a group that needs no answers from the database; False if it does."""
        if len(groups) > 1:
            return False
        ((verb, group),) = groups.items()
        plan = verb.plan([job.argument for job in group])
        if plan is None or len(begin(group)) < len(group):
            return False
        statements, results = plan
        try:
            if len(statements) == 1:
                self.bound(*statements[0])
            else:
                self.bound(BEGIN_WRITE)
                for statement, values in statements:
                    self.session.connection.execute(statement, values)
                self.bound(COMMIT)
        except apsw.ConstraintError as error:
            raise Conflict from error
        _note(group, results)
        return True

    def bound(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Run a statement that begins or ends a transaction: if the store refuses it, all jobs of the group fail."""
        try:
            self.session.connection.execute(statement, values)
            self.session.check_file()
        except (*UNAVAILABLE, StoreMovedError) as error:
            raise Refused(error, is_committing=statement != BEGIN_WRITE) from error
        if statement == BEGIN_WRITE:
            self.session.made_due = False
        elif self.session.made_due:
            self.session.made_due = False
            self._ring()

    def rest(self, *, is_busy: bool) -> None:
        """Make a checkpoint when it is time."""
        try:
            connection = self.session.connection
            pages, _ = connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
            # Fewer than last time are those of another connection.
            self._pages_at_checkpoint = min(self._pages_at_checkpoint, pages)
            if pages - self._pages_at_checkpoint > (CHECKPOINT_PAGES_MAX if is_busy else CHECKPOINT_PAGES):
                self._pages_at_checkpoint = pages
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            """Another process is making one."""
        except StoreMovedError:
            """The next job says so."""
        except apsw.Error as error:
            log.warning("%s: the checkpoint has to wait: %s", self.session.path, error)
            recover(self.session, error)


class Refused(Exception):
    """The store refused a transaction, whatever was in it."""

    def __init__(self, error: apsw.Error | StoreMovedError, *, is_committing: bool) -> None:
        super().__init__(str(error))
        self.error, self.is_committing = error, is_committing

    def explain(self, session: Session) -> StoreError:
        """The error for one of the callers."""
        recover(session, self.error)
        explained = translate(self.error, session.path, is_committing=self.is_committing)
        explained.__cause__ = self.error
        return explained


def _group(jobs: list[Job]) -> dict[WriteVerb[Any, Any], list[Job]]:
    groups: dict[WriteVerb[Any, Any], list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.verb, []).append(job)
    return groups


def _note(jobs: list[Job], results: Sequence[Any]) -> None:
    for job, result in zip(jobs, results, strict=True):
        job.result = result
