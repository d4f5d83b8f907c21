"""All facets, in two classes: what every store keeps, and what only a store that processes share can keep."""

from outlive_conformance.suite.answers import AnswersConformance
from outlive_conformance.suite.audit import AuditConformance
from outlive_conformance.suite.blobs import BlobsConformance
from outlive_conformance.suite.cells import CellsConformance
from outlive_conformance.suite.checkpoint_processes import CheckpointProcessesConformance
from outlive_conformance.suite.checkpoints import CheckpointsConformance
from outlive_conformance.suite.claims import ClaimsConformance
from outlive_conformance.suite.copies import CopiesConformance
from outlive_conformance.suite.deleting import DeletingConformance
from outlive_conformance.suite.eager import EagerConformance
from outlive_conformance.suite.examine import ExamineConformance
from outlive_conformance.suite.finding import FindingConformance
from outlive_conformance.suite.forgetting import ForgettingConformance
from outlive_conformance.suite.inbox import InboxConformance
from outlive_conformance.suite.items import ItemsConformance
from outlive_conformance.suite.journal import JournalConformance
from outlive_conformance.suite.messages import MessagesConformance
from outlive_conformance.suite.migrations import MigrationsConformance
from outlive_conformance.suite.orphans import OrphansConformance
from outlive_conformance.suite.processes import ProcessesConformance
from outlive_conformance.suite.queries import QueriesConformance
from outlive_conformance.suite.queues import QueuesConformance
from outlive_conformance.suite.reopening import ReopeningConformance
from outlive_conformance.suite.requests import RequestsConformance
from outlive_conformance.suite.rows import RowsConformance
from outlive_conformance.suite.runs import RunsConformance
from outlive_conformance.suite.schedules import SchedulesConformance
from outlive_conformance.suite.starts import StartsConformance
from outlive_conformance.suite.streams import StreamsConformance
from outlive_conformance.suite.successors import SuccessorsConformance
from outlive_conformance.suite.transactions import TransactionsConformance
from outlive_conformance.suite.waits import WaitsConformance
from outlive_conformance.suite.watches import WatchesConformance
from outlive_conformance.suite.workers import WorkersConformance


class LocalStoreConformance(
    RequestsConformance,
    RunsConformance,
    StartsConformance,
    SuccessorsConformance,
    ReopeningConformance,
    ForgettingConformance,
    DeletingConformance,
    JournalConformance,
    RowsConformance,
    BlobsConformance,
    CellsConformance,
    ItemsConformance,
    StreamsConformance,
    InboxConformance,
    AnswersConformance,
    MessagesConformance,
    WaitsConformance,
    WatchesConformance,
    ClaimsConformance,
    OrphansConformance,
    WorkersConformance,
    QueriesConformance,
    QueuesConformance,
    EagerConformance,
    FindingConformance,
    TransactionsConformance,
    MigrationsConformance,
    ExamineConformance,
    CopiesConformance,
    SchedulesConformance,
    AuditConformance,
    CheckpointsConformance,
):
    """The contract of a store that lives in one process."""


class StoreConformance(LocalStoreConformance, ProcessesConformance, CheckpointProcessesConformance):
    """The whole contract; a class that derives from it and has a fixture `factory` runs it."""
