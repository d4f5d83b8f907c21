"""The checkpoints of users' programs, not those of the WAL. The contract: `outlive._kernel.store.checkpoints`."""

from __future__ import annotations

from typing import Any

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import each


def _append(session: Session, call: tuple[str, CheckpointRow]) -> bool:
    run_id, row = call
    return session.fetch("append_checkpoint", run_id, *row) is not None


def _clear(session: Session, run_id: str) -> None:
    session.execute("clear_checkpoints", run_id)


def read_checkpoints(session: Session, run_id: str) -> list[CheckpointRow]:
    """The rows of a run."""
    rows: list[Any] = session.execute("read_checkpoints", run_id).fetchall()
    return rows


def list_checkpoints(session: Session, argument: tuple[bytes, int]) -> list[bytes]:
    """The ids of runs that have any."""
    rows: list[Any] = session.execute("list_checkpoints", *argument).fetchall()
    return [run_id for (run_id,) in rows]


APPEND_CHECKPOINT = each(_append)
CLEAR_CHECKPOINTS = each(_clear)
