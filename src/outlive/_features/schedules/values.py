"""Schedules as people and programs see them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from outlive._features.schedules.schedule import ScheduleSpec
from outlive._kernel.model.run import definition_shown
from outlive.errors.advice import Advice


class ScheduledRun(msgspec.Struct, frozen=True):
    """A run of a schedule."""

    id: str
    tick: datetime
    status: str
    """The status of the run; `gone` if it was deleted before the schedule saw its end."""

    def __repr__(self) -> str:
        return f"<ScheduledRun {self.id}: {self.status}>"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, how far it has come, and what stands in its way."""

    name: str
    workflow: str
    version: int
    schedule: ScheduleSpec | None
    """When it ticks and what it starts; None if its row is damaged."""
    is_paused: bool = False
    is_tripped: bool = False
    next_fires: list[datetime] = []
    """The next starts; empty while it is stopped, and when it is over."""
    last: list[ScheduledRun] = []
    """The last runs that have ended, the newest first."""
    open: list[ScheduledRun] = []
    """Runs that have not ended, the newest first."""
    waiting: int = 0
    """Ticks that wait until a run has ended."""
    failures: int = 0
    """How many of its runs in a row have failed."""
    skipped: int = 0
    """Ticks that were not started because of a run that was open."""
    missed: int = 0
    """Ticks that passed while no worker was there, and were not caught up; at least so many."""
    why: str
    """One sentence: when it fires next, or what stands in its way."""
    advice: tuple[Advice, ...] = ()
    """The verbs that help, if something stands in its way."""

    @property
    def definition(self) -> str:
        """The workflow with its version, `digest@2`; a flow with its hash."""
        return definition_shown(self.workflow, self.version)

    def __repr__(self) -> str:
        return f"<Schedule {self.name} of {self.definition}: {self.why}>"
