"""The part of a store's contract that is about streams: what runs emit while they go on, for readers.

A stream belongs to a run and has a name. Its items have positions 1, 2, 3, ... in the order in which they were
appended. They are not part of the journal and no fold of it: they lie beside it, go on with the next generation of a
run, and are deleted with their run. A store keeps lines of items in chunks and never looks into a line
(`outlive._kernel.journal.stream`); small lines share a chunk, so that a stream of single words costs a few dozen rows.

There are two ways in. What a workflow emits is a part of the change that holds the event which led to it
(`Change.streams`): both are there or neither. What a step emits is appended while the step runs (`append_streams`), and
only the owner of the tree may do so.

Why nothing comes twice: a line of a workflow has a number, which rises along the journal, and a store leaves a line out
whose number is not above that of the last one. An append of a step has a mark, which rises too, from append to append
of one writer, and a store leaves out one whose mark is not above that of the last one by the same writer. So each may
be repeated by a writer that never got its answer, and may arrive once more when that writer has gone on.

Every sentence of a docstring is checked by `outlive_conformance.suite.streams` on every backend.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

CHUNK_BYTES_MAX = 960
"""A line joins the last chunk of its stream if both have no more bytes than this. Four of these fit into a page of
SQLite and eight into one of PostgreSQL, which keeps the versions of such a row within the page."""
CHUNKS_READ_MAX = 256
MARK_BITS = 32
"""How many bits of a mark count the appends of its writer."""


class StreamLine(msgspec.Struct, frozen=True):
    """A line of items, sealed."""

    body: bytes
    count: int
    """How many items it has."""
    head: bytes
    """Written before it, unless the last head in its chunk is the same."""
    size: int
    """How many bytes it counts, with those of a blob that it refers to."""
    number: int = 0
    """The number of a line of a workflow: higher than that of every earlier line of its run. 0 for a step."""


class StreamLines(msgspec.Struct, frozen=True, kw_only=True):
    """The lines that a run adds to one of its streams at one moment."""

    run: int
    """The number of the run in its tree."""
    name: str
    lines: tuple[StreamLine, ...]


class StreamAppend(msgspec.Struct, frozen=True, kw_only=True):
    """An append to a stream by the owner of a tree while a step runs."""

    journal: int
    epoch: int
    """The claim by which the writer owns the tree."""
    mark: int
    """Above that of every earlier append of the same writer: its upper half is the writer (`writer_of`)."""
    said: StreamLines


class StreamLimits(NamedTuple):
    """The limits for all streams of one run together."""

    streams_max: int
    items_max: int
    bytes_max: int


class Appended(enum.Enum):
    """The outcome of an append."""

    APPENDED = "appended"
    LOST = "lost"
    """The tree was claimed again since, or has ended."""
    FULL = "full"
    """The run has more streams, items or bytes than it may have."""


class StreamChunk(msgspec.Struct, frozen=True):
    """Some lines of a stream, one after the other."""

    first: int
    """The position of the first item in it."""
    count: int
    """How many items it has."""
    body: bytes


class StreamTable(Protocol):
    """The streams of runs."""

    async def append_streams(self, appends: Sequence[StreamAppend], *, limits: StreamLimits) -> list[Appended]:
        """Append to streams, in one transaction; for each append, in order, what became of it. No two appends of a call
        are for the same stream.

        Appends are judged one by one: `LOST` if the tree is unknown, has ended or has another epoch, and `FULL` if the
        run would have more than `limits` allow; nothing of such an append is written. An append whose mark is not above
        that of the last one of its stream, by the same writer, is there already, is not written again, and is answered
        alike. The head of a line stands
        before it if it is the first one of its chunk, or if the line before it in there has another head. Behind an
        append of one epoch no append of an earlier epoch comes.

        Raises:
            StoreUnavailableError: nothing was written.
            CommitUnknownError: all of it was written or nothing; the very same appends may be repeated.
        """

    async def read_stream(
        self, run_id: str, name: str, *, after: int = 0, limit: int = CHUNKS_READ_MAX
    ) -> list[StreamChunk]:
        """The chunks of a stream that have items behind position `after`, in order, at most `limit`; the first one may
        have items before it too. Empty for an unknown run or stream."""

    async def list_streams(self, run_id: str) -> dict[str, int]:
        """The streams of a run by name, in order, each with the position of its last item. Empty for an unknown run."""

    def follow(self, ring: Callable[[str], None]) -> bool:
        """Call `ring` with the id of a root run, on the event loop, when another process may have appended to a stream
        of its tree or committed a change that `rings`. A hint that may be lost, late or false. A store without such a
        thing says False, and never calls."""


class StreamState(NamedTuple):
    """Where a stream ends."""

    position: int = 0
    items: int = 0
    """Since this generation of its run began."""
    size: int = 0
    """In bytes."""
    mark: int = 0
    number: int = 0
    tail: int = 0
    """The position at which its last chunk begins."""
    tail_bytes: int = 0
    head: bytes = b""
    """The last head in that chunk."""


class StreamGrowth(NamedTuple):
    """The growth of a stream by some lines."""

    state: StreamState
    extension: tuple[int, bytes]
    """The part that joins the last chunk: how many items, and their lines."""
    chunks: list[StreamChunk]
    """New chunks."""


def new_marks(nonce: int) -> int:
    """The first mark of a writer, who is known by some bits of a random number."""
    return (nonce % (1 << MARK_BITS - 1)) << MARK_BITS | 1


def writer_of(mark: int) -> int:
    """The writer of the append with this mark."""
    return mark >> MARK_BITS


def is_there(state: StreamState, mark: int) -> bool:
    """Whether an append with this mark was written before."""
    return bool(mark) and writer_of(mark) == writer_of(state.mark) and mark <= state.mark


def grow(state: StreamState, lines: Sequence[StreamLine], *, mark: int = 0) -> StreamGrowth | None:
    """The growth of a stream when these lines are appended; None if it has all of them. (PostgreSQL decides in
    functions/append_streams.sql.)"""
    if is_there(state, mark):
        return None
    extension, chunks = (0, b""), list[StreamChunk]()
    position, items, size, _, number, tail, tail_bytes, head = state
    grown = False
    for line in lines:
        if line.number and line.number <= number:
            continue
        grown = True
        body = line.body if line.head == head else line.head + line.body
        if tail and tail_bytes + len(body) <= CHUNK_BYTES_MAX:
            if chunks:
                last = chunks.pop()
                chunks.append(StreamChunk(last.first, last.count + line.count, last.body + body))
            else:
                extension = extension[0] + line.count, extension[1] + body
            tail_bytes += len(body)
        else:
            body = line.head + line.body
            tail, tail_bytes = position + 1, len(body)
            chunks.append(StreamChunk(tail, line.count, body))
        head = line.head
        position, items, size = position + line.count, items + line.count, size + line.size
        number = max(number, line.number)
    if not grown:
        return None
    return StreamGrowth(
        StreamState(position, items, size, mark or state.mark, number, tail, tail_bytes, head), extension, chunks
    )


def fits(limits: StreamLimits, lines: Sequence[StreamLine], *, streams: int, items: int, size: int) -> bool:
    """Whether a run that has so much may append these lines; `streams` counts their own stream."""
    return (
        streams <= limits.streams_max
        and items + sum(line.count for line in lines) <= limits.items_max
        and size + sum(line.size for line in lines) <= limits.bytes_max
    )
