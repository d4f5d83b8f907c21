"""`engine.workers`: which processes work on a store."""

from __future__ import annotations

import builtins
from datetime import timedelta

from outlive._kernel.client.access import Access
from outlive._kernel.client.cell_reader import CellReader
from outlive._kernel.model.instant import instant_of
from outlive._kernel.model.remote import queue_and_step, use_of
from outlive._kernel.model.worker import TAKES_MARK, taken_queues
from outlive._kernel.model.worker_steps import (
    REMOTE_STEPS_CELLS,
    STEPS_CELL,
    StepShape,
    is_steps_mark,
    remote_shapes_in,
    shapes_in,
    steps_in,
)
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive._kernel.values.step_info import StepInfo
from outlive._kernel.values.worker import Worker

NO_LEASE = "none"
INTERNAL = "outlive."
"""How the names of workflows begin that Outlive adds to those of users."""
QUEUES_LISTED_MAX = 256
"""Queues whose remote steps are listed."""
_UNKNOWN = StepShape()


class Workers:
    """The workers of a store."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._described = CellReader(STEPS_CELL, shapes_in)

    async def list(self) -> builtins.list[Worker]:
        """Sessions of workers that are live or still own runs. Others take over what those own that are gone."""
        store = self._access.store
        found = await store.list_workers()
        return [worker_of(stored, store.now()) for stored in found]

    async def steps(self) -> builtins.list[StepInfo]:
        """The steps that live workers run, by name: what each takes and gives, as workers have said.

        Steps of Python and remote steps; a remote step has the name of its queue in front, as in a document."""
        store = self._access.store
        count: dict[str, int] = {}
        for worker in await store.list_workers(with_runs=False):
            for name in steps_in(worker.definitions) if worker.is_live else ():
                count[name] = count.get(name, 0) + 1
        shapes: dict[str, StepShape] = {**await self._described.read(store)}
        now_at = store.now()
        for cell in await cells_of_queues(store):
            for step, shape in remote_shapes_in(await store.read_cell(cell)).items():
                name = use_of(cell.removeprefix(REMOTE_STEPS_CELLS), step)
                shapes[name] = shape
                if shape.until_at > now_at:
                    count.setdefault(name, 1)  # Its worker is between two tasks.
        return [_step_of(name, shapes.get(name, _UNKNOWN), workers) for name, workers in sorted(count.items())]


async def cells_of_queues(store: Store) -> builtins.list[str]:
    """The names of the cells with the steps of remote workers."""
    names = await store.examiner.list_cells(after=REMOTE_STEPS_CELLS, limit=QUEUES_LISTED_MAX)
    return [name for name in names if name.startswith(REMOTE_STEPS_CELLS)]


def _step_of(name: str, shape: StepShape, workers: int) -> StepInfo:
    return StepInfo(
        name=name,
        queue=queue_and_step(name)[0],
        arguments=shape.arguments or None,
        result=shape.result or None,
        workers=workers,
    )


def worker_of(stored: WorkerInfo, now_at: int) -> Worker:
    """A worker as users see it."""
    has_end = stored.lease != NO_LEASE
    return Worker(
        id=stored.id,
        name=stored.name,
        status="live" if stored.is_live else "gone",
        started_at=instant_of(stored.started_at),
        expires_at=instant_of(stored.expires_at) if has_end else None,
        expires_in=timedelta(microseconds=stored.expires_at - now_at) if has_end else None,
        lease=stored.lease or "store",
        process=stored.process,
        runs=stored.runs,
        definitions=tuple(name for name in stored.definitions if not name.startswith(INTERNAL)),
        built_in=tuple(name for name in stored.definitions if name.startswith(INTERNAL) and not _is_mark(name)),
        steps=tuple(steps_in(stored.definitions)),
        queues=taken_queues(stored.definitions),
        fault=stored.fault,
    )


def _is_mark(name: str) -> bool:
    """Whether an entry among the definitions of a worker says something else of it."""
    return is_steps_mark(name) or name.startswith(TAKES_MARK)
