"""Durable calls that a run has made and the journal has not answered yet."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec

from outlive._kernel.journal.event import DetachedEnded
from outlive._kernel.model import Failure
from outlive._kernel.replay.command import AwaitEnd, RecordFact, RunStep, StartChild, StartDetached, TakeSnapshot
from outlive._kernel.replay.frame import Frame
from outlive._kernel.replay.saga import Saga
from outlive.errors import UndoFailedError


class Undoing(Protocol):
    """The roll-back that a step is called by."""

    @property
    def undone(self) -> list[str]:
        """The steps that are undone, newest first."""

    @property
    def left(self) -> list[str]:
        """The steps that are not undone; the first of them is being undone."""

    def failed(self, what: Failure | str, *, attempts: int = 0) -> UndoFailedError:
        """Why it cannot go on."""


class StepCall(msgspec.Struct, eq=False):
    """A step whose outcome is not known yet."""

    command: RunStep
    future: asyncio.Future[Any]
    attempt_failed: asyncio.Future[None] | None = None
    """For code that waits for the attempt under way and for no other one: done when that has failed."""
    rollback: Undoing | None = None
    earlier: list[str] = []
    """How the attempts before this one failed, the last few of them."""

    def __str__(self) -> str:
        return f"step {self.command.call}"


class ChildCall(msgspec.Struct, eq=False):
    """A run of this tree that its parent started; answered when the child has ended."""

    command: StartChild
    future: asyncio.Future[Any]
    saga: Saga | None = None
    """The saga that it was called in: what it books is booked there."""
    over: asyncio.Future[None] | None = None
    """Done when the child has ended, whether or not its outcome is waited for."""
    frame: Frame | None = None
    is_cancelled: bool = False

    def __str__(self) -> str:
        return f"child run {self.command.call}"


class DetachedCall(msgspec.Struct, eq=False):
    """A tree of its own that is being started; answered when it exists."""

    command: StartDetached
    future: asyncio.Future[Any]

    def __str__(self) -> str:
        return f"detached run {self.command.call}"


class RecordCall(msgspec.Struct, eq=False):
    """A fact of the run's own on its way into the journal; no code waits for it."""

    command: RecordFact

    def __str__(self) -> str:
        return f"{type(self.command.fact).__name__} {self.command.call}"


class SnapshotCall(msgspec.Struct, eq=False):
    """A snapshot that the workflow waits for; it has no name, as a journal has one of them at most."""

    command: TakeSnapshot
    future: asyncio.Future[None]

    def __str__(self) -> str:
        return "a snapshot"


class EndWait(msgspec.Struct, eq=False):
    """The waiters in a tree for the end of another tree. The journal holds nothing of them: the end is a message."""

    command: AwaitEnd
    waiters: list[asyncio.Future[DetachedEnded]] = []


Call = StepCall | ChildCall | DetachedCall | RecordCall | SnapshotCall
