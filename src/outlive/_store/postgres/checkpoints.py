"""Checkpoints on a server. What each verb promises is written in `outlive._store.checkpoints`."""

from __future__ import annotations

from outlive._journal.checkpoint import CheckpointRow
from outlive._store.postgres.connection import Session
from outlive._store.postgres.rows import from_text, to_text


async def append_checkpoint(session: Session, run_id: str, row: CheckpointRow) -> bool:
    """Whether the row is there now. May be asked twice: the very same row is there once."""
    return bool(await session.fetch("append_checkpoint", to_text(run_id), *row))


async def read_checkpoints(session: Session, run_id: str) -> list[CheckpointRow]:
    """The rows of a run."""
    rows = await session.fetch("read_checkpoints", to_text(run_id))
    return [(sequence, format_, crc, body, output) for sequence, format_, crc, body, output in rows]


async def clear_checkpoints(session: Session, run_id: str) -> None:
    """Remove the rows of a run."""
    await session.fetch("clear_checkpoints", to_text(run_id))


async def list_checkpoints(session: Session, after: bytes, limit: int) -> list[bytes]:
    """The ids of runs that have any."""
    rows = await session.fetch("list_checkpoints", to_text(after.decode()), limit)
    return [from_text(run_id).encode() for (run_id,) in rows]
