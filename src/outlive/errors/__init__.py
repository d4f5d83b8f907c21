"""The errors that a program may want to catch, in a small tree.

All of them derive from `OutliveError`. There are three endings, and none stands in for another:

- A mistake of ours is an `assert`, or `InternalError`: please report it.
- What the world refused is an `OutliveError` with a `code`, the facts as attributes and a message that says what to do
  next.
- What a workflow or a step failed with is a value in the journal. It reaches Python code again as the step's own
  exception or as `StepFailedError`, and reaches the waiting client as `RunFailedError`.

What is raised may be of a class below one of these: a queue that is not there is a `NotFoundError` whose `code` is
`queue_not_found`. Those classes are not names of their own for programs; look at `code`.

Control signals (`RunDropped`) derive from `BaseException`, so that `except Exception` in the code of users cannot
swallow them, and do not end in `Error`.
"""

from __future__ import annotations

from outlive.errors import base, flow, key, outside, program, run, step, store
from outlive.errors.base import (
    ConfigurationError,
    ConflictError,
    DamagedError,
    InternalError,
    LimitError,
    MisuseError,
    NotFoundError,
    OutliveError,
    ReplayError,
    UnfitValueError,
)
from outlive.errors.outside import (
    OutsideError,
    ServerError,
)
from outlive.errors.program import (
    ArgumentTypeError,
    DefinitionError,
    EngineClosedError,
    InvalidArgumentError,
    InvalidSettingsError,
    WrongArgumentsError,
)
from outlive.errors.run import (
    ApprovalExpiredError,
    AskFailedError,
    PromiseFailedError,
    ResultTimeoutError,
    RunCancelledError,
    RunExistsError,
    RunFailedError,
    RunFinishedError,
    RunNotFoundError,
    RunParkedError,
    RunTimedOutError,
    StandstillError,
)
from outlive.errors.step import (
    CircuitOpenError,
    RateLimitedError,
    ResourceError,
    StepFailedError,
    StepInterruptedError,
    StepSkippedError,
    StepTimeoutError,
    ToleranceExceededError,
    UndoFailedError,
)
from outlive.errors.store import (
    CommitUnknownError,
    PayloadTooLargeError,
    StoreError,
    StoreUnavailableError,
    UnreadableError,
    UnserialisableError,
)

__all__ = [
    "ApprovalExpiredError",
    "ArgumentTypeError",
    "AskFailedError",
    "CircuitOpenError",
    "CommitUnknownError",
    "ConfigurationError",
    "ConflictError",
    "DamagedError",
    "DefinitionError",
    "EngineClosedError",
    "InternalError",
    "InvalidArgumentError",
    "InvalidSettingsError",
    "LimitError",
    "MisuseError",
    "NotFoundError",
    "OutliveError",
    "OutsideError",
    "PayloadTooLargeError",
    "PromiseFailedError",
    "RateLimitedError",
    "ReplayError",
    "ResourceError",
    "ResultTimeoutError",
    "RunCancelledError",
    "RunExistsError",
    "RunFailedError",
    "RunFinishedError",
    "RunNotFoundError",
    "RunParkedError",
    "RunTimedOutError",
    "ServerError",
    "StandstillError",
    "StepFailedError",
    "StepInterruptedError",
    "StepSkippedError",
    "StepTimeoutError",
    "StoreError",
    "StoreUnavailableError",
    "ToleranceExceededError",
    "UndoFailedError",
    "UnfitValueError",
    "UnreadableError",
    "UnserialisableError",
    "WrongArgumentsError",
]

# Journals name a class by its module: which file it stands in, and whether programs may name it, can change.
for _room in (base, flow, key, outside, program, run, step, store):
    for _it in vars(_room).values():
        if isinstance(_it, type) and issubclass(_it, BaseException) and _it.__module__ == _room.__name__:
            _it.__module__ = __name__


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__]
