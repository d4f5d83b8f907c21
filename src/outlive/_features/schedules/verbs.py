"""`engine.schedules`: what people do with schedules."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal, get_args

from msgspec.structs import replace

from outlive._features.schedules.deciding import first_look, observe
from outlive._features.schedules.declaring import renewed
from outlive._features.schedules.in_code import filled, lead_in, target_of
from outlive._features.schedules.info import damaged_info, info_of
from outlive._features.schedules.rows import SCHEDULER, NewSchedule, change_schedule, change_to, decoded, find_row
from outlive._features.schedules.schedule import (
    BUFFER_MAX,
    Overlap,
    ScheduleRun,
    ScheduleSpec,
    ScheduleState,
    StoredSchedule,
    Target,
    run_id_of,
    schedule_in,
)
from outlive._features.schedules.starting import start_of, terminate
from outlive._features.schedules.ticks import Ticks
from outlive._features.schedules.values import Schedule
from outlive._kernel.client.client import Client
from outlive._kernel.client.handle import RunHandle, StoredRun
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import HasRuns, Workflow
from outlive._kernel.model import Run, given
from outlive._kernel.model.giver import overrides_shown, say
from outlive._kernel.model.instant import microseconds_of
from outlive._kernel.model.pause import Pause
from outlive._kernel.model.queue import QueueLimits, queue_cell, queue_in
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Outcome
from outlive._kernel.store.schedules import ScheduleChange, ScheduleRow
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.errors.run import ScheduleNotFoundError, ScheduleOverlapError, ScheduleTrippedError

BACKFILL_MAX = BUFFER_MAX
STARTS_AT_ONCE = 200

TriggerOverlap = Literal["allow", "skip", "terminate_previous"]
BackfillOverlap = Literal["allow", "buffer_all"]


class Schedules:
    """The schedules in the store of an engine."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._access = client.access

    async def set(
        self, name: str, schedule: ScheduleSpec, workflow: Workflow[..., Any] | Step[..., Any] | str | None = None
    ) -> Schedule:
        """Create a schedule, or give one another definition; durable when this returns.

        One that is there keeps its state: whether it is paused, its last outcomes, and its last tick if its times stay
        the same. If the code declares a schedule of this name too, what is set here counts until the code changes.

        Args:
            schedule: what `outlive.cron` or `outlive.every` makes.
            workflow: what it starts, or its name if the code is elsewhere; may be left out if the schedule is there.

        Raises:
            ScheduleNotFoundError: there is none of this name, and no workflow was given.
        """
        where = "engine.schedules.set"
        name = given.label(where, name, like="digest")
        like = "outlive.every(minutes=15)"
        wanted = replace(given.instance(where, "schedule", schedule, ScheduleSpec, like=like), name=name)
        if schedule.name not in ("", name):
            advice = f"it is called {schedule.name}, and is to be set as {name}; leave out its name"
            raise InvalidArgumentError(where, "schedule", schedule.name, advice)
        while True:
            row = (await self._access.store.find_schedules([name])).get(name)
            before = None
            if row is not None:
                try:
                    before = schedule_in(row.data)
                except ValueError:
                    """Damaged: it is made again."""
            if workflow is None and before is None:
                raise ScheduleNotFoundError(name)
            target = await self._target(where, workflow, wanted, before)
            new = self._new(wanted, target, before)
            change = change_to(row, name, new, nonce=self._client.nonce)
            if (await self._access.store.change_schedules([change]))[0] is Outcome.COMMITTED:
                self._ring()
                return await self.get(name)

    async def _target(
        self, where: str, workflow: object, schedule: ScheduleSpec, before: StoredSchedule | None
    ) -> Target:
        if isinstance(workflow, HasRuns):
            workflow = workflow.as_run
        if isinstance(workflow, Workflow):
            workflow._check_startable()
            return target_of(where, workflow.spec, schedule)
        if workflow is not None and not isinstance(workflow, str):
            raise ArgumentTypeError(
                where, "workflow", workflow, "give a workflow, or its name if its code is elsewhere"
            )
        if workflow is None:
            assert before is not None
            chosen, version = before.target.workflow, before.target.version
        else:
            chosen, version = workflow, None
        version, described = await self._client.find_definition(chosen, version)
        arguments = filled(schedule.arguments, self._access.store.now(), schedule.tz)
        mismatch = await mismatch_of(arguments, described.arguments)
        if mismatch is not None:
            raise InvalidArgumentError(where, "args", schedule.arguments, f"{chosen} does not take it: {mismatch}")
        if described.is_flow and (overrides := schedule.arguments.get("overrides")):
            say(overrides_shown(overrides))
        limits = QueueLimits()
        if schedule.priority is not None and described.queue:
            limits = queue_in(await self._access.store.read_cell(queue_cell(described.queue))).declared
        lead = lead_in(where, schedule, described.queue, limits)
        return Target(chosen, version, described.positional, described.timeout_seconds, described.queue, lead=lead)

    def _new(self, schedule: ScheduleSpec, target: Target, before: StoredSchedule | None) -> NewSchedule:
        now = self._access.store.now()
        if before is not None:
            return renewed(before, schedule, target, before.declared, now=now)
        stored = StoredSchedule(schedule=schedule, target=target, state=ScheduleState(cursor=now))
        return NewSchedule(stored, first_look(schedule.name, stored), [])

    async def pause(self, name: str, *, by: str = "", reason: str = "") -> None:
        """Let a schedule start nothing more; durable when this returns, and no run of it starts after that.

        Args:
            by, reason: who does that and why, for people.
        """
        where = "engine.schedules.pause"
        by = given.text(where, "by", by, like="ann", least=0)
        reason = given.text(where, "reason", reason, like="the feed is down", least=0, most=given.TEXT_CHARACTERS_MAX)
        now = self._access.store.now()

        def change(state: ScheduleState) -> ScheduleState:
            return state if state.paused is not None else replace(state, paused=Pause(now, by, reason))

        await self._change_state(where, name, change)

    async def resume(self, name: str) -> None:
        """Let a schedule go on that was paused or has tripped.

        Ticks that have passed meanwhile are not caught up; ticks that waited for a run wait on.
        """
        now = self._access.store.now()

        def change(state: ScheduleState) -> ScheduleState:
            if not state.is_stopped and state.cursor <= now:
                return state
            return replace(state, paused=None, tripped_at=0, failures=0, cursor=now, looks=0)

        await self._change_state("engine.schedules.resume", name, change)
        self._ring()

    async def _change_state(self, where: str, name: str, change: Callable[[ScheduleState], ScheduleState]) -> None:
        name = _known(where, name)

        def renew(stored: StoredSchedule, runs: Mapping[str, Run]) -> tuple[NewSchedule, None]:
            state = observe(stored.state, runs)
            new = replace(stored, state=change(state))
            return NewSchedule(new, first_look(name, new), []), None

        await change_schedule(self._access.store, name, renew, nonce=self._client.nonce)

    async def trigger(
        self, name: str, *, overlap: TriggerOverlap | None = None, id: str | None = None
    ) -> RunHandle[Any]:
        """Start a run of a schedule now, also while it is paused; durable when this returns.

        Args:
            overlap: "allow" starts it although another run is open, "terminate_previous" ends that one first, "skip"
                starts nothing then. Unless given, as the schedule says; one that would let a tick wait raises.
            id: of the run; made of the schedule and the time unless given.

        Raises:
            ScheduleNotFoundError. ScheduleOverlapError: another run is open; nothing was started.
            ScheduleTrippedError: it has tripped; resume it first.
        """
        where = "engine.schedules.trigger"
        name = _known(where, name)
        if overlap is not None:
            given.one_of(where, "overlap", overlap, get_args(TriggerOverlap))
        while True:
            now, nonce = self._access.store.now(), self._client.nonce()
            run_id = id or f"{run_id_of(name, now)}.{nonce & 0xFFFFFF:06x}"
            start = partial(self._triggered, name, overlap=overlap, run_id=run_id, now=now, nonce=nonce)
            async with self._access.admission.start(run_id):
                blocking = await change_schedule(self._access.store, name, start, nonce=self._client.nonce)
            if not blocking:
                self._access.ring()
                return StoredRun(self._client, run_id)
            for other in blocking:
                await terminate(self._access, other, reason=f"schedule {name} was triggered")

    def _triggered(
        self,
        name: str,
        stored: StoredSchedule,
        runs: Mapping[str, Run],
        *,
        overlap: TriggerOverlap | None,
        run_id: str,
        now: int,
        nonce: int,
    ) -> tuple[NewSchedule, builtins.list[str]]:
        """The schedule with one more run, or the runs that have to be terminated before."""
        state = observe(stored.state, runs)
        if state.tripped_at:
            raise ScheduleTrippedError(name)
        policy: Overlap = overlap or stored.schedule.overlap
        open_ = [run.run_id for run in state.open]
        if open_ and policy not in ("allow", "terminate_previous"):
            raise ScheduleOverlapError(name, open_)
        blocking = open_ if policy == "terminate_previous" else []
        starts = []
        if not blocking:
            state = replace(state, open=(*state.open, ScheduleRun(run_id, now)))
            packer = self._access.packer
            starts = [start_of(name, stored, now, run_id=run_id, packer=packer, nonce=nonce, at=now)]
        new = replace(stored, state=state)
        return NewSchedule(new, first_look(name, new), starts), blocking

    async def backfill(
        self, name: str, start: datetime, end: datetime, *, overlap: BackfillOverlap | None = None
    ) -> int:
        """Start the runs of the ticks from `start` on and before `end` that have none; how many there are.

        Durable when this returns. A tick that has a run, whatever became of that, is not started again.

        Args:
            overlap: "buffer_all" starts one when the run before it has ended, "allow" all of them at once; unless
                given, "allow" if the schedule says so.

        Raises:
            ScheduleNotFoundError. InvalidArgumentError: there are more than 1,000 ticks, or the range reaches into the
            future; nothing was started.
        """
        where = "engine.schedules.backfill"
        name, store = _known(where, name), self._access.store
        first, last = (microseconds_of(given.instant(where, *each)) for each in (("start", start), ("end", end)))
        if last <= first:
            raise InvalidArgumentError(where, "end", end, "it is not later than the start")
        if last > store.now():
            raise InvalidArgumentError(where, "end", end, "it lies in the future, whose ticks start by themselves")
        if overlap is not None:
            given.one_of(where, "overlap", overlap, get_args(BackfillOverlap))
        stored = decoded(await find_row(store, name))
        ticks = Ticks(stored.schedule).between(first, last, BACKFILL_MAX + 1)
        if len(ticks) > BACKFILL_MAX:
            wanted = f"it has more than {BACKFILL_MAX:,} ticks; backfill a shorter range, and the rest later"
            raise InvalidArgumentError(where, "start", start, wanted)
        taken = await store.find_runs([run_id_of(name, tick) for tick in ticks])
        missing = [tick for tick in ticks if run_id_of(name, tick) not in taken]
        policy = overlap or ("allow" if stored.schedule.overlap == "allow" else "buffer_all")
        if policy == "allow":
            for begin in range(0, len(missing), STARTS_AT_ONCE):
                await self._start_all(name, missing[begin : begin + STARTS_AT_ONCE])
        elif missing:
            await self._buffer(where, name, missing)
        self._ring()
        return len(missing)

    async def _start_all(self, name: str, ticks: builtins.list[int]) -> None:
        store, packer, nonce = self._access.store, self._access.packer, self._client.nonce

        def change(stored: StoredSchedule, runs: Mapping[str, Run]) -> tuple[NewSchedule, None]:
            state, ids = observe(stored.state, runs), [run_id_of(name, tick) for tick in ticks]
            opened = tuple(ScheduleRun(run_id, tick) for run_id, tick in zip(ids, ticks, strict=True))
            new = replace(stored, state=replace(state, open=(*state.open, *opened)))
            starts = [
                start_of(name, stored, run.tick, run_id=run.run_id, packer=packer, nonce=nonce(), at=store.now())
                for run in opened
            ]
            return NewSchedule(new, first_look(name, new), starts), None

        await change_schedule(store, name, change, nonce=nonce)

    async def _buffer(self, where: str, name: str, ticks: builtins.list[int]) -> None:
        def change(stored: StoredSchedule, runs: Mapping[str, Run]) -> tuple[NewSchedule, None]:
            state = observe(stored.state, runs)
            buffer = tuple(sorted({*state.buffer, *ticks}))
            if len(buffer) > BUFFER_MAX:
                wanted = (
                    f"{len(state.buffer):,} ticks wait already, and {BUFFER_MAX:,} may; try again when they have run"
                )
                raise InvalidArgumentError(where, "start", len(ticks), wanted)
            new = replace(stored, state=replace(state, buffer=buffer, looks=0))
            return NewSchedule(new, first_look(name, new), []), None

        await change_schedule(self._access.store, name, change, nonce=self._client.nonce)

    async def delete(self, name: str) -> None:
        """Delete a schedule; its runs stay. One that the code declares comes back when a worker starts: remove it there
        first, or pause it.

        Raises:
            ScheduleNotFoundError: there is none of this name.
        """
        name, store = _known("engine.schedules.delete", name), self._access.store
        while True:
            row = await find_row(store, name)
            gone = ScheduleChange(name=name, revision=row.revision, next_revision=0, data=None)
            if (await store.change_schedules([gone]))[0] is Outcome.COMMITTED:
                return

    # -- Looking -----------------------------------------------------------------------------------------------

    async def get(self, name: str) -> Schedule:
        """A schedule: its definition, when it fires next, its last outcomes, and what stands in its way.

        Raises:
            ScheduleNotFoundError: there is none of this name.
        """
        name = _known("engine.schedules.get", name)
        return (await self._infos([await find_row(self._access.store, name)]))[0]

    async def list(self, *, after: str = "", limit: int = 100) -> builtins.list[Schedule]:
        """Schedules by name, those behind `after`, the last name of the page before."""
        where = "engine.schedules.list"
        given.whole(where, "limit", limit, most=PAGE_SIZE_MAX)
        after = given.text(where, "after", after, like="digest", least=0)
        return await self._infos(await self._access.store.list_schedules(after=after, limit=limit))

    async def _infos(self, rows: Sequence[ScheduleRow]) -> builtins.list[Schedule]:
        store = self._access.store
        found: dict[str, StoredSchedule | ValueError] = {}
        for row in rows:
            try:
                found[row.name] = schedule_in(row.data)
            except ValueError as error:
                found[row.name] = error
        sound = {name: stored for name, stored in found.items() if isinstance(stored, StoredSchedule)}
        ids = [run.run_id for stored in sound.values() for run in stored.state.open]
        runs = await store.find_runs(ids) if ids else {}
        workers = await store.list_workers(with_runs=False) if sound else []
        definitions = {key for worker in workers if worker.is_live for key in worker.definitions}
        now = store.now()
        return [
            info_of(name, stored, now, runs, definitions, self._client.shown.hide)
            if isinstance(stored, StoredSchedule)
            else damaged_info(name, str(stored))
            for name, stored in found.items()
        ]

    def _ring(self) -> None:
        """Let the scheduler of this process look soon."""
        self._client.ring_service(SCHEDULER)


def _known(where: str, name: object) -> str:
    return given.text(where, "name", name, like="digest")
