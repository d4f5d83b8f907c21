"""`outlive.saga()`: a block whose steps are undone, newest first, if it is not left normally.

    async with outlive.saga():
        await reserve(order)                                           # @outlive.step(undo=release)
        await asyncio.gather(book_truck(order), book_slot(order))
        return await charge(order)

The rules
---------
*What is remembered.* Every undoable step that completes inside the block, in the order of the journal: in the task that
entered it, in tasks made inside it, and in children that are called inside it. A step that failed has nothing to undo.

*Leaving it normally.* A nested saga hands what it remembers to the saga around it; the outermost forgets it. A step
that the workflow gave up on (its wait was cancelled, by a timeout or as the loser of a race) is not abandoned: the
block waits for its outcome before it is left, and undoes it, as the workflow never saw its result.

*Leaving it with an exception*, a cancellation or a timeout among them, rolls back, and then the exception goes on:

1. From now on nothing can be booked in it. An undoable step that is called inside all the same gets
   `SagaClosedError`; other steps may be called, to clean up.
2. Tasks and children inside are cancelled and may clean up. One that swallows its cancellation and goes on is waited
   for no longer than `SETTLE_SECONDS`; it can book nothing, and what it has booked is undone without it.
3. Undoable steps in flight are not cancelled, however long they take: their effect may happen. Sagas inside that are
   rolled back are waited for too.
4. Everything that succeeded is undone, newest first, one after the other. Each undo is an ordinary step of the run
   that the saga is in: journaled, retried, never repeated once it is done. A worker that dies half way is replaced by
   one that goes on.

*Nothing stops a roll-back.* A second cancel, the deadline of the run, a timeout around the block and the end of the
workflow all wait for it. A cancellation that comes meanwhile is not lost: it leaves the block in place of the
exception.

*An undo that fails for good parks the run*, with the reason `undo failed: ...`. Resuming the run tries it again. A
roll-back that takes longer than its `undo_timeout`, if it has one, parks it too: see `_kernel.replay.undo_deadline`.

*What does not roll back.* A run that leaves memory (it goes on elsewhere) and `KeyboardInterrupt`; a generator that is
closed inside the block (`GeneratorExit`), which hands its undos on as if the block were left normally; and whatever
makes the run be parked instead of failed (`NotDurableError`): new code may still finish it.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from outlive._kernel.define.plain import PlainSaga, roll_back_plainly
from outlive._kernel.define.step import Step, as_undo
from outlive._kernel.model import given
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.ending import find_not_durable, find_successor
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.rollback import forget, roll_back
from outlive._kernel.replay.saga import SAGA, Saga
from outlive.errors import ArgumentTypeError, ConfigurationError
from outlive.errors.program import RunDropped
from outlive.errors.step import SagaClosedError

_NO_FAILURE = (KeyboardInterrupt, RunDropped)
"""The program stops, or the run leaves memory; the workflow has not failed."""


class SagaBlock:
    """A saga; enter it with `async with`, once."""

    def __init__(self, undo_seconds: float | None = None) -> None:
        self._undo_seconds = undo_seconds
        self._saga: Saga | None = None
        self._execution: Execution | None = None

    def add(self, undo: Step[..., Any], *args: Any, **kwargs: Any) -> None:
        """Remember something else to undo: `undo` is a step, called with these arguments.

        Raises:
            SagaClosedError: the block is not entered yet, or was left.
        """
        if not isinstance(undo, Step):
            raise ArgumentTypeError("saga.add", "undo", undo, "give a step, a function decorated with @outlive.step")
        saga = self._saga
        if saga is None or saga.is_over or saga.is_failed:
            raise SagaClosedError(f"undo {undo.name}")
        undo.spec.signature.encode(args, kwargs)
        saga.book(undo.name, as_undo(undo.spec, undo.call_options)).complete(*args, **kwargs)

    async def __aenter__(self) -> SagaBlock:
        if self._saga is not None:
            raise ConfigurationError("a saga can be entered once; call outlive.saga() again")
        self._execution = current_execution()
        around = SAGA.get()
        if self._execution is not None:
            self._saga = Saga(around, undo_seconds=self._undo_seconds)
        else:
            self._saga = PlainSaga(around)
        SAGA.set(self._saga)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        saga, execution = self._saga, self._execution
        assert saga is not None
        if isinstance(error, _NO_FAILURE) or execution is not current_execution():
            return
        if execution is not None and execution.loop.is_dropped:
            return
        was_cancelled = False
        try:
            if isinstance(error, GeneratorExit):
                # Code that is being closed may not wait for anything.
                saga.close()
            elif error is None or find_successor(error) is not None:
                await self._forget(saga)
            else:
                was_cancelled = await self._roll_back(saga, error)
        finally:
            if SAGA.get() is saga:
                SAGA.set(saga.parent)
        if was_cancelled and not isinstance(error, asyncio.CancelledError):
            raise asyncio.CancelledError from error

    async def _forget(self, saga: Saga) -> None:
        if self._execution is None:
            saga.close()
            return
        try:
            await forget(self._execution, saga)
        except asyncio.CancelledError as error:
            await self._roll_back(saga, error)
            raise

    async def _roll_back(self, saga: Saga, error: BaseException) -> bool:
        execution = self._execution
        if execution is None:
            assert isinstance(saga, PlainSaga)
            return await roll_back_plainly(saga, error)
        not_durable = find_not_durable(error)
        if not_durable is not None:
            # The run will be parked for this. Undone here it could never be finished by corrected code.
            execution.park(not_durable, SCOPE.get().frame.number)
            await execution.loop.create_future()
        return await roll_back(execution, saga)


def saga(*, undo_timeout: given.Span | None = None) -> SagaBlock:
    """A block whose undoable steps are undone, newest first, if it fails or is cancelled.

    Args:
        undo_timeout: seconds that the roll-back may take as a whole, from its beginning in the journal on; then the run
            is parked with `UndoTimeoutError`, and resuming it goes on with what is left. Without it: what the saga
            around this one says, or as long as it takes.
    """
    return SagaBlock(given.some_seconds("outlive.saga", "undo_timeout", undo_timeout))
