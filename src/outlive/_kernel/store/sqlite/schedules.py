"""Schedules in the file. The contract of each verb is in `outlive._kernel.store.schedules`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlive._kernel.store.change import Outcome
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.sqlite.audit import put_audit
from outlive._kernel.store.sqlite.commit import commit_all
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import WriteVerb
from outlive._kernel.store.tables.rows import to_json


def find_due_schedules(session: Session, limit: int) -> DueSchedules:
    """The schedules that are due."""
    now = session.clock()
    rows = _rows(session, "find_due_schedules", now, limit)
    (later_at,) = session.fetch("find_next_schedule", now) or (None,)
    assert later_at is None or isinstance(later_at, int)
    return DueSchedules(rows, now, later_at)


def find_schedules(session: Session, names: Sequence[str]) -> dict[str, ScheduleRow]:
    """The schedules with these names."""
    return {row.name: row for row in _rows(session, "find_schedules", to_json(list(names)))}


def list_schedules(session: Session, argument: tuple[str, int]) -> list[ScheduleRow]:
    """The schedules whose names follow this one."""
    return _rows(session, "list_schedules", *argument)


def _rows(session: Session, verb: str, *values: Any) -> list[ScheduleRow]:
    rows: list[Any] = session.execute(verb, *values).fetchall()
    return [ScheduleRow(name, next_at, revision, bytes(data)) for name, next_at, revision, data in rows]


def _change_schedules(session: Session, calls: list[Sequence[ScheduleChange]], *, careful: bool) -> list[list[Outcome]]:
    outcomes = [[_change(session, change) for change in changes] for changes in calls]
    made = [
        change
        for changes, own in zip(calls, outcomes, strict=True)
        for change, outcome in zip(changes, own, strict=True)
        if outcome is Outcome.COMMITTED
    ]
    if starts := [start for change in made for start in change.starts]:
        commit_all(session, starts, careful=careful)
    if actions := [change.audit for change in made if change.audit is not None]:
        put_audit(session, actions)
    return outcomes


def _change(session: Session, change: ScheduleChange) -> Outcome:
    values = (change.next_revision, change.next_at, change.data)
    if change.data is None:
        row = session.fetch("delete_schedule", change.name, change.revision)
    elif change.revision:
        row = session.fetch("update_schedule", change.name, change.revision, *values)
    else:
        row = session.fetch("create_schedule", change.name, *values)
    return Outcome.CONFLICT if row is None else Outcome.COMMITTED


CHANGE_SCHEDULES = WriteVerb(_change_schedules)
