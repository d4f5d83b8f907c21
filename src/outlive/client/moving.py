"""A whole store into another one: every tree, every watch, every checkpoint.

Nothing runs meanwhile: a live worker of the store that is left makes the move refuse. Each tree is read back from
the other store and compared, and at the end that store is checked as `outlive fsck` does it. A move that was killed is
started again: what is there already, and says the same, is left as it is.

What limits and breakers remember is not carried over: it is about the last seconds. Neither are workers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from outlive._store.contract import PAGE_SIZE_MAX, Store, Watch
from outlive._store.examine import HANDLE_MIN
from outlive.client.copying import TreeCopy, read_copy, write_copy
from outlive.client.fsck import check_store
from outlive.errors import OutliveError

PAGE = 100


class Moved(NamedTuple):
    """What was carried over."""

    trees: int
    runs: int
    events: int
    checkpoints: int


async def move_store(source: Store, target: Store, *, said: Callable[[str], None]) -> Moved:
    """Carry everything over, and verify it; `said` is called with a line about each part.

    Raises:
        OutliveError: a worker is alive on the source, something of it is damaged, or the target has a run of the same
            id that says something else. What was carried over until then stays there.
    """
    live = [worker.name for worker in await source.list_workers(with_runs=False) if worker.is_live]
    if live:
        raise OutliveError(f"workers are alive on the store to be moved: {', '.join(live[:5])}; stop them first")
    trees = runs = events = 0
    async for journal in _journals(source):
        copy = await _move_tree(source, target, journal)
        trees, runs, events = trees + 1, runs + len(copy.runs), events + len(copy.rows)
        if trees % PAGE == 0:
            said(f"{trees:,} trees")
    said(f"{trees:,} trees with {runs:,} runs and {events:,} events, each read back and compared")
    watches = [watch async for watch in _watches(source)]
    await target.watch_ends(watches)
    checkpoints = await _move_checkpoints(source, target)
    said(f"{len(watches):,} watches, {checkpoints:,} checkpoints")
    problems = await check_store(target)
    if problems:
        raise OutliveError(f"the other store is not whole: {'; '.join(map(str, problems[:3]))}")
    said("checked: the other store is whole")
    return Moved(trees, runs, events, checkpoints)


async def _journals(store: Store) -> AsyncIterator[int]:
    last = HANDLE_MIN
    while page := await store.examiner.list_journals(after=last, limit=PAGE):
        for last in page:
            yield last


async def _move_tree(source: Store, target: Store, journal: int) -> TreeCopy:
    copy = await read_copy(source, journal)
    if copy is None:
        raise OutliveError(f"the tree {journal} moves while it is read: another program works on the store; stop it")
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
