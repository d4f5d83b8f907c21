"""All facets, in two classes: what every store keeps, and what only a store that processes share can keep."""

from outlive.testing.conformance.answers import AnswersConformance
from outlive.testing.conformance.audit import AuditConformance
from outlive.testing.conformance.blobs import BlobsConformance
from outlive.testing.conformance.cells import CellsConformance
from outlive.testing.conformance.checkpoint_processes import CheckpointProcessesConformance
from outlive.testing.conformance.checkpoints import CheckpointsConformance
from outlive.testing.conformance.claims import ClaimsConformance
from outlive.testing.conformance.copies import CopiesConformance
from outlive.testing.conformance.deleting import DeletingConformance
from outlive.testing.conformance.eager import EagerConformance
from outlive.testing.conformance.examine import ExamineConformance
from outlive.testing.conformance.finding import FindingConformance
from outlive.testing.conformance.forgetting import ForgettingConformance
from outlive.testing.conformance.inbox import InboxConformance
from outlive.testing.conformance.items import ItemsConformance
from outlive.testing.conformance.journal import JournalConformance
from outlive.testing.conformance.mail import MailConformance
from outlive.testing.conformance.migrations import MigrationsConformance
from outlive.testing.conformance.orphans import OrphansConformance
from outlive.testing.conformance.processes import ProcessesConformance
from outlive.testing.conformance.queries import QueriesConformance
from outlive.testing.conformance.queues import QueuesConformance
from outlive.testing.conformance.reopening import ReopeningConformance
from outlive.testing.conformance.requests import RequestsConformance
from outlive.testing.conformance.rows import RowsConformance
from outlive.testing.conformance.runs import RunsConformance
from outlive.testing.conformance.schedules import SchedulesConformance
from outlive.testing.conformance.starts import StartsConformance
from outlive.testing.conformance.streams import StreamsConformance
from outlive.testing.conformance.successors import SuccessorsConformance
from outlive.testing.conformance.transactions import TransactionsConformance
from outlive.testing.conformance.waits import WaitsConformance
from outlive.testing.conformance.watches import WatchesConformance
from outlive.testing.conformance.workers import WorkersConformance


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
    MailConformance,
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
