"""Checkpoints on a server. The contract of each verb is in `outlive._kernel.store.checkpoints`."""

from __future__ import annotations

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.fault import is_cut
from outlive._kernel.store.postgres.pool import Pool
from outlive._kernel.store.postgres.rows import from_text, to_text
from outlive.errors import CommitUnknownError, StoreError


async def append_checkpoint(pool: Pool, run_id: str, row: CheckpointRow) -> bool:
    """Whether the row is there now. If the line is cut, the very same row is sent once more, over another."""
    try:
        return await pool.do(_append, run_id, row, is_write=True)
    except CommitUnknownError as doubt:
        if doubt.__cause__ is None or not is_cut(doubt.__cause__):
            raise
        try:
            return await pool.do(_append, run_id, row, is_write=True)
        except StoreError as error:
            # The second time nothing happened, perhaps; the first is unknown.
            raise doubt from error


async def _append(session: Session, run_id: str, row: CheckpointRow) -> bool:
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
