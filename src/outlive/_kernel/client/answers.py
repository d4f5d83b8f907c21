"""The waiters for answers of runs.

Answers that are given in this process are announced by its worker, and a process that gives one rings for callers that
wait elsewhere (`followers`). For all others polling is the truth, as for the ends of runs (`waiters`): often at first,
as most answers come at once, and then as often as a worker asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from outlive._kernel.client.followers import Followers
from outlive._kernel.client.why import is_stopped
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Answer, Store
from outlive._tasks import own_task
from outlive.errors import EngineClosedError, RunNotFoundError, StoreUnavailableError
from outlive.errors.store import StoreMovedError

POLLED_MAX = 200
FIRST_SECONDS = 0.01
"""The pause before the first look; each later one is twice as long, up to that of the engine."""


class AnswerWaiter(msgspec.Struct, eq=False):
    """One caller that waits for an answer."""

    run_id: str
    key: str
    future: asyncio.Future[Answer | Run | None]
    """The answer; or the run if there will be none, as it has ended or is parked; or None if nothing was asked."""
    is_sent: bool = False
    """Whether the store has the ask: until then nothing can be looked for."""


class AnswerWaiters:
    """The callers of one engine that wait for answers, by the keys of their messages."""

    def __init__(self, store: Store, *, pause_seconds: float, followers: Followers) -> None:
        self._store = store
        self._followers = followers
        self._pause_seconds = pause_seconds
        self.waiting: dict[str, list[AnswerWaiter]] = {}
        self._poller: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._pause = FIRST_SECONDS
        self._look_at = 0.0
        """When to look next, by the clock of the loop."""
        self._bell: asyncio.Future[None] | None = None

    @contextmanager
    def expecting(self, run_id: str, key: str) -> Iterator[AnswerWaiter]:
        """Hear of the answer to a message that is sent in here."""
        waiter = AnswerWaiter(run_id, key, asyncio.get_running_loop().create_future())
        self.waiting.setdefault(key, []).append(waiter)
        try:
            with self._followers.calling(run_id, self.look):
                yield waiter
        finally:
            waiters = [each for each in self.waiting.pop(key, ()) if each is not waiter]
            if waiters:
                self.waiting[key] = waiters

    async def seek(self, waiter: AnswerWaiter) -> None:
        """The store has had the ask for a while: look at once whether it is answered."""
        waiter.is_sent = True
        await self._look_for([(waiter.run_id, waiter.key)])

    def sent(self, waiter: AnswerWaiter) -> None:
        """The store has the ask: look for its answer from now on, soon for the first time."""
        waiter.is_sent = True
        self._followers.begin()
        if self._poller is None:
            self._look_at = self._loop.time() + FIRST_SECONDS
            self._poller = own_task(self._poll(), name="outlive-answers")
        self._pause = FIRST_SECONDS
        self._look_by(self._loop.time() + FIRST_SECONDS)

    def look(self) -> None:
        """Something may have been answered, or a run has ended or is parked: look at once."""
        self._look_by(0.0)

    def _look_by(self, at: float) -> None:
        if at < self._look_at:
            self._look_at = at
            if self._bell is not None and not self._bell.done():
                self._bell.set_result(None)

    def announce(self, answers: Iterable[Answer]) -> None:
        """Runs have given answers, and the store has them."""
        for answer in answers:
            self._resolve(answer.key, answer)

    def close(self) -> None:
        """The engine stops: every caller that waits raises."""
        if self._poller is not None:
            self._poller.cancel()
        self._fail(list(self.waiting), EngineClosedError("waiting for an answer"))

    async def _poll(self) -> None:
        try:
            while self.waiting:
                if (seconds := self._look_at - self._loop.time()) > 0:
                    self._bell = self._loop.create_future()
                    await asyncio.wait([self._bell], timeout=seconds)
                    continue
                self._look_at = self._loop.time() + self._pause
                self._pause = min(self._pause * 2, self._pause_seconds)
                await self.poll_once()
        finally:
            self._poller = None

    async def poll_once(self) -> None:
        """Look for some of the answers in the store."""
        sent = {key: waiters[0].run_id for key, waiters in self.waiting.items() if any(it.is_sent for it in waiters)}
        if sent:
            await self._look_for([(run_id, key) for key, run_id in list(sent.items())[:POLLED_MAX]])

    async def _look_for(self, asks: Sequence[tuple[str, str]]) -> None:
        keys = [key for _, key in asks]
        try:
            # The runs first: one that has ended by then gives no answer any more.
            runs = await self._store.find_runs(sorted({run_id for run_id, _ in asks}))
            roots = await self._find_roots(runs)
            found = await self._store.find_answers(asks)
        except StoreUnavailableError as error:
            if isinstance(error, StoreMovedError):
                self._fail(keys, error)
            return
        except Exception as error:  # The callers alone can hear of it.
            self._fail(keys, error)
            return
        for run_id, key in asks:
            run = runs.get(run_id)
            root = run if run is None else roots.get(run.root_id, run)
            if (run_id, key) not in found:
                self._missing(run_id, key, run)
            elif (answer := found[run_id, key]) is not None:
                self._resolve(key, answer)
            elif run is not None and run.status.is_terminal:
                self._resolve(key, run)
            elif root is not None and is_stopped(root):
                self._resolve(key, root)
            elif key in self.waiting:
                self.waiting[key] = self.waiting.pop(key)  # To the end of the line.

    async def _find_roots(self, runs: dict[str, Run]) -> dict[str, Run]:
        """The roots of those of them that are children: only roots are parked."""
        ids = {run.root_id for run in runs.values() if run.number and not run.status.is_terminal}
        return await self._store.find_runs(sorted(ids)) if ids else {}

    def _missing(self, run_id: str, key: str, run: Run | None) -> None:
        """The run does not know the ask: it was never asked, or another one has its id, or it is gone."""
        if run is None:
            self._fail([key], RunNotFoundError(run_id))
        elif run.status is RunStatus.DAMAGED:
            self._resolve(key, run)
        else:
            self._resolve(key, None)

    def _resolve(self, key: str, found: Answer | Run | None) -> None:
        for waiter in self.waiting.pop(key, ()):
            if not waiter.future.done():
                waiter.future.set_result(found)

    def _fail(self, keys: Sequence[str], error: Exception) -> None:
        for key in keys:
            for waiter in self.waiting.pop(key, ()):
                if not waiter.future.done():
                    waiter.future.set_exception(error)
