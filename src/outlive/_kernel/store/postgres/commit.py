"""The verbs that write journals: `commit` and `deliver`.

Three ways, each for what the one before cannot do:

1. Nothing but rows (a step ended, and that is all): one statement, commit_rows.sql.
2. A batch: one statement too, commit_changes.sql, which calls a function that lies in the database.
3. Carefully: each change in a savepoint of its own, all in one transaction. Needed only when something conflicts that
   looking at the ends of the journals does not explain.

A change that names a run which was only asked for (`requests`) conflicts until that run is there. The third way
creates it first.

After a conflict the changes of journals that have moved on are known to conflict for good; the others are tried again
at once. So one paused worker that comes back with a thousand stale changes costs the others one statement.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import asyncpg
import msgspec
from msgspec.structs import replace

from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import NO_LIMIT, Change, Delivery, Message, MessageRefusal, Outcome
from outlive._kernel.store.postgres.batch import Batch, answer_of, plan_rows
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.fault import RETRIED, sqlstate_of
from outlive._kernel.store.postgres.rows import to_text
from outlive._kernel.store.tables.journal_rows import Conflict
from outlive._kernel.store.tables.order import all_of, can_write_at_once, names_in
from outlive._kernel.store.tables.rows import to_json
from outlive.telemetry import damaged_rows, log

OPTIMISTIC_TRIES_MAX = 3
DEADLOCK_TRIES_MAX = 5
HANDLES_AT_ONCE = 256
REQUESTS_AT_ONCE = 1_000
Outcomes = list[tuple[Outcome, int]]
REQUESTED = "@"
"""How the keys of requested messages begin; see functions/request_message.sql."""


class RequestedMessage(msgspec.Struct, frozen=True):
    """A message that a user asked for in a transaction of their own, with the tree that it may need."""

    message: Message
    start: Change | None = None


_decode_change = msgspec.json.Decoder(Change).decode
_decode_request = msgspec.json.Decoder(RequestedMessage).decode
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Writing:
    """The facts about its store that every write needs."""

    time: Callable[[], int | None]
    """The instant that a test gives; None: the server's clock counts."""
    channel: str | None
    """Where others listen."""
    handles: list[int]
    """Handles of journals that are not used yet."""
    rings_channel: str | None = None
    """Where those listen who follow runs."""

    async def reserve(self, session: Session, count: int) -> list[int]:
        """Handles for so many new journals; asked for in bulk, so that a start is one statement as a rule."""
        if len(self.handles) < count:
            rows = await session.fetch("take_handles", max(count, HANDLES_AT_ONCE))
            self.handles += [row[0] for row in rows]
        taken, self.handles[:count] = self.handles[:count], []
        return taken


async def commit(session: Session, changes: Sequence[Change], writing: Writing) -> Outcomes:
    """Write changes in one transaction; a conflict of one does not touch the others."""
    known: dict[int, tuple[Outcome, int]] = {}
    for _ in range(OPTIMISTIC_TRIES_MAX):
        open_ = [index for index in range(len(changes)) if index not in known]
        if not open_:
            break
        wanted = [changes[index] for index in open_]
        try:
            outcomes = await _commit_at_once(session, wanted, writing)
        except Conflict:
            stale = await _find_stale(session, wanted)
            if not stale:
                break
            known |= {open_[index]: (Outcome.CONFLICT, wanted[index].journal) for index in stale}
        else:
            known |= dict(zip(open_, outcomes, strict=True))
    open_ = [index for index in range(len(changes)) if index not in known]
    if open_:
        outcomes = await retry_deadlocks(
            lambda: _commit_one_by_one(session, [changes[index] for index in open_], writing)
        )
        known |= dict(zip(open_, outcomes, strict=True))
    return [known[index] for index in range(len(changes))]


async def _commit_at_once(session: Session, changes: Sequence[Change], writing: Writing) -> Outcomes:
    rows = plan_rows(changes)
    if rows is not None:
        await retry_deadlocks(lambda: session.put("commit_rows", *rows))
        return [(Outcome.COMMITTED, change.journal) for change in changes]
    return await retry_deadlocks(lambda: write_at_once(session, changes, writing))


async def write_at_once(session: Session, changes: Sequence[Change], writing: Writing) -> Outcomes:
    """Write changes with one call of the function, also in a transaction that is open.

    Raises:
        Conflict: one of them conflicts, or has to be looked at; nothing of the call was written.
    """
    if not can_write_at_once(changes):
        raise Conflict("these changes have to be written in their order")
    count = sum(not change.journal for change in all_of(changes))
    batch = Batch(await writing.reserve(session, count) if count else ())
    for change in changes:
        batch.add(change)
    lost, _ = await _write(session, batch, writing)
    return batch.outcomes(lost)


