"""Batches as people and programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, Literal, TypeVar

import msgspec

from outlive._kernel.values.failure import Failure
from outlive._kernel.values.run import Status
from outlive.errors.advice import Advice

R = TypeVar("R")


class BatchInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How far a batch has come."""

    id: str
    work: str
    """The workflow or step that is called for each row."""
    kind: Literal["workflow", "step"]
    """Which of both `work` is."""
    version: int
    status: Status
    total: int
    """How many rows it has."""
    succeeded: int
    failed: int
    concurrency: int
    created_at: datetime
    finished_at: datetime | None
    why: str = ""
    """The wait of the batch, or how it ended; empty in lists."""
    advice: tuple[Advice, ...] = ()
    """The verbs that help it go on."""

    def __repr__(self) -> str:
        ended = f"{self.succeeded} of {self.total} succeeded, {self.failed} failed"
        return f"<BatchInfo {self.id} of {self.work}: {self.status}, {ended}>"


class BatchItem(msgspec.Struct, Generic[R], frozen=True):
    """The outcome of one item of a batch."""

    index: int
    """The place of its row, from 0 on."""
    value: R | BaseException
    """Its result, or its error if it failed."""

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None if it did not."""
        return self.value if isinstance(self.value, BaseException) else None

    @property
    def result(self) -> R:
        """The result of the item; raises its error if it failed."""
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value

    def __repr__(self) -> str:
        return f"<BatchItem {self.index}: {self.value!r}>"


class ItemFailure(msgspec.Struct, frozen=True):
    """An item of a batch that has failed."""

    index: int
    """The place of its row, from 0 on."""
    error: Failure

    def __repr__(self) -> str:
        return f"<ItemFailure {self.index}: {self.error}>"
