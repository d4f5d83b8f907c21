"""The callers that wait until a run has ended, or is parked.

Runs that end or are parked in this process are announced by its worker. For a root run that does so elsewhere the store
rings, if it can (`Store.follow`): its row is read at once. Polling is the truth: a few of the awaited ids at a time, in
turn, so that ten thousand waiters cost no more than a hundred.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from outlive._kernel.client.answers import AnswerWaiters
from outlive._kernel.client.followers import Bell, Followers
from outlive._kernel.client.why import is_stopped
from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Store
from outlive._tasks import own_task
from outlive.errors import EngineClosedError, RunNotFoundError, StoreUnavailableError
from outlive.errors.store import StoreMovedError

POLLED_MAX = 200


class Waiters:
    """Futures for runs that have not ended, by run id."""

    def __init__(self, store: Store, *, pause: Callable[[], Coroutine[Any, Any, None]], pause_seconds: float) -> None:
        self._store = store
        self._pause_seconds = pause_seconds
        self.pause = pause
        """Waits a moment between two looks."""
        self.followers = Followers(store.follow)
        """The readers that follow runs, and wait for less than an end."""
        self.answers = AnswerWaiters(store, pause_seconds=pause_seconds, followers=self.followers)
        """The callers that wait for an answer of a run."""
        self._waiting: dict[str, list[asyncio.Future[Run]]] = {}
        self.moves: Callable[[str], bool] = lambda _: False
        """Whether a run moves in this process: then it may be on its way into the store."""
        self._seen: dict[str, bool] = {}
        """The awaited runs that were looked for, and whether the store had them. A run that moves in this process and
        was never in the store is left out."""
        self._rung: dict[str, None] = {}
        """The awaited runs that may have ended in another process."""
        self._bell = Bell()
        self._is_listening = False
        self._poller: asyncio.Task[None] | None = None

    def _hear(self, run_id: str) -> None:
        """Another process may have ended a run, or parked it; with "", any of them."""
        if not run_id:
            self._rung |= dict.fromkeys(self._waiting)
        elif run_id in self._waiting:
            self._rung[run_id] = None
        if self._rung:
            self._bell.ring()

    def announce(self, run: Run) -> None:
        """A run has ended; or it is parked, and with it everything in its tree that has not."""
        if self.answers.waiting:
            self.answers.look()
        if self.followers.bells:
            self.followers.ring(run.id)
        ids = [run.id]
        if run.status is RunStatus.PARKED:
            ids += [run_id for run_id in self._waiting if run_id.startswith(f"{run.id}~")]
        for run_id in ids:
            for future in self._waiting.pop(run_id, ()):
                if not future.done():
                    future.set_result(run)

    def saw(self, run_id: str) -> None:
        """An awaited run is there, and does not move in this process: from the first of them on the store rings for
        ends in other processes. Not before: a store may have to do more at every end while a process listens."""
        if run_id in self._waiting:
            self._seen[run_id] = True
        if not self._is_listening:
            self._is_listening = True
            if self._store.follow(self._hear):
                self._hear("")  # It may have ended since it was seen.

    @contextmanager
    def waiting(self, run_id: str) -> Iterator[asyncio.Future[Run]]:
        """A future for the end of a run, or for the news that its root is parked: by then it may go on again."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Run] = loop.create_future()
        self._waiting.setdefault(run_id, []).append(future)
        if self._poller is None:
            self._poller = own_task(self._poll(), name="outlive-waiters")
        try:
            yield future
        finally:
            waiting = self._waiting.get(run_id)
            if waiting and future in waiting:
                waiting.remove(future)
                if not waiting:
                    del self._waiting[run_id]
            if run_id not in self._waiting:
                self._seen.pop(run_id, None)

    def close(self) -> None:
        """The engine stops: everything that waits raises."""
        self.answers.close()
        if self._poller is not None:
            self._poller.cancel()
        self.followers.close()
        for run_id in list(self._waiting):
            self._fail(run_id, EngineClosedError("waiting for a result"))

    async def _poll(self) -> None:
        loop = asyncio.get_running_loop()
        due_at = loop.time() + self._pause_seconds
        try:
            while self._waiting:
                await self._bell.wait(0 if self._rung else max(0.0, due_at - loop.time()))
                if self._rung:
                    await self.look_for_rung()
                # However often it rings, runs that no process rings for are looked at too.
                if loop.time() >= due_at:
                    await self.poll_once()
                    due_at = loop.time() + self._pause_seconds
        finally:
            self._poller = None

    async def look_for_rung(self) -> None:
        """Look for the awaited runs that may have ended in another process, some at a time."""
        rung = list(self._rung)[:POLLED_MAX]
        for run_id in rung:
            del self._rung[run_id]
        if ids := [run_id for run_id in rung if run_id in self._waiting]:
            await self._look_for(ids)

    async def poll_once(self) -> None:
        """Look for some of the awaited runs in the store."""
        ids = list(self._waiting)[:POLLED_MAX]
        looked = await self._look_for(ids)
        if looked is None:
            return
        there, gone = looked
        for run_id in ids:
            if run_id in gone and self._seen.get(run_id) is False:
                # A snapshot has put it away, it was deleted, its tree has another name now, or the store has forgotten
                # it. Looked for twice: if it ended in this process, its worker is about to announce how.
                self._fail(run_id, RunNotFoundError(run_id))
            elif run_id in self._waiting:
                # To the end of the line.
                self._waiting[run_id] = self._waiting.pop(run_id)
                if run_id in there or (run_id in gone and (run_id in self._seen or not self.moves(run_id))):
                    self._seen[run_id] = run_id in there

    async def _look_for(self, ids: list[str]) -> tuple[set[str], set[str]] | None:
        """Announce the runs that have ended or are parked. Returns the ids that the store has and the ids that it has
        not, or None if the store does not answer."""
        try:
            runs = await self._store.find_runs(ids)
            gone = {*ids} - {*runs}
            roots = await self._roots_of(runs)
        except StoreMovedError as error:
            for run_id in ids:
                self._fail(run_id, error)
            return None
        except StoreUnavailableError:
            return None
        except Exception:  # One row that cannot be read must not leave the others waiting.
            (runs, roots), gone = (await self._find_each(ids), {}), set()
        for run in runs.values():
            if run.status.is_terminal and run.status is not RunStatus.CONTINUED:
                self.announce(run)
            elif is_stopped(root := roots.get(run.root_id, run)):
                self.announce(root)
        return {*runs}, gone

    async def _roots_of(self, runs: dict[str, Run]) -> dict[str, Run]:
        """The roots of those of them that are children: only roots are parked."""
        ids = {run.root_id for run in runs.values() if run.number and not run.status.is_terminal}
        return await self._store.find_runs(sorted(ids)) if ids else {}

    async def _find_each(self, ids: list[str]) -> dict[str, Run]:
        """Look for one run at a time; waiting for one that cannot be read raises."""
        runs: dict[str, Run] = {}
        for run_id in ids:
            try:
                run = await self._store.find_run(run_id)
            except StoreUnavailableError:
                break
            except Exception as error:
                self._fail(run_id, error)
            else:
                runs |= {} if run is None else {run_id: run}
        return runs

    def _fail(self, run_id: str, error: Exception) -> None:
        for future in self._waiting.pop(run_id, ()):
            if not future.done():
                future.set_exception(error)
