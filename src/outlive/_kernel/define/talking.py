"""How a workflow talks to other runs: signals them, cancels them, waits for their results.

A wait leaves a watch in the store, and the change that ends the other run sends its end. Sending is a step of Outlive's
own, which uses the engine that runs it: so it is in the journal, is tried again while the store is away, and is not
repeated in a replay. The message has a key that is made of the call. If the worker dies between the message and the
journal, the next worker sends the same message again, and the store keeps one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any, Generic, TypeVar, overload

import msgspec

from outlive._kernel.define.in_step import CURRENT_STEP, Verbs
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.event import DetachedEnded
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.journal.value import TAGGED, ValueCodec, codec_for, codec_of_value
from outlive._kernel.model import Retry, given, known_run_id
from outlive._kernel.model.trigger import Sent
from outlive._kernel.replay.ask import end_of, read_or_park, run_step, this_execution
from outlive._kernel.replay.command import StepOptions, StepSpec, WorkflowSpec
from outlive._kernel.replay.ending import result_of
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import CommitUnknownError, EngineClosedError, OutliveError, StoreUnavailableError
from outlive.errors.program import NotInRunError, WorkflowNotFoundError
from outlive.errors.run import SelfWaitError

R = TypeVar("R")
T = TypeVar("T")

_AGAIN = Retry(
    attempts=None,
    first=0.1,
    factor=2,
    cap=10,
    on=(StoreUnavailableError, CommitUnknownError, EngineClosedError),
)
"""For ever, as long as it is the store that is away: what the run wants to say is not lost for that."""
OWN_OPTIONS = StepOptions(retry=_AGAIN)
"""The options of a step with which a workflow talks to other runs."""
ITEMS_MAX = 100
"""Items of a stream of another run that one event of the journal has."""
BYTES_MAX = 256 * 1024
"""The bytes of these items, before the last one."""
MORE_SECONDS = 0.02
"""How long the step that reads them waits for more when it has some."""
_ADVICE = "a workflow (in a step use outlive.current_engine())"


async def signal(run_id: str, name: str, payload: Any = None, *, key: str | None = None) -> None:
    """Send a signal to another run, from a workflow: durable, and delivered once.

    It is buffered there until the run asks for it. When this returns, the other run has it.

    Args:
        key: the same key again, for that run and name, is the same signal, from whichever run or program it comes.

    Raises:
        RunNotFoundError: no run has this id. RunFinishedError: the run has ended. SignalTypeError: its workflow
        declares another type for this signal. InboxFullError: too many messages wait for it already.
    """
    where = "outlive.signal"
    execution = _execution("signal")
    wanted = given.text(where, "name", name, like="paid")
    if key is not None:
        key = given.text(where, "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX)
    data = codec_of_value(payload).encode(payload, f"signal {wanted!r}")
    args = (known_run_id(where, run_id), wanted, data.decode(), key)
    await run_step(execution, _SIGNAL, _SIGNAL.options, args, {})


async def cancel(run_id: str, *, reason: str = "") -> None:
    """Ask another run to stop, from a workflow: durable, and once. See `Engine.cancel`.

    When this returns the request is durable; the other run may still be busy with its `finally` blocks.

    Raises:
        RunNotFoundError: no run has this id. RunFinishedError: it has ended, and was not cancelled.
    """
    where = "outlive.cancel"
    execution = _execution("cancel")
    why = given.text(where, "reason", reason, like="out of stock", least=0, most=given.TEXT_CHARACTERS_MAX)
    await run_step(execution, _CANCEL, _CANCEL.options, (known_run_id(where, run_id), why), {})


async def ask(run_id: str, name: str, body: Any = None, *, key: str | None = None, reply: Any = Any) -> Any:
    """Ask another run something, from a workflow, and wait for its answer: durable, and asked once.

    `asyncio.timeout` bounds the wait; the ask goes on. See `Engine.ask`.

    Args:
        key: the same key again, for that run and name, is the same ask. That of this call unless given.
        reply: the type of the answer; plain values unless given.

    Raises:
        AskFailedError: the answer is an error. AskRefusedError: the other run has ended without an answer.
        RunNotFoundError: no run has this id.
    """
    where = "outlive.ask"
    execution = _execution("ask")
    wanted = given.label(where, name, like="add")
    if key is not None:
        key = given.text(where, "key", key, like="evt_123", most=given.KEY_CHARACTERS_MAX)
    step = _ask_step(Any if reply is Any else given.kind(where, "reply", reply))
    data = codec_of_value(body).encode(body, f"ask {wanted!r}")
    args = (known_run_id(where, run_id), wanted, data.decode(), key)
    return await run_step(execution, step, step.options, args, {})


async def send(event_type: str, data: Any = None, *, id: str | None = None, source: str | None = None) -> Sent:
    """Send an event, from a workflow: durable, and once. See `Events.send`.

    When this returns, the runs that it starts exist. They have the headers of this run too.

    Args:
        data: plain values; dataclasses, msgspec structs and pydantic models become such.
        id: which event it is; that of this call unless given, so it stays the same whatever happens to the worker.
        source: where it comes from; this run unless given.

    Returns:
        The runs that it has started; and the workflows that have a trigger for it and cannot be given the data.
    """
    where = "outlive.events.send"
    execution = _execution("events.send")
    wanted = given.text(where, "event_type", event_type, like="order.created")
    if id is not None:
        id = given.text(where, "id", id, like="evt_123")
    if source is not None:
        source = given.text(where, "source", source, like="shop", least=0)
    data = plain_json(where, data)
    sent: Sent = await run_step(execution, _SEND_EVENT, _SEND_EVENT.options, (wanted, data, id, source), {})
    return sent


class OtherStream(Generic[T]):
    """The items of a stream of another run, for `async for` in a workflow. Each is in the journal before the workflow
    sees it, so a replay reads nothing."""

    def __init__(self, run_id: str, name: str, kind: Any, after: int) -> None:
        self._run_id, self._name, self._kind = run_id, name, kind
        self._after, self._is_over = after, False
        self._read: deque[tuple[int, T]] = deque()

    def __aiter__(self) -> OtherStream[T]:
        return self

    async def __anext__(self) -> T:
        execution = _execution("get")
        while not self._read:
            if self._is_over:
                raise StopAsyncIteration
            step = _stream_step(self._kind)
            items, self._is_over = await run_step(
                execution, step, step.options, (self._run_id, self._name, self._after), {}
            )
            self._read.extend(items)
        self._after, value = self._read.popleft()
        return value


class OtherRun(Generic[R]):
    """Another run, for a workflow, wherever it runs."""

    def __init__(self, run_id: str, codec: ValueCodec | None) -> None:
        self.id = run_id
        self._codec = codec

    async def result(self) -> R:
        """Wait, durably, for its result.

        Raises:
            RunFailedError: the run failed, was cancelled (`RunCancelledError`) or took too long (`RunTimedOutError`).
            One that failed raises its own exception if that is builtin, or named in the `raises` of its workflow.
            RunNotFoundError: no run has this id. ChildRunError: it is a child of another tree and has not ended.
            SelfWaitError: it is this run, or the root of its tree.
        """
        execution = _execution("get")
        if self.id == execution.root_id:
            raise SelfWaitError(SCOPE.get().frame.id, execution.root_id)
        ended = await end_of(execution, self.id)
        spec = _spec_of(execution, ended)
        stored = result_of(ended, () if spec is None else spec.registered)
        codec = self._codec or (TAGGED if spec is None else spec.signature.result)
        result: R = await read_or_park(
            execution, lambda: codec.decode(execution.unpack_foreign(stored), f"result of {self.id}")
        )
        return result

    async def signal(self, name: str, payload: Any = None, *, key: str | None = None) -> None:
        """Send it a signal. See `outlive.signal`."""
        await signal(self.id, name, payload, key=key)

    async def ask(self, name: str, body: Any = None, *, key: str | None = None, reply: Any = Any) -> Any:
        """Ask it something, and wait for its answer. See `outlive.ask`."""
        return await ask(self.id, name, body, key=key, reply=reply)

    async def published(self, key: str | None = None) -> Any:
        """The object that it shows with `outlive.publish`, as it is at the call; empty if it shows none.

        It is in the journal then, and a replay reads nothing.

        Args:
            key: one field of it; waits, durably, until it is published. `asyncio.timeout` bounds the wait.

        Raises:
            RunNotFoundError: no run has this id. RunFinishedError: it has ended and never published the field.
        """
        execution = _execution("get")
        if key is not None:
            key = given.text("outlive.get", "key", key, like="stage")
        return await run_step(execution, _PUBLISHED, _PUBLISHED.options, (self.id, key), {})

    @overload
    def stream(self, name: str, *, after: int = 0) -> OtherStream[Any]: ...
    @overload
    def stream(self, name: str, kind: type[T], *, after: int = 0) -> OtherStream[T]: ...
    def stream(self, name: str, kind: Any = Any, *, after: int = 0) -> OtherStream[Any]:
        """The items that it emits to a stream, in order, from the first on; ends when it has ended.

            async for row in outlive.get("import-7").stream("rows"): ...

        Items that are there together are one event of the journal, at most 100 of them. `asyncio.timeout` bounds the
        wait for the next one.

        Args:
            kind: the type of the items; plain values unless given.
            after: the position of the last item that is known already; the first one has position 1.

        Raises:
            RunNotFoundError: no run has this id. RunParkedError: nothing more comes before it is resumed.
        """
        where = "outlive.get"
        _execution("get")
        wanted = Any if kind is Any else given.kind(where, "kind", kind)
        return OtherStream(
            self.id, given.label(where, name, like="rows"), wanted, given.whole(where, "after", after, least=0)
        )

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to stop. See `outlive.cancel`."""
        await cancel(self.id, reason=reason)

    def __repr__(self) -> str:
        return f"<other run {self.id}>"


