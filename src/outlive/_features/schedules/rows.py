"""Schedules in the store: read, worked on, and written if no other writer was first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from outlive._features.schedules.schedule import StoredSchedule, schedule_data, schedule_in
from outlive._kernel.model import Run
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange, ScheduleRow
from outlive.errors import OutliveError
from outlive.errors.run import ScheduleNotFoundError

SCHEDULER = "scheduler"
"""The service of a worker that starts the runs of schedules."""
TRIES_MAX = 100
REVISION_MAX = 2**62

T = TypeVar("T")


class NewSchedule(NamedTuple):
    """A schedule as it must be written."""

    stored: StoredSchedule
    next_at: int | None
    starts: list[Change]


def change_to(row: ScheduleRow | None, name: str, new: NewSchedule, *, nonce: Callable[[], int]) -> ScheduleChange:
    """The change from what was read to what it is to be."""
    return ScheduleChange(
        name=name,
        revision=0 if row is None else row.revision,
        # A new one begins at random, so that no writer takes it for one that was deleted.
        next_revision=1 + nonce() % REVISION_MAX if row is None else row.revision + 1,
        next_at=new.next_at,
        data=schedule_data(new.stored),
        starts=new.starts,
    )


async def open_runs(store: Store, schedules: Iterable[StoredSchedule]) -> Mapping[str, Run]:
    """The open runs of these schedules that exist."""
    ids = [run.run_id for stored in schedules for run in stored.state.open]
    return await store.find_runs(ids) if ids else {}


async def change_schedule(
    store: Store,
    name: str,
    change: Callable[[StoredSchedule, Mapping[str, Run]], tuple[NewSchedule, T]],
    *,
    nonce: Callable[[], int],
) -> T:
    """Change a schedule that is there; what `change` answers.

    Raises:
        ScheduleNotFoundError: there is none of this name.
    """
    for _ in range(TRIES_MAX):
        row = await find_row(store, name)
        stored = decoded(row)
        new, answer = change(stored, await open_runs(store, [stored]))
        if (await store.change_schedules([change_to(row, name, new, nonce=nonce)]))[0] is Outcome.COMMITTED:
            return answer
    raise OutliveError(f"schedule {name} could not be changed: it moved on {TRIES_MAX} times; try again")


async def find_row(store: Store, name: str) -> ScheduleRow:
    """The row of a schedule.

    Raises:
        ScheduleNotFoundError: there is none of this name.
    """
    row = (await store.find_schedules([name])).get(name)
    if row is None:
        raise ScheduleNotFoundError(name)
    return row


def decoded(row: ScheduleRow) -> StoredSchedule:
    """The schedule in a row.

    Raises:
        OutliveError: it is damaged.
    """
    try:
        return schedule_in(row.data)
    except ValueError as error:
        raise OutliveError(f"the row of schedule {row.name} is damaged: {error}; set it again, or delete it") from None
