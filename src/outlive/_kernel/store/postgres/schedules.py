"""Schedules on a server. The contract of each verb is in `outlive._kernel.store.schedules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlive._kernel.store.change import Change, Outcome
from outlive._kernel.store.postgres.audit import append_audit
from outlive._kernel.store.postgres.commit import Writing, commit_carefully, retry_deadlocks, write_at_once
from outlive._kernel.store.postgres.connection import HURRIED, Session
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.tables.journal_rows import Conflict


async def find_due_schedules(session: Session, limit: int, now: int | None) -> DueSchedules:
    """The schedules that are due."""
    rows = await session.fetch("find_due_schedules", now, limit)
    found = [_row(row) for row in rows if row["name"] is not None]
    return DueSchedules(found, rows[0]["now"], rows[0]["later_at"])


async def find_schedules(session: Session, names: Sequence[str]) -> dict[str, ScheduleRow]:
    """The schedules with these names."""
    return {row["name"]: _row(row) for row in await session.fetch("find_schedules", list(names))}


async def list_schedules(session: Session, after: str, limit: int) -> list[ScheduleRow]:
    """The schedules whose names follow this one."""
    return [_row(row) for row in await session.fetch("list_schedules", after, limit)]


def _row(row: Any) -> ScheduleRow:
    return ScheduleRow(row["name"], row["next_at"], row["revision"], row["data"])


async def change_schedules(session: Session, changes: Sequence[ScheduleChange], writing: Writing) -> list[Outcome]:
    """Change them, and start what they start."""
    try:
        return await retry_deadlocks(lambda: _change(session, changes, writing, careful=False))
    except Conflict:
        # A run that it starts was only asked for so far, or another start came in between.
        return await retry_deadlocks(lambda: _change(session, changes, writing, careful=True))


async def _change(
    session: Session, changes: Sequence[ScheduleChange], writing: Writing, *, careful: bool
) -> list[Outcome]:
    async with session.transaction(begin=HURRIED):
        names = [change.name for change in changes if change.revision]
        rows = await session.fetch("lock_schedules", names) if names else []
        held = {row["name"]: row["revision"] for row in rows}
        fitting = [change for change in changes if change.revision and held.get(change.name) == change.revision]
        if gone := [change.name for change in fitting if change.data is None]:
            await session.fetch("delete_schedules", gone)
        if kept := [change for change in fitting if change.data is not None]:
            await session.fetch("update_schedules", *_columns(kept))
        won = {change.name for change in fitting}
        if new := [change for change in changes if not change.revision and change.data is not None]:
            won |= {row["name"] for row in await session.fetch("create_schedules", *_columns(new))}
        starts = [start for change in changes if change.name in won for start in change.starts]
        await _start(session, starts, writing, careful=careful)
        if actions := [change.audit for change in changes if change.name in won and change.audit is not None]:
            await append_audit(session, actions, writing.time())
    return [Outcome.COMMITTED if change.name in won else Outcome.CONFLICT for change in changes]


def _columns(changes: Sequence[ScheduleChange]) -> tuple[list[Any], ...]:
    """The arrays of a statement."""
    return (
        [change.name for change in changes],
        [change.next_revision for change in changes],
        [change.next_at for change in changes],
        [change.data for change in changes],
    )


async def _start(session: Session, starts: list[Change], writing: Writing, *, careful: bool) -> None:
    if not starts:
        return
    if careful:
        await commit_carefully(session, starts, writing)
    else:
        await write_at_once(session, starts, writing)
