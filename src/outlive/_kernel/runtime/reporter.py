"""The reports of a worker about its runs to other processes: the steps and replays that last for some seconds.

A worker knows this in memory, and a process that asks its own worker gets it at once (`Reporter.of`). For all others
the reporter writes it into the cell of the session. It looks only while something is under way, and writes only what
has lasted for `REPORT_SECONDS`, when it has changed: a worker of short steps writes nothing, and a step that hangs for
an hour costs one write at its beginning and one at its end. A session that ends removes its cell, and a day after a
session has died another one removes what it left. A report is for people. Nothing depends on it, so a write that fails
is tried again at the next look.

A part of the worker that knows what a run is doing is a source: it makes notes when it is asked, and calls `begin` when
there is something to ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.under_way import NOTHING, UNDER_WAY_CELLS, Note, Report, cell_of, report_in, report_of
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.store.contract import Store
from outlive._tasks import own_task
from outlive.errors import OutliveError
from outlive.telemetry import log

REPORT_SECONDS = 3.0
"""How long something must have lasted before it is reported, and the pause between two looks of the reporter."""
SIGNS_SECONDS = 10.0
"""How often heartbeats and progress are written, when nothing else has changed."""
KEPT_SECONDS = 24 * 3_600
"""How long the cell of a session that died is kept: until then it says what was under way."""
SWEPT_MAX = 100
"""Cells of dead sessions that one session removes."""


class NoteSource(Protocol):
    """A part of the worker that knows the work of some runs."""

    def __call__(self, *, until_at: int, is_stored: bool, root_id: str = "") -> Iterable[Note]:
        """Notes of the work that began at `until_at` or earlier, the oldest first, in one tree or in all; `is_stored`
        if the notes are to be stored, so that their values have to be packed and large ones left out."""


class Reporter:
    """Reports what one session has under way. Used on the worker's event loop."""

    def __init__(self, store: Store, session: str, *, clock: Clock) -> None:
        self._store = store
        self._cell = cell_of(session)
        self._now = clock.now
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._written = NOTHING
        self._is_closed = self._has_swept = False
        self.sources: list[NoteSource] = []
        self.alarm: asyncio.TimerHandle | None = None
        """Calls `look`; None while nothing is under way."""

    def begin(self) -> None:
        """Something is under way: look at it when it has lasted for some seconds."""
        if self.alarm is None and not self._is_closed:
            # Not by the clock of the engine: a test that skips time must not skip to each look at a step that runs.
            self.alarm = self._loop.call_later(REPORT_SECONDS, self.look)

    def of(self, root_id: str) -> Report:
        """The work under way in one tree now, from memory."""
        return report_of(self._notes(until_at=self._now(), is_stored=False, root_id=root_id), at=self._now())

    def look(self) -> None:
        """Write what is under way, if that has changed."""
        self.alarm = None
        if self._is_closed:
            return
        until_at = self._now() - round(REPORT_SECONDS * MICROSECONDS)
        report = report_of(self._notes(until_at=until_at, is_stored=True), at=0).within_limits()
        if self._task is None and self._is_news(report):
            self._task = own_task(self._write(msgspec.structs.replace(report, at=self._now())), name="outlive-report")
        if not report.says_nothing or next(iter(self._notes(until_at=self._now(), is_stored=False)), None) is not None:
            self.begin()

    def close(self) -> None:
        """Write nothing more. The cell is removed with the session."""
        self._is_closed = True
        if self.alarm is not None:
            self.alarm.cancel()
        if self._task is not None:
            self._task.cancel()

    @property
    def is_resting(self) -> bool:
        """Whether nothing is being written."""
        return self._task is None

    def _notes(self, *, until_at: int, is_stored: bool, root_id: str = "") -> Iterable[Note]:
        for source in self.sources:
            yield from source(until_at=until_at, is_stored=is_stored, root_id=root_id)

    def _is_news(self, report: Report) -> bool:
        written = self._written
        if (report.replays, report.unnamed) != (written.replays, written.unnamed):
            return True
        if _without_signs(report) != _without_signs(written):
            return True
        is_due = self._now() - written.at >= SIGNS_SECONDS * MICROSECONDS
        return is_due and report.steps != written.steps

    async def _write(self, report: Report) -> None:
        data = None if report.says_nothing else msgspec.json.encode(report)
        try:
            await self._store.change_cell(self._cell, lambda *_: (data, None))
            self._written = report
            if not self._has_swept:
                await self._sweep()
        except OutliveError as error:  # The store is away: the parts that move the runs say so.
            log.debug("what is under way could not be written: %s", error)
            self.begin()
        finally:
            self._task = None

    async def _sweep(self) -> None:
        """Remove what sessions have left that died long ago. Once for each session that has something to report."""
        self._has_swept = True
        names = await self._store.examiner.list_cells(after=UNDER_WAY_CELLS, limit=SWEPT_MAX)
        live = {cell_of(worker.id) for worker in await self._store.list_workers(with_runs=False)}
        for name in names:
            if name.startswith(UNDER_WAY_CELLS) and name not in live:
                await self._store.change_cell(name, _kept)


def _kept(data: bytes | None, now_at: int) -> tuple[bytes | None, None]:
    """The new content of the cell of a session that died: nothing once its report is old."""
    is_old = now_at - report_in(data).at > KEPT_SECONDS * MICROSECONDS
    return (None if is_old else data), None


def _without_signs(report: Report) -> list[Note]:
    """The steps of a report without what they say of themselves all the time."""
    return [msgspec.structs.replace(note, heartbeat_at=0, progress=None) for note in report.steps]
