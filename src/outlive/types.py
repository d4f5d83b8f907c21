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
    from outlive._define.intervention import Refusal
    from outlive._define.remote import RemoteStep
    from outlive._define.resources import Resource
    from outlive._define.saga import SagaBlock
    from outlive._define.step import Step
    from outlive._define.workflow import Workflow
    from outlive._model import Recovery
    from outlive._model.approval import Approval, ApprovalNotice
    from outlive._model.published import REMOVED
    from outlive._model.queue import QueueLimits, RateTier
    from outlive._model.schedule import ScheduleSpec
    from outlive._model.trigger import RefusedStart, Sent, StartedRun, TriggerInfo
    from outlive._model.under_way import StepUnderWay
    from outlive._model.why import Why
    from outlive._model.worker import WorkerOptions
    from outlive._store.handle import SyncTx, Tx
    from outlive._values.approval import ApprovalRequest, DecisionLink, NewLink
    from outlive._values.audit import AuditCheck, AuditEntry
    from outlive._values.batch import BatchInfo, BatchItem, ItemFailure
    from outlive._values.count import Count
    from outlive._values.dead_letter import DeadLetter
    from outlive._values.event import Event
    from outlive._values.failure import Failure
    from outlive._values.flow import Flow, FlowDraft, FlowRevision
    from outlive._values.key import ApiKey, NewKey
    from outlive._values.outcome import RunOutcome
    from outlive._values.purge import Purge
    from outlive._values.queue import Holder, QueueState, WaitingKey
    from outlive._values.run import Run, Wait
    from outlive._values.schedule import Schedule, ScheduledRun
    from outlive._values.sink import Sink
    from outlive._values.task import Task, TaskNotice
    from outlive._values.worker import Worker
    from outlive._values.workflow import WorkflowInfo
    from outlive.client.batch import Batch
    from outlive.client.bulk_operations import BulkOperation, BulkProgress
    from outlive.client.finding import Page
    from outlive.client.flows.verbs import StoredFlow
    from outlive.client.handle import RunHandle
    from outlive.client.quotas import Quota, Usage
    from outlive.client.recovery import Incomplete
    from outlive.client.streams import StreamItem
    from outlive.engine.any_engine import AnyEngine, SyncBatch, SyncBulkOperation, SyncEngine, SyncRunHandle
    from outlive.engine.health import Health
    from outlive.errors.advice import Advice

__all__ = [
    "REMOVED",
    "Advice",
    "AnyEngine",
    "ApiKey",
    "Approval",
    "ApprovalNotice",
    "ApprovalRequest",
    "Ask",
    "AuditCheck",
    "AuditEntry",
    "Batch",
    "BatchInfo",
    "BatchItem",
    "BulkOperation",
    "BulkProgress",
    "Count",
    "DeadLetter",
    "DecisionLink",
    "Event",
    "Failure",
    "Flow",
    "FlowDraft",
    "FlowRevision",
    "Health",
    "Holder",
    "Incomplete",
    "ItemFailure",
    "NewKey",
    "NewLink",
    "Page",
    "Purge",
    "QueueLimits",
    "QueueState",
    "Quota",
    "RateTier",
    "Recovery",
    "Refusal",
    "RefusedStart",
    "RemoteStep",
    "Resource",
    "Run",
    "RunContext",
    "RunHandle",
    "RunOutcome",
    "SagaBlock",
    "Schedule",
    "ScheduleSpec",
    "ScheduledRun",
    "Sent",
    "Sink",
    "StartedRun",
    "Step",
    "StepContext",
    "StepUnderWay",
    "StoredFlow",
    "StreamItem",
    "SyncBatch",
    "SyncBulkOperation",
    "SyncEngine",
    "SyncRunHandle",
    "SyncTx",
    "Task",
    "TaskNotice",
    "TriggerInfo",
    "Tx",
    "Usage",
    "Wait",
    "WaitingKey",
    "Why",
    "Worker",
    "WorkerOptions",
    "Workflow",
    "WorkflowInfo",
]

_HOMES = {
    "Advice": "outlive.errors.advice",
    "AnyEngine": "outlive.engine.any_engine",
    "ApiKey": "outlive._values.key",
    "Approval": "outlive._model.approval",
    "ApprovalNotice": "outlive._model.approval",
    "ApprovalRequest": "outlive._values.approval",
    "Ask": "outlive._define.asks",
    "AuditCheck": "outlive._values.audit",
    "AuditEntry": "outlive._values.audit",
    "Batch": "outlive.client.batch",
    "BatchInfo": "outlive._values.batch",
    "BatchItem": "outlive._values.batch",
    "BulkOperation": "outlive.client.bulk_operations",
    "BulkProgress": "outlive.client.bulk_operations",
    "Count": "outlive._values.count",
    "DeadLetter": "outlive._values.dead_letter",
    "DecisionLink": "outlive._values.approval",
    "Event": "outlive._values.event",
    "Failure": "outlive._values.failure",
    "Flow": "outlive._values.flow",
    "FlowDraft": "outlive._values.flow",
    "FlowRevision": "outlive._values.flow",
    "Health": "outlive.engine.health",
    "Holder": "outlive._values.queue",
    "Incomplete": "outlive.client.recovery",
    "ItemFailure": "outlive._values.batch",
    "NewKey": "outlive._values.key",
    "NewLink": "outlive._values.approval",
    "Page": "outlive.client.finding",
    "Purge": "outlive._values.purge",
    "QueueLimits": "outlive._model.queue",
    "QueueState": "outlive._values.queue",
    "Quota": "outlive.client.quotas",
    "REMOVED": "outlive._model.published",
    "RateTier": "outlive._model.queue",
    "Recovery": "outlive._model",
    "Refusal": "outlive._define.intervention",
    "RefusedStart": "outlive._model.trigger",
    "RemoteStep": "outlive._define.remote",
    "Resource": "outlive._define.resources",
    "Run": "outlive._values.run",
    "RunContext": "outlive._define.in_run",
    "RunHandle": "outlive.client.handle",
    "RunOutcome": "outlive._values.outcome",
    "SagaBlock": "outlive._define.saga",
    "Schedule": "outlive._values.schedule",
    "ScheduleSpec": "outlive._model.schedule",
    "ScheduledRun": "outlive._values.schedule",
    "Sent": "outlive._model.trigger",
    "Sink": "outlive._values.sink",
    "StartedRun": "outlive._model.trigger",
    "Step": "outlive._define.step",
    "StepContext": "outlive._define.in_step",
    "StepUnderWay": "outlive._model.under_way",
    "StoredFlow": "outlive.client.flows.verbs",
    "StreamItem": "outlive.client.streams",
    "SyncBatch": "outlive.engine.any_engine",
    "SyncBulkOperation": "outlive.engine.any_engine",
    "SyncEngine": "outlive.engine.any_engine",
    "SyncRunHandle": "outlive.engine.any_engine",
    "SyncTx": "outlive._store.handle",
    "Task": "outlive._values.task",
    "TaskNotice": "outlive._values.task",
    "TriggerInfo": "outlive._model.trigger",
    "Tx": "outlive._store.handle",
    "Usage": "outlive.client.quotas",
    "Wait": "outlive._values.run",
    "WaitingKey": "outlive._values.queue",
    "Why": "outlive._model.why",
    "Worker": "outlive._values.worker",
    "WorkerOptions": "outlive._model.worker",
    "Workflow": "outlive._define.workflow",
    "WorkflowInfo": "outlive._values.workflow",
}

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__]
