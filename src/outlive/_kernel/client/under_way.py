"""The work under way in a run now: its steps, the tasks of programs outside, and its replay.

The worker of this process is asked directly. Of a run that another process moves, this reads what its worker has
written beside its session, which is what has lasted for some seconds (`_kernel/runtime/reporter.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.shown import Shown
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.journal.redaction import HIDDEN, black_out
from outlive._kernel.model import Payload, Run, RunFilter, RunStatus, WaitKind
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.remote import remote_step_of
from outlive._kernel.model.under_way import (
    NOTHING,
    Report,
    StepNote,
    StepUnderWay,
    cell_of,
    replay_shown,
    report_in,
    step_of,
    steps_shown,
)
from outlive._kernel.model.worker import name_in
from outlive.errors import OutliveError

TASKS_MAX = 100
"""Tasks that are looked for: for one run, and for what its tree waits for."""


class UnderWay:
    """Tells what runs now."""

    def __init__(self, access: Access, shown: Shown) -> None:
        self._access = access
        self._shown = shown

    async def steps(self, run: Run, *, arguments: bool) -> list[StepUnderWay]:
        """The steps of a run that are under way, the oldest first; for a root, the steps of its whole tree."""
        root = await self._access.root_of(run)
        report = await self._report_of(root)
        found = await self._steps_in(report, run, root, arguments=arguments)
        found += [await self._step_of_task(task, arguments=arguments) for task in await self._tasks_of(run, root)]
        return sorted(found, key=lambda step: step.since)

    async def sentence(self, run: Run, root: Run, *, now_at: int) -> str:
        """A sentence about the work under way in a tree that a worker owns, as the reason why it is where it is: `in
        step charge(order=7), attempt 2 of 5, for 28 min on w1`. Empty if nothing is known."""
        report = await self._report_of(root)
        if report.replays:
            return f"{replay_shown(report.replays[0])}, by worker {name_in(root.owner)}"
        steps = await self._steps_in(report, run, root, arguments=True)
        unnamed = 0 if run.number else report.unnamed.get(root.id, 0)
        return f"in {steps_shown(steps, instant_of(now_at), run_id=run.id, unnamed=unnamed)}" if steps else ""

    async def _report_of(self, root: Run) -> Report:
        worker = self._access.worker
        own = worker.under_way(root.id) if worker is not None else None
        if own is not None:
            return own
        if not root.owner:
            return NOTHING
        return report_in(await self._access.store.read_cell(cell_of(root.owner))).of(root.id)

    async def _steps_in(self, report: Report, run: Run, root: Run, *, arguments: bool) -> list[StepUnderWay]:
        notes = [note for note in report.steps if run.number in (0, note.run)]
        secrets: set[str] | None = set()
        if any(note.failure for note in notes):
            secrets = await self._shown.secrets_of(root.id)
        return [await self._step(note, root, arguments=arguments, secrets=secrets) for note in notes]

    async def _step(self, note: StepNote, root: Run, *, arguments: bool, secrets: set[str] | None) -> StepUnderWay:
        step = step_of(
            note,
            session=root.owner,
            progress=await self._plain(note.progress),
            arguments=await self._plain(note.arguments) if arguments else None,
        )
        if secrets and step.last_failure:
            return msgspec.structs.replace(step, last_failure=black_out(step.last_failure, secrets))
        return step if secrets is not None else msgspec.structs.replace(step, last_failure=HIDDEN)

    async def _plain(self, payload: Payload | None) -> Any:
        """A value as plain JSON; None if it cannot be read here."""
        if payload is None:
            return None
        try:
            stored = msgspec.json.decode(await self._access.unpack(payload))
        except OutliveError:
            return None
        return self._shown.plain(stored)

    # -- Tasks of remote steps ---------------------------------------------------------------------------------------

    async def _tasks_of(self, run: Run, root: Run) -> list[Run]:
        """The tasks that programs outside work on for a run, and, for a root that waits, for its tree."""
        store = self._access.store
        wanted = RunFilter(parent_id=run.id, statuses=(RunStatus.RUNNING,))
        found = {task.id: task for task in await store.list_runs(wanted, limit=TASKS_MAX)}
        if run.number == 0:
            names = [wait.name for wait in root.waits if wait.kind is WaitKind.CHILD and wait.name not in found]
            found |= await store.find_runs(names[:TASKS_MAX]) if names else {}
        return [task for task in found.values() if remote_step_of(task.workflow) and task.owner]

    async def _step_of_task(self, task: Run, *, arguments: bool) -> StepUnderWay:
        # A claim sets when the run was last due, and a heartbeat with progress does not.
        since_at = task.wake_at or task.updated_at
        return StepUnderWay(
            run_id=task.parent_id or task.id,
            call=task.id,
            name=remote_step_of(task.workflow),
            attempt=task.epoch,
            attempts_max=None,
            since=instant_of(since_at),
            worker=name_in(task.owner),
            heartbeat_at=instant_of(task.updated_at) if task.updated_at > since_at else None,
            progress=await self._plain(task.published),
            arguments=await self._input_of(task) if arguments else None,
            task=task.id,
        )

    async def _input_of(self, task: Run) -> Mapping[str, Any] | None:
        created = (await self._access.events(task))[0]
        value = await self._plain(created.input) if isinstance(created, RunCreated) else None
        return {"input": value[0]} if isinstance(value, list) and value else None
