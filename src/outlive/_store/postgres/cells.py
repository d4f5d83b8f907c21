"""Cells: small things that all workers of a store share.

A cell may be wanted by everybody at once, and whoever changes it has it locked for a few round trips. So a process
takes turns with itself: one transaction at a time, for all changes that have come meanwhile, whichever cells they are
of. That needs one session however many wait, and a busy cell costs one transaction for many changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from outlive._store.contract import CellChange
from outlive._store.postgres.connection import Session
from outlive._store.postgres.rows import to_text


class Wish(NamedTuple):
    """A change that somebody waits for."""

    name: str
    change: CellChange[Any]
    answer: asyncio.Future[Any]


class CellQueue:
    """The changes of one process, in order."""

    def __init__(self, write: Callable[..., Coroutine[Any, Any, list[Any]]], now: Callable[[], int | None]) -> None:
        self._write = write
        self._now = now
        self._wishes: list[Wish] = []
        self.is_busy = False
        """Whether `run` is under way, or is about to be."""

    def add(self, name: str, change: CellChange[Any]) -> asyncio.Future[Any]:
        """Change a cell in the next transaction."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._wishes.append(Wish(to_text(name), change, answer))
        return answer

    async def run(self) -> None:
        """Write until nobody waits."""
        try:
            while self._wishes:
                wishes, self._wishes = self._wishes, []
                await self._run_once(wishes)
        finally:
            self.is_busy = False

    async def _run_once(self, wishes: list[Wish]) -> None:
        try:
            answers = await self._write(change_cells, wishes, self._now)
        except Exception as error:  # Whoever waits must hear of it, whatever it is.
            answers = [error] * len(wishes)
        for wish, answer in zip(wishes, answers, strict=True):
            if wish.answer.done():
                continue  # Whoever asked has given up; it happened all the same.
            if isinstance(answer, Exception):
                wish.answer.set_exception(answer)
            else:
                wish.answer.set_result(answer)


async def change_cells(session: Session, wishes: list[Wish], now: Callable[[], int | None]) -> list[Any]:
    """Make all changes in one transaction; the answers in order, an exception for a change that raised."""
    names = sorted({wish.name for wish in wishes})
    while True:
        async with session.transaction():
            rows = await session.fetch("lock_cells", now(), names)
            if len(rows) == len(names):
                return await _change_locked(session, wishes, rows)
        # With nothing locked: whoever else makes one of them may want the others next.
        session.is_doubtful = False
        await session.fetch("create_cells", names)


async def _change_locked(session: Session, wishes: list[Wish], rows: list[Any]) -> list[Any]:
    before = {row["name"]: row["data"] for row in rows}
    after = dict(before)
    now_at = max(row["now"] for row in rows)
    answers = [_change(after, wish, now_at) for wish in wishes]
    changed = [name for name in before if after[name] != before[name]]
    if changed:
        await session.fetch("put_cells", changed, [after[name] for name in changed])
    return answers


def _change(cells: dict[str, bytes | None], wish: Wish, now_at: int) -> Any:
    try:
        cells[wish.name], answer = wish.change(cells[wish.name], now_at)
    except Exception as error:  # It hurts nobody but the one who made it.
        return error
    return answer
