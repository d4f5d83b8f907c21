"""Workers: which processes work on the store."""

from __future__ import annotations

from msgspec import Struct

from outlive._kernel.values.step_info import StepInfo
from outlive._kernel.values.worker import Worker
from outlive.http.operation import Call, operation


class WorkersList(Struct, frozen=True):
    """Workers."""

    items: list[Worker]


class StepsList(Struct, frozen=True):
    """Steps of workers."""

    items: list[StepInfo]


@operation("workers.list", "GET", "/workers", scope="viewer")
async def list_workers(call: Call) -> WorkersList:
    """Sessions of workers that are live or still own runs. Others take over what those own that are gone."""
    return WorkersList(await call.engine.workers.list())


@operation("workers.steps", "GET", "/workers/steps", scope="viewer")
async def list_steps(call: Call) -> StepsList:
    """The steps that live workers run, by name: what each takes and gives, as workers have said.

    Steps of Python and remote steps; a remote step has the name of its queue in front, as in a document."""
    return StepsList(await call.engine.workers.steps())
