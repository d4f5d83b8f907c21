"""How a saga is left: by forgetting what it remembers, or by undoing it. The rules are in `_kernel.define.saga`.

A roll-back is a task of its own in the run of the saga's owner, and each undo in it is an ordinary durable step. So it
replays like everything else, and what kills its worker only delays it. The task cannot be cancelled (`UndoTask`): not
by a cancel of the owner, not by a timeout around it, and not by the end of the workflow, which waits for it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, cast

from outlive._kernel.model import Failure
from outlive._kernel.replay.ask import ask_step
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.loop import RunTask
from outlive._kernel.replay.saga import SAGA, Booking, Saga
from outlive._kernel.replay.undo_deadline import UndoDeadline, with_attempt_timeout
from outlive.errors import UndoFailedError

SETTLE_SECONDS = 30.0
"""How long a roll-back waits for tasks and children that it has cancelled. After that it goes on without them: they can
book nothing more, and what they have booked is known."""


class UndoTask(RunTask):
    """A task that cannot be cancelled."""

    __slots__ = ()

    def cancel(self, msg: Any | None = None) -> bool:
        """Refused: half a roll-back is worse than none."""
        return False


async def forget(execution: Execution, saga: Saga) -> None:
    """The block was left normally: undo what the workflow gave up on, and pass on or forget the rest.

    Raises:
        asyncio.CancelledError: the owner was cancelled meanwhile; the saga is not over, and must fail.
    """
    while given_up := [booking for booking in saga.bookings if booking.is_given_up]:
        futures = [booking.future for booking in given_up if booking.is_open and booking.future is not None]
        if futures:
            await asyncio.wait(futures)
        saga.is_undoing = True
        was_cancelled = await _insist(execution, _undo_given_up(execution, saga))
        saga.is_undoing = False
        if was_cancelled:
            raise asyncio.CancelledError
    saga.close()


async def roll_back(execution: Execution, saga: Saga) -> bool:
    """Undo a saga, newest first, whatever happens meanwhile; whether the owner was cancelled meanwhile."""
    saga.is_failed = saga.is_undoing = True
    was_cancelled = await _insist(execution, _settle_and_undo(execution, saga, asyncio.current_task()))
    saga.is_undoing = False
    saga.close()
    return was_cancelled


async def _insist(execution: Execution, work: Coroutine[Any, Any, None]) -> bool:
    """Wait for work that must be finished; whether the wait was cancelled."""
    scope = SCOPE.get().branch()
    context = contextvars.copy_context()
    context.run(SCOPE.set, scope)
    # An undo is not a booking: what undoes must not be undone by the saga around.
    context.run(SAGA.set, None)
    task = UndoTask(work, loop=execution.loop, context=context)
    scope.frame.add_task(task)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            was_cancelled = True
    task.result()
    return was_cancelled


async def _undo_given_up(execution: Execution, saga: Saga) -> None:
    with _deadline(execution, saga) as deadline:
        rollback = Rollback(saga.take_given_up(), undo_seconds=saga.undo_seconds)
        if deadline is not None:
            deadline.progress = rollback
        await rollback.run(execution)


async def _settle_and_undo(execution: Execution, saga: Saga, owner: asyncio.Task[Any] | None) -> None:
    with _deadline(execution, saga) as deadline:
        await _stop_the_others(execution, saga, owner)
        while waited := saga.unsettled(execution.loop):
            await asyncio.wait(waited)
        rollback = Rollback(saga.take_all(), undo_seconds=saga.undo_seconds)
        if deadline is not None:
            deadline.progress = rollback
        await rollback.run(execution)


async def _stop_the_others(execution: Execution, saga: Saga, owner: asyncio.Task[Any] | None) -> None:
    """Cancel every task and child inside the block, and give them time to clean up."""
    frame = SCOPE.get().frame
    tasks = [
        task for task in frame.open_tasks() if task is not owner and saga.holds(cast(RunTask, task).home.get(SAGA))
    ]
    children = [
        call
        for call in execution.children.values()
        if call.command.parent == frame.number and saga.holds(call.saga)  # Theirs are their own to stop.
    ]
    for task in tasks:
        task.cancel()
    for call in children:
        if call.over is None:
            call.over = execution.loop.create_future()
        execution.cancel_child(call, "its saga is rolled back")
    waited = [*tasks, *(call.over for call in children if call.over is not None)]
    if waited:
        await asyncio.wait(waited, timeout=SETTLE_SECONDS)


@contextmanager
def _deadline(execution: Execution, saga: Saga) -> Iterator[UndoDeadline | None]:
    """The deadline of a roll-back that begins now and ends with the block; None if it may take for ever."""
    if saga.undo_seconds is None:
        yield None
        return
    deadline = UndoDeadline(execution.timers, saga, saga.undo_seconds, begun_at=execution.loop.now_at)
    execution.undo_deadlines.append(deadline)
    try:
        yield deadline
    finally:
        deadline.end()
        execution.undo_deadlines.remove(deadline)


class Rollback:
    """Undoes bookings one after the other, newest first; knows how far it has come."""

    def __init__(self, bookings: list[Booking], *, undo_seconds: float | None = None) -> None:
        self._undo_seconds = undo_seconds
        self._left = sorted((booking for booking in bookings if booking.order), key=lambda booking: booking.order)
        self._undone: list[Booking] = []

    async def run(self, execution: Execution) -> None:
        """Undo all of them."""
        while self._left:
            await self._undo(execution, self._left[-1])
            self._undone.append(self._left.pop())

    async def _undo(self, execution: Execution, booking: Booking) -> None:
        undo = booking.undo
        try:
            call = ask_step(
                execution, undo, with_attempt_timeout(undo.options, self._undo_seconds), booking.args, booking.kwargs
            )
            call.rollback = self
            await call.future
        except Exception as error:  # It does not take this result, or its failure is in the journal all the same.
            execution.park(self.failed(f"{type(error).__qualname__}: {error}"), SCOPE.get().frame.number)
            await execution.loop.create_future()

    @property
    def undone(self) -> list[str]:
        """The steps that are undone, newest first."""
        return [booking.name for booking in self._undone]

    @property
    def left(self) -> list[str]:
        """The steps that are not, newest first."""
        return [booking.name for booking in reversed(self._left)]

    def failed(self, what: Failure | str, *, attempts: int = 0) -> UndoFailedError:
        """Why the roll-back cannot go on, for a person."""
        booking = self._left[-1]
        return UndoFailedError(
            undo=booking.undo.name,
            step=booking.name,
            error=what if isinstance(what, str) else f"{what.type}: {what.message}",
            attempts=attempts,
            undone=self.undone,
            left=self.left,
        )
