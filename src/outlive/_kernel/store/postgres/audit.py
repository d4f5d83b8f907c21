"""The audit log on a server. The contract of each verb is in `outlive._kernel.store.audit`; how a row is chained to the
one before it stands in functions/append_audit.sql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from outlive._kernel.store.audit import Action, AuditFilter, AuditRow, body_of, decode_action, pruned, rows_to_add
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.rows import from_text, to_text
from outlive._kernel.store.tables.rows import to_json


def audited(action: Action) -> dict[str, Any]:
    """An action as our functions take it."""
    return {
        "actor": to_text(action.actor),
        "verb": to_text(action.verb),
        "target": to_text(action.target),
        "body": body_of(action),
    }


async def append_audit(session: Session, actions: Iterable[Action], now: int | None) -> None:
    """Add actions to the end of the log; in the transaction that is open, if one is."""
    await session.fetch("append_audit", now, to_json([audited(action) for action in actions]))


async def read_audit(session: Session, after: int, limit: int) -> list[AuditRow]:
    """The rows behind a number."""
    rows = await session.fetch("read_audit", after, limit)
    return [
        AuditRow(number, at, body, digest, (from_text(actor), from_text(verb), from_text(target)))
        for number, at, body, digest, actor, verb, target in rows
    ]


async def list_audit(session: Session, wanted: AuditFilter, before: int | None, limit: int) -> list[AuditRow]:
    """The rows that pass, the newest first."""
    actor, verb, target = (None if it is None else to_text(it) for it in (wanted.actor, wanted.verb, wanted.target))
    values = before, limit, actor, verb, wanted.since_at, wanted.until_at
    if target is None:
        return _rows(await session.fetch("list_audit", *values))
    return _rows(await session.fetch("list_audit_of", *values, target))


def _rows(rows: Sequence[Any]) -> list[AuditRow]:
    return [AuditRow(*row) for row in rows]


async def carry_audit(session: Session, rows: Sequence[AuditRow]) -> bool:
    """Add rows of another log."""
    async with session.transaction():
        await session.fetch("lock_audit")
        found = _rows(await session.fetch("find_audit_tail"))
        added = rows_to_add(found[0] if found else None, rows)
        if added:
            actions = [decode_action(row.body) for row in added]
            named = [
                (to_text(action.actor), to_text(action.verb), to_text(action.target), row.body, row.hash)
                for action, row in zip(actions, added, strict=True)
            ]
            columns = [list(column) for column in zip(*named, strict=True)]
            await session.fetch("put_audit_rows", [row.number for row in added], [row.at for row in added], *columns)
    return added is not None


async def prune_audit(session: Session, before: int, limit: int, key: bytes | None, now: int | None) -> int:
    """Delete from the beginning, and say so at the end."""
    async with session.transaction():
        await session.fetch("lock_audit")
        rows = _rows(await session.fetch("delete_audit", before, limit))
        if rows:
            await append_audit(session, [pruned(rows[-1], key)], now)
    return len(rows)
