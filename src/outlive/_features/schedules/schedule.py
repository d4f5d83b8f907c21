"""Schedules: when runs of a workflow start by themselves, and what became of them so far.

A schedule in the store has two parts. The definition (`ScheduleSpec` and `Target`) comes from the code or a person.
The state (`ScheduleState`) is what workers write: how far the ticks have come, which runs are open, who has paused it.
A new definition leaves the state alone.

Instants of the state are microseconds since 1970 UTC.
"""

from __future__ import annotations

import zlib
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from outlive._garbage_collection import collection_paused
from outlive._kernel.define.declaration import Declaration
from outlive._kernel.model.instant import instant_text
from outlive._kernel.model.pause import Pause

Overlap = Literal["skip", "allow", "buffer_one", "buffer_all", "cancel_previous", "terminate_previous"]
"""The policy for a tick while a run of an earlier tick is open."""

CATCH_UP_MAX = 1_000
"""Ticks that are caught up at most after a time in which no worker was there."""
BUFFER_MAX = 1_000
"""Ticks that wait at most until the runs before them have ended."""
OPEN_MAX = 1_000
"""Open runs that a schedule remembers at most."""
FLOW_SCHEDULES_MAX = 20
"""Schedules that the document of a flow may have."""
LAST_MAX = 10
"""Outcomes that a schedule remembers."""
TAG = "schedule"
"""The tag, and the header, of a run that a schedule has started: the name of the schedule."""
TICK = "tick"
"""The header with the time of the tick."""
_CRC_BYTES = 8


class ScheduleSpec(Declaration, frozen=True, kw_only=True):
    """When runs start, and how; made by `outlive.cron` and `outlive.every`."""

    cron: tuple[str, ...] = ()
    """Cron expressions: it ticks when one of them matches."""
    every: timedelta | None = None
    """The time between two ticks, if it has no cron expressions."""
    tz: str = "UTC"
    exclude: tuple[str, ...] = ()
    """When it does not tick: cron expressions, and days as `2026-12-24`."""
    start: datetime | None = None
    """When it begins."""
    end: datetime | None = None
    """When it is over."""
    jitter: timedelta = timedelta(0)
    """How much later than its tick a run starts at most."""
    overlap: Overlap = "skip"
    catch_up: int = 1
    """How many ticks are started that were missed; 0 if none, not even the latest."""
    trip_after: int = 0
    """After how many failures in a row it stops; 0: never."""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    """By name as plain JSON, with `{"$tick": form}` where the time of the tick belongs."""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    key: str = ""
    """The key of its runs in the queue of the workflow."""
    priority: int | None = None
    """The priority of its runs in the queue of the workflow."""

    @property
    def when(self) -> str:
        """When it ticks, in a few words."""
        often = f"every {self.every}" if self.every is not None else " or ".join(map(repr, self.cron))
        return often if self.tz == "UTC" else f"{often} {self.tz}"

    def __repr__(self) -> str:
        return f"<ScheduleSpec {self.name} {self.when}>" if self.name else f"<ScheduleSpec {self.when}>"


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """The target of a schedule: everything that is needed to start its runs without its code."""

    workflow: str
    version: int
    positional: tuple[str, ...] = ()
    """Arguments that can be given by position only."""
    timeout_seconds: float | None = None
    queue: str = ""
    """The queue of the workflow, in which its runs wait for their turn."""
    frees_slot: bool = False
    """Whether they give their slot back while they wait for something."""
    lead: int = 0
    """By how many microseconds their priority brings them forward there."""


class Declared(msgspec.Struct, frozen=True):
    """Which code has declared a schedule last."""

    print: str
    """A hash of the definition in the code: equal code writes nothing."""
    version: int
    """The version of the workflow: a higher one wins."""
    at: int
    """When the process began that declared it: of one version, the later one wins."""


class ScheduleRun(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """A run that a schedule has started."""

    run_id: str
    tick: int
    status: str = ""
    """How it has ended; empty while it is open, `gone` if it was deleted before the schedule saw its end."""


class ScheduleState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The progress of a schedule."""

    cursor: int
    """Every tick up to here was started, skipped or missed."""
    open: tuple[ScheduleRun, ...] = ()
    """Runs that had not ended when a worker last looked, the oldest first."""
    last: tuple[ScheduleRun, ...] = ()
    """The last runs that have ended, the oldest first."""
    buffer: tuple[int, ...] = ()
    """Ticks that wait until no run is open."""
    looks: int = 0
    """How often a worker has looked whether a tick that waits may start."""
    failures: int = 0
    """How many runs in a row have failed or timed out."""
    paused: Pause | None = None
    tripped_at: int = 0
    """When it stopped because of its failures; 0 if it has not."""
    skipped: int = 0
    """Ticks that were not started because a run was open, or because the buffer was full."""
    missed: int = 0
    """Ticks that passed while no worker was there, and were not caught up. At least so many: long gaps are not counted
    out."""

    @property
    def is_stopped(self) -> bool:
        """Whether it does not tick until a person resumes it."""
        return self.paused is not None or bool(self.tripped_at)


class StoredSchedule(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A schedule as it lies in the store."""

    schedule: ScheduleSpec
    target: Target
    state: ScheduleState
    declared: Declared | None = None
    """None: it was created at run time."""


_decode = msgspec.json.Decoder(StoredSchedule).decode
_encode = msgspec.json.Encoder().encode


def schedule_data(stored: StoredSchedule) -> bytes:
    """A schedule as a store keeps it: a checksum, and JSON."""
    data = _encode(stored)
    return b"%08x" % zlib.crc32(data) + data


def schedule_in(data: bytes) -> StoredSchedule:
    """Read a schedule that `schedule_data` wrote.

    Raises:
        ValueError: it is damaged, or was written by a later release.
    """
    body = data[_CRC_BYTES:]
    if data[:_CRC_BYTES] != b"%08x" % zlib.crc32(body):
        raise ValueError("its checksum does not fit")
    with collection_paused():  # It may have the large arguments of a stranger.
        return _decode(body)


def print_of(schedule: ScheduleSpec, target: Target) -> str:
    """A hash of a definition."""
    # Twice: 64 bits are enough to tell two definitions apart, and no one gains by a collision.
    data = _encode((schedule, target))
    return f"{zlib.crc32(data):08x}{zlib.adler32(data):08x}"


def run_id_of(name: str, tick: int) -> str:
    """The id of the run of a tick: there is one, whatever number of workers wants to start it."""
    return f"{name}@{instant_text(tick)}"


def schedule_names(flow: str) -> list[str]:
    """The names that the schedules of a flow have, in the order of its document."""
    return [flow, *(f"{flow}.{number}" for number in range(2, FLOW_SCHEDULES_MAX + 1))]
