"""Streams: items of a source, in windows, each of which is one step.

A window opens the source behind the last cursor, takes items until it is full, hands what became of them to `flush`,
and is journaled with the cursor of its last item. So a crash loses only the window that was not journaled, and flushes
that one again from its beginning; nothing is kept open between two windows that a dead process could take with it.

A cancel does not throw away what was read: the window under way is asked to stop, flushes what it has and is journaled,
and then the machine is cancelled. The stop is said in memory only. It is not a fact: a worker that dies meanwhile is
replaced by one that, by its journal, comes to say it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import inspect
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from msgspec import UNSET

from outlive._features.machines.answer import Answer, unchanged
from outlive._features.machines.asking import ask
from outlive._features.machines.building import Function, StateBuilder, Targets, cursor_codec
from outlive._features.machines.kinds import Kind
from outlive._features.machines.snapshots import MachineSnapshots
from outlive._features.machines.wire import NULL, StateResult
from outlive._kernel.define.in_step import CURRENT_STEP, current_step
from outlive._kernel.define.resources import WantedResources, count_taken, only_wanted
from outlive._kernel.journal.value import StructCodec, ValueCodec
from outlive._kernel.replay.ask import current_execution, this_execution
from outlive._kernel.replay.call import StepCall
from outlive._kernel.replay.frame import SCOPE
from outlive._tasks import cancel_all
from outlive.errors import DefinitionError

ALL = "all"
OVER = object()
"""The item of a source that has no more items."""


class StreamCursor(msgspec.Struct, omit_defaults=True):
    """How far a stream came."""

    at: msgspec.Raw = NULL
    """The cursor of the last item."""
    bad: int = 0
    """How many items in a row have failed up to here."""


STREAM_CURSOR = StructCodec(StreamCursor | None, "the cursor of a stream")


class Stops:
    """Windows that are to stop, by run and state."""

    def __init__(self) -> None:
        self._asked: set[tuple[str, str]] = set()
        self._waiting: dict[tuple[str, str], asyncio.Event] = {}

    def ask(self, key: tuple[str, str]) -> None:
        """Tell a window to stop, under way or not yet begun."""
        self._asked.add(key)
        if key in self._waiting:
            self._waiting[key].set()

    def forget(self, key: tuple[str, str]) -> None:
        """It has stopped."""
        self._asked.discard(key)

    @contextlib.contextmanager
    def heard(self, key: tuple[str, str]) -> Any:
        """The event that a window looks at."""
        event = self._waiting[key] = asyncio.Event()
        if key in self._asked:
            event.set()
        try:
            yield event
        finally:
            if self._waiting.get(key) is event:
                del self._waiting[key]


STOPS = Stops()


class Window:
    """The function of the step: one window."""

    def __init__(
        self,
        name: str,
        answer: Answer,
        cursor: ValueCodec,
        *,
        source: Function,
        process: Function,
        flush: Function,
        then: str,
        items: int,
        seconds: float | None,
        tolerate: int | str,
        wanted: WantedResources | None,
    ) -> None:
        for fn in (process, flush):
            if not inspect.iscoroutinefunction(fn):
                raise DefinitionError(f"{name}: {fn.__qualname__} must be async: write `async def {fn.__name__}`")
        if not inspect.isasyncgenfunction(source):
            raise DefinitionError(f"{name}: {source.__qualname__} must be an async generator of (cursor, item)")
        self._name = name
        self._answer = answer
        self._cursor = cursor
        self._source, self._process, self._flush = source, process, flush
        self._source_takes = count_taken(name, source, 2, wanted=wanted)
        self._flush_takes = count_taken(name, flush, 2, wanted=wanted)
        if not count_taken(name, process, 1, wanted=wanted):
            raise DefinitionError(f"{name}: {process.__qualname__} must take one argument, an item")
        self._then = then
        self._items, self._seconds, self._tolerate = items, seconds, tolerate

    async def run(self, data: Any, position: StreamCursor | None, **resources: Any) -> StateResult:
        """Read, process, flush; each with the resources that it wants."""
        source_fn, process, flush = (only_wanted(fn, resources) for fn in (self._source, self._process, self._flush))
        position, outputs = position or StreamCursor(), list[Any]()
        cursor = self._cursor.decode(position.at, f"cursor of {self._name}")
        step = None if CURRENT_STEP.get(None) is None else current_step()
        source: AsyncGenerator[Any, None] = source_fn(*(data, cursor)[: self._source_takes])
        with STOPS.heard(("", "") if step is None else (step.run_id, step.name)) as stop:
            try:
                position, is_over = await self._fill(source, process, position, outputs, stop)
            finally:
                await source.aclose()
        returned = await flush(*(data, outputs)[: self._flush_takes]) if outputs else None
        if returned is not None:
            return self._answer.read(data, returned)
        stays = self._answer.stay(data, UNSET if is_over else msgspec.Raw(STREAM_CURSOR.encode(position, self._name)))
        return msgspec.structs.replace(stays, to=self._then) if is_over else stays

    async def _fill(
        self,
        source: AsyncGenerator[Any, None],
        process: Function,
        position: StreamCursor,
        outputs: list[Any],
        stop: asyncio.Event,
    ) -> tuple[StreamCursor, bool]:
        """Take items until the window is full or late or asked to stop; and whether the source is over."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.ensure_future(stop.wait())
        coming: asyncio.Future[Any] | None = None
        until: float | None = None
        taken = 0
        try:
            while taken < self._items and not stop.is_set() and (until is None or loop.time() < until):
                coming = asyncio.ensure_future(anext(source, OVER))
                left = None if until is None else until - loop.time()
                await asyncio.wait({coming, stopping}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    break
                found = coming.result()
                if found is OVER:
                    return position, True
                cursor, item = self._taken_apart(found)
                position = StreamCursor(
                    msgspec.Raw(self._cursor.encode(cursor, f"cursor of {self._name}")),
                    await self._handle(process, item, position.bad, outputs),
                )
                taken += 1
                # An idle source makes no windows: time begins with the first item.
                if until is None and self._seconds is not None:
                    until = loop.time() + self._seconds
        finally:
            stopping.cancel()
            if coming is not None and not coming.done():
                # Even if the window itself is cancelled, because its time is over or its worker stops: a source that
                # still runs cannot be closed, and is closed next.
                await cancel_all([coming])
                if not coming.cancelled():
                    coming.result()
        return position, False

    def _taken_apart(self, found: Any) -> tuple[Any, Any]:
        if not isinstance(found, tuple) or len(found) != 2:
            raise self._answer.refused(f"{found!r} from its source", "(cursor, item)")
        return found

    async def _handle(self, process: Function, item: Any, bad: int, outputs: list[Any]) -> int:
        """How many items in a row have failed now."""
        try:
            outputs.append(await process(item))
        except Exception:  # A tolerated error is dropped, whatever it is.
            if self._tolerate != ALL and bad + 1 > int(self._tolerate):
                raise
            return bad + 1
        return 0


class StreamState(Kind):
    """Windows, one after the other."""

    word = "stream"
    offers_snapshots = True

    def __init__(
        self,
        builder: StateBuilder,
        to: Targets,
        *,
        source: Function,
        process: Function,
        flush: Function,
        then: enum.Enum,
        items: int,
        seconds: float | None,
        tolerate: int | str,
        **options: Any,
    ) -> None:
        answer = builder.answer(flush, to)
        super().__init__(builder.name, None if answer.to is None else answer.to | {then.name}, flush)
        wanted = builder.wanted_by(source, process, flush)
        window = Window(
            self.name,
            answer,
            cursor_codec(source),
            source=source,
            process=process,
            flush=flush,
            then=then.name,
            items=items,
            seconds=seconds,
            tolerate=tolerate,
            wanted=wanted,
        )
        self._step = builder.step(
            window.run,
            wanted=wanted,
            codecs=(STREAM_CURSOR,),
            finish=lambda values, result: unchanged(result, values[-1]),
            keeps_raw=True,
            **options,
        )

    async def leave(self, data: msgspec.Raw, snapshots: MachineSnapshots) -> StateResult:
        """See `Kind`."""
        cursor = snapshots.take_cursor()
        while True:
            await snapshots.take_if_due(data, cursor)
            result = await self._window(data, cursor)
            data = result.data_after(data)
            if result.to:
                return msgspec.structs.replace(result, data=data)
            if isinstance(result.cursor, msgspec.Raw):
                cursor = result.cursor

    async def _window(self, data: msgspec.Raw, cursor: msgspec.Raw) -> StateResult:
        result: StateResult
        if current_execution() is None:
            result = await ask(self._step, data, cursor)
            return result
        window = asyncio.ensure_future(ask(self._step, data, cursor))
        try:
            result = await asyncio.shield(window)
        except asyncio.CancelledError:
            await self._stop(window)
            window.cancel()
            raise
        return result

    async def _stop(self, window: asyncio.Future[Any]) -> None:
        """Wait for what the window under way still has, however often the wait is cancelled."""
        execution, frame = this_execution("a stream"), SCOPE.get().frame
        asked = [call for call in execution.calls.values() if isinstance(call, StepCall)]
        mine = [call for call in asked if call.command.step is self._step and call.command.run == frame.number]
        if not mine or mine[0].command.not_before_at > execution.loop.now_at:
            return  # It waits for a limit, for a breaker or for its next attempt, and has read nothing.
        given_up = mine[0].attempt_failed = execution.loop.create_future()
        key = (frame.id, self.name)
        STOPS.ask(key)
        try:
            while not (window.done() or given_up.done()):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([window, given_up], return_when=asyncio.FIRST_COMPLETED)
        finally:
            STOPS.forget(key)
        if window.done() and not window.cancelled():
            window.exception()
