"""Plays operations on a store and on the oracle, and gives their answers in the same words.

Handles of journals and ids of messages are a store's own affair and never compared. Everything else is: outcomes, rows
byte for byte, run rows field by field, and every order that the contract promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._model import Run, RunFilter, definition_key
from outlive._store.contract import Change, Claims, Inbound, Message, Outcome, Store, WorkerInfo
from outlive.testing.differential.changes import (
    WORKFLOW,
    Draft,
    blob,
    draft_of,
    messages_of,
    tree_of,
)
from outlive.testing.differential.oracle import Oracle
from outlive.testing.differential.script import WORKERS, Operation

UNKNOWN = 999_999_999
"""The handle of a tree that is not there, and the id of a message that nobody has."""
PAGES_MAX = 3
MAKE_NOTES = "CREATE TABLE IF NOT EXISTS notes (text TEXT PRIMARY KEY)"
ADD_NOTE = "INSERT INTO notes (text) VALUES ($1)"
READ_NOTES = "SELECT text FROM notes ORDER BY text"
BLOBS = [blob(number).id for number in range(6)]


@dataclass(frozen=True)
class Plan:
    """An operation with all that depends on how things stand."""

    operation: Operation
    drafts: list[Draft]
    start: Draft | None
    messages: list[Message]
    wake_ups: Mapping[str, int]
    """Of the runs that can be claimed."""
    limit: int
    """Of a claim: runs that wake at the same instant are not told apart by the contract, so it never parts them."""
    orphans: tuple[int | None, float]
    """Of a claim: how many at most, and for how many seconds they are left alone."""


def plan_of(operation: Operation, oracle: Oracle) -> Plan:
    """What the operation means now."""
    world, now = oracle.world, oracle.now()
    drafts = [draft_of(part, oracle) for part in operation.changes]
    start = draft_of(operation.start, oracle) if operation.start else None
    claimable: list[tuple[int, int]] = []
    limit = operation.numbers[0] if operation.verb == "claim" else 0
    orphans_max, stale_seconds = operation.orphans or (None, 0)
    if operation.verb == "claim":
        claimable = oracle.list_claimable(definitions_of(operation), stale_seconds)
        if limit < len(claimable) and claimable[limit - 1][0] == claimable[limit][0]:
            limit = 100
        if orphans_max is not None and len({wake_at for wake_at, _ in claimable}) < len(claimable):
            limit, orphans_max = 100, None
    wake_ups = {world.trees[journal].runs[0].id: wake_at for wake_at, journal in claimable}
    messages = messages_of(operation.letters, now)
    return Plan(operation, drafts, start, messages, wake_ups, limit, (orphans_max, stale_seconds))


def definitions_of(operation: Operation) -> list[str]:
    """What the worker of a claim can run."""
    return [definition_key(WORKFLOW, version) for version in operation.numbers[1:]]


def filter_of(operation: Operation) -> RunFilter:
    """What a list asks for."""
    _, by_workflow, by_root, by_parent, by_owner, roots_only = operation.numbers
    return RunFilter(
        statuses=operation.statuses,
        workflow=WORKFLOW if by_workflow else None,
        root_id=operation.ids[0] if by_root else None,
        parent_id=operation.ids[0] if by_parent else None,
        owner=operation.worker if by_owner else None,
        roots_only=bool(roots_only),
        tags=operation.tags,
    )


def worker_of(operation: Operation, now: int) -> WorkerInfo:
    """The session that is hired."""
    return WorkerInfo(id=operation.worker, name="me", definitions=(WORKFLOW,), started_at=now, expires_at=0)


def list_with_items(oracle: Oracle) -> list[str]:
    """The runs of all trees that have items."""
    return [run.id for tree in oracle.world.trees.values() if tree.items for run in tree.runs.values()]


# -- The words of an answer ----------------------------------------------------------------------------------


def plain(answer: Any) -> Any:
    """What an answer says, whatever it is made of."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def told_run(run: Run) -> Any:
    """A run row without its handle."""
    return plain(replace(run, journal=0))


def told_mail(inbox: Sequence[Inbound]) -> Any:
    """An inbox without its ids, which must rise."""
    assert [mail.id for mail in inbox] == sorted({mail.id for mail in inbox}), "message ids do not rise"
    return plain([replace(mail, id=0) for mail in inbox])


