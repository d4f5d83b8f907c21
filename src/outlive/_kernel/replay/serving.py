"""Asks: what a run is asked and answers, each exactly once.

An ask lies in the inbox until the worker makes it an event (`AskReceived`), and is open until the run answers it
(`AskAnswered`, with the answer itself in the same transaction). Whether code has taken it does not matter: one that was
taken and not answered is given to the next generation of the run, and an end of the run leaves it open for good: then
its sender gets an error.

A run that serves a name says how a body is read and which it accepts. The worker asks that (`judge`) before there is an
event: an ask that is refused there leaves nothing in the journal. One that came before the run served its name is
judged when it is taken, and a refusal is an answer like every other one. Once judged, an ask stays so: a replay finds
the refusal, or that the journal goes on behind the ask, and does not call the validator again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from outlive._kernel.journal.event import AskAnswered, AskReceived
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.journal.value import Stored, ValueCodec
from outlive._kernel.model import Failure, Payload
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.replay.ask import read_or_park
from outlive._kernel.replay.ask_queue import AskQueue
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Frame
from outlive.errors import UnreadableError

ANSWER = "@answer"
REFUSAL = "@refusal"

_TO_ORIGIN = "@origin"

Judged = tuple[bool, Failure | None]
"""Whether an ask was looked at before it became an event, and why it is refused."""


def judge(execution: Execution, run: int, name: str, payload: Payload) -> Judged:
    """The verdict of the run on an ask that is not an event yet. An ask that cannot be unpacked here is not judged."""
    frame = execution.frames.get(run)
    queue = None if frame is None else frame.asks.get(name)
    if queue is None or queue.codec is None or execution.is_parked:
        return False, None
    try:
        data = execution.unpack(payload)
    except UnreadableError:
        return False, None  # The key or the blob is missing here: the run is parked when it takes the ask.
    try:
        _read(queue, name, data, is_new=True)
    except Exception as error:  # The validator is the user's, and may raise anything.
        return True, failure_of(error)
    return True, None


def serve(name: str, codec: ValueCodec, validate: Callable[[Any], object] | None) -> AskQueue:
    """From now on this run serves asks of this name."""
    queue = SCOPE.get().frame.asks_of(name)
    queue.codec, queue.validate = codec, validate
    return queue


async def next_ask(execution: Execution, name: str, queue: AskQueue) -> tuple[Any, AskReceived]:
    """The body of the oldest ask of this name that no code has taken, or of the next one; and the ask itself."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    while True:
        event = queue.waiting.popleft() if queue.waiting else await _wait(execution, queue)
        taken = await read_or_park(execution, partial(_read_or_refuse, execution, frame, queue, event))
        if taken is not None:
            return taken[0], event


async def _wait(execution: Execution, queue: AskQueue) -> AskReceived:
    future: asyncio.Future[AskReceived] = execution.loop.create_future()
    queue.waiters.append(future)
    try:
        return await future
    except asyncio.CancelledError:
        if future.done() and not future.cancelled():
            queue.put_back(future.result())
        elif future in queue.waiters:
            queue.waiters.remove(future)
        raise


def _read(queue: AskQueue, name: str, data: Stored, *, is_new: bool) -> Any:
    assert queue.codec is not None
    body = queue.codec.decode(data, f"ask {name!r}")
    if is_new and queue.validate is not None:
        queue.validate(body)
    return body


def _read_or_refuse(execution: Execution, frame: Frame, queue: AskQueue, event: AskReceived) -> tuple[Any] | None:
    """The body of an ask; None if the run refuses it.

    Raises:
        UnreadableError: it cannot be unpacked here, or the journal says that it was read and this code cannot read it.
    """
    call = _call(REFUSAL, event)
    known = execution.ahead.answered.get((frame.number, call))
    failure = None if known is None else known.failure
    if failure is None:
        data = execution.unpack(event.payload)
        is_past = execution.events <= execution.ahead.passed
        try:
            return (_read(queue, event.name, data, is_new=not (is_past or event.checked)),)
        except Exception as error:  # The validator is the user's, and may raise anything.
            if is_past:
                raise
            failure = failure_of(error)
    _record(execution, frame, event, call, failure=failure)
    return None


def is_open(frame: Frame, event: AskReceived) -> bool:
    """Whether an ask has no answer."""
    return frame.asks_of(event.name).is_open(event)


def reply(execution: Execution, frame: Frame, event: AskReceived, data: bytes) -> None:
    """Answer an ask with a value."""
    _record(execution, frame, event, _call(ANSWER, event), data=data)


def fail(execution: Execution, frame: Frame, event: AskReceived, error: BaseException) -> None:
    """Answer an ask with an error."""
    _record(execution, frame, event, _call(ANSWER, event), failure=failure_of(error))


def _call(kind: str, event: AskReceived) -> str:
    call = f"{kind}/{event.name}/{event.key}"
    for _ in range(event.forks):
        call = call_to_origin(call)
    return call


def call_to_origin(call: str) -> str:
    """The call of an answer, as a fork has it that only copies the ask: the fork may be asked with the same key."""
    return _TO_ORIGIN + call


def _record(
    execution: Execution,
    frame: Frame,
    event: AskReceived,
    call: str,
    *,
    data: bytes | None = None,
    failure: Failure | None = None,
) -> None:
    said = f"{failure.type}: {failure.message}".encode() if failure is not None else data or b""
    fact = AskAnswered(
        at=0,
        run=frame.number,
        call=call,
        name=event.name,
        key=event.key,
        failure=failure,
        digest=crc32(said),
        forks=event.forks,
    )
    execution.record(fact if data is None else replace(fact, payload=NO_PAYLOAD), data)
    frame.asks_of(event.name).close(event)


def count_open(frame: Frame) -> int:
    """How many asks have no answer that came under a name which this run serves."""
    return sum(len(queue.open) for queue in frame.asks.values() if queue.codec is not None)
