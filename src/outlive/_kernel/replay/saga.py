"""The memory of a saga: which steps must be undone if it fails, and in which order they came to be.

A saga is a block of a workflow (`async with outlive.saga()`). Every undoable step that is called in it is a *booking*:
in flight until the journal has its outcome, complete with a place in the order of the journal if it succeeded, and
nothing at all if it failed. The context carries the saga, so tasks made inside are inside; a child run is given the
saga of the call that started it.

Which saga a booking belongs to can change. A nested saga that is left normally hands its bookings to the one around it;
the outermost forgets them. Therefore no code holds on to "its" saga: `find_saga` and `holder_of` walk outwards from
where they stand to the first saga that is not over.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import msgspec

from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.frame import Frame
from outlive.errors.step import SagaClosedError

SAGA: contextvars.ContextVar[Saga | None] = contextvars.ContextVar("outlive_saga", default=None)
"""The saga that the running code is in."""


class Booking(msgspec.Struct, eq=False):
    """One call of an undoable step in a saga, or an undo that the workflow named itself."""

    saga: Saga
    """The saga that it was booked in."""
    name: str
    undo: StepSpec
    args: tuple[Any, ...] = ()
    """The arguments of the undo; the step's result."""
    kwargs: dict[str, Any] = {}
    order: int = 0
    """The place among all completed bookings, from 1 on; 0 if there is nothing to undo."""
    future: asyncio.Future[Any] | None = None
    frame: Frame | None = None
    is_open: bool = False
    """Its outcome is not in the journal yet."""
    is_given_up: bool = False
    """The workflow stopped waiting for it, and never saw its result."""

    @property
    def holder(self) -> Saga | None:
        """The saga that answers for it now; None when none does any more."""
        return holder_of(self.saga)

    def follow(self, future: asyncio.Future[Any], frame: Frame) -> None:
        """Complete it when the outcome of the step is known."""
        self.future, self.frame, self.is_open = future, frame, True
        # The first callback of the future: it is complete before anybody else hears of the outcome.
        future.add_done_callback(self._end)

    def complete(self, *args: Any, **kwargs: Any) -> None:
        """From now on there is something to undo."""
        self.args, self.kwargs = args, kwargs
        self.order = self.saga.next_order()

    def give_up(self) -> None:
        """Stop waiting for it. The run may not end before its outcome is known: it may have to be undone."""
        self.is_given_up = True
        if self.is_open and self.frame is not None:
            self.frame.unsettled += 1

    def _end(self, future: asyncio.Future[Any]) -> None:
        self.is_open = False
        if self.is_given_up and self.frame is not None:
            self.frame.unsettled -= 1
        if not future.cancelled() and future.exception() is None:
            self.complete(future.result())
        elif (holder := self.holder) is not None:
            holder.strike(self)


class Saga(msgspec.Struct, eq=False):
    """The bookings of one block, and the sagas inside it."""

    parent: Saga | None
    undo_seconds: float | None = None
    """How long its roll-back may take; as long as that of the saga around it unless given."""
    bookings: list[Booking] = []
    inner: list[Saga] = []
    """Sagas inside this one that are not over."""
    is_failed: bool = False
    """It rolls back, or has done so: nothing new may be booked in it."""
    is_undoing: bool = False
    """An undo of it may be running."""
    is_over: bool = False
    """The block was left."""
    over: asyncio.Future[None] | None = None
    """Done when it is over, if something waits for that."""
    _orders: int = 0

    def __post_init__(self) -> None:
        self.parent = holder_of(self.parent)
        if self.parent is not None:
            self.parent.inner.append(self)
            if self.undo_seconds is None:
                self.undo_seconds = self.parent.undo_seconds

    def next_order(self) -> int:
        """The place of the next completed booking, among those of all sagas that are nested with this one."""
        outermost = self
        while outermost.parent is not None:
            outermost = outermost.parent
        outermost._orders += 1
        return outermost._orders

    def book(self, name: str, undo: StepSpec) -> Booking:
        """Remember that something may have to be undone."""
        booking = Booking(self, name, undo)
        self.bookings.append(booking)
        return booking

    def strike(self, booking: Booking) -> None:
        """Forget a booking that came to nothing: a run that goes on for years must not keep them all."""
        for place in range(len(self.bookings) - 1, -1, -1):  # It is one of the last.
            if self.bookings[place] is booking:
                del self.bookings[place]
                return

    def holds(self, other: Saga | None) -> bool:
        """Whether another saga is this one or inside it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent
        return False

    def close(self) -> None:
        """The block was left. What is still booked goes to the saga around it, if there is one."""
        self.is_over = True
        outer = holder_of(self.parent)
        if self.parent is not None and self in self.parent.inner:
            self.parent.inner.remove(self)
        if outer is not None:
            outer.bookings += self.bookings
            outer.inner += self.inner
        self.bookings, self.inner = [], []
        if self.over is not None and not self.over.done():
            self.over.set_result(None)

    def to_undo(self) -> list[str]:
        """The names of everything that is complete, newest first."""
        return [booking.name for booking in sorted(self._complete(), key=lambda each: each.order, reverse=True)]

    def _complete(self) -> list[Booking]:
        inner = [booking for saga in self.inner for booking in saga._complete()]
        return [*(booking for booking in self.bookings if booking.order), *inner]

    def take_given_up(self) -> list[Booking]:
        """Take out the bookings whose result the workflow never saw and which are complete."""
        bookings, self.bookings = self.bookings, []
        taken: list[Booking] = []
        for booking in bookings:
            (taken if booking.is_given_up and not booking.is_open else self.bookings).append(booking)
        return taken

    def take_all(self) -> list[Booking]:
        """Take out everything that is complete, also from inside sagas that did not fail when they were cancelled."""
        taken, self.bookings = self.bookings, []
        for saga in self.inner:
            taken += saga.take_all()
        return taken

    def unsettled(self, loop: asyncio.AbstractEventLoop) -> list[asyncio.Future[Any]]:
        """The futures that must end before this saga can be rolled back: steps in flight, and roll-backs inside it."""
        waited: list[asyncio.Future[Any]] = [
            booking.future for booking in self.bookings if booking.is_open and booking.future is not None
        ]
        for saga in self.inner:
            if saga.is_undoing:
                if saga.over is None:
                    saga.over = loop.create_future()
                waited.append(saga.over)
            else:
                # The code in there does not heed its cancellation. What it has booked is undone without it.
                saga.is_failed = True
                waited += saga.unsettled(loop)
        return waited


def holder_of(saga: Saga | None) -> Saga | None:
    """The first saga from here outwards that is not over, or that failed: a failed one takes nothing and hands on
    nothing."""
    while saga is not None and saga.is_over and not saga.is_failed:
        saga = saga.parent
    return saga


def find_saga(what: str) -> Saga | None:
    """The saga that answers for what is booked here, if any.

    Raises:
        SagaClosedError: it rolls back, or one around it does.
    """
    around = SAGA.get()
    while around is not None:
        if around.is_failed:
            raise SagaClosedError(what)
        around = around.parent
    return holder_of(SAGA.get())