async def _write(session: Session, batch: Batch, writing: Writing) -> tuple[list[int] | None, list[str] | None]:
    values = batch.values(now=writing.time(), channel=writing.channel, rings_channel=writing.rings_channel)
    try:
        ((lost, deliveries),) = await session.put("commit_changes", *values)
    except Conflict:
        if batch.creates:
            writing.handles.clear()  # In case one of them is taken: the next try has others.
        raise
    return lost, deliveries


async def retry_deadlocks(write: Callable[[], Awaitable[T]]) -> T:
    """Do something once more when the server chose it to make way for others."""
    for _ in range(DEADLOCK_TRIES_MAX - 1):
        try:
            return await write()
        except asyncpg.PostgresError as error:
            if sqlstate_of(error) not in RETRIED:
                raise
    return await write()


async def _find_stale(session: Session, changes: Sequence[Change]) -> list[int]:
    """Which of these changes do not fit the ends of their journals; more than that is not looked at."""
    tails = await find_tails(session, {change.journal for change in changes if change.journal})
    stale = []
    for index, change in enumerate(changes):
        if not change.journal or change.reopens:
            continue  # Whether a tree has ended that is to go on is looked at when it is written.
        seq, crc = tails.get(change.journal, (None, None))
        if seq != change.after or change.prior != crc:
            stale.append(index)
        else:
            # A second change of the same tree builds on this one.
            tails[change.journal] = change.rows[-1][0], change.rows[-1][2]
    return stale


async def find_tails(session: Session, journals: set[int]) -> dict[int, tuple[int, int]]:
    """Where these journals end, each as a seq and a checksum; journals that nothing can follow are left out."""
    rows = await session.fetch("find_tails", sorted(journals))
    return {journal: (seq, crc) for journal, seq, is_last, crc in rows if not is_last}


# -- Carefully -----------------------------------------------------------------------------------------------


async def _commit_one_by_one(session: Session, changes: Sequence[Change], writing: Writing) -> Outcomes:
    async with session.transaction():
        return await commit_carefully(session, changes, writing)


async def commit_carefully(session: Session, changes: Sequence[Change], writing: Writing) -> Outcomes:
    """Write one change after the other, in the transaction that is open."""
    await start_requested(session, writing, names_in(changes))
    return [await _commit_one(session, change, writing) for change in changes]


async def _commit_one(session: Session, change: Change, writing: Writing) -> tuple[Outcome, int]:
    """Write a change in a savepoint."""
    if change.eager:
        # It would have to lock the cell of its queue, and the changes before it have locked other things.
        return Outcome.MUST_WAIT, 0
    await session.run("SAVEPOINT change")
    try:
        outcome = Outcome.COMMITTED, await _write_carefully(session, change, writing)
    except Conflict:
        await session.run("ROLLBACK TO change")
        outcome = Outcome.CONFLICT, change.journal
    await session.run("RELEASE change")
    return outcome


async def _write_carefully(session: Session, change: Change, writing: Writing) -> int:
    if change.reopens:
        await _reopen(session, change)
    batch = Batch(() if change.journal else await writing.reserve(session, 1))
    batch.add(replace(change, starts=[], messages=[]))
    lost, _ = await _write(session, batch, writing)
    ((outcome, journal),) = batch.outcomes(lost)
    if outcome is Outcome.CONFLICT:
        raise Conflict("an id is taken")
    for start in change.starts:
        outcome, _ = await _commit_one(session, start, writing)
        if outcome is Outcome.CONFLICT and start.successor_of:
            raise Conflict("a tree does not end without its successor")
    await put_messages(session, change.messages, writing)
    return journal


async def _reopen(session: Session, change: Change) -> None:
    """Let something follow the event that has ended a tree.

    Raises:
        Conflict: it has not ended there.
    """
    await session.fetch("lock_run", change.journal)
    if not await session.fetch("reopen_journal", change.journal, change.after):
        raise Conflict("the tree has not ended there")
    if change.freed_keys:
        await session.fetch("free_message_keys", change.journal, [to_text(key) for key in change.freed_keys])


async def put_messages(
    session: Session, messages: Sequence[Message], writing: Writing, *, messages_max: int = NO_LIMIT
) -> list[Delivery]:
    """Put messages into the inbox, one by one and in order."""
    if not messages:
        return []
    batch = Batch(())
    batch.post(messages, messages_max=messages_max)
    _, deliveries = await _write(session, batch, writing)
    return [Delivery(delivery) for delivery in deliveries or ()]


