"""How long a roll-back may take as a whole: `undo_timeout`.

An undo is tried as often as its retry says, and that can be for ever if one attempt of it never ends. So a roll-back
may have a deadline, counted from its beginning in the journal: a crash does not put it off. When it has passed, the run
is parked, with what was undone and what is left.

A deadline stands among the timers of its run, so that the run wakes up for it. But it never fires: that it has passed
is not a fact that workflow code sees, it is a `RunParked`. Resuming the run after that gives the roll-back a fresh
deadline, counted from the claim that followed, and so does a fork or a retry in the middle of it (`renew`). All of
them are in the journal, so that every replay counts alike.
"""

from __future__ import annotations

import contextvars

import msgspec

from outlive._kernel.journal.event import AnyEvent, RunClaimed, RunParked
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.replay.call import Undoing
from outlive._kernel.replay.command import StepOptions
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.saga import Saga
from outlive._kernel.replay.timers import Timer, Timers
from outlive.errors.step import UndoTimeoutError

UNDO_TIMEOUT = "@undo_timeout"
ATTEMPT_SECONDS_MAX = 300.0
"""How long one attempt of an undo may take that has no timeout of its own, if its roll-back has one: half of that, and
no longer than this."""


class DeadlineTimer(Timer):
    """Wakes a run up when its roll-back has taken too long; never fires."""

    __slots__ = ("deadline",)

    def __init__(self, deadline: UndoDeadline, timers: Timers, due_at: int) -> None:
        super().__init__(timers, due_at, _never, (), contextvars.Context())
        self.deadline = deadline

    def __gt__(self, other: object) -> bool:
        # Python asks a subclass before its class, and asyncio knows nothing of our instants.
        assert isinstance(other, Timer)
        return other.__lt__(self)


class UndoDeadline:
    """The deadline of one roll-back under way."""

    __slots__ = ("_is_spent", "_name", "_timers", "due_at", "progress", "run", "saga", "seconds")

    def __init__(self, timers: Timers, saga: Saga, seconds: float, *, begun_at: int) -> None:
        scope = SCOPE.get()
        self._timers = timers
        self.saga = saga
        self.seconds = seconds
        self.run = scope.frame.number
        self._name = scope.call(UNDO_TIMEOUT)
        self._is_spent = False
        self.progress: Undoing | None = None
        """None as long as it waits for steps in flight."""
        self._set(begun_at)

    def _set(self, begun_at: int) -> None:
        self.due_at = begun_at + round(self.seconds * MICROSECONDS)
        self._timers.add(DeadlineTimer(self, self._timers, self.due_at), self.run, self._name)

    def end(self) -> None:
        """The roll-back is done."""
        self._timers.take(self.run, self._name)

    def follow(self, event: AnyEvent) -> None:
        """A claim of a run that was parked, for whatever reason, gives the roll-back as much time again."""
        if type(event) is RunParked:
            self._is_spent = True
        elif type(event) is RunClaimed and self._is_spent:
            self._is_spent = False
            self.renew(event.at)

    def renew(self, at: int) -> None:
        """Give the roll-back as much time again, from that instant on."""
        self._timers.take(self.run, self._name)
        self._set(at)

    def over(self) -> UndoTimeoutError:
        """Why the run is parked."""
        if self.progress is None:
            waited = [booking.name for booking in self.saga.bookings if booking.is_open]
            return UndoTimeoutError(self.seconds, waited=waited, undone=[], left=self.saga.to_undo())
        return UndoTimeoutError(self.seconds, waited=[], undone=self.progress.undone, left=self.progress.left)


def with_attempt_timeout(options: StepOptions, undo_seconds: float | None) -> StepOptions:
    """The options of an undo: one attempt must leave time for another one."""
    if undo_seconds is None or options.timeout_seconds is not None:
        return options
    return msgspec.structs.replace(options, timeout_seconds=min(undo_seconds / 2, ATTEMPT_SECONDS_MAX))


def _never() -> None:
    raise AssertionError("a deadline never fires")
