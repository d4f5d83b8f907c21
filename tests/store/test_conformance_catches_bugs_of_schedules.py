"""Planted defects in schedules: each is found by the test that is meant to find it."""

from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class StartsWithoutASwap(Defective):
    """Starts the runs of a change that conflicts."""

    found_by = "test_change_of_another_revision_conflicts_and_starts_nothing"

    def _change_schedule(self, change: ScheduleChange) -> Outcome:
        for start in change.starts:
            self._commit(start)
        return super()._change_schedule(change)


class SwapsBlindly(Defective):
    """Does not look at the revision."""

    found_by = "test_one_of_many_workers_starts_a_tick"

    def _change_schedule(self, change: ScheduleChange) -> Outcome:
        held = self._state.schedules.get(change.name)
        return super()._change_schedule(replace(change, revision=0 if held is None else held.revision))


class ForgetsToStart(Defective):
    """Moves the schedule on, and starts nothing."""

    found_by = "test_change_starts_its_runs"

    def _change_schedule(self, change: ScheduleChange) -> Outcome:
        return super()._change_schedule(replace(change, starts=[]))


class LooksAtTheLatestFirst(Defective):
    """Lets the latest schedules starve the earliest."""

    found_by = "test_due_schedules_come_earliest_first"

    async def find_due_schedules(self, *, limit: int) -> DueSchedules:
        """The other way round."""
        found = await super().find_due_schedules(limit=10_000)
        return DueSchedules(found.rows[::-1][:limit], found.now_at, found.next_at)


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_of_schedules_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
