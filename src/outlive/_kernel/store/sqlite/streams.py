"""Streams of runs. The contract of each verb is in `outlive._kernel.store.streams`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import each
from outlive._kernel.store.streams import (
    Appended,
    StreamAppend,
    StreamChunk,
    StreamLimits,
    StreamLines,
    StreamState,
    fits,
    grow,
    is_there,
)


def put_lines(session: Session, journal: int, said: StreamLines, *, mark: int = 0) -> None:
    """Append what a run says to one of its streams."""
    key, state = _find(session, journal, said)
    _grow(session, journal, said, key, state, mark)


def _find(session: Session, journal: int, said: StreamLines) -> tuple[int | None, StreamState]:
    found: Any = session.fetch("find_stream", journal, said.run, said.name)
    return (None, StreamState()) if found is None else (found[0], StreamState(*found[1:]))


def _grow(session: Session, journal: int, said: StreamLines, key: int | None, state: StreamState, mark: int) -> None:
    growth = grow(state, said.lines, mark=mark)
    if growth is None:
        return
    found: Any = session.fetch("put_stream", key, journal, said.run, said.name, *growth.state)
    count, body = growth.extension
    if count:
        session.execute("extend_chunk", found[0], state.tail, count, body)
    for chunk in growth.chunks:
        session.execute("put_chunk", found[0], chunk.first, chunk.count, chunk.body)


def _append(
    session: Session, argument: tuple[Sequence[StreamAppend], StreamLimits]
) -> tuple[list[Appended], list[str]]:
    """The outcomes of the appends, and the ids of the root runs that have more for their readers."""
    appends, limits = argument
    root_ids: list[str] = []
    return [_append_one(session, append, limits, root_ids) for append in appends], root_ids


def _append_one(session: Session, append: StreamAppend, limits: StreamLimits, root_ids: list[str]) -> Appended:
    journal, said = append.journal, append.said
    owned: Any = session.fetch("find_epoch", journal)
    if owned is None or owned[0] != append.epoch:
        return Appended.LOST
    key, state = _find(session, journal, said)
    if not is_there(state, append.mark):
        others: Any = session.fetch("sum_streams", journal, said.run, said.name)
        streams, items, size = others
        if not fits(limits, said.lines, streams=streams + 1, items=items + state.items, size=size + state.size):
            return Appended.FULL
        _grow(session, journal, said, key, state, append.mark)
        root_ids.append(owned[1])
    return Appended.APPENDED


def read_stream(session: Session, argument: tuple[str, str, int, int]) -> list[StreamChunk]:
    """Chunks of a stream behind a position."""
    rows: list[Any] = session.execute("read_stream", *argument).fetchall()
    return [StreamChunk(first, count, body) for first, count, body in rows]


def list_streams(session: Session, run_id: str) -> dict[str, int]:
    """The streams of a run, and where each ends."""
    rows: list[Any] = session.execute("list_streams", run_id).fetchall()
    return dict(rows)


APPEND_STREAMS = each(_append)