def told_claims(claims: Claims, wake_ups: Mapping[str, int]) -> Any:
    """Claims in their order; those with the same wake-up in any."""
    order = [wake_ups.get(claim.run.id, -1) for claim in claims.claims]
    taken = sorted((wake_ups.get(claim.run.id, -1), claim.run.id, claim.seq) for claim in claims.claims)
    runs = {claim.run.id: (told_run(claim.run), claim.interrupted) for claim in claims.claims}
    return order, taken, runs, claims.next_wake_at


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
                if any(mail.name == name for mail in tree.inbox):
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
            heir_of=await self._handle(change.heir_of) if change.heir_of else 0,
        )

    def _tell(self, changes: Sequence[Change], outcomes: Sequence[tuple[Outcome, int]]) -> Any:
        """Each outcome, and whether its handle is right."""
        told = []
        for change, (outcome, journal) in zip(changes, outcomes, strict=True):
            is_new = change.journal == 0 and outcome is Outcome.COMMITTED
            told.append((outcome.value, journal > 0 if is_new else journal == change.journal))
        return told

    # -- Verbs ---------------------------------------------------------------------------------------------

    async def _commit(self, plan: Plan) -> Any:
        changes = [await self._change(draft) for draft in plan.drafts]
        return self._tell(changes, await self.store.commit(changes))

    async def _transact(self, plan: Plan) -> Any:
        changes = [await self._change(draft) for draft in plan.drafts]
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        await transaction.handle.execute(ADD_NOTE, plan.operation.name)
        return self._tell(changes, await transaction.commit(changes))

    async def _roll_back(self, plan: Plan) -> Any:
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        await transaction.handle.execute(ADD_NOTE, plan.operation.name)
        await transaction.rollback()

    async def _deliver(self, plan: Plan) -> Any:
        start = await self._change(plan.start) if plan.start else None
        most = plan.operation.numbers[0]
        return [each.value for each in await self.store.deliver(plan.messages, start=start, inbox_messages_max=most)]

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
        return told_claims(claims, plan.wake_ups)

    async def _hire(self, plan: Plan) -> Any:
        (lease_seconds,) = plan.operation.numbers
        await self.store.register_worker(worker_of(plan.operation, self._oracle.now()), lease_seconds=lease_seconds)

    async def _retire(self, plan: Plan) -> Any:
        await self.store.retire_worker(plan.operation.worker)

    async def _beat(self, plan: Plan) -> Any:
        beat = self.store.open_beat(plan.operation.worker)
        try:
            return beat.renew(lease_seconds=30)
        finally:
            beat.close()

    async def _put_blobs(self, plan: Plan) -> Any:
        await self.store.put_blobs([blob(number) for number in plan.operation.numbers])

    async def _list(self, plan: Plan) -> Any:
        return await self._pages(filter_of(plan.operation), plan.operation.numbers[0], PAGES_MAX)

    async def _pages(self, wanted: RunFilter, limit: int, most: int) -> Any:
        pages: list[Any] = []
        before: tuple[int, str] | None = None
        while len(pages) < most:
            page = await self.store.list_runs(wanted, limit=limit, before=before)
            pages.append([told_run(run) for run in page])
            if len(page) < limit:
                break
            before = page[-1].created_at, page[-1].id
        return pages

    async def _read(self, plan: Plan) -> Any:
        number, after, limit = plan.operation.numbers
        ids, handle = plan.operation.ids, await self._handle(number)
        runs = await self.store.find_runs(ids)
        items = await self.store.read_items(ids[0], after=after, limit=limit)
        one = await self.store.find_run(ids[0])
        return (
            {id: told_run(run) for id, run in runs.items()},
            plain(items),
            one and told_run(one),
            [tuple(row) for row in await self.store.read_journal(handle, after=after, limit=limit)],
        )

    async def _read_inbox(self, numbers: Sequence[int]) -> Any:
        handles = {await self._handle(number): number for number in numbers}
        inboxes = await self.store.read_inbox(list(handles))
        for inbox in inboxes.values():
            self._message_ids.update((mail.name, mail.id) for mail in inbox)
        return {handles[handle]: told_mail(inbox) for handle, inbox in inboxes.items()}

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
            "mail": {id: sorted(numbers.get(each, 0) for each in await self.store.find_mail(id)) for id in WORKERS},
            "blobs": await self.store.get_blobs(BLOBS),
        }

    async def look_closely(self) -> Any:
        """What is never changed once it is there: items, and what the transactions wrote."""
        items = {id: plain(await self.store.read_items(id)) for id in list_with_items(self._oracle)}
        transaction = await self.store.begin()
        await transaction.handle.execute(MAKE_NOTES)
        notes = [row["text"] for row in await transaction.handle.fetch(READ_NOTES)]
        await transaction.rollback()
        return {"items": items, "notes": notes}
