"""A whole store into another one: every tree, watch, checkpoint, schedule and cell, and the audit log.

Nothing runs meanwhile: a live worker of the store that is left makes the move refuse. Each tree is read back from
the other store and compared, and at the end that store is checked as `outlive fsck` does it. A move that was killed is
started again: what is there already, and says the same, is left as it is.

Cells hold the pauses, what shared limits and breakers have counted, the descriptions of workflows, and the library of
flows. They come first:
a run whose workflow is paused, or whose limit is used up, must not begin in the other store before the move is done.
Workers are not carried over.

The last act of a move pauses the store that is left, as a whole, so that a worker that is started there by mistake runs
nothing. A move that fails leaves it as it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

import msgspec

from outlive._features.flows.library.records import INDEX_CELL, index_data, index_in
from outlive._features.fsck.checker import check_store
from outlive._features.moving.tree_copy import TreeCopy, read_copy, write_copy
from outlive._kernel.model.pause import (
    EVERYTHING,
    MOVER,
    PAUSES_CELL,
    Pause,
    Pauses,
    moved_away,
    pauses_data,
    pauses_in,
)
from outlive._kernel.model.under_way import UNDER_WAY_CELLS
from outlive._kernel.store.audit import decode_action
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store, Watch
from outlive._kernel.store.examine import HANDLE_MIN
from outlive._kernel.store.schedules import ScheduleChange
from outlive.errors import OutliveError
from outlive.errors.advice import Advice

PAGE = 100


class Moved(NamedTuple):
    """The numbers of things that were moved."""

    trees: int
    runs: int
    events: int
    checkpoints: int
    schedules: int
    pauses: int


async def move_store(source: Store, target: Store, *, to: str, said: Callable[[str], None]) -> Moved:
    """Carry everything over, verify it, and pause the source for good.

    Args:
        source: the store that is left.
        target: the other one.
        to: what people call the target; it is the reason of the pause.
        said: called with a line about each part.

    Raises:
        OutliveError: a worker is alive on the source, one of the stores was moved to another place before, something of
            the source is damaged, or the target has a run of the same id that says something else. What was carried
            over until then stays there, and the source is as it was.
    """
    reason = f"moved to {to}"
    await _refuse_live_workers(source)
    await _refuse_moved(source, "the store to be moved", allowed=reason)
    await _refuse_moved(target, "the other store")
    pauses = await _move_cells(source, target)
    said(f"{pauses:,} pauses")
    moved = await _copy_all(source, target, _move_tree, said)
    problems = await check_store(target)
    if problems:
        raise OutliveError(f"the other store is not whole: {'; '.join(map(str, problems[:3]))}")
    said("checked: the other store is whole")
    await _leave(source, reason)
    said(f"the store that was left is paused: {reason}")
    return moved._replace(pauses=pauses)


async def copy_store(source: Store, target: Store, *, said: Callable[[str], None]) -> Moved:
    """Write everything of a store into an empty one. The source must not move meanwhile: see
    `PostgresStore.one_moment`.

    Raises:
        OutliveError: something of the source is damaged or moves, or the target is not empty.
    """
    last = None
    while page := await source.examiner.list_cells(after=last, limit=PAGE):
        for last in page:
            data = await source.read_cell(last)
            assert data is not None
            await target.change_cell(last, partial(_keep_or_put, data))
    return await _copy_all(source, target, _copy_tree, said)


async def _copy_all(
    source: Store,
    target: Store,
    copy_tree: Callable[[Store, Store, int], Awaitable[TreeCopy]],
    said: Callable[[str], None],
) -> Moved:
    """Everything but the cells."""
    trees = runs = events = 0
    async for journal in _journals(source):
        copy = await copy_tree(source, target, journal)
        trees, runs, events = trees + 1, runs + len(copy.runs), events + len(copy.rows)
        if trees % PAGE == 0:
            said(f"{trees:,} trees")
    said(f"{trees:,} trees with {runs:,} runs and {events:,} events")
    watches = [watch async for watch in _watches(source)]
    await target.watch_ends(watches)
    checkpoints = await _move_checkpoints(source, target)
    schedules = await _move_schedules(source, target)
    audited = await _move_audit(source, target)
    said(f"{len(watches):,} watches, {checkpoints:,} checkpoints, {schedules:,} schedules, {audited:,} audit rows")
    return Moved(trees, runs, events, checkpoints, schedules, 0)


async def _refuse_live_workers(source: Store) -> None:
    live = [worker.name for worker in await source.list_workers(with_runs=False) if worker.is_live]
    if live:
        raise OutliveError(f"workers are alive on the store to be moved: {', '.join(live[:5])}; stop them first")


async def _refuse_moved(store: Store, which: str, *, allowed: str = "") -> None:
    pause = moved_away(pauses_in(await store.read_cell(PAUSES_CELL)))
    if pause is not None and pause.reason != allowed:
        reason = f"{which} was {pause.reason} before, and its runs go on there; if not, resume it and move again"
        raise OutliveError(reason).advising(Advice("resume", {"all": True}, "lets its runs go on there"))


async def _move_cells(source: Store, target: Store) -> int:
    """Carry the cells over, unless the target has them; how many pauses there are."""
    pauses, last = 0, None
    while page := await source.examiner.list_cells(after=last, limit=PAGE):
        for last in page:
            if last.startswith(UNDER_WAY_CELLS):
                continue  # Reports of workers of the other store.
            data = await source.read_cell(last)
            assert data is not None
            if last == INDEX_CELL:
                await target.change_cell(last, partial(_add_flows, data))
                continue
            if last != PAUSES_CELL:
                await target.change_cell(last, partial(_keep_or_put, data))
                continue
            people = _pauses_of_people(data)
            pauses = len(people)
            await target.change_cell(PAUSES_CELL, partial(_add_pauses, people))
    return pauses


def _keep_or_put(data: bytes, held: bytes | None, _: int) -> tuple[bytes, None]:
    return (data if held is None else held), None


def _add_flows(data: bytes, held: bytes | None, _: int) -> tuple[bytes, None]:
    """The flows of the library here, and flows that are only there."""
    return index_data({**index_in(data), **index_in(held)}), None


def _add_pauses(people: Pauses, held: bytes | None, _: int) -> tuple[bytes, None]:
    return pauses_data({**people, **pauses_in(held)}), None


def _pauses_of_people(data: bytes | None) -> dict[str, Pause]:
    """The pauses in a cell, without that of an earlier move."""
    pauses = pauses_in(data)
    whole = pauses.get(EVERYTHING)
    if whole is not None and whole.by == MOVER:
        del pauses[EVERYTHING]
        if whole.replaced is not None:
            pauses[EVERYTHING] = whole.replaced
    return pauses


async def _leave(source: Store, reason: str) -> None:
    """Pause the source as a whole; if a worker has started on it meanwhile, take the pause back and refuse."""

    def pause(data: bytes | None, now_at: int) -> tuple[bytes, None]:
        people = _pauses_of_people(data)
        moved = Pause(now_at, MOVER, reason, replaced=people.get(EVERYTHING))
        return pauses_data({**people, EVERYTHING: moved}), None

    await source.change_cell(PAUSES_CELL, pause)
    try:
        await _refuse_live_workers(source)
    except BaseException:
        await source.change_cell(PAUSES_CELL, lambda data, _: (pauses_data(_pauses_of_people(data)), None))
        raise


async def _journals(store: Store) -> AsyncIterator[int]:
    last = HANDLE_MIN
    while page := await store.examiner.list_journals(after=last, limit=PAGE):
        for last in page:
            yield last


async def _copy_tree(source: Store, target: Store, journal: int) -> TreeCopy:
    copy = await _read(source, journal)
    await write_copy(target, copy)
    return copy


async def _read(source: Store, journal: int) -> TreeCopy:
    copy = await read_copy(source, journal)
    if copy is None:
        raise OutliveError(f"the tree {journal} moves while it is read: another program works on the store; stop it")
    return copy


async def _move_tree(source: Store, target: Store, journal: int) -> TreeCopy:
    copy = await _read(source, journal)
    there = await target.find_run(copy.root.id)
    if there is None:
        await write_copy(target, copy)
        there = await target.find_run(copy.root.id)
    written = None if there is None else await read_copy(target, there.journal)
    if written is None or not written.says_the_same_as(copy):
        raise OutliveError(
            f"run {copy.root.id} is in the other store and says something else there; "
            f"move into an empty store, or delete that run"
        )
    return copy


async def _watches(store: Store) -> AsyncIterator[Watch]:
    place = ("", "")
    while page := await store.examiner.list_watches(after=place, limit=PAGE_SIZE_MAX):
        for watch in page:
            yield watch
            place = (watch.run_id, watch.watcher)


async def _move_checkpoints(source: Store, target: Store) -> int:
    count, last = 0, b""
    while page := await source.examiner.list_checkpoints(after=last, limit=PAGE_SIZE_MAX):
        for last in page:
            run_id = last.decode()
            for row in await source.read_checkpoints(run_id):
                if not await target.append_checkpoint(run_id, row):
                    raise OutliveError(f"the other store has another checkpoint {row[0]} of {run_id}")
                count += 1
    return count


async def _move_audit(source: Store, target: Store) -> int:
    """Carry the audit log over, row by row as it is: its chain of hashes holds on."""
    count, last = 0, 0
    while page := await source.read_audit(after=last, limit=PAGE_SIZE_MAX):
        for row in page:
            try:
                decode_action(row.body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise OutliveError(f"row {row.number} of the audit log cannot be read: {error}") from error
        if not await target.carry_audit(page):
            raise OutliveError("the other store has an audit log of its own; move into an empty store")
        count, last = count + len(page), page[-1].number
    return count


async def _move_schedules(source: Store, target: Store) -> int:
    """Carry the schedules over, after the runs that they have started; one that the target has stays as it is there."""
    count, last = 0, ""
    while page := await source.list_schedules(after=last, limit=PAGE_SIZE_MAX):
        changes = [
            ScheduleChange(name=row.name, revision=0, next_revision=row.revision, next_at=row.next_at, data=row.data)
            for row in page
        ]
        await target.change_schedules(changes)
        count, last = count + len(page), page[-1].name
    return count
