"""One thread writes and another one reads; the event loop only queues and hears.

Group commit
------------
Whatever is queued while a transaction is being committed goes into the next one, whichever verbs it is. The one wait for
the disk and the one call back into the event loop are shared by all of it. If anything in a group fails, the group is
rolled back and each job is done again in a transaction of its own, so nobody suffers for somebody else.

A verb is given the arguments of all its jobs in the group at once: `commit` makes a handful of statements of them, and if one
statement is all that a group needs, that statement is the transaction.

Checkpoints move pages from the WAL into the file, and wait for the disk too. The writer makes them after it has
answered, when nobody waits; only a WAL that has grown far too large makes somebody wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import apsw

from outlive._store.sqlite.connection import UNAVAILABLE, Session, is_connection_lost, translate
from outlive._store.sqlite.query import BEGIN_READ, BEGIN_WRITE, COMMIT, Value
from outlive.errors import InternalError, StoreError
from outlive.telemetry import log

JOBS_MAX = 1_000
"""Jobs in one group."""
CHECKPOINT_PAGES = 1_000
"""Pages written before the writer makes a checkpoint, if nobody waits."""
CHECKPOINT_PAGES_MAX = 8_000
"""Pages written before it makes one in any case."""


class Conflict(Exception):  # noqa: N818 (not an error: some change of the batch lost a race)
    """What was tried for many at once has to be tried again for each, carefully."""


class WriteRun(Protocol):
    """What a verb does in a transaction: answers for all arguments, in order."""

    def __call__(self, session: Session, arguments: list[Any], /, *, careful: bool) -> Sequence[Any]:
        """Raises `Conflict` unless `careful`; then it finds out for whom."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteVerb:
    """Something that the writer can do."""

    run: WriteRun
    plan: Callable[[list[Any]], tuple[str, list[Value], Sequence[Any]] | None] = lambda _: None
    """The one statement that is all there is to do, and the answers; None if it takes more than one."""


ReadVerb = Callable[[Session, Any], Any]


@dataclass(slots=True, eq=False)
class Job:
    """Something to do, and its outcome."""

    verb: Any
    argument: Any
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class Lane:
    """A thread with a connection of its own that works through a queue."""

    def __init__(self, session: Session, *, name: str) -> None:
        self.session = session
        self._name = name
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()

    async def start(self, prepare: Callable[[], None]) -> None:
        """Begin with `prepare`, in the thread; if it raises, there is no thread, and its exception is raised here."""
        ready = self._loop.create_future()
        threading.Thread(target=self._live, args=(prepare, ready), name=self._name, daemon=True).start()
        await asyncio.shield(ready)

    def submit(self, verb: Any, argument: Any) -> asyncio.Future[Any]:
        """Queue a job; a caller that stops waiting for it does not stop it."""
        future = self._loop.create_future()
        self._queue.put(Job(verb, argument, future))
        return future

    async def stop(self) -> None:
        """Let what is queued be done, then let go of the connection."""
        self._queue.put(None)
        await asyncio.shield(self._ended)

    def work(self, jobs: list[Job]) -> None:
        """Do these jobs and note the outcome of each."""
        raise NotImplementedError

    def rest(self, *, is_busy: bool) -> None:
        """Do what can wait until the jobs have been answered."""

    def _live(self, prepare: Callable[[], None], ready: asyncio.Future[Any]) -> None:
        opening = Job(None, None, ready)
        try:
            _attempt(self.session, opening, prepare)
            self._call(_settle, [opening])
            if opening.error is None:
                self._work_through_queue()
        finally:
            self.session.close()
            self._call(_settle, [Job(None, None, self._ended)])

    def _work_through_queue(self) -> None:
        is_open = True
        while is_open:
            jobs, is_open = self._take_jobs()
            try:
                self.work(jobs)
            except BaseException as error:  # The thread has to live on: others wait for it.
                log.exception("the store's thread %s failed", self._name)
                for job in jobs:
                    job.error = InternalError(f"the store's thread failed: {error!r}")
            self._call(_settle, jobs)
            self.rest(is_busy=not self._queue.empty())

    def _take_jobs(self) -> tuple[list[Job], bool]:
        """Everything that is queued, waiting for the first; False when the lane is to end after it."""
        jobs: list[Job] = []
        job = self._queue.get()
        try:
            while job is not None:
                jobs.append(job)
                if len(jobs) == JOBS_MAX:
                    return jobs, True
                job = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _call(self, callback: Callable[[list[Job]], None], jobs: list[Job]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, jobs)
        except RuntimeError:
            """The loop has been closed: nobody waits for an answer."""


