"""One thread writes, one reads, and one finds runs; the event loop only queues and hears.

A thread takes everything that is queued, does it, and answers all of it with one call back into the event loop.
What a job does is a verb; what its verbs are given is up to the thread (`writer` has the other one).
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import apsw

from outlive._kernel.store.pending_write import PENDING_WRITE, PendingWrite
from outlive._kernel.store.sqlite.connection import Session, is_connection_lost, translate
from outlive.errors import InternalError
from outlive.telemetry import log

JOBS_MAX = 1_000
"""Jobs that are taken at once."""
OPERATIONS_BETWEEN_LOOKS = 20_000
"""Instructions of SQLite between two looks whether the caller of a search still waits: a few milliseconds."""


@dataclass(slots=True, eq=False)
class Job:
    """Something to do, and its outcome."""

    verb: Any
    argument: Any
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    write: PendingWrite | None = None
    """The write of a caller that asks whether it is pending."""


class StoreThread(ABC):
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
        write = PENDING_WRITE.get()
        if write is not None:
            write.wait()
        self._queue.put(Job(verb, argument, future, write=write))
        return future

    async def stop(self) -> None:
        """Let what is queued be done, then close the connection."""
        self._queue.put(None)
        await asyncio.shield(self._ended)

    def settle(self, jobs: list[Job]) -> None:
        """Answer the callers of these jobs now; no caller is answered twice."""
        self._call(_settle, jobs)

    def time(self) -> float:
        """Seconds that only go forward: the event loop's, which any thread may ask for."""
        return self._loop.time()

    @abstractmethod
    def work(self, jobs: list[Job]) -> None:
        """Do these jobs and note the outcome of each."""

    def rest(self, *, is_busy: bool) -> None:  # noqa: B027 (only the writer has something to do then)
        """Do what can wait until the jobs have been answered."""

    def _live(self, prepare: Callable[[], None], ready: asyncio.Future[Any]) -> None:
        opening = Job(None, None, ready)
        try:
            _attempt(self.session, opening, prepare)
            if opening.error is not None:
                self.session.close()
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
            try:
                self.rest(is_busy=not self._queue.empty())
            except Exception:  # For the same reason.
                log.exception("the store's thread %s failed between two jobs", self._name)

    def _take_jobs(self, *, at_once: bool = False) -> tuple[list[Job], bool]:
        """Everything that is queued, waiting for the first; False when the thread is to end after it.

        `at_once`: all of it, however much, and without waiting.
        """
        jobs: list[Job] = []
        try:
            job = self._queue.get(block=not at_once)
            while job is not None:
                if not job.future.cancelled():  # Else its caller has given up: what was not begun never happens.
                    jobs.append(job)
                if len(jobs) == JOBS_MAX and not at_once:
                    return jobs, True
                job = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _call(self, callback: Callable[[list[Job]], None], jobs: list[Job]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, jobs)
        except RuntimeError:
            """The loop has been closed: no caller waits for an answer."""


class Reader(StoreThread):
    """Does one job after the other; never waits for a commit."""

    def work(self, jobs: list[Job]) -> None:
        """Answer them in turn."""
        for job in jobs:
            _attempt(self.session, job, partial(self._read, job))

    def _read(self, job: Job) -> Any:
        result = job.verb(self.session, job.argument)
        self.session.check_file()
        return result


class Searcher(Reader):
    """Does what may have to look at many rows, so that no other read waits for it; a search ends when its caller has
    given it up."""

    def _read(self, job: Job) -> Any:
        self.session.connection.set_progress_handler(job.future.cancelled, OPERATIONS_BETWEEN_LOOKS)
        return super()._read(job)


def begin(jobs: list[Job]) -> list[Job]:
    """The jobs that are still wanted. No write is pending any more when the first look says which were cancelled: so
    a caller that gives up, and then finds its write pending, knows that it never happens."""
    for job in jobs:
        if job.write is not None:
            job.write.begin()
    return [job for job in jobs if not job.future.cancelled()]


def _attempt(session: Session, job: Job, do: Callable[[], Any]) -> None:
    try:
        job.result = do()
    except Exception as error:
        job.error = explain(session, error)


def explain(session: Session, error: Exception) -> Exception:
    """The error for the caller of a job that raised this."""
    if not isinstance(error, apsw.Error):
        return error
    recover(session, error)
    explained = translate(error, session.path)
    explained.__cause__ = error
    return explained


def recover(session: Session, error: Exception) -> None:
    """Make the session usable again."""
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
