"""Plays operations on a store, and gives its answers as `comparable` has them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from outlive._kernel.client.finding import GROUP_FIELDS, GROUPS_MAX
from outlive._kernel.model import RunFilter
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Change, MessageRefusal, Outcome, Store
from outlive.errors.store import StoreWentBackError
from proof.differential.changes import Draft, blob, tree_of
from proof.differential.comparable import (
    comparable_answers,
    comparable_claims,
    comparable_inbox,
    comparable_run,
    comparable_tree,
    comparable_turns,
    list_asks,
    list_streams,
    list_with_items,
    plain,
)
from proof.differential.oracle import Oracle
from proof.differential.plan import Plan, definitions_of, filter_of, watches_of, worker_of
from proof.differential.script import CELLS, MARKED, WORKERS
from proof.differential.shelving import PeekedError, SurprisedError, change_of, peek, row_of
from proof.differential.streams import ANY, FEW

UNKNOWN = 999_999_999
"""The handle of a tree that is not there, and the id of a message that is not there."""
PAGES_MAX = 3
MAKE_NOTES = "CREATE TABLE IF NOT EXISTS notes (text TEXT PRIMARY KEY)"
ADD_NOTE = "INSERT INTO notes (text) VALUES ($1)"
READ_NOTES = "SELECT text FROM notes ORDER BY text"
BLOBS = [blob(number).id for number in range(6)]


class Player:
    """Plays on one store."""

    def __init__(self, store: Store, oracle: Oracle) -> None:
        self.store, self._oracle = store, oracle
        self._handles: dict[int, int] = {}
        self._message_ids: dict[str, int] = {}

    async def play(self, plan: Plan) -> Any:
        """Do one operation and tell the answer."""
        verb = getattr(self, f"_{plan.operation.verb.replace(' ', '_')}")
        return await verb(plan)

    # -- Translation ---------------------------------------------------------------------------------------

    async def _handle(self, number: int) -> int:
        if number not in self._handles:
            tree = tree_of(self._oracle.world, number)
            run = await self.store.find_run(tree.runs[0].id) if tree else None
            if run is None or run.nonce != number:
                return UNKNOWN
            self._handles[number] = run.journal
        return self._handles[number]

    async def _message_id(self, name: str) -> int:
        if name not in self._message_ids:
            for tree in self._oracle.world.trees.values():
                if any(message.name == name for message in tree.inbox):
                    await self._read_inbox([tree.runs[0].nonce])
        return self._message_ids.get(name, UNKNOWN)

    async def _change(self, draft: Draft) -> Change:
        change = draft.change
        return replace(
            change,
            journal=await self._handle(change.journal) if change.journal else 0,
            renames=[replace(run, journal=await self._handle(run.journal)) for run in change.renames],
            consumed=[await self._message_id(name) for name in draft.consumed],
            starts=[await self._change(start) for start in draft.starts],
            successor_of=await self._handle(change.successor_of) if change.successor_of else 0,
        )

    def _judge(self, changes: Sequence[Change], outcomes: Sequence[tuple[Outcome, int]]) -> Any:
        """Each outcome, and whether its handle is right."""
        judged = []
        for change, (outcome, journal) in zip(changes, outcomes, strict=True):
            is_new = change.journal == 0 and outcome is Outcome.COMMITTED
            judged.append((outcome.value, journal > 0 if is_new else journal == change.journal))
        return judged

    # -- Verbs ---------------------------------------------------------------------------------------------

    async def _commit(self, plan: Plan) -> Any:
        changes = [await self._change(draft) for draft in plan.drafts]
        return self._judge(changes, await self.store.commit(changes))

    async def _transact(self, plan: Plan) -> Any:
        changes = [await self._change(draft) for draft in plan.drafts]
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        await transaction.handle.execute(ADD_NOTE, plan.operation.name)
        return self._judge(changes, await transaction.commit(changes, behind=plan.behind))

    async def _roll_back(self, plan: Plan) -> Any:
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        await transaction.handle.execute(ADD_NOTE, plan.operation.name)
        await transaction.rollback()

    async def _deliver(self, plan: Plan) -> Any:
        starts = [await self._change(plan.start)] if plan.start else []
        most = plan.operation.numbers[0]
        return [each.value for each in await self.store.deliver(plan.messages, starts=starts, inbox_messages_max=most)]

    async def _claim(self, plan: Plan) -> Any:
        operation = plan.operation
        orphans_max, stale_seconds = plan.orphans
        claims = await self.store.claim_runs(
            operation.worker,
            definitions_of(operation),
            limit=plan.limit,
            orphans_max=orphans_max,
            stale_seconds=stale_seconds,
        )
        return comparable_claims(claims, plan.wake_ups)

    async def _say(self, plan: Plan) -> Any:
        appends = [replace(append, journal=await self._handle(append.journal)) for append in plan.appends]
        limits = FEW if plan.operation.is_narrow else ANY
        return [each.value for each in await self.store.append_streams(appends, limits=limits)]

    async def _refuse(self, plan: Plan) -> Any:
        refusals = [
            MessageRefusal(journal=await self._handle(number), message=await self._message_id(name), answer=answer)
            for number, name, answer in plan.refusals
        ]
        await self.store.refuse_messages(plan.operation.worker, refusals)

    async def _gaze(self, plan: Plan) -> Any:
        runs = await self.store.watch_ends(watches_of(plan.operation))
        return {id: comparable_run(run) for id, run in runs.items()}

    async def _delete(self, plan: Plan) -> Any:
        seconds, *numbers = plan.operation.numbers
        handles = {await self._handle(number): number for number in numbers}
        ended_before = self._oracle.now() - seconds * MICROSECONDS
        return sorted(handles[each] for each in await self.store.delete_trees([*handles], ended_before=ended_before))

    async def _hire(self, plan: Plan) -> Any:
        (lease_seconds,) = plan.operation.numbers
        await self.store.register_worker(worker_of(plan.operation, self._oracle.now()), lease_seconds=lease_seconds)

    async def _retire(self, plan: Plan) -> Any:
        await self.store.end_session(plan.operation.worker)

    async def _beat(self, plan: Plan) -> Any:
        beat = self.store.open_beat(plan.operation.worker)
        try:
            return beat.renew(lease_seconds=30)
        except StoreWentBackError:
            return False  # The session never began, or has ended and was forgotten: which one, no store need know.
        finally:
            beat.close()

    async def _put_blobs(self, plan: Plan) -> Any:
        await self.store.put_blobs([blob(number) for number in plan.operation.numbers])

    async def _turn(self, plan: Plan) -> Any:
        turns = plan.operation.turns
        asked = (self.store.change_cell(turn.cell, change_of(turn)) for turn in turns)
        answers: list[Any] = []
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException) and not isinstance(answer, SurprisedError):
                raise answer
            answers.append(answer)
        return comparable_turns(zip((turn.cell for turn in turns), answers, strict=True))

    async def _peek(self, cell: str) -> bytes | None:
        try:
            await self.store.change_cell(cell, peek)
        except PeekedError as peeked:
            return peeked.data
        raise AssertionError("the change of a cell raised, and its caller did not get the exception")

    async def _append(self, plan: Plan) -> Any:
        marks = plan.operation.marks
        return await asyncio.gather(*(self.store.append_checkpoint(mark.run, row_of(mark)) for mark in marks))

    async def _clear(self, plan: Plan) -> Any:
        await self.store.clear_checkpoints(plan.operation.ids[0])

    async def _list(self, plan: Plan) -> Any:
        wanted, limit = filter_of(plan.operation), plan.operation.numbers[0]
        pages = await self._pages(wanted, limit, PAGES_MAX, oldest_first="oldest" in plan.operation.finds)
        by = GROUP_FIELDS[limit % 3]
        groups = await self.store.count_groups(wanted, by, limit=limit, groups_max=GROUPS_MAX)
        return pages, await self.store.count_runs(wanted, limit=limit), groups

    async def _pages(self, wanted: RunFilter, limit: int, most: int, *, oldest_first: bool = False) -> Any:
        pages: list[Any] = []
        place: tuple[int, str] | None = None
        while len(pages) < most:
            side = {"after" if oldest_first else "before": place}
            page = await self.store.list_runs(wanted, limit=limit, oldest_first=oldest_first, **side)
            pages.append([comparable_run(run) for run in page])
            if len(page) < limit:
                break
            place = page[-1].created_at, page[-1].id
        return pages

    async def _read(self, plan: Plan) -> Any:
        number, after, limit = plan.operation.numbers
        ids, handle = plan.operation.ids, await self._handle(number)
        runs = await self.store.find_runs(ids)
        items = await self.store.read_items(ids[0], after=after, limit=limit)
        one = await self.store.find_run(ids[0])
        return (
            {id: comparable_run(run) for id, run in runs.items()},
            plain(items),
            one and comparable_run(one),
            [tuple(row) for row in await self.store.read_journal(handle, after=after, limit=limit)],
        )

    async def _read_inbox(self, numbers: Sequence[int]) -> Any:
        handles = {await self._handle(number): number for number in numbers}
        inboxes = await self.store.read_inbox(list(handles))
        for inbox in inboxes.values():
            self._message_ids.update((message.name, message.id) for message in inbox)
        return {handles[handle]: comparable_inbox(inbox) for handle, inbox in inboxes.items()}

    async def look(self) -> Any:
        """Everything that can be seen, once the oracle has played too."""
        trees = self._oracle.world.trees.values()
        numbers = {await self._handle(tree.runs[0].nonce): tree.runs[0].nonce for tree in trees}
        journals = await self.store.read_journals(list(numbers))
        return {
            "runs": await self._pages(RunFilter(), 50, 100),
            "journals": {numbers[handle]: [tuple(row) for row in rows] for handle, rows in journals.items()},
            "inboxes": await self._read_inbox([tree.runs[0].nonce for tree in trees]),
            "workers": plain(sorted(await self.store.list_workers(), key=lambda worker: worker.id)),
            "mail": {id: sorted(numbers.get(each, 0) for each in await self.store.find_inboxes(id)) for id in WORKERS},
            "blobs": await self.store.get_blobs(BLOBS),
            "cells": dict(zip(CELLS, await asyncio.gather(*map(self._peek, CELLS)), strict=True)),
            "checkpoints": {id: list(map(tuple, await self.store.read_checkpoints(id))) for id in MARKED},
            "answers": comparable_answers(await self.store.find_answers(list_asks(self._oracle))),
            "streams": {stream: await self._read_stream(*stream) for stream in list_streams(self._oracle)},
        }

    async def _read_stream(self, run_id: str, name: str) -> Any:
        """All of a stream, and what is behind its first item."""
        chunks = [(it.first, it.count, it.body) for it in await self.store.read_stream(run_id, name)]
        return chunks, [it.first for it in await self.store.read_stream(run_id, name, after=1, limit=2)]

    async def look_closely(self) -> Any:
        """What changes seldom, or only a checker sees: items, what the transactions wrote, and rows that hang on it."""
        examiner, trees = self.store.examiner, self._oracle.world.trees.values()
        numbers = [tree.runs[0].nonce for tree in trees]
        handles = [await self._handle(number) for number in numbers]
        items = {id: plain(await self.store.read_items(id)) for id in list_with_items(self._oracle)}
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        notes = [row["text"] for row in await transaction.handle.fetch(READ_NOTES)]
        await transaction.rollback()
        return {
            "items": items,
            "notes": notes,
            "faults": await examiner.check_database(),
            "handles": await examiner.list_journals(limit=10_000) == sorted(handles),
            "rows": dict(zip(numbers, map(comparable_tree, await examiner.examine(handles)), strict=True)),
            "marked": await examiner.list_checkpoints(limit=10_000),
            "watches": plain(await examiner.list_watches(limit=10_000)),
        }
