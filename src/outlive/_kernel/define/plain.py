"""Sagas outside of a run: the same block around plain calls, in memory, as well as that can be done.

A workflow that is called outside of a run is a plain function, and its sagas go on meaning what they say: undoable
steps that have returned are undone, newest first, when the block is left with an exception. There is no journal, so
nothing of this survives the process, a cancelled step is really cancelled and not undone, and an undo that fails is
logged and noted on the exception, and the others go on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine
from functools import partial
from typing import Any

import msgspec

from outlive._kernel.define.live_resources import LiveResources, plain_resources_for
from outlive._kernel.define.resources import call, missing_in
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.saga import Booking, Saga, find_saga
from outlive.telemetry import log


class PlainSaga(Saga, eq=False):
    """A saga that has no run; it knows the tasks that have called undoable steps in it."""

    tasks: set[asyncio.Task[Any]] = msgspec.field(default_factory=set)


def plain_saga(step: str) -> PlainSaga | None:
    """The saga around a plain call of a step, if there is one.

    Raises:
        SagaClosedError: it is rolled back.
    """
    saga = find_saga(f"step {step}")
    return saga if isinstance(saga, PlainSaga) else None


def call_plainly(step: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the function of a step, called here and now; the caller gives the resources, or a machine around
    it."""
    wanted = step.resources
    if wanted is None or not (missing := missing_in(wanted, step.fn, args, kwargs)):
        return step.fn(*args, **kwargs)
    return _call_with(plain_resources_for(step.name, missing), step, args, kwargs)


async def _call_with(live: LiveResources, step: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return await call(partial(step.fn, **await live.get(step.resources)), *args, **kwargs)


def call_booked(saga: PlainSaga, step: StepSpec, undo: StepSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the plain function of a step; it is undone if the saga fails."""
    returned = call_plainly(step, args, kwargs)
    if inspect.isawaitable(returned):
        return _await_booked(saga, step, undo, returned)
    saga.book(step.name, undo).complete(returned)
    return returned


async def _await_booked(saga: PlainSaga, step: StepSpec, undo: StepSpec, returned: Awaitable[Any]) -> Any:
    task = asyncio.current_task()
    if task is not None:
        saga.tasks.add(task)
    result = await returned
    saga.book(step.name, undo).complete(result)
    return result


async def roll_back_plainly(saga: PlainSaga, error: BaseException) -> bool:
    """Undo what was done, newest first; whether the owner was cancelled meanwhile."""
    saga.is_failed = saga.is_undoing = True
    was_cancelled = await _insist(_settle_and_undo(saga, asyncio.current_task(), error))
    saga.is_undoing = False
    saga.close()
    return was_cancelled


async def _insist(work: Coroutine[Any, Any, None]) -> bool:
    task = asyncio.ensure_future(work)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            was_cancelled = True
    task.result()
    return was_cancelled


async def _settle_and_undo(saga: PlainSaga, owner: asyncio.Task[Any] | None, error: BaseException) -> None:
    others = [task for task in _tasks_in(saga) if task is not owner and not task.done()]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)
    for booking in sorted(saga.take_all(), key=lambda booking: booking.order, reverse=True):
        await _undo(booking, error)


def _tasks_in(saga: Saga) -> list[asyncio.Task[Any]]:
    own = list(saga.tasks) if isinstance(saga, PlainSaga) else []
    return own + [task for inner in saga.inner for task in _tasks_in(inner)]


async def _undo(booking: Booking, error: BaseException) -> None:
    try:
        await call(call_plainly, booking.undo, booking.args, booking.kwargs)
    except Exception as failed:  # The user's code may raise anything; the others must be undone all the same.
        log.exception("undo failed: %s of %s", booking.undo.name, booking.name)
        error.add_note(f"undo failed: {booking.undo.name} of {booking.name}: {type(failed).__qualname__}: {failed}")
