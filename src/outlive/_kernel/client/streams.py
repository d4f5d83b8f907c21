"""Reading along with a run: its streams, and what it publishes, from any process.

A reader reads what is there and then waits for a ring (see `followers`). It knows where it is by the position of the
last item, so that another reader, or the same program after its connection was lost, can go on behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any, Generic, TypeVar

import msgspec

from outlive._kernel.client.access import Access
from outlive._kernel.client.followers import Bell, Followers
from outlive._kernel.client.shown import PORTION_BYTES, stored_size
from outlive._kernel.client.why import is_stopped
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.journal.readable import READABLE
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.journal.stream import Source, open_lines
from outlive._kernel.journal.value import Stored, codec_for
from outlive._kernel.model import Run, given
from outlive._kernel.store.streams import CHUNKS_READ_MAX, StreamChunk
from outlive.errors import RunParkedError, StoreUnavailableError, UnreadableError
from outlive.errors.store import StoreMovedError

LOOK_SECONDS = 0.05
"""How often a reader looks if the store cannot ring."""
RUNG_LOOK_SECONDS = 0.25
"""How often it looks if the store can: a ring may be lost."""

T = TypeVar("T")
LookRest = Callable[[Bell, float], Coroutine[Any, Any, None]]
"""Waits until a bell rings, or so many seconds."""
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class StreamItem(msgspec.Struct, Generic[T], frozen=True):
    """An item of a stream, and where it comes from."""

    stream: str
    """The name of the stream."""
    position: int
    """1 for the first; `run.stream(name, after=item.position)` goes on behind it."""
    value: T
    call: str
    """The call of the step that emitted it, as `history` has it; empty for the workflow itself."""
    attempt: int
    """The attempt of that step. Items of an earlier one (`attempt` and `epoch`) of the same call were taken back."""
    epoch: int
    """How often the run had been claimed: a step whose worker was lost is called again with the same attempt."""


def checked_place(name: object, after: object) -> tuple[str, int]:
    """The name of a stream, and a position in it.

    Raises:
        InvalidArgumentError, ArgumentTypeError: they are none.
    """
    where = "run.stream"
    return given.text(where, "name", name, like="tokens"), given.whole(where, "after", after, least=0)


class StreamReader:
    """Reads streams for one client."""

    def __init__(
        self, access: Access, *, followers: Followers, redaction: Redaction, new_rest: Callable[[], LookRest]
    ) -> None:
        self._access = access
        self._followers = followers
        self._redaction = redaction
        self._new_rest = new_rest

    # -- Streams ---------------------------------------------------------------------------------------------

    async def items(
        self, run_id: str, name: str, *, after: int, kind: Any, redacted: bool
    ) -> AsyncGenerator[StreamItem[Any], None]:
        """Items behind a position, until the run has ended. See `RunHandle.stream`."""
        where = "run.stream"
        name, position = checked_place(name, after)
        codec = READABLE if kind is Any else codec_for(given.kind(where, "kind", kind))
        redaction = self._redaction if given.flag(where, "redacted", redacted) else None
        run = await self._access.info(run_id)
        followers, rest, is_over = self._followers, self._new_rest(), run.status.is_terminal
        look_seconds = LOOK_SECONDS if is_over else self._listen()
        with followers.following(run_id) as bell:
            while True:
                bell.clear()
                try:
                    found = await self._access.store.read_stream(run_id, name, after=position)
                    chunks = _portion_of(found, f"stream {name!r} of run {run_id}")
                    items = await self._open(run, name, chunks)
                except StoreMovedError:
                    raise
                except StoreUnavailableError:
                    await rest(bell, look_seconds)  # It is waited for, as by all who wait for a run.
                    continue
                if chunks and (not items or items[-1][0] <= position):
                    what, reason = f"stream {name!r} of run {run.id}", f"none is behind position {position}"
                    raise UnreadableError(what, "items of a stream", reason, advice="restore a backup")
                for place, source, raw in items:
                    if place > position:
                        value = codec.decode(_shown(raw, name, redaction), f"item {place} of stream {name!r}")
                        position = place
                        yield StreamItem(name, place, value, source.call, source.attempt, source.epoch)
                if is_over and not chunks:
                    return
                if is_over or len(found) == CHUNKS_READ_MAX or len(chunks) < len(found):
                    continue
                # Looked at after the read: whatever happens from now on rings. What it said before it ended, or was
                # parked, is read next.
                run, root = await self._look(run)
                is_over = run.status.is_terminal
                if is_stopped(root) and not is_over and not chunks:
                    raise RunParkedError(run_id, root.reason)
                if not is_over and not is_stopped(root):
                    await rest(bell, look_seconds)
                    followers.check_open()

    async def _open(self, run: Run, name: str, chunks: list[StreamChunk]) -> list[tuple[int, Source, msgspec.Raw]]:
        """The items of chunks as JSON, each with its position and whose it is."""
        what = f"stream {name!r} of run {run.id}"
        lines = [(chunk, list(open_lines(chunk.body, what))) for chunk in chunks]
        blobs = await self._access.blobs(payload for _, each in lines for _, payload in each)
        unpack, owners = self._access.packer.unpack, (inbox_mark(run.root_id),)
        found: list[tuple[int, Source, msgspec.Raw]] = []
        for chunk, each in lines:
            items = [
                (source, raw)
                for source, payload in each
                for raw in _decode_items(unpack(payload, blobs, owners=owners))
            ]
            if len(items) != chunk.count:
                reason = f"{chunk.count} items were written from position {chunk.first} on, and {len(items)} are there"
                raise UnreadableError(what, "items of a stream", reason, advice="restore a backup")
            found += [(place, source, raw) for place, (source, raw) in enumerate(items, chunk.first)]
        return found

    # -- What is published -----------------------------------------------------------------------------------

    async def published(self, run_id: str) -> AsyncIterator[dict[str, Any]]:
        """The objects that a run publishes, as they change, until it has ended. See `RunHandle.watch`."""
        before: bytes | None = None
        followers, rest = self._followers, self._new_rest()
        run = await self._access.info(run_id)
        look_seconds = LOOK_SECONDS if run.status.is_terminal else self._listen()
        with followers.following(run_id) as bell:
            while True:
                bell.clear()
                try:
                    run = await self._access.info(run_id)
                    root = await self._access.root_of(run)
                    fields = await self._fields_of(run)
                except StoreMovedError:
                    raise
                except StoreUnavailableError:
                    await rest(bell, look_seconds)
                    continue
                if fields is not None and (shown := msgspec.json.encode(run.published)) != before:
                    before = shown
                    yield fields
                if run.status.is_terminal:
                    return
                if is_stopped(root):
                    raise RunParkedError(run_id, root.reason)
                await rest(bell, look_seconds)
                followers.check_open()

    async def _fields_of(self, run: Run) -> dict[str, Any] | None:
        if run.published is None:
            return None
        fields: dict[str, Any] = READABLE.decode(
            await self._access.unpack(run.published), f"what run {run.id} published"
        )
        return fields

    # -- Looking ---------------------------------------------------------------------------------------------

    def _listen(self) -> float:
        """Let the store ring, and say how often to look all the same. What is written after this rings, so the first
        look comes after it."""
        return RUNG_LOOK_SECONDS if self._followers.begin() else LOOK_SECONDS

    async def _look(self, before: Run) -> tuple[Run, Run]:
        """A run and its root as they are now; if the store is away, as the run was."""
        try:
            run = await self._access.info(before.id)
            return run, await self._access.root_of(run)
        except StoreMovedError:
            raise
        except StoreUnavailableError:
            return before, before


def _shown(raw: msgspec.Raw, name: str, redaction: Redaction | None) -> Stored:
    """An item as it may be seen; the stream is a field of its name."""
    if redaction is None:
        return raw
    return msgspec.json.encode(redaction.hide({name: msgspec.json.decode(raw)})[name])


def _portion_of(chunks: list[StreamChunk], what: str) -> list[StreamChunk]:
    """The first of them, as many as hold so much together; one in any case."""
    size = 0
    for count, chunk in enumerate(chunks):
        size += sum(stored_size(payload) for _, payload in open_lines(chunk.body, what))
        if count and size > PORTION_BYTES:
            return chunks[:count]
    return chunks