@overload
def get(run_id: str) -> OtherRun[Any]: ...
@overload
def get(run_id: str, kind: type[T]) -> OtherRun[T]: ...
def get(run_id: str, kind: Any = None) -> OtherRun[Any]:
    """Another run by its id, from a workflow; whether there is such a run shows when it is used.

    Args:
        kind: the type of its result. Unless given, it is the type that its workflow has in this process, and plain
            values where this process does not have that workflow.
    """
    _execution("get")
    codec = None if kind is None else codec_for(given.kind("outlive.get", "kind", kind))
    return OtherRun(known_run_id("outlive.get", run_id), codec)


def _spec_of(execution: Execution, ended: DetachedEnded) -> WorkflowSpec | None:
    try:
        return execution.resolve(ended.workflow, ended.version)
    except WorkflowNotFoundError:
        return None


def _execution(name: str) -> Execution:
    try:
        return this_execution(name)
    except NotInRunError:
        if CURRENT_STEP.get(None) is None:
            raise
        raise NotInRunError(name, _ADVICE) from None


def _engine() -> tuple[Verbs, str]:
    """The engine that runs this step, and the key of the call."""
    source = CURRENT_STEP.get()
    assert source.engine is not None
    return source.engine, source.context().idempotency_key


async def _send_signal(run_id: str, name: str, data: str, key: str | None) -> None:
    engine, own_key = _engine()
    await engine.signal(run_id, name, msgspec.Raw(data.encode()), key=key or own_key)


