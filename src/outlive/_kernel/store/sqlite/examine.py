"""The eyes of a checker on a file. The contract of each verb is in `outlive._kernel.store.examine`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import apsw
import msgspec

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
from outlive._kernel.store.sqlite.cells import list_cells
from outlive._kernel.store.sqlite.checkpoints import list_checkpoints
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.rows import birth_of, decode_run
from outlive._kernel.store.sqlite.writer import WriteVerb, each
from outlive._kernel.store.tables.rows import to_json

FAULTS_MAX = 100
"""How many faults of each kind are reported of the file as a whole."""


A = TypeVar("A")
T = TypeVar("T")


class Threads(Protocol):
    """The threads of a store that an examiner uses."""

    def search(self, verb: Callable[[Session, A], T], argument: A) -> Awaitable[T]:
        """Call a verb that may have to look at many rows; its result."""

    def write(self, verb: WriteVerb[A, T], argument: A) -> Awaitable[T]:
        """Call a verb on the thread that writes; its result."""


class SqliteExaminer:
    """Looks at one file, on the threads of its store."""

    def __init__(self, threads: Threads) -> None:
        self._read, self._write = threads.search, threads.write

    async def check_database(self) -> list[str]:
        """See `Examiner`."""
        return await self._read(_check_database, None)

    async def list_journals(self, *, after: int = HANDLE_MIN, limit: int) -> list[int]:
        """See `Examiner`."""
        return await self._read(_list_journals, (after, limit))

    async def examine(self, journals: Sequence[int]) -> list[TreeRows]:
        """See `Examiner`."""
        return await self._read(_examine, journals)

    async def list_watches(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Watch]:
        """See `Examiner`."""
        return await self._read(_list_watches, (*after, limit))

    async def list_checkpoints(self, *, after: bytes = b"", limit: int) -> list[bytes]:
        """See `Examiner`."""
        return await self._read(list_checkpoints, (after, limit))

    async def list_cells(self, *, after: str | None = None, limit: int) -> list[str]:
        """See `Examiner`."""
        return await self._read(list_cells, (after, limit))

    async def repair(self, repair: Repair) -> bool:
        """See `Examiner`."""
        return await self._write(_REPAIR, repair)


def _check_database(session: Session, _: None) -> list[str]:
    with session.snapshot():
        said = [str(line) for (line,) in session.execute("check_database", FAULTS_MAX)]
        faults = [f"SQLite says: {line}" for line in said if line != "ok"]
        try:
            strays: list[Any] = session.execute("find_stray_tags", FAULTS_MAX).fetchall()
            lost: list[Any] = session.execute("find_stray_chunks", FAULTS_MAX).fetchall()
            waits: list[Any] = session.execute("find_lost_waits", FAULTS_MAX).fetchall()
        except apsw.Error as error:
            return [*faults, f"the tags, the waits or the streams cannot be read: {error}"]
    faults += [f"items of a stream hang on the key {stream}, which is not the key of a stream" for (stream,) in lost]
    faults += [f"run row {key} is found by the tag {_text(name)!r}, which is not its own" for key, name in strays]
    return faults + [fault_of_wait(key, _text(name), is_stray=bool(is_stray)) for key, name, is_stray in waits]


def _list_journals(session: Session, argument: tuple[int, int]) -> list[int]:
    return [journal for (journal,) in session.execute("list_journals", *argument)]


def _list_watches(session: Session, argument: tuple[str, str, int]) -> list[Watch]:
    rows: Iterable[Any] = session.execute("list_watches", *argument)
    return [Watch(run_id=run_id, watcher=watcher, key=key) for run_id, watcher, key in rows]


def _examine(session: Session, journals: Sequence[int]) -> list[TreeRows]:
    wanted = to_json(list(journals))
    trees = {journal: TreeBuilder(journal) for journal in journals}
    with session.snapshot():
        for (row,) in _rows(session, "examine_runs", wanted):
            run = _to_row(row)
            trees[run.key if run.number <= 0 else run.journal].runs.append(run)
        for journal, count, tail, lasts in _rows(session, "examine_events", wanted):
            trees[journal].count, trees[journal].tail = count, tail
            trees[journal].lasts = sorted(msgspec.json.decode(lasts or "[]", type=list[tuple[int, int]]))
        for journal, id, run, kind, key, is_remembered in _rows(session, "examine_inbox", wanted):
            message = InboxRow(id=id, run=run, kind=_text(kind), key=_text(key), is_remembered=bool(is_remembered))
            trees[journal].inbox.append(message)
        for journal, run, count, first, last in _rows(session, "examine_items", wanted):
            trees[journal].items.append(ItemRows(run=run, count=count, first=first, last=last))
        for journal, run, name, position, number, items, gaps in _rows(session, "examine_streams", wanted):
            stream = StreamRows(run=run, name=_text(name), position=position, number=number, items=items, gaps=gaps)
            trees[journal].streams.append(stream)
        for journal, key, is_answered in _rows(session, "examine_keys", wanted):
            trees[journal].keys.append(_text(key))
            trees[journal].answered += [_text(key)] if is_answered else []
        tags = [tag for tree in trees.values() for tag in tree.list_tags()]
        found = msgspec.json.decode(session.fetch_json("find_tags", to_json(tags)), type=set[tuple[int, str]])
        keys = [key for tree in trees.values() for key in tree.list_lined()]
        lined = msgspec.json.decode(session.fetch_json("find_lined", to_json(keys)), type=set[int]) if keys else set()
    return [tree.build(found, lined) for tree in trees.values()]


def _rows(session: Session, name: str, wanted: str) -> Iterable[Any]:
    return session.execute(name, wanted)


def _to_row(row: bytes) -> RunRow:
    # A byte that is not text any more becomes a character that is none: a comparison will show it.
    text = row.decode("utf-8", "replace")
    key, id, journal, number, root_id, *_ = msgspec.json.decode(text)
    return row_of(decode_run(row), key=key, journal=journal, number=number, id=id, root_id=root_id)


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _repair(session: Session, repair: Repair) -> bool:
    tail = session.fetch("find_tail", repair.journal)
    if tail is None or tail[0] != repair.after:
        return False
    connection = session.connection
    connection.execute("SAVEPOINT repair")
    try:
        keys = [*repair.removed, *(key for key, _ in repair.runs if key is not None)]
        session.execute("delete_tags", to_json(keys))
        session.execute("delete_runs", to_json(list(repair.removed)))
        for key, run in repair.runs:
            own = repair.journal if run.number == 0 else key
            session.execute("repair_run", *birth_of(run, key=own, journal=repair.journal))
        session.execute("put_tags", to_json([run.id for _, run in repair.runs if run.tags]))
        session.execute("put_lines", to_json([repair.journal]))
        now = session.clock()
        session.execute("wake_for_inbox", to_json([repair.journal]), now)
        if repair.wake:
            session.execute("wake_run", repair.journal, now)
    except apsw.ConstraintError:
        connection.execute("ROLLBACK TO repair")
        return False
    finally:
        connection.execute("RELEASE repair")
    return True


_REPAIR = each(_repair)
