"""The calls that workflow code may make to its execution: the other side of `feed`.

Each of these runs on the run's own loop, gives the call its identity, leaves a command, and waits for a future that
only a journal event resolves. A wait that is cancelled withdraws its call, and that is replayed like everything else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast
from zlib import crc32

from msgspec import structs

from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.event import DetachedCancelled, DetachedEnded
from outlive._kernel.journal.value import ValueCodec
from outlive._kernel.model import Payload
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.queue import QueuePlace
from outlive._kernel.replay.call import ChildCall, DetachedCall, EndWait, StepCall
from outlive._kernel.replay.command import (
    AwaitEnd,
    CancelStep,
    RunStep,
    StartChild,
    StartDetached,
    StepOptions,
    StepSpec,
    WorkflowSpec,
)
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Frame, Received, Scope
from outlive._kernel.replay.loop import RunLoop
from outlive._kernel.replay.saga import SAGA, Saga, find_saga
from outlive._kernel.replay.set_aside import read_or_set_aside
from outlive.errors import UnreadableError
from outlive.errors.program import NotInRunError

T = TypeVar("T")


def current_execution() -> Execution | None:
    """The execution whose workflow code is running now, if any."""
    loop = asyncio._get_running_loop()
    return cast(Execution, loop.execution) if type(loop) is RunLoop else None


def this_execution(name: str) -> Execution:
    """The execution whose workflow code is running now; an error if there is none, for names that mean something only
    in a run."""
    execution = current_execution()
    if execution is None:
        raise NotInRunError(name, "a workflow")
    return execution


async def run_step(
    execution: Execution, step: StepSpec, options: StepOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Ask for a step and wait for its outcome."""
    if options.undo is not None:
        if (saga := find_saga(f"step {step.name}")) is not None:
            return await _run_booked(execution, saga, ask_step(execution, step, options, args, kwargs), options.undo)
        options = structs.replace(options, undo=None)  # No saga will ask for it.
    call = ask_step(execution, step, options, args, kwargs)
    try:
        return await call.future
    except asyncio.CancelledError:
        _withdraw(execution, call)
        raise


