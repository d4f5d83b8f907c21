"""The verbs that write journals: `commit` and `deliver`.

Three ways, each for what the one before cannot do:

1. Nothing but rows (a step ended, and that is all): one statement, which is the transaction.
2. A batch: a handful of statements for everything.
3. Carefully: each change is judged first and written in a savepoint of its own. Needed when something conflicts, or when a
   run gets another id.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from outlive._store.contract import Change, Delivery, Message, Outcome
from outlive._store.sqlite.batch import Batch, Rows
from outlive._store.sqlite.connection import Session
from outlive._store.sqlite.message import put_messages
from outlive._store.sqlite.query import RELEASE_SAVEPOINT, ROLLBACK_TO_SAVEPOINT, SAVEPOINT, Value, bulk
from outlive._store.sqlite.thread import Conflict, WriteVerb

Outcomes = list[tuple[Outcome, int]]


def _plan_commit(calls: list[Sequence[Change]]) -> tuple[str, list[Value], list[Outcomes]] | None:
    rows = Rows()
    for changes in calls:
        for change in changes:
            if (
                not change.journal
                or change.after < 0
                or change.runs
                or change.consumed
                or change.blobs
                or change.items
                or change.starts
                or change.messages
            ):
                return None
            rows.add(change.journal, change.after, change.rows)
    statements = list(bulk("commit_rows", rows.values))
    if len(statements) != 1:
        return None
    ((statement, values),) = statements
    return statement, values, [[(Outcome.COMMITTED, change.journal) for change in changes] for changes in calls]


def _commit(session: Session, calls: list[Sequence[Change]], *, careful: bool) -> list[Outcomes]:
    if careful:
        return [[_commit_carefully(session, change) for change in changes] for changes in calls]
    batch = Batch(session)
    outcomes = batch.add([change for changes in calls for change in changes])
    batch.write()
    rest = iter(outcomes)
    return [[next(rest) for _ in changes] for changes in calls]


def _commit_carefully(session: Session, change: Change) -> tuple[Outcome, int]:
    session.connection.execute(SAVEPOINT)
    try:
        if change.journal:
            _check_tail(session, change)
            _rename(session, change)
        batch = Batch(session)
        (outcome,) = batch.add([change])
        batch.write()
    except (Conflict, apsw.ConstraintError):
        session.connection.execute(ROLLBACK_TO_SAVEPOINT)
        outcome = Outcome.CONFLICT, change.journal
    session.connection.execute(RELEASE_SAVEPOINT)
    return outcome


def _check_tail(session: Session, change: Change) -> None:
    if session.fetch("find_tail", change.journal) != (change.after, 0):
        raise Conflict


def _rename(session: Session, change: Change) -> None:
    for run in change.runs:
        session.execute("rename_run", change.journal, run.number, run.id, run.root_id, run.parent_id)


Posting = tuple[Sequence[Message], Change | None, int]
"""Messages, the tree to create before, and how many messages may wait."""


def _deliver(session: Session, postings: list[Posting], *, careful: bool) -> list[list[Delivery]]:
    del careful  # A start whose id is taken is no conflict here, so there is nothing to be careful about.
    return [_deliver_one(session, posting) for posting in postings]


def _deliver_one(session: Session, posting: Posting) -> list[Delivery]:
    messages, start, inbox_messages_max = posting
    if start is not None:
        batch = Batch(session)
        batch.add([start])
        batch.write()
    return put_messages(session, messages, inbox_messages_max=inbox_messages_max)


COMMIT_CHANGES = WriteVerb(_commit, _plan_commit)
DELIVER = WriteVerb(_deliver)
