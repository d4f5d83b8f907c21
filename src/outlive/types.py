"""The values, handles, contexts and options that programs hold: for annotations, and to look up what each has.

    async def report(run: outlive.types.Run) -> str: ...

Values are frozen, and the same from an engine, from `outlive.connect`, over HTTP and from `outlive ... --json`.
"""

from typing import TYPE_CHECKING

from outlive._on_demand import on_demand

if TYPE_CHECKING:
    from outlive._features.batches.batch import Batch
    from outlive._features.batches.values import BatchInfo, BatchItem, ItemFailure
    from outlive._features.bulk.verbs import BulkOperation, BulkProgress
    from outlive._features.events.values import Sink
    from outlive._features.flows.values import Flow, FlowDraft, FlowRevision
    from outlive._features.flows.verbs import StoredFlow
    from outlive._features.namespaces.quotas import Quota, Usage
    from outlive._features.retention.values import Purge
    from outlive._features.schedules.schedule import ScheduleSpec
    from outlive._features.schedules.values import Schedule, ScheduledRun
    from outlive._features.security.audit_values import AuditCheck, AuditEntry
    from outlive._features.security.key_values import ApiKey, NewKey
    from outlive._features.tasks.remote_step import RemoteStep
    from outlive._features.tasks.values import Task, TaskNotice
    from outlive._kernel.client.finding import Page
    from outlive._kernel.client.handle import RunHandle
    from outlive._kernel.client.recovery import Incomplete
    from outlive._kernel.client.streams import StreamItem
    from outlive._kernel.define.asks import Ask
    from outlive._kernel.define.in_run import RunContext
    from outlive._kernel.define.in_step import StepContext
    from outlive._kernel.define.intervention import Refusal
    from outlive._kernel.define.resources import Resource
    from outlive._kernel.define.saga import SagaBlock
    from outlive._kernel.define.step import Step
    from outlive._kernel.define.workflow import Workflow
    from outlive._kernel.model import Recovery
    from outlive._kernel.model.approval import Approval, ApprovalNotice
    from outlive._kernel.model.published import REMOVED
    from outlive._kernel.model.trigger import RefusedStart, Sent, StartedRun, TriggerInfo
    from outlive._kernel.model.under_way import StepUnderWay
    from outlive._kernel.model.why import Why
    from outlive._kernel.model.worker import WorkerOptions
    from outlive._kernel.store.handle import SyncTx, Tx
    from outlive._kernel.values.approval import ApprovalRequest, DecisionLink, NewLink
    from outlive._kernel.values.count import Count
    from outlive._kernel.values.dead_letter import DeadLetter
    from outlive._kernel.values.event import Event
    from outlive._kernel.values.failure import Failure
    from outlive._kernel.values.inbox import UnreadMessage
    from outlive._kernel.values.outcome import RunOutcome
    from outlive._kernel.values.queue import Holder, QueueLimits, QueueState, RateTier, WaitingKey
    from outlive._kernel.values.run import Run, Wait
    from outlive._kernel.values.step_info import StepInfo
    from outlive._kernel.values.worker import Worker
    from outlive._kernel.values.workflow import WorkflowInfo
    from outlive.engine.any_engine import AnyEngine, SyncBatch, SyncBulkOperation, SyncEngine, SyncRunHandle
    from outlive.engine.health import Health
    from outlive.engine.work import Work, WorkDone
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
    "StepInfo",
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
    "UnreadMessage",
    "Usage",
    "Wait",
    "WaitingKey",
    "Why",
    "Work",
    "WorkDone",
    "Worker",
    "WorkerOptions",
    "Workflow",
    "WorkflowInfo",
]