def ask_step(
    execution: Execution, step: StepSpec, options: StepOptions, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> StepCall:
    """Ask for a step."""
    if execution.loop.is_dropped:
        execution.refuse_if_dropped()
    scope = SCOPE.get()
    if options.retry is None:
        # Here and not in the worker, which has no workflow at hand. No journal and no identity has the policy.
        default = scope.frame.spec.retry or execution.retry
        if default is not None:
            options = structs.replace(options, retry=default)
    run = scope.frame.number
    name, arguments, digest = _named(execution, scope, step.name, step.signature, args, kwargs)
    command = RunStep(run, name, step, arguments, digest, options)
    call = StepCall(command, asyncio.Future(loop=execution.loop))
    execution.calls[run, name] = call
    execution.commands.append(command)
    return call


def _named(
    execution: Execution, scope: Scope, name: str, signature: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, bytes, int]:
    """The identity of the next call of `name`, its arguments as JSON, and the digest of these.

    Arguments are not identity. A call that the journal answers for good needs none: they are not encoded, which for a
    conversation that grows would cost the square of its length, and the arguments in the journal count.

    Raises:
        WrongArgumentsError: the function does not take these arguments.
        UnserialisableError: one of them has no exact stored form.
    """
    if not execution.spends_names:
        # A journal of an earlier release: a call that was refused for its arguments has left its identity to the next.
        arguments = signature.encode(args, kwargs)
        return scope.call(name), arguments, crc32(arguments)
    call = scope.call(name)
    frame = scope.frame
    digest = execution.ahead.digests.get((frame.number, call))
    if digest is not None and not (execution.compares_arguments or frame.spec.strict_arguments):
        return call, b"", digest
    arguments = signature.encode(args, kwargs)
    return call, arguments, crc32(arguments)


async def _run_booked(execution: Execution, saga: Saga, call: StepCall, undo: StepSpec) -> Any:
    """Wait for a step that its saga may have to undo.

    A wait that is cancelled does not withdraw the step while a saga answers for it: its effect may happen all the same,
    so its outcome must come to be known.
    """
    booking = saga.book(call.command.call, undo)
    booking.follow(call.future, SCOPE.get().frame)
    try:
        return await asyncio.shield(call.future)
    except asyncio.CancelledError:
        if booking.holder is not None:
            booking.give_up()
        else:
            _withdraw(execution, call)
        raise


def _withdraw(execution: Execution, call: StepCall) -> None:
    """The workflow no longer waits for a step."""
    run, name = call.command.run, call.command.call
    if execution.calls.pop((run, name), None) is not None:
        execution.commands.append(CancelStep(run, name))


def start_child(
    execution: Execution,
    spec: WorkflowSpec,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    timeout_seconds: float | None = None,
    name: str = "",
) -> ChildCall:
    """Start a run in this tree; the call is known by the name of its workflow unless `name` is given."""
    execution.refuse_if_dropped()
    called = _named(execution, SCOPE.get(), name or spec.name, spec.signature, args, kwargs)
    seconds = spec.timeout_seconds if timeout_seconds is None else timeout_seconds
    return _ask_child(execution, spec, *called, seconds=seconds, saga=SAGA.get())


def _ask_child(
    execution: Execution,
    spec: WorkflowSpec,
    name: str,
    arguments: bytes,
    digest: int,
    *,
    seconds: float | None,
    saga: Saga | None = None,
    item: int = -1,
) -> ChildCall:
    frame = SCOPE.get().frame
    command = StartChild(
        run=execution.next_number,
        parent=frame.number,
        call=name,
        workflow=spec,
        arguments=arguments,
        digest=digest,
        timeout_at=None if seconds is None else execution.loop.now_at + round(seconds * MICROSECONDS),
        item=item,
    )
    execution.next_number += 1
    frame.children += 1
    call = ChildCall(command, execution.loop.create_future(), saga)
    execution.calls[command.parent, command.call] = call
    execution.children[command.run] = call
    execution.commands.append(command)
    return call


async def child_result(execution: Execution, call: ChildCall) -> Any:
    """Wait for the end of a child; cancelling the wait cancels the child."""
    execution.refuse_if_dropped()
    try:
        return await call.future
    except asyncio.CancelledError:
        if call.future.cancelled():
            execution.cancel_child(call, "cancelled by its parent")
        raise


async def run_item(execution: Execution, spec: StepSpec | WorkflowSpec, arguments: bytes, index: int) -> Any:
    """Ask for one item of a batch and wait for its outcome.

    It is a step or a child run like any other, except that its identity is its place in the batch, its arguments are
    the bytes that the chunk was given, and its outcome is kept beside the journal too, where readers find it by its
    place.
    """
    execution.refuse_if_dropped()
    execution.has_items = True
    name = f"{spec.name}[{index}]"
    if isinstance(spec, WorkflowSpec):
        child = _ask_child(execution, spec, name, arguments, crc32(arguments), seconds=spec.timeout_seconds, item=index)
        return await child_result(execution, child)
    run, options = SCOPE.get().frame.number, spec.options
    if options.retry is None and execution.retry is not None:
        options = structs.replace(options, retry=execution.retry)
    command = RunStep(run, name, spec, arguments, crc32(arguments), options, item=index)
    call = execution.calls[run, name] = StepCall(command, execution.loop.create_future())
    execution.commands.append(command)
    try:
        return await call.future
    except asyncio.CancelledError:
        _withdraw(execution, call)
        raise


async def start_detached(
    execution: Execution,
    spec: WorkflowSpec,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    run_id: str | None = None,
    tags: dict[str, str] | None = None,
    timeout_seconds: float | None = None,
    payload: Payload | None = None,
    place: QueuePlace | None = None,
    name: str = "",
) -> str:
    """Start a tree of its own; its id, once it exists. Its input may lie in the store already: `payload`. Its place is
    that of its workflow unless given, and the call is known by the name of its workflow unless `name` is given."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    run = scope.frame.number
    if payload is None:
        called, arguments, digest = _named(execution, scope, name or spec.name, spec.signature, args, kwargs)
    else:
        called, arguments, digest = scope.call(name or spec.name), b"", crc32(payload.blob.encode())
    command = StartDetached(
        run=run,
        call=called,
        run_id=run_id or _detached_id(execution, spec, run, called),
        workflow=spec,
        arguments=arguments,
        digest=digest,
        tags=tags or {},
        timeout_seconds=spec.timeout_seconds if timeout_seconds is None else timeout_seconds,
        payload=payload,
        place=place,
    )
    call = DetachedCall(command, execution.loop.create_future())
    execution.calls[run, called] = call
    execution.commands.append(command)
    # Shielded: the start is on its way into the journal, and its answer must find its call.
    return str(await asyncio.shield(call.future))


def cancel_detached(execution: Execution, run_id: str) -> None:
    """Ask a run that was started detached to stop."""
    execution.refuse_if_dropped()
    scope = SCOPE.get()
    execution.record(DetachedCancelled(at=0, run=scope.frame.number, call=scope.call("@cancel"), run_id=run_id))


def _detached_id(execution: Execution, spec: WorkflowSpec, run: int, name: str) -> str:
    """An id for a detached run: equal in every replay of the call, different in every other run."""
    place = crc32(f"{run}/{name}".encode())
    return f"{spec.name}-{execution.nonce:016x}{place:08x}"


async def end_of(execution: Execution, run_id: str, *, started: str = "") -> DetachedEnded:
    """Wait for the end of another tree. One that this run has started, as the workflow `started`, ends once; any other
    one is asked for now, as a person may have let it go on since it ended."""
    execution.refuse_if_dropped()
    ended = execution.ended.get(run_id) if started else None
    if ended is not None:
        return ended
    wait = execution.end_waits.get(run_id)
    if wait is None:
        wait = execution.end_waits[run_id] = EndWait(AwaitEnd(run_id, execution.events, started))
        execution.commands.append(wait.command)
    future: asyncio.Future[DetachedEnded] = execution.loop.create_future()
    wait.waiters.append(future)
    try:
        return await future
    except asyncio.CancelledError:
        if future in wait.waiters:
            wait.waiters.remove(future)
        if not wait.waiters and execution.end_waits.get(run_id) is wait:
            del execution.end_waits[run_id]
        raise


async def take_signal(execution: Execution, name: str, codec: ValueCodec, *, what: str = "") -> Any:
    """Take the oldest signal of this name, or wait for the next one. `what` it is called in errors."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    while True:
        signal = frame.buffered_signal(name) or await _next_signal(execution, frame, name)
        read = partial(codec.decode, what=what or f"signal {name!r}")
        taken = await read_or_park(execution, partial(read_or_set_aside, execution, frame, signal, read, name=name))
        if taken is not None:
            return taken[0]


async def read_or_park(execution: Execution, read: Callable[[], T]) -> T:
    """The result of `read`. If it cannot be read, the run is parked: the value is a fact already, failing the workflow
    would throw it away, and code or keys that fit can still read it."""
    try:
        return read()
    except UnreadableError as error:
        execution.park(error, SCOPE.get().frame.number)
        never: asyncio.Future[T] = execution.loop.create_future()
        return await never


async def _next_signal(execution: Execution, frame: Frame, name: str) -> Received:
    future: asyncio.Future[Received] = execution.loop.create_future()
    waiters = frame.waiters.setdefault(name, deque())
    waiters.append(future)
    try:
        return await future
    except asyncio.CancelledError:
        if future.done() and not future.cancelled():
            frame.put_back_signal(future.result(), name)
        elif future in waiters:
            waiters.remove(future)
        raise
