"""Every error that Outlive raises, in one place.

One root, `OutliveError`, and three endings that never stand in for one another (style rule 11):

* our bug: an `assert`, or `InternalError`; please report it;
* the world refused: an `OutliveError` with the facts as attributes and a message that says what to do next;
* the workflow or a step failed: a value in the journal. It reaches Python code again as the step's own
  exception or as `StepFailed`, and reaches the waiting client as `RunFailed`.

Control signals (`RunDropped`) derive from `BaseException`, so that `except Exception` in user code cannot
swallow them, and do not end in `Error`.
"""

from __future__ import annotations

from outlive.errors.approval import ApprovalClosedError, ApprovalExpired, ApprovalFormError, ApprovalNotFoundError
from outlive.errors.argument import ArgumentTypeError, InvalidArgumentError
from outlive.errors.base import ConfigurationError, InternalError, OutliveError
from outlive.errors.checkpoint import CorruptCheckpointError, DuplicateCheckpointError, InvalidCheckpointError
from outlive.errors.definition import (
    DefinitionError,
    DuplicateDefinitionError,
    LocalDefinitionError,
    UnstorableTypeError,
    WorkflowNotFoundError,
    WrongArgumentsError,
)
from outlive.errors.engine import (
    EngineClosedError,
    EngineForkedError,
    MissingExtraError,
    OtherLoopError,
    SyncOnLoopError,
)
from outlive.errors.lease import LeaseUrlError, NotOwnerError
from outlive.errors.limit import CircuitOpenError, RateLimitedError
from outlive.errors.machine import (
    MachineError,
    SplitFailedError,
    StateResultError,
    UndoNotFoundError,
    UnknownStateError,
)
from outlive.errors.replay import DivergenceError, NotDurableError, NotInRunError, RunawayError, RunDropped, StuckError
from outlive.errors.run import (
    BatchFailedError,
    InboxFullError,
    InvalidRunIdError,
    ResultTimeoutError,
    RunCancelled,
    RunContinuedError,
    RunDamagedError,
    RunExistsError,
    RunFailed,
    RunFinishedError,
    RunNotFoundError,
    RunNotParkedError,
    RunParkedError,
    RunTimedOut,
    SignalTypeError,
    StandstillError,
)
from outlive.errors.step import (
    UNDO_FAILED,
    ProcessDiedError,
    SagaClosedError,
    StepFailed,
    StepInterrupted,
    StepSkipped,
    StepTimeoutError,
    ToleranceExceededError,
    UndoFailedError,
    UndoTimeoutError,
)
from outlive.errors.store import (
    CommitUnknownError,
    NotADatabaseError,
    SchemaTooNewError,
    StoreError,
    StoreMovedError,
    StoreUnavailableError,
    StoreUrlError,
    TransactionOverError,
    TransactionRefusedError,
    UnfitServerError,
)
from outlive.errors.value import (
    CorruptJournalError,
    FormatTooNewError,
    HistoryFormatError,
    HistoryTooLongError,
    PayloadTooLargeError,
    UnreadableError,
    UnserialisableError,
)

__all__ = [
    "UNDO_FAILED",
    "ApprovalClosedError",
    "ApprovalExpired",
    "ApprovalFormError",
    "ApprovalNotFoundError",
    "ArgumentTypeError",
    "BatchFailedError",
    "CircuitOpenError",
    "CommitUnknownError",
    "ConfigurationError",
    "CorruptCheckpointError",
    "CorruptJournalError",
    "DefinitionError",
    "DivergenceError",
    "DuplicateCheckpointError",
    "DuplicateDefinitionError",
    "EngineClosedError",
    "EngineForkedError",
    "FormatTooNewError",
    "HistoryFormatError",
    "HistoryTooLongError",
    "InboxFullError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidCheckpointError",
    "InvalidRunIdError",
    "LeaseUrlError",
    "LocalDefinitionError",
    "MachineError",
    "MissingExtraError",
    "NotADatabaseError",
    "NotDurableError",
    "NotInRunError",
    "NotOwnerError",
    "OtherLoopError",
    "OutliveError",
    "PayloadTooLargeError",
    "ProcessDiedError",
    "RateLimitedError",
    "ResultTimeoutError",
    "RunCancelled",
    "RunContinuedError",
    "RunDamagedError",
    "RunDropped",
    "RunExistsError",
    "RunFailed",
    "RunFinishedError",
    "RunNotFoundError",
    "RunNotParkedError",
    "RunParkedError",
    "RunTimedOut",
    "RunawayError",
    "SagaClosedError",
    "SchemaTooNewError",
    "SignalTypeError",
    "SplitFailedError",
    "StandstillError",
    "StateResultError",
    "StepFailed",
    "StepInterrupted",
    "StepSkipped",
    "StepTimeoutError",
    "StoreError",
    "StoreMovedError",
    "StoreUnavailableError",
    "StoreUrlError",
    "StuckError",
    "SyncOnLoopError",
    "ToleranceExceededError",
    "TransactionOverError",
    "TransactionRefusedError",
    "UndoFailedError",
    "UndoNotFoundError",
    "UndoTimeoutError",
    "UnfitServerError",
    "UnknownStateError",
    "UnreadableError",
    "UnserialisableError",
    "UnstorableTypeError",
    "WorkflowNotFoundError",
    "WrongArgumentsError",
]

# Journals name a class by its module, and people look for it here: where in this folder it stands is nobody's business.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
