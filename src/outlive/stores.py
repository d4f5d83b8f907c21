"""For people who write a store: the contract, its values, and rules that need not be written again.

    import outlive
    from outlive.stores import Store, register_store

    class MyStore(Store): ...

    register_store("mine", lambda rest, clock: MyStore(rest, clock=clock))
    engine = outlive.Engine("mine:orders")

The contract may change with every release before 1.0. The package `outlive-conformance` of the same release has a test
for every sentence of it. Programs that only use Outlive need nothing from here.
"""

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.payload import Blob
from outlive._kernel.model.run import GroupField
from outlive._kernel.store.audit import Action, AuditFilter, AuditRow
from outlive._kernel.store.contract import (
    Answer,
    Beat,
    CellChange,
    Change,
    Claim,
    Claims,
    Declared,
    Delivery,
    InboxMessage,
    ItemResult,
    Message,
    MessageRefusal,
    Outcome,
    QueueMeasure,
    Store,
    Transaction,
    Watch,
    WorkerInfo,
)
from outlive._kernel.store.deleting import References
from outlive._kernel.store.examine import Examiner, Repair, TreeRows
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive._kernel.store.memory.state import Stream, Tree
from outlive._kernel.store.schedules import DueSchedules, ScheduleChange, ScheduleRow
from outlive._kernel.store.streams import Appended, StreamAppend, StreamChunk, StreamLimits, StreamState
from outlive._kernel.store.tables.handle import TaskHandle
from outlive._kernel.store.tables.statement import StatementResult, run
from outlive.engine.url import register_store
from outlive.errors.store import (
    NotADatabaseError,
    SchemaTooNewError,
    SchemaTooOldError,
    StoreWentBackError,
    TransactionOverError,
)

run_statement = run

__all__ = [
    "MICROSECONDS",
    "Action",
    "Answer",
    "Appended",
    "AuditFilter",
    "AuditRow",
    "Beat",
    "Blob",
    "CellChange",
    "Change",
    "CheckpointRow",
    "Claim",
    "Claims",
    "Declared",
    "Delivery",
    "DueSchedules",
    "Examiner",
    "GroupField",
    "InboxMessage",
    "ItemResult",
    "MemoryState",
    "MemoryStore",
    "Message",
    "MessageRefusal",
    "NotADatabaseError",
    "Outcome",
    "QueueMeasure",
    "References",
    "Repair",
    "Row",
    "Run",
    "RunFilter",
    "ScheduleChange",
    "ScheduleRow",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "StatementResult",
    "Store",
    "StoreWentBackError",
    "Stream",
    "StreamAppend",
    "StreamChunk",
    "StreamLimits",
    "StreamState",
    "TaskHandle",
    "Transaction",
    "TransactionOverError",
    "Tree",
    "TreeRows",
    "Watch",
    "WorkerInfo",
    "register_store",
    "run_statement",
]
