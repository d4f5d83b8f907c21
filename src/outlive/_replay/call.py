"""Durable calls that a run has made and the journal has not answered yet."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from outlive._model import Failure
from outlive._replay.command import Record, RunStep, StartChild, StartDetached, TakeSnapshot
from outlive._replay.frame import Frame
from outlive._replay.saga import Saga
from outlive.errors import UndoFailedError


class Undoing(Protocol):
    """The roll-back that a step is called by."""

    @property
    def left(self) -> list[str]:
        """The steps that are not undone; the first of them is being undone."""

    def failed(self, what: Failure | str, *, attempts: int = 0) -> UndoFailedError:
        """Why it cannot go on."""


class StepCall:
    """A step whose outcome is not known yet."""

    __slots__ = ("command", "earlier", "future", "given_up", "rollback")

    def __init__(self, command: RunStep, future: asyncio.Future[Any]) -> None:
        self.command = command
        self.future = future
        self.given_up: asyncio.Future[None] | None = None
        """For who waits for the attempt under way and for no other one: done when that has failed."""
        self.rollback: Undoing | None = None
        self.earlier: list[str] = []
        """How the attempts before this one failed, the last few of them."""

    def __str__(self) -> str:
        return f"step {self.command.call}"


class ChildCall:
    """A run of this tree that its parent started; answered when the child has ended."""

    __slots__ = ("command", "frame", "future", "is_cancelled", "over", "saga")

    def __init__(self, command: StartChild, future: asyncio.Future[Any], saga: Saga | None = None) -> None:
        self.command = command
        self.future = future
        self.saga = saga
        """The saga that it was called in: what it books is booked there."""
        self.over: asyncio.Future[None] | None = None
        """For who waits until the child has ended, whether or not anybody waits for its outcome."""
        self.frame: Frame | None = None
        self.is_cancelled = False

    def __str__(self) -> str:
        return f"child run {self.command.call}"


class DetachedCall:
    """A tree of its own that is being started; answered when it exists."""

    __slots__ = ("command", "future")

    def __init__(self, command: StartDetached, future: asyncio.Future[Any]) -> None:
        self.command = command
        self.future = future

    def __str__(self) -> str:
        return f"detached run {self.command.call}"


class RecordCall:
    """A fact of the run's own on its way into the journal; nobody waits for it."""

    __slots__ = ("command",)

    def __init__(self, command: Record) -> None:
        self.command = command

    def __str__(self) -> str:
        return f"{type(self.command.fact).__name__} {self.command.call}"


class SnapshotCall:
    """A snapshot that the workflow waits for; it has no name, as a journal has one of them at most."""

    __slots__ = ("command", "future")

    def __init__(self, command: TakeSnapshot, future: asyncio.Future[None]) -> None:
        self.command = command
        self.future = future

    def __str__(self) -> str:
        return "a snapshot"


Call = StepCall | ChildCall | DetachedCall | RecordCall | SnapshotCall
