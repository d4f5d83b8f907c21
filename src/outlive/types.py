"""The values, handles, contexts and options that programs hold: for annotations, and to look up what each has.

    async def report(run: outlive.types.Run) -> str: ...

Values are frozen, and the same from an engine, from `outlive.connect`, over HTTP and from `outlive ... --json`.
"""

from typing import TYPE_CHECKING

from outlive._on_demand import on_demand

if TYPE_CHECKING:
    from outlive._define.asks import Ask
    from outlive._define.in_run import RunContext
    from outlive._define.in_step import StepContext
    from outlive._define.remote import RemoteStep
    from outlive._define.resources import Resource
    from outlive._define.saga import SagaBlock
    from outlive._define.step import Step
    from outlive._define.workflow import Workflow
    from outlive._model import Recovery
    from outlive._model.approval import Approval, ApprovalNotice
    from outlive._model.published import REMOVED
    from outlive._model.queue import QueueLimits, RateTier
    from outlive._model.schedule import Schedule
    from outlive._model.worker import WorkerOptions
    from outlive._store.handle import SyncTx, Tx
    from outlive._values.batch import BatchItem
    from outlive._values.count import Count
    from outlive._values.event import Event
    from outlive._values.failure import Failure
    from outlive._values.purge import Purge
    from outlive._values.queue import Holder, QueueInfo, WaitingKey
    from outlive._values.run import Run, Wait
    from outlive._values.schedule import ScheduledRun, ScheduleInfo
    from outlive._values.worker import Worker
    from outlive.client.batch import Batch
    from outlive.client.handle import RunHandle
    from outlive.client.streams import StreamItem
    from outlive.engine.any_engine import AnyEngine
    from outlive.engine.health import Health

__all__ = [
    "REMOVED",
    "AnyEngine",
    "Approval",
    "ApprovalNotice",
    "Ask",
    "Batch",
    "BatchItem",
    "Count",
    "Event",
    "Failure",
    "Health",
    "Holder",
    "Purge",
    "QueueInfo",
    "QueueLimits",
    "RateTier",
    "Recovery",
    "RemoteStep",
    "Resource",
    "Run",
    "RunContext",
    "RunHandle",
    "SagaBlock",
    "Schedule",
    "ScheduleInfo",
    "ScheduledRun",
    "Step",
    "StepContext",
    "StreamItem",
    "SyncTx",
    "Tx",
    "Wait",
    "WaitingKey",
    "Worker",
    "WorkerOptions",
    "Workflow",
]

_HOMES = {
    "AnyEngine": "outlive.engine.any_engine",
    "Approval": "outlive._model.approval",
    "ApprovalNotice": "outlive._model.approval",
    "Ask": "outlive._define.asks",
    "Batch": "outlive.client.batch",
    "BatchItem": "outlive._values.batch",
    "Count": "outlive._values.count",
    "Event": "outlive._values.event",
    "Failure": "outlive._values.failure",
    "Health": "outlive.engine.health",
    "Holder": "outlive._values.queue",
    "Purge": "outlive._values.purge",
    "QueueInfo": "outlive._values.queue",
    "QueueLimits": "outlive._model.queue",
    "RateTier": "outlive._model.queue",
    "REMOVED": "outlive._model.published",
    "Recovery": "outlive._model",
    "RemoteStep": "outlive._define.remote",
    "Resource": "outlive._define.resources",
    "Run": "outlive._values.run",
    "RunContext": "outlive._define.in_run",
    "RunHandle": "outlive.client.handle",
    "SagaBlock": "outlive._define.saga",
    "Schedule": "outlive._model.schedule",
    "ScheduleInfo": "outlive._values.schedule",
    "ScheduledRun": "outlive._values.schedule",
    "Step": "outlive._define.step",
    "StepContext": "outlive._define.in_step",
    "StreamItem": "outlive.client.streams",
    "SyncTx": "outlive._store.handle",
    "Tx": "outlive._store.handle",
    "Wait": "outlive._values.run",
    "WaitingKey": "outlive._values.queue",
    "Worker": "outlive._values.worker",
    "WorkerOptions": "outlive._model.worker",
    "Workflow": "outlive._define.workflow",
}

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__]