# -- Messages ------------------------------------------------------------------------------------------------


async def deliver(
    session: Session, messages: Sequence[Message], starts: Sequence[Change], messages_max: int, writing: Writing
) -> list[Delivery]:
    """Put messages into the inbox, after the trees that they may need; one statement as a rule."""
    if any(start.starts or start.messages for start in starts) or not can_write_at_once(starts):
        return await retry_deadlocks(lambda: _deliver_carefully(session, messages, starts, messages_max, writing))
    batch = Batch(await writing.reserve(session, len(starts)) if starts else ())
    try:
        for start in starts:
            batch.add(start)
        batch.post(messages, messages_max=messages_max)
        _, deliveries = await retry_deadlocks(lambda: _write(session, batch, writing))
    except Conflict:
        # The tree cannot be created like this, or a run was born between our looking and our writing and has got the
        # same message from another sender; now it is there to be locked. Or it was only asked for.
        return await retry_deadlocks(lambda: _deliver_carefully(session, messages, starts, messages_max, writing))
    return [Delivery(delivery) for delivery in deliveries or ()]


async def _deliver_carefully(
    session: Session, messages: Sequence[Message], starts: Sequence[Change], messages_max: int, writing: Writing
) -> list[Delivery]:
    async with session.transaction():
        await start_requested(session, writing, {message.run_id for message in messages})
        if starts:
            await commit_carefully(session, starts, writing)
        return await put_messages(session, messages, writing, messages_max=messages_max)


async def refuse_messages(session: Session, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
    """Answer messages that become no events."""
    wanted = [answer_of(it.answer, it.journal) | {"message": it.message} for it in refusals]
    await retry_deadlocks(lambda: session.fetch("refuse_messages", worker_id, to_json(wanted)))


# -- Requests ------------------------------------------------------------------------------------------------


async def start_requested(session: Session, writing: Writing, run_ids: Iterable[str] | None = None) -> bool:
    """Create the runs that were asked for with these ids, or all, if any were; whether any were.

    May be called in a transaction, and is a part of it then. A request whose id was taken meanwhile is dropped, as a
    start that finds the run which it wants.
    """
    names = None if run_ids is None else [to_text(run_id) for run_id in run_ids]
    wanted = [run_id for (run_id,) in await session.fetch("find_requests", names, REQUESTS_AT_ONCE)]
    if not wanted:
        return False
    if session.is_in_transaction:
        await _start(session, writing, wanted)
    else:
        await retry_deadlocks(lambda: _start_alone(session, writing, wanted))
    return True


async def _start_alone(session: Session, writing: Writing, wanted: list[str]) -> None:
    async with session.transaction():
        await _start(session, writing, wanted)


async def _start(session: Session, writing: Writing, wanted: list[str]) -> None:
    changes: list[Change] = []
    requests: list[RequestedMessage] = []
    for run_id, asked in await session.fetch("take_requests", wanted):
        try:
            if run_id.startswith(REQUESTED):
                requests.append(_decode_request(asked))
            else:
                changes.append(_decode_change(asked))
        except msgspec.MsgspecError as error:  # It must not keep the others from being started.
            damaged_rows.add("request", run_id, f"{error}: {asked}")
    outcomes = await write_at_once(session, changes, writing) if changes else []
    for change, (outcome, _) in zip(changes, outcomes, strict=True):
        if outcome is Outcome.CONFLICT:
            log.warning("run %s was started twice; what a user asked for later is dropped", change.runs[0].id)
    if requests:
        await start_requested(session, writing, {request.message.run_id for request in requests})
    for request in requests:
        await _send(session, request, writing)


async def _send(session: Session, request: RequestedMessage, writing: Writing) -> None:
    """Deliver a message that a user asked for, in the transaction that is open."""
    if request.start is not None:
        await _commit_one(session, request.start, writing)  # A run that is there already gets the message.
    (delivery,) = await put_messages(session, [request.message], writing)
    if delivery not in (Delivery.ACCEPTED, Delivery.DUPLICATE):
        message = request.message
        log.warning("%s %r to run %s is dropped: %s", message.kind.value, message.name, message.run_id, delivery.value)


# -- Blobs ---------------------------------------------------------------------------------------------------


async def put_blobs(session: Session, blobs: Sequence[Blob], writing: Writing) -> None:
    """Store blobs that nothing refers to yet."""
    ids = [blob.id for blob in blobs]
    await retry_deadlocks(lambda: session.fetch("remember_blobs", writing.time(), ids))
    await session.fetch("put_blobs", writing.time(), ids, [blob.data for blob in blobs])
