"""Cells: small things that all workers of a store share.

A cell may be wanted by all workers at once, and a change has it locked for a few round trips. So a process
takes turns with itself: one transaction at a time, for all changes that have come meanwhile, whichever cells they are
of. That needs one session however many wait, and a busy cell costs one transaction for many changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from outlive._kernel.store.contract import Action, CellChange
from outlive._kernel.store.postgres.audit import append_audit
from outlive._kernel.store.postgres.connection import HURRIED, Session
from outlive._kernel.store.postgres.rows import from_text, to_text


class CellCall(NamedTuple):
    """A change, and where its caller waits for the answer."""

    name: str
    change: CellChange[Any]
    answer: asyncio.Future[Any]
    audit: Action | None = None


class CellQueue:
    """The changes of one process, in order."""

    def __init__(self, write: Callable[..., Coroutine[Any, Any, list[Any]]], now: Callable[[], int | None]) -> None:
        self._write = write
        self._now = now
        self._calls: list[CellCall] = []
        self.is_busy = False
        """Whether `run` is under way, or is about to be."""

    def add(self, name: str, change: CellChange[Any], audit: Action | None = None) -> asyncio.Future[Any]:
        """Change a cell in the next transaction."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.append(CellCall(to_text(name), change, answer, audit))
        return answer

    async def run(self) -> None:
        """Write until no caller waits."""
        try:
            while self._calls:
                calls, self._calls = self._calls, []
                await self._run_once(calls)
        finally:
            self.is_busy = False

    async def _run_once(self, calls: list[CellCall]) -> None:
        try:
            answers = await self._write(change_cells, calls, self._now)
        except Exception as error:  # The callers must hear of it, whatever it is.
            answers = [error] * len(calls)
        except asyncio.CancelledError:
            for call in (*calls, *self._calls):
                call.answer.cancel()
            raise
        for call, answer in zip(calls, answers, strict=True):
            if call.answer.done():
                continue  # Its caller has given up; it happened all the same.
            if isinstance(answer, Exception):
                call.answer.set_exception(answer)
            else:
                call.answer.set_result(answer)


async def read_cell(session: Session, name: str) -> bytes | None:
    """The content of a cell; None if it was never written."""
    rows = await session.fetch("read_cell", to_text(name))
    return rows[0]["data"] if rows else None


async def list_cells(session: Session, after: str | None, limit: int) -> list[str]:
    """The names of cells that were written."""
    rows = await session.fetch("list_cells", None if after is None else to_text(after), limit)
    return [from_text(name) for (name,) in rows]


async def change_cells(session: Session, calls: list[CellCall], now: Callable[[], int | None]) -> list[Any]:
    """Make all changes in one transaction; the answers in order, an exception for a change that raised.

    A change whose caller has given up before there was a connection is taken out of the list, and never happens.
    """
    calls[:] = [call for call in calls if not call.answer.done()]
    names = sorted({call.name for call in calls})
    if not names:
        return []
    while True:
        async with session.transaction(begin=HURRIED):
            rows = await session.fetch("lock_cells", now(), names)
            if len(rows) == len(names):
                return await _change_locked(session, calls, rows, now())
        # With nothing locked: another process that makes one of them may want the others next.
        session.is_doubtful = False
        await session.fetch("create_cells", names)


async def _change_locked(session: Session, calls: list[CellCall], rows: list[Any], now: int | None) -> list[Any]:
    before = {row["name"]: row["data"] for row in rows}
    after = dict(before)
    now_at = max(row["now"] for row in rows)
    actions: list[Action] = []
    answers = [_change(after, call, now_at, actions) for call in calls]
    changed = {name: after[name] for name in before if after[name] != before[name] and after[name] is not None}
    if changed:
        await session.fetch("put_cells", list(changed), list(changed.values()))
    # Cells that hold nothing now, and cells that were only made to be locked.
    if empty := [name for name in before if after[name] is None]:
        await session.fetch("delete_cells", empty)
    if actions:
        await append_audit(session, actions, now)
    return answers


def _change(cells: dict[str, bytes | None], call: CellCall, now_at: int, actions: list[Action]) -> Any:
    before = cells[call.name]
    try:
        cells[call.name], answer = call.change(before, now_at)
    except Exception as error:  # It fails for its own caller only.
        return error
    if call.audit is not None and cells[call.name] != before:
        actions.append(call.audit)
    return answer
