"""The eyes of a checker on a server. The contract of each verb is in `outlive._kernel.store.examine`.

Looking is a transaction of its own that only reads and sees one moment. Repairing locks the root's row first, as every
writer does: earlier writes are seen, and later ones write over it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from outlive._kernel.model import Run
from outlive._kernel.model.run import IN_LINE
from outlive._kernel.store.contract import Watch
from outlive._kernel.store.examine import (
    HANDLE_MIN,
    InboxRow,
    ItemRows,
    Repair,
    RunRow,
    StreamRows,
    TreeBuilder,
    TreeRows,
    fault_of_wait,
    row_of,
)
from outlive._kernel.store.postgres.batch import line_of
from outlive._kernel.store.postgres.cells import list_cells
from outlive._kernel.store.postgres.checkpoints import list_checkpoints
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.rows import birth_of, from_text, to_run, to_text
from outlive._kernel.store.tables.journal_rows import Conflict

FAULTS_MAX = 100
"""How many faults of each kind are reported of the database as a whole."""
ONE_MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

T = TypeVar("T")


class Doing(Protocol):
    """How a store does something with a session of its own."""

    def __call__(self, verb: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> Awaitable[T]:
        """Its outcome."""


class PostgresExaminer:
    """Looks at one schema."""

    def __init__(self, read: Doing, write: Doing, *, time: Callable[[], int | None]) -> None:
        self._read, self._write, self._time = read, write, time

    async def check_database(self) -> list[str]:
        """See `Examiner`. A server looks after its files itself."""
        return await self._read(_check_database)

    async def list_journals(self, *, after: int = HANDLE_MIN, limit: int) -> list[int]:
        """See `Examiner`."""
        return await self._read(_list_journals, after, limit)

    async def examine(self, journals: Sequence[int]) -> list[TreeRows]:
        """See `Examiner`."""
        return await self._read(_examine, journals)

    async def list_watches(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Watch]:
        """See `Examiner`."""
        return await self._read(_list_watches, after, limit)

    async def list_checkpoints(self, *, after: bytes = b"", limit: int) -> list[bytes]:
        """See `Examiner`."""
        return await self._read(list_checkpoints, after, limit)

    async def list_cells(self, *, after: str | None = None, limit: int) -> list[str]:
        """See `Examiner`."""
        return await self._read(list_cells, after, limit)

    async def repair(self, repair: Repair) -> bool:
        """See `Examiner`."""
        try:
            return await self._write(_repair, repair, self._time())
        except Conflict:
            return False


async def _check_database(session: Session) -> list[str]:
    strays = await session.fetch("find_stray_tags", FAULTS_MAX)
    lost = await session.fetch("find_stray_chunks", FAULTS_MAX)
    waits = await session.fetch("find_lost_waits", FAULTS_MAX)
    faults = [f"items of a stream hang on the key {stream}, which is not the key of a stream" for (stream,) in lost]
    faults += [f"run row {key} is found by the tag {from_text(name)!r}, which is not its own" for key, name in strays]
    return faults + [fault_of_wait(key, name, is_stray=is_stray) for key, name, is_stray in waits]


async def _list_journals(session: Session, after: int, limit: int) -> list[int]:
    return [journal for (journal,) in await session.fetch("list_journals", after, limit)]


async def _list_watches(session: Session, after: tuple[str, str], limit: int) -> list[Watch]:
    rows = await session.fetch("list_watches", *map(to_text, after), limit)
    return [Watch(run_id=from_text(run), watcher=from_text(watcher), key=from_text(key)) for run, watcher, key in rows]


async def _examine(session: Session, journals: Sequence[int]) -> list[TreeRows]:
    trees = {journal: TreeBuilder(journal) for journal in journals}
    wanted = list(trees)
    async with session.transaction(begin=ONE_MOMENT):
        for (row,) in await session.fetch("examine_runs", wanted):
            run = _to_row(row)
            trees[run.key if run.number <= 0 else run.journal].runs.append(run)
        for journal, count, tail, lasts in await session.fetch("examine_events", wanted):
            trees[journal].count, trees[journal].tail = count, tail
            trees[journal].lasts = [(seq, 1) for seq in lasts]
        for journal, id, run, kind, key, is_remembered in await session.fetch("examine_inbox", wanted):
            message = InboxRow(id=id, run=run, kind=kind, key=from_text(key), is_remembered=is_remembered)
            trees[journal].inbox.append(message)
        for journal, run, count, first, last in await session.fetch("examine_items", wanted):
            trees[journal].items.append(ItemRows(run=run, count=count, first=first, last=last))
        for journal, run, name, position, number, items, gaps in await session.fetch("examine_streams", wanted):
            stream = StreamRows(run=run, name=from_text(name), position=position, number=number, items=items, gaps=gaps)
            trees[journal].streams.append(stream)
        for journal, key, is_answered in await session.fetch("examine_keys", wanted):
            trees[journal].keys.append(from_text(key))
            trees[journal].answered += [from_text(key)] if is_answered else []
        found = await _find_tags(session, [tag for tree in trees.values() for tag in tree.list_tags()])
        keys = [key for tree in trees.values() for key in tree.list_lined()]
        lined = {key for (key,) in await session.fetch("find_lined", keys)} if keys else set()
    return [tree.build(found, lined) for tree in trees.values()]


def _to_row(text: str) -> RunRow:
    values = msgspec.json.decode(text)
    key, id, journal, number, root_id, *_ = values
    return row_of(to_run(values), key=key, journal=journal, number=number, id=id, root_id=root_id)


async def _find_tags(session: Session, tags: list[tuple[int, int, str, str]]) -> set[tuple[int, str]]:
    if not tags:
        return set()
    keys, ats, names, values = zip(*tags, strict=True)
    columns = list(keys), list(ats), list(map(to_text, names)), list(map(to_text, values))
    return {(key, from_text(name)) for key, name in await session.fetch("find_tags", *columns)}


async def _repair(session: Session, repair: Repair, now: int | None) -> bool:
    async with session.transaction():
        await session.fetch("lock_run", repair.journal)
        tails = await session.fetch("find_tails", [repair.journal])
        if not tails or tails[0]["seq"] != repair.after:
            return False
        keys = [*repair.removed, *(key for key, _ in repair.runs if key is not None)]
        await session.fetch("delete_tags", keys)
        await session.fetch("delete_runs", list(repair.removed))
        for key, run in repair.runs:
            await _put_run(session, repair.journal if run.number == 0 else key, run, repair.journal)
        for _, run in repair.runs:
            if run.slot == IN_LINE:
                await session.fetch("put_lines", *([column] for column in line_of(run)))
        await session.fetch("wake_inbox", repair.journal, now)
        if repair.wake:
            await session.fetch("wake_run", repair.journal, now)
    return True


async def _put_run(session: Session, key: int | None, run: Run, journal: int) -> None:
    if key is None:
        ((key,),) = await session.fetch("next_key")
    await session.put("repair_run", *birth_of(run, key=key, journal=journal))
    for name, value in run.tags.items():
        await session.fetch("put_tag", to_text(name), to_text(value), run.created_at, key)