class Reader(Lane):
    """Does each job in a read transaction of its own; never waits for a commit."""

    def work(self, jobs: list[Job]) -> None:
        """Do one after the other."""
        for job in jobs:
            _attempt(self.session, job, lambda job=job: self._read(job))  # type: ignore[misc]

    def _read(self, job: Job) -> Any:
        try:
            self.session.connection.execute(BEGIN_READ)
            return job.verb(self.session, job.argument)
        finally:
            self.session.roll_back()


class Writer(Lane):
    """Does all jobs of a group in one transaction."""

    def __init__(self, session: Session, *, name: str) -> None:
        super().__init__(session, name=name)
        self._pages_at_checkpoint = 0

    def work(self, jobs: list[Job]) -> None:
        """Do all at once; if anything is in the way, each alone."""
        try:
            self._write(jobs)
        except Refused as refusal:
            for job in jobs:
                job.error = refusal.explain(self.session)
        except Conflict:
            for job in jobs:
                self._write_alone(job, careful=len(jobs) == 1)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].error = _explain(self.session, error)
                return
            for job in jobs:
                self._write_alone(job)

    def _write_alone(self, job: Job, *, careful: bool = False) -> None:
        try:
            self._write([job], careful=careful)
        except Refused as refusal:
            job.error = refusal.explain(self.session)
        except Conflict:
            assert not careful, "whoever is careful finds out what conflicts"
            self._write_alone(job, careful=True)
        except Exception as error:
            job.error = _explain(self.session, error)

    def _write(self, jobs: list[Job], *, careful: bool = False) -> None:
        groups: dict[WriteVerb, list[Job]] = {}
        for job in jobs:
            groups.setdefault(job.verb, []).append(job)
        try:
            if careful or not self._write_one_statement(groups):
                self._bound(BEGIN_WRITE)
                for verb, group in groups.items():
                    _note(group, verb.run(self.session, [job.argument for job in group], careful=careful))
                self._bound(COMMIT)
        except BaseException:
            self.session.roll_back()
            raise

    def _write_one_statement(self, groups: dict[WriteVerb, list[Job]]) -> bool:
        if len(groups) > 1:
            return False
        ((verb, group),) = groups.items()
        plan = verb.plan([job.argument for job in group])
        if plan is None:
            return False
        statement, values, results = plan
        try:
            self._bound(statement, values)
        except apsw.ConstraintError as error:
            raise Conflict from error
        _note(group, results)
        return True

    def _bound(self, statement: str, values: Sequence[Value] = ()) -> None:
        """Run a statement that begins or ends a transaction: if the store refuses it, it refuses everybody."""
        try:
            self.session.connection.execute(statement, values)
        except UNAVAILABLE as error:
            raise Refused(error, is_committing=statement != BEGIN_WRITE) from error

    def rest(self, *, is_busy: bool) -> None:
        """Make a checkpoint when it is time."""
        try:
            connection = self.session.connection
            pages, _ = connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
            if pages < self._pages_at_checkpoint:
                self._pages_at_checkpoint = 0  # This is another connection than last time.
            if pages - self._pages_at_checkpoint > (CHECKPOINT_PAGES_MAX if is_busy else CHECKPOINT_PAGES):
                self._pages_at_checkpoint = pages
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            log.warning("%s: the checkpoint has to wait: %s", self.session.path, error)
            _recover(self.session, error)


class Refused(Exception):  # noqa: N818 (carries the error of SQLite to everyone whom it concerns)
    """The store refused a transaction, whatever was in it."""

    def __init__(self, error: apsw.Error, *, is_committing: bool) -> None:
        super().__init__(str(error))
        self.error, self.is_committing = error, is_committing

    def explain(self, session: Session) -> StoreError:
        """What to tell one of them."""
        _recover(session, self.error)
        return translate(self.error, session.path, is_committing=self.is_committing)


def _note(jobs: list[Job], results: Sequence[Any]) -> None:
    for job, result in zip(jobs, results, strict=True):
        job.result = result


def _attempt(session: Session, job: Job, do: Callable[[], Any]) -> None:
    try:
        job.result = do()
    except Exception as error:
        job.error = _explain(session, error)


def _explain(session: Session, error: Exception) -> Exception:
    if not isinstance(error, apsw.Error):
        return error
    _recover(session, error)
    explained = translate(error, session.path)
    explained.__cause__ = error
    return explained


def _recover(session: Session, error: apsw.Error) -> None:
    session.roll_back()
    if is_connection_lost(error):
        session.close()


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
