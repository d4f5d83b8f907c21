"""Where a machine stands, and how a long-lived one forgets the way it came.

Between two states, and between two calls of a state with a cursor, a machine is nothing but data: the state, what it
carries, how far it has come in the state, and what it would have to undo. When its journal has grown by
`snapshot_after` events since the last time, it puts that into a snapshot (`_kernel.replay.snapshot`) and goes on from
there.

What it would undo is kept whole: for every completed step the name of its undo, what that is called with, and how often
and how long it is tried if it was given other options than usual. (Which exceptions are worth another attempt, and what
guards it, is code and no data: there the usual ones hold.) A machine that goes round in states with undos owes an ever
longer roll-back; so that writing it down does not cost more and more, it waits for as many new events as there are
undos. A roll-back whose steps this process cannot find by name is a mistake in the code: the run is parked, and code
that has them can go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import msgspec

from outlive._features.machines.asking import park, readable
from outlive._features.machines.wire import NULL
from outlive._kernel.define.step import NO_RESULT
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import Stored, StructCodec
from outlive._kernel.model.policy import NO_RETRY, Growth
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.saga import Saga
from outlive._kernel.replay.snapshot import may_take_snapshot, take_snapshot
from outlive.errors import OutliveError
from outlive.errors.program import UndoNotFoundError

FindUndo = Callable[[str, str], StepSpec | None]
"""By its name, and by the call that it undoes."""


class Effort(msgspec.Struct, frozen=True, array_like=True):
    """How often and how long an undo is tried."""

    attempts: int | None
    first: float
    factor: float
    cap: float
    jitter: float
    timeout_seconds: float | None
    delay: Growth | Literal[""] = ""
    """How the delay grows; empty for what the code says, which may be a function."""
    elapsed_max: float | None = None


class Owed(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a roll-back would undo."""

    step: str
    """The call that is undone."""
    undo: str
    given: msgspec.Raw
    """The argument of the undo."""
    is_given_up: bool = False
    """Whether the workflow never saw its result: it is undone in any case."""
    effort: Effort | None = None
    """Its own, for this call; None if it is the usual one."""


class MachineSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a machine stands."""

    state: str
    data: msgspec.Raw
    cursor: msgspec.Raw = NULL
    owed: list[Owed] = []


_SNAPSHOT = StructCodec(MachineSnapshot, "where a machine stood")


class MachineSnapshots:
    """Takes the snapshots of one run of a machine, and begins with the last one."""

    def __init__(self, name: str, saga: Saga, *, snapshot_after: int | None, find_undo: FindUndo) -> None:
        self.state = ""
        self._name = name
        self._saga = saga
        self._after = snapshot_after
        self._find_undo = find_undo
        self._cursor = NULL
        self._tried = 0
        """The seq at which no snapshot could be taken, as not all that is owed could be written down."""

    def take_cursor(self) -> msgspec.Raw:
        """How far the run had come in its state when the snapshot that it begins with was taken; once."""
        cursor, self._cursor = self._cursor, NULL
        return cursor

    async def take_if_due(self, data: msgspec.Raw, cursor: msgspec.Raw = NULL) -> None:
        """Take a snapshot here if the journal has grown enough since the last one."""
        execution = current_execution()
        if execution is None or self._after is None:
            return
        grown = execution.events - max(execution.base, self._tried)
        if grown < self._after or grown < len(self._saga.bookings) or not may_take_snapshot(execution):
            return
        owed = self._owed()
        if owed is None:
            self._tried = execution.events
        else:
            taken = MachineSnapshot(self.state, data, cursor, owed)
            await take_snapshot(execution, _SNAPSHOT.encode(taken, self._name))

    async def begin(self, state: str, data: msgspec.Raw) -> tuple[str, msgspec.Raw]:
        """Where the run begins: there, or where it stood when its snapshot was taken."""
        execution = current_execution()
        stored = None if execution is None else SCOPE.get().frame.position
        if stored is None:
            return state, data
        position: MachineSnapshot = await readable(_SNAPSHOT, stored, f"a snapshot of {self._name}")
        for owed in position.owed:
            await self._owe(owed)
        self._cursor = position.cursor
        return position.state, position.data

    # -- What is owed ----------------------------------------------------------------------------------------

    def _owed(self) -> list[Owed] | None:
        """The undos that a failure would call, oldest first; None if some of them could not be found again."""
        owed: list[Owed] = []
        for booking in sorted(self._saga.bookings, key=lambda booking: booking.order):
            if not booking.order:
                continue  # It has failed: there is nothing to undo.
            usual = self._find_undo(booking.undo.name, booking.name)
            if usual is None:
                return None
            effort = effort_of(booking.undo)
            try:
                given = booking.undo.signature.encode(booking.args, booking.kwargs)
            except OutliveError:  # Its roll-back will say so, if it comes to that.
                return None
            owed.append(
                Owed(
                    booking.name,
                    booking.undo.name,
                    msgspec.Raw(given),
                    booking.is_given_up,
                    None if effort == effort_of(usual) else effort,
                )
            )
        return owed

    async def _owe(self, owed: Owed) -> None:
        undo = self._find_undo(owed.undo, owed.step)
        if undo is None:
            await park(UndoNotFoundError(self._name, owed.undo, owed.step))
        if owed.effort is not None:
            undo = with_effort(undo, owed.effort)
        booking = self._saga.book(owed.step, msgspec.structs.replace(undo, signature=AsStored(undo.signature)))
        booking.is_given_up = owed.is_given_up
        booking.complete(owed.given)


class AsStored(Signature):
    """Arguments that are given as they were stored."""

    def __init__(self, signature: Signature) -> None:
        self._inner = signature
        self.result = NO_RESULT

    @property
    def names(self) -> tuple[str, ...]:
        """See `Signature`."""
        return self._inner.names

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`."""
        return bytes(args[0])

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """See `Signature`."""
        return self._inner.decode(data)

    def by_name(self, data: Stored) -> bytes:
        """See `Signature`."""
        return self._inner.by_name(data)


def effort_of(undo: StepSpec) -> Effort:
    """How often and how long it is tried."""
    retry = undo.options.retry or NO_RETRY
    return Effort(
        retry.attempts,
        retry.first,
        retry.factor,
        retry.cap,
        retry.jitter,
        undo.options.timeout_seconds,
        retry.delay if isinstance(retry.delay, str) else "",
        retry.elapsed_max,
    )


def with_effort(undo: StepSpec, effort: Effort) -> StepSpec:
    """This undo, with the attempts and delays of an effort."""
    usual = undo.options.retry or NO_RETRY
    retry = replace(
        usual,
        attempts=effort.attempts,
        first=effort.first,
        factor=effort.factor,
        cap=effort.cap,
        jitter=effort.jitter,
        delay=effort.delay or usual.delay,
        elapsed_max=effort.elapsed_max,
    )
    options = msgspec.structs.replace(undo.options, retry=retry, timeout_seconds=effort.timeout_seconds)
    return msgspec.structs.replace(undo, options=options)
