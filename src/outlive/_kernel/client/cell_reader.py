"""A cell that many callers read: one question to the store at a time, and what it holds is decoded once.

All callers that come while the store is asked share the next question, so that each of them gets what the cell held
after it had asked, and a thousand callers cost the store a few questions and not a thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from outlive._kernel.store.contract import CellStore
from outlive._tasks import own_task

T = TypeVar("T")


class CellReader(Generic[T]):
    """Reads one cell.

    Args:
        decode: what the bytes of the cell mean, None for one that was never written. Callers share what it returns and
            must not change it.
    """

    def __init__(self, name: str, decode: Callable[[bytes | None], T]) -> None:
        self._name, self._decode = name, decode
        self._waiting: list[asyncio.Future[T]] = []
        self._task: asyncio.Task[None] | None = None
        self._held: bytes | None = None
        self._decoded = decode(None)

    async def read(self, store: CellStore) -> T:
        """The content of the cell now.

        Raises:
            StoreUnavailableError: the store cannot be reached.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if self._task is None:
            self._task = own_task(self._answer_all(store), name="outlive-cell-reader")
        return await answer

    async def _answer_all(self, store: CellStore) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                await self._answer(store, waiting)
        finally:
            self._task = None

    async def _answer(self, store: CellStore, waiting: list[asyncio.Future[T]]) -> None:
        failure: Exception | None = None
        try:
            held = await store.read_cell(self._name)
            if held != self._held:
                self._held, self._decoded = held, self._decode(held)
        except Exception as error:  # Each caller hears of it.
            failure = error
        for answer in waiting:
            if answer.done():
                continue  # Its caller has given up.
            if failure is None:
                answer.set_result(self._decoded)
            else:
                answer.set_exception(failure)
