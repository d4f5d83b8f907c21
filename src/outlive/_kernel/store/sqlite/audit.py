"""The audit log in the file. The contract of each verb is in `outlive._kernel.store.audit`.

The writer is the only one that writes, and holds the file while it does: the last row is the end of the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from outlive._kernel.store.audit import Action, AuditFilter, AuditRow, decode_action, pruned, row_after, rows_to_add
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import each


def put_audit(session: Session, actions: Iterable[Action]) -> None:
    """Add actions to the end of the log, in the transaction that is open."""
    found = _rows(session, "find_audit_tail")
    last = found[0] if found else None
    for action in actions:
        last = row_after(last, action, session.clock())
        named = action.actor, action.verb, action.target
        session.execute("put_audit", last.number, last.at, *named, last.body, last.hash)


def read_audit(session: Session, argument: tuple[int, int]) -> list[AuditRow]:
    """The rows behind a number."""
    rows: list[Any] = session.execute("read_audit", *argument).fetchall()
    found: list[AuditRow] = []
    for number, at, *texts in rows:
        body, digest, actor, verb, target = map(_text, texts)
        found.append(AuditRow(number, at, body, digest, (actor, verb, target)))
    return found


def list_audit(session: Session, argument: tuple[AuditFilter, int | None, int]) -> list[AuditRow]:
    """The rows that pass, the newest first."""
    wanted, before, limit = argument
    values = before, limit, wanted.actor, wanted.verb, wanted.since_at, wanted.until_at
    if wanted.target is None:
        return _rows(session, "list_audit", *values)
    return _rows(session, "list_audit_of", *values, wanted.target)


def _rows(session: Session, verb: str, *values: Any) -> list[AuditRow]:
    rows: list[Any] = session.execute(verb, *values).fetchall()
    return [AuditRow(number, at, _text(body), _text(digest)) for number, at, body, digest in rows]


def _text(data: bytes) -> str:
    """The text in a column. It is read as bytes: a person who changed them may have left bytes that are not text, and a
    check must find them too."""
    return data.decode(errors="replace")


def _append(session: Session, actions: Sequence[Action]) -> None:
    put_audit(session, actions)


def _prune(session: Session, argument: tuple[int, int, bytes | None]) -> int:
    before, limit, key = argument
    rows = read_audit(session, (0, limit + 1))
    most = min(limit, len(rows) - 1)
    count = next((place for place, row in enumerate(rows[:most]) if row.at >= before), max(most, 0))
    if count:
        last = rows[count - 1]
        session.execute("delete_audit", last.number)
        put_audit(session, [pruned(last, key)])
    return count


def _carry(session: Session, rows: Sequence[AuditRow]) -> bool:
    found = _rows(session, "find_audit_tail")
    added = rows_to_add(found[0] if found else None, rows)
    for row in added or ():
        action = decode_action(row.body)
        session.execute("put_audit", row.number, row.at, action.actor, action.verb, action.target, row.body, row.hash)
    return added is not None


CARRY_AUDIT = each(_carry)
APPEND_AUDIT = each(_append)
PRUNE_AUDIT = each(_prune)
