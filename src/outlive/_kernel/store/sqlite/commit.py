"""The verbs that write journals: `commit` and `deliver`.

Three ways, each for what the one before cannot do:

1. Nothing but rows (a step ended, and that is all): one statement, which is the transaction.
2. A batch: a handful of statements for everything.
3. Carefully: each change is judged first and written in a savepoint of its own. Needed when something
   conflicts, when an ended run makes room for another one, or when it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import apsw
from msgspec.structs import replace

from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import NO_LIMIT, Change, Delivery, Message, Outcome
from outlive._kernel.store.sqlite.batch import Batch, rename
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.deleting import put_blob
from outlive._kernel.store.sqlite.inbox import Inboxes, put_messages
from outlive._kernel.store.sqlite.query import RELEASE_SAVEPOINT, ROLLBACK_TO_SAVEPOINT, SAVEPOINT, Value, bulk
from outlive._kernel.store.sqlite.writer import WriteVerb, each
from outlive._kernel.store.tables.journal_rows import Conflict, plain_rows
from outlive._kernel.store.tables.rows import to_json

Outcomes = list[tuple[Outcome, int]]


def _plan_commit(calls: list[Sequence[Change]]) -> tuple[list[tuple[str, list[Value]]], list[Outcomes]] | None:
    rows = plain_rows(chain.from_iterable(calls), with_guarded=True)
    if rows is None:
        return None
    outcomes = [[(Outcome.COMMITTED, change.journal) for change in changes] for changes in calls]
    return list(bulk("commit_rows", list(chain.from_iterable(rows)))), outcomes


def _commit(session: Session, calls: list[Sequence[Change]], *, careful: bool) -> list[Outcomes]:
    if careful:
        return [[_commit_carefully(session, change) for change in changes] for changes in calls]
    batch = Batch(session)
    outcomes = batch.add([change for changes in calls for change in changes])
    batch.write()
    rest = iter(outcomes)
    return [[next(rest) for _ in changes] for changes in calls]


def commit_all(session: Session, changes: Sequence[Change], *, careful: bool) -> None:
    """Write changes as a part of another verb, whatever becomes of each.

    Raises:
        Conflict: it has to be done carefully.
    """
    _commit(session, [changes], careful=careful)


def _commit_carefully(session: Session, change: Change) -> tuple[Outcome, int]:
    session.connection.execute(SAVEPOINT)
    try:
        outcome = _write_carefully(session, change)
    except (Conflict, apsw.ConstraintError):
        session.connection.execute(ROLLBACK_TO_SAVEPOINT)
        outcome = Outcome.CONFLICT, change.journal
    session.connection.execute(RELEASE_SAVEPOINT)
    return outcome


def _write_carefully(session: Session, change: Change) -> tuple[Outcome, int]:
    if change.journal:
        seq, is_last, crc = session.fetch("find_tail", change.journal) or (None, None, None)
        if (seq, is_last) != (change.after, int(change.reopens)) or change.prior != crc:
            raise Conflict
    if change.reopens:
        session.execute("reopen_journal", change.journal, change.after)
        session.execute("free_message_keys", change.journal, to_json(change.freed_keys))
    for run in change.renames:
        rename(session, run)
    batch = Batch(session)
    ((outcome, journal),) = batch.add([replace(change, reopens=False, renames=[], starts=[], messages=[])])
    if outcome is Outcome.CONFLICT:
        raise Conflict
    if outcome is Outcome.MUST_WAIT:
        return outcome, 0
    batch.write()
    for start in change.starts:
        started, _ = _commit_carefully(session, start)
        if started is Outcome.CONFLICT and start.successor_of:
            raise Conflict
    put_messages(session, change.messages, inbox_messages_max=NO_LIMIT)
    return outcome, journal


Posting = tuple[Sequence[Message], Sequence[Change], int]
"""Messages, the trees to create before, and how many messages may wait."""


def _deliver(session: Session, postings: list[Posting], *, careful: bool) -> list[list[Delivery]]:
    _commit(session, [starts for _, starts, _ in postings if starts], careful=careful)
    inboxes = Inboxes()
    return [put_messages(session, messages, inbox_messages_max=most, inboxes=inboxes) for messages, _, most in postings]


def _put_blobs(session: Session, blobs: Sequence[Blob]) -> None:
    for blob in blobs:
        put_blob(session, blob)


COMMIT_CHANGES = WriteVerb(_commit, _plan_commit)
DELIVER = WriteVerb(_deliver)
PUT_BLOBS = each(_put_blobs)