async def _send_event(event_type: str, data: Any, id: str | None, source: str | None) -> Sent:
    engine, own_key = _engine()
    me = CURRENT_STEP.get().context()
    where = f"run:{me.run_id}" if source is None else source
    return await engine.events.send(event_type, data, id=id or own_key, source=where, headers=me.headers)


async def _read_published(run_id: str, key: str | None) -> Any:
    engine, _ = _engine()
    run = engine.get(run_id)
    return await (run.published() if key is None else run.published(key))


async def _send_cancel(run_id: str, reason: str) -> None:
    engine, _ = _engine()
    await engine.cancel(run_id, reason=reason)


def _own_step(name: str, fn: Callable[..., Coroutine[Any, Any, Any]]) -> StepSpec:
    assert inspect.iscoroutinefunction(fn)
    return StepSpec(
        name=name,
        fn=fn,
        signature=Signature(fn, name),
        is_async=True,
        options=OWN_OPTIONS,
        registered=(OutliveError,),
    )


_SIGNAL = _own_step("outlive.signal", _send_signal)
_CANCEL = _own_step("outlive.cancel", _send_cancel)
_PUBLISHED = _own_step("outlive.published", _read_published)
_SEND_EVENT = _own_step("outlive.events.send", _send_event)


def _stream_step(kind: Any) -> StepSpec:
    """The step that waits for the next items of a stream, and has them with their positions, and whether these are the
    last, as its result."""

    async def read_stream(run_id: str, name: str, after: int) -> Any:
        engine, _ = _engine()
        items: list[tuple[int, Any]] = []
        size = 0
        async with aclosing(engine.get(run_id).stream(name, kind, after=after, positions=True)) as reader:
            try:
                while len(items) < ITEMS_MAX and size < BYTES_MAX:
                    async with asyncio.timeout(MORE_SECONDS if items else None):
                        item = await anext(reader)
                    items.append((item.position, item.value))
                    size += len(codec_of_value(item.value).encode(item.value, f"stream {name!r}"))
            except StopAsyncIteration:
                return items, True
            except TimeoutError:
                """These are all that there are now."""
        return items, False

    read_stream.__annotations__["return"] = tuple[list[tuple[int, kind]], bool]
    return _own_step("outlive.stream", read_stream)


def _ask_step(reply: Any) -> StepSpec:
    """The step that asks, and has an answer of this type as its result."""

    async def send_ask(run_id: str, name: str, data: str, key: str | None) -> Any:
        engine, own_key = _engine()
        return await engine.ask(run_id, name, msgspec.Raw(data.encode()), key=key or own_key, reply=reply)

    send_ask.__annotations__["return"] = reply
    return _own_step("outlive.ask", send_ask)
