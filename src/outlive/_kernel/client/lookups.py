"""Runs that are looked up by their ids: one question to the store at a time.

The ids of all callers that come meanwhile are asked for together, so that a thousand callers who wait for a thousand
runs cost the store a few questions and not a thousand.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from outlive._kernel.model import Run
from outlive._kernel.store.contract import Store
from outlive._tasks import own_task
from outlive.errors import StoreUnavailableError

ASKED_MAX = 1_000


class Asked(NamedTuple):
    """One caller."""

    run_id: str
    answer: asyncio.Future[Run | None]


class Lookups:
    """Finds runs in one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Asked] = []
        self._task: asyncio.Task[None] | None = None

    def find(self, run_id: str) -> asyncio.Future[Run | None]:
        """The run of this id as it is now, if there is one. No coroutine: each start with an id awaits it."""
        answer: asyncio.Future[Run | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(Asked(run_id, answer))
        if self._task is None:
            self._task = own_task(self._ask_for_all(), name="outlive-lookups")
        return answer

    async def _ask_for_all(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting[:ASKED_MAX], self._waiting[ASKED_MAX:]
                await self._ask_for(asked)
        finally:
            self._task = None

    async def _ask_for(self, asked: list[Asked]) -> None:
        found: dict[str, Run] = {}
        failure: Exception | None = None
        try:
            found = await self._store.find_runs([one.run_id for one in asked])
        except Exception as error:
            if len(asked) > 1 and not isinstance(error, StoreUnavailableError):
                # One row that cannot be read must not be the answer to all who came meanwhile.
                for one in asked:
                    await self._ask_for([one])
                return
            failure = error
            if isinstance(error, StoreUnavailableError):
                # Callers that came meanwhile have waited for the store too.
                asked, self._waiting = asked + self._waiting, []
        for run_id, answer in asked:
            if answer.done():
                continue  # Its caller has given up.
            if failure is None:
                answer.set_result(found.get(run_id))
            else:
                answer.set_exception(failure)