_HOMES = {
    "Advice": "outlive.errors.advice",
    "AnyEngine": "outlive.engine.any_engine",
    "ApiKey": "outlive._features.security.key_values",
    "Approval": "outlive._kernel.model.approval",
    "ApprovalNotice": "outlive._kernel.model.approval",
    "ApprovalRequest": "outlive._kernel.values.approval",
    "Ask": "outlive._kernel.define.asks",
    "AuditCheck": "outlive._features.security.audit_values",
    "AuditEntry": "outlive._features.security.audit_values",
    "Batch": "outlive._features.batches.batch",
    "BatchInfo": "outlive._features.batches.values",
    "BatchItem": "outlive._features.batches.values",
    "BulkOperation": "outlive._features.bulk.verbs",
    "BulkProgress": "outlive._features.bulk.verbs",
    "Count": "outlive._kernel.values.count",
    "DeadLetter": "outlive._kernel.values.dead_letter",
    "DecisionLink": "outlive._kernel.values.approval",
    "Event": "outlive._kernel.values.event",
    "Failure": "outlive._kernel.values.failure",
    "Flow": "outlive._features.flows.values",
    "FlowDraft": "outlive._features.flows.values",
    "FlowRevision": "outlive._features.flows.values",
    "Health": "outlive.engine.health",
    "Holder": "outlive._kernel.values.queue",
    "Incomplete": "outlive._kernel.client.recovery",
    "ItemFailure": "outlive._features.batches.values",
    "NewKey": "outlive._features.security.key_values",
    "NewLink": "outlive._kernel.values.approval",
    "Page": "outlive._kernel.client.finding",
    "Purge": "outlive._features.retention.values",
    "QueueLimits": "outlive._kernel.values.queue",
    "QueueState": "outlive._kernel.values.queue",
    "Quota": "outlive._features.namespaces.quotas",
    "REMOVED": "outlive._kernel.model.published",
    "RateTier": "outlive._kernel.values.queue",
    "Recovery": "outlive._kernel.model",
    "Refusal": "outlive._kernel.define.intervention",
    "RefusedStart": "outlive._kernel.model.trigger",
    "RemoteStep": "outlive._features.tasks.remote_step",
    "Resource": "outlive._kernel.define.resources",
    "Run": "outlive._kernel.values.run",
    "RunContext": "outlive._kernel.define.in_run",
    "RunHandle": "outlive._kernel.client.handle",
    "RunOutcome": "outlive._kernel.values.outcome",
    "SagaBlock": "outlive._kernel.define.saga",
    "Schedule": "outlive._features.schedules.values",
    "ScheduleSpec": "outlive._features.schedules.schedule",
    "ScheduledRun": "outlive._features.schedules.values",
    "Sent": "outlive._kernel.model.trigger",
    "Sink": "outlive._features.events.values",
    "StartedRun": "outlive._kernel.model.trigger",
    "Step": "outlive._kernel.define.step",
    "StepContext": "outlive._kernel.define.in_step",
    "StepInfo": "outlive._kernel.values.step_info",
    "StepUnderWay": "outlive._kernel.model.under_way",
    "StoredFlow": "outlive._features.flows.verbs",
    "StreamItem": "outlive._kernel.client.streams",
    "SyncBatch": "outlive.engine.any_engine",
    "SyncBulkOperation": "outlive.engine.any_engine",
    "SyncEngine": "outlive.engine.any_engine",
    "SyncRunHandle": "outlive.engine.any_engine",
    "SyncTx": "outlive._kernel.store.handle",
    "Task": "outlive._features.tasks.values",
    "TaskNotice": "outlive._features.tasks.values",
    "TriggerInfo": "outlive._kernel.model.trigger",
    "Tx": "outlive._kernel.store.handle",
    "UnreadMessage": "outlive._kernel.values.inbox",
    "Usage": "outlive._features.namespaces.quotas",
    "Wait": "outlive._kernel.values.run",
    "WaitingKey": "outlive._kernel.values.queue",
    "Why": "outlive._kernel.model.why",
    "Work": "outlive.engine.work",
    "WorkDone": "outlive.engine.work",
    "Worker": "outlive._kernel.values.worker",
    "WorkerOptions": "outlive._kernel.model.worker",
    "Workflow": "outlive._kernel.define.workflow",
    "WorkflowInfo": "outlive._kernel.values.workflow",
}

if not TYPE_CHECKING:  # A type checker that sees it takes every misspelt name for one that may exist.
    __getattr__ = on_demand(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__]
