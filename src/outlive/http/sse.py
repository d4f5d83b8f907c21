"""Server-sent events: what follows a run, or a list of runs, live.

Every message has an id, which says how far its reader has come. A reader that was cut off sends the last one it has
seen as `Last-Event-ID` (a browser does so by itself) and gets what came after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from outlive._kernel.client.news import News, Position
from outlive._kernel.model import Failure
from outlive._kernel.values.event import PAYLOAD_BYTES_MAX, event_of
from outlive._kernel.values.run import Status, run_of
from outlive._tasks import cancel_all, own_task
from outlive.engine.view import View
from outlive.errors import RunParkedError
from outlive.http.problem import malformed
from outlive.http.wire.page import SEQ_MAX

ALIVE_SECONDS = 15.0
"""How often a silent stream says that it is still there."""
QUEUE_MAX = 200
"""How many messages wait for a slow reader; then what makes them waits too."""
ID_CHARACTERS_MAX = 4_000
NUMBER_MAX = 2**63 - 1
NUMBER_DIGITS_MAX = len(str(NUMBER_MAX))
ITEMS = "items"
"""The name, in a cursor, of the items of a batch."""
ALIVE = b": alive\n\n"
FIRST = b"retry: 2000\n\n"
"""How many milliseconds a browser waits before it comes again."""
_encode = msgspec.json.Encoder(enc_hook=str).encode


def message(name: str, data: Any, id: str = "") -> bytes:
    """One message. JSON has no line ends, so data is one line."""
    mark = f"id: {id}\n".encode() if id else b""
    return b"event: " + name.encode() + b"\n" + mark + b"data: " + _encode(data) + b"\n\n"


class Cursor(msgspec.Struct):
    """How far a reader of a run has come: in its journal, and in its streams."""

    position: Position = Position()
    streams: dict[str, int] = {}

    def write(self) -> str:
        """The cursor as the id of a message: `7.12;tokens=34`."""
        streams = "".join(f";{quote(name, safe='')}={place}" for name, place in sorted(self.streams.items()))
        return f"{self.position.journal}.{self.position.seq}{streams}"


def read_cursor(text: str) -> Cursor:
    """Read the cursor that a reader sends as `Last-Event-ID`.

    Raises:
        Problem: it is none of ours.
    """
    if not text:
        return Cursor()
    try:
        if len(text) > ID_CHARACTERS_MAX:
            raise ValueError
        place, *streams = text.split(";")
        journal, _, seq = place.partition(".")
        pairs = [each.rpartition("=") for each in streams]
        found = {unquote(name, errors="strict"): _whole(count, least=-1) for name, _, count in pairs}
        return Cursor(Position(_whole(journal), _whole(seq, least=-1, most=SEQ_MAX)), found)
    except ValueError:
        raise malformed("Last-Event-ID is not the id of a message of this stream") from None


def _whole(text: str, *, least: int = 0, most: int = NUMBER_MAX) -> int:
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > NUMBER_DIGITS_MAX:
        raise ValueError(text)
    if not least <= int(text) <= most:
        raise ValueError(text)
    return int(text)


# -- One run ------------------------------------------------------------------------------------------------------


class StreamEnd(msgspec.Struct, frozen=True):
    """The run has ended, and its stream with it."""

    position: int
    """The position of the last item that was sent."""


class BatchEnd(msgspec.Struct, frozen=True):
    """A batch has ended, or nothing more comes of it for now."""

    status: Status
    parked: str | None
    """The run that has to be resumed before more comes; null if the batch has ended."""
    reason: str
    """Why that run is parked, or why the batch was cancelled."""


class Part(msgspec.Struct, frozen=True):
    """A message on its way to its reader, and how far that one has come with it."""

    name: str
    data: Any
    position: Position | None = None
    stream: str = ""
    place: int = 0


async def follow_run(
    view: View, run_id: str, cursor: Cursor, *, look_seconds: float, payload_bytes: int = PAYLOAD_BYTES_MAX
) -> AsyncGenerator[bytes, None]:
    """Everything that happens to a run, until it has ended; also its streams that the cursor names."""
    parts: asyncio.Queue[Any] = asyncio.Queue(QUEUE_MAX)
    pumps = [_pump_news(view, run_id, cursor.position, parts, look_seconds, payload_bytes)]
    pumps += [_pump_stream(view, run_id, name, place, parts, look_seconds) for name, place in cursor.streams.items()]
    async with aclosing(_merged(pumps, parts, cursor)) as merged:
        async for part in merged:
            yield part
    yield message("end", await view.run(run_id), cursor.write())


async def follow_stream(
    view: View, run_id: str, name: str, after: int, *, look_seconds: float
) -> AsyncGenerator[bytes, None]:
    """The items of one stream behind a position, until the run has ended."""
    parts: asyncio.Queue[Any] = asyncio.Queue(QUEUE_MAX)
    cursor = Cursor(streams={name: after})
    pump = _pump_stream(view, run_id, name, after, parts, look_seconds)
    async with aclosing(_merged([pump], parts, cursor)) as merged:
        async for part in merged:
            yield part
    yield message("end", StreamEnd(cursor.streams[name]), cursor.write())


async def follow_items(
    view: View, batch_id: str, after: int, show: Callable[[int, Any, Failure | None], Any]
) -> AsyncGenerator[bytes, None]:
    """The items of a batch behind a place, as they finish, until it has ended or is parked; each as `show` makes it."""
    parts: asyncio.Queue[Any] = asyncio.Queue(QUEUE_MAX)
    cursor = Cursor(streams={ITEMS: after})
    parked: list[RunParkedError] = []
    async with aclosing(_merged([_pump_items(view, batch_id, after, parts, show, parked)], parts, cursor)) as merged:
        async for part in merged:
            yield part
    run = await view.run(batch_id)
    end = BatchEnd(run.status, None, run.reason)
    if parked:
        end = BatchEnd(run.status, parked[0].run_id, parked[0].reason)
    yield message("end", end, cursor.write())


async def _pump_items(
    view: View,
    batch_id: str,
    after: int,
    parts: asyncio.Queue[Any],
    show: Callable[[int, Any, Failure | None], Any],
    parked: list[RunParkedError],
) -> None:
    try:
        async with aclosing(view.items_as_they_finish(batch_id, after=after)) as items:
            async for item, seen_to in items:
                await parts.put(Part("item", show(*item), stream=ITEMS, place=seen_to))
    except RunParkedError as error:
        parked.append(error)


async def _merged(
    pumps: list[Coroutine[Any, Any, None]], parts: asyncio.Queue[Any], cursor: Cursor
) -> AsyncGenerator[bytes, None]:
    """The parts that several pumps put into a queue, until all of them have ended; a sign of life after a while of
    silence."""
    yield FIRST
    tasks = [own_task(pump, name="outlive-http-pump") for pump in pumps]
    ended = own_task(_say_ended(tasks, parts), name="outlive-http-pumps")
    try:
        while (part := await _next(parts)) is not None:
            if isinstance(part, BaseException):
                raise part
            if isinstance(part, Part):
                # Here and not where it is made: an id never counts what is sent after it.
                if part.position is not None:
                    cursor.position = part.position
                if part.stream:
                    cursor.streams[part.stream] = part.place
                yield message(part.name, part.data, cursor.write())
            else:
                yield ALIVE
    finally:
        await cancel_all([*tasks, ended])


async def _next(parts: asyncio.Queue[Any]) -> Any:
    if not parts.empty():
        return parts.get_nowait()
    waiting = asyncio.ensure_future(parts.get())
    try:
        done, _ = await asyncio.wait([waiting], timeout=ALIVE_SECONDS)
        return waiting.result() if done else ALIVE
    finally:
        waiting.cancel()


async def _say_ended(tasks: list[asyncio.Task[None]], parts: asyncio.Queue[Any]) -> None:
    """Say that all pumps have ended, or what one of them has failed with."""
    done = await asyncio.gather(*tasks, return_exceptions=True)
    await parts.put(next((each for each in done if isinstance(each, BaseException)), None))


async def _pump_news(
    view: View,
    run_id: str,
    position: Position,
    parts: asyncio.Queue[Any],
    look_seconds: float,
    payload_bytes: int,
) -> None:
    async with aclosing(view.follow(run_id, position, look_seconds=look_seconds)) as news:
        async for each in news:
            if (part := _part_of(each, payload_bytes)) is not None:
                await parts.put(part)


def _part_of(news: News, payload_bytes: int) -> Part | None:
    if news.event is not None:
        seq, root_id = news.position.seq, news.run.root_id
        return Part("journal", event_of(seq, news.event, root_id, payload_bytes=payload_bytes), news.position)
    if news.published is not None:
        return Part("published", news.published)
    return Part("run", run_of(news.run)) if news.is_row else None


async def _pump_stream(
    view: View, run_id: str, name: str, after: int, parts: asyncio.Queue[Any], look_seconds: float
) -> None:
    place = after
    while True:
        try:
            async with aclosing(view.stream(run_id, name, after=place)) as items:
                async for item in items:
                    place = item.position
                    shown = msgspec.structs.replace(item, value=view.plain_of(item.value))
                    await parts.put(Part("stream", shown, stream=name, place=place))
        except RunParkedError:
            # Its events after it goes on are followed too.
            await view.rest(run_id, look_seconds)
        else:
            return
