"""Rows of the database to values of the model, and back, where PostgreSQL differs from others.

PostgreSQL has no text with a NUL in it, and Python has. The character U+0001 therefore begins an escape in every text
that a user chooses: U+0001 b for a NUL, U+0001 a for itself. Texts without the two, which is to say all texts, lie in
the database as they are. In JSON texts both are escaped by JSON. No id of a run has either of the two, but a caller may
ask for one that has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outlive._kernel.model import Run
from outlive._kernel.store.contract import InboxMessage, WorkerInfo
from outlive._kernel.store.tables import rows
from outlive._kernel.store.tables.rows import to_names


def to_text(text: str) -> str:
    """Text as the database can hold it."""
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1a").replace("\0", "\1b")
    return text


def from_text(text: str) -> str:
    """Text as it was."""
    return text.replace("\1b", "\0").replace("\1a", "\1") if "\1" in text else text


def state_of(run: Run) -> tuple[Any, ...]:
    """The columns that can change while a run lives, in the order of STATE_COLUMNS."""
    return rows.state_of(run, to_text)


def birth_of(run: Run, *, key: int | None, journal: int) -> tuple[Any, ...]:
    """All columns, in the order of RUN_COLUMNS."""
    return rows.birth_of(run, to_text, key=key, journal=journal)


def to_run(row: Sequence[Any]) -> Run:
    """A run from its columns, in the order of RUN_COLUMNS; more columns may follow."""
    return rows.to_run(row, from_text)


def to_inbox_message(row: Sequence[Any]) -> tuple[int, InboxMessage]:
    """A row of read_inbox.sql: the journal, and the message."""
    return rows.to_inbox_message(row, from_text)


def to_worker(row: Sequence[Any]) -> WorkerInfo:
    """A row of list_workers.sql."""
    id, name, definitions, started_at, expires_at, is_live, process, lease, runs = row
    names, fault = to_names(definitions, id)
    return WorkerInfo(
        id=id,
        name=from_text(name),
        definitions=names,
        started_at=started_at,
        expires_at=expires_at,
        is_live=is_live,
        process=from_text(process),
        lease=from_text(lease),
        runs=runs,
        fault=fault,
    )
