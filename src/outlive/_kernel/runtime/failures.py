"""Reads an exception of a step: how it is described, and whether another attempt may help.

A step in a process of its own raises there, and only data comes back. So the process sends the names of the classes of
the exception, and the policy is applied here.
"""

from __future__ import annotations

from collections.abc import Iterable

from outlive._kernel.journal.failure import class_name, failure_of
from outlive._kernel.model import Failure
from outlive.errors import (
    CommitUnknownError,
    EngineClosedError,
    OutliveError,
    ResourceError,
    StepTimeoutError,
    StoreUnavailableError,
)
from outlive.errors.outside import HttpStatusError, UnreachableError
from outlive.errors.run import InboxFullError
from outlive.errors.step import ProcessDiedError
from outlive.errors.store import TransactionOverError
from outlive.telemetry import log

_PASSING = (
    StepTimeoutError,
    ProcessDiedError,
    TransactionOverError,
    StoreUnavailableError,
    CommitUnknownError,
    EngineClosedError,
    InboxFullError,
    UnreachableError,
    HttpStatusError,
)
"""Errors of Outlive that need not happen again in the next attempt."""


class StepRaised(Exception):
    """An exception that a step raised in another process."""

    def __init__(self, failure: Failure, classes: list[str], *, is_final: bool, is_unstorable: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.is_unstorable = is_unstorable
        """Whether it returned, and what it returned cannot be stored."""
        self._classes = frozenset(classes)
        self._is_final = is_final

    def is_retryable(self, on: Iterable[type[BaseException]], not_on: Iterable[type[BaseException]] = ()) -> bool:
        """See the function of this name."""
        return not self._is_final and self._is_one_of(on) and not self._is_one_of(not_on)

    def _is_one_of(self, classes: Iterable[type[BaseException]]) -> bool:
        return any(class_name(cls) in self._classes for cls in classes)


def is_retryable(
    error: BaseException, on: tuple[type[BaseException], ...], not_on: tuple[type[BaseException], ...] = ()
) -> bool:
    """Whether another attempt may help, by a policy that names the classes for which it may and may not."""
    if isinstance(error, StepRaised):
        return error.is_retryable(on, not_on)
    while isinstance(error, ResourceError) and error.__cause__ is not None:
        error = error.__cause__
    return isinstance(error, on) and not isinstance(error, not_on) and not is_final(error)


def is_final(error: BaseException) -> bool:
    """Whether it is an error of Outlive about the values of a step: another attempt would meet it again."""
    return isinstance(error, OutliveError) and not isinstance(error, _PASSING)


def describe(error: BaseException) -> Failure:
    """The failure, even if the exception raises when it is described."""
    if isinstance(error, StepRaised):
        return error.failure
    try:
        return failure_of(error)
    except Exception:  # An exception that cannot be described is a failure all the same.
        log.exception("what a step raised could not be described")
        return Failure(type=class_name(type(error)), message="it could not be described")
