"""Streams of runs on a server. The contract of each verb is in `outlive._kernel.store.streams`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.rows import from_text, to_text
from outlive._kernel.store.streams import Appended, StreamAppend, StreamChunk, StreamLimits, StreamLines
from outlive._kernel.store.tables.rows import to_json


def channel_of(schema: str) -> str:
    """Where those listen who follow runs. Not the channel for what is due: every worker listens there, and a run that
    emits would wake them all. A name has 63 bytes at most, as the name of a schema has."""
    return f"outlive_streams_{hashlib.sha256(schema.encode()).hexdigest()[:16]}"


def to_lines(journal: int, said: StreamLines) -> dict[str, Any]:
    """An append as functions/append_streams.sql takes it."""
    lines = [
        {
            "head": line.head.decode(),
            "body": line.body.decode(),
            "count": line.count,
            "size": line.size,
            "number": line.number,
        }
        for line in said.lines
    ]
    return {"journal": journal, "run": said.run, "name": to_text(said.name), "lines": lines}


async def append_streams(
    session: Session, appends: Sequence[StreamAppend], limits: StreamLimits, channel: str | None
) -> list[Appended]:
    """Append, and ring for the readers of the trees."""
    values = [to_lines(it.journal, it.said) | {"epoch": it.epoch, "mark": it.mark} for it in appends]
    ((answers,),) = await session.fetch("append_streams", to_json(values), list(limits), channel)
    return [Appended(answer) for answer in answers]


async def read_stream(session: Session, run_id: str, name: str, after: int, limit: int) -> list[StreamChunk]:
    """Chunks of a stream behind a position."""
    rows = await session.fetch("read_stream", to_text(run_id), to_text(name), after, limit)
    return [StreamChunk(first, count, body) for first, count, body in rows]


async def list_streams(session: Session, run_id: str) -> dict[str, int]:
    """The streams of a run, and where each ends."""
    rows = await session.fetch("list_streams", to_text(run_id))
    return dict(sorted((from_text(name), position) for name, position in rows))
