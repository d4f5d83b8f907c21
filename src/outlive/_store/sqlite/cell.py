"""Cells: small things that all workers of a store share, changed in the writer's transaction."""

from __future__ import annotations

from typing import Any

from outlive._store.cell import CellChange
from outlive._store.sqlite.connection import Session
from outlive._store.sqlite.writer import WriteVerb


def _change_cells(session: Session, calls: list[tuple[str, CellChange[Any]]], *, careful: bool) -> list[Any]:
    del careful  # A change that raises fails the group, and each is then made alone.
    return [_change_cell(session, name, change) for name, change in calls]


def _change_cell(session: Session, name: str, change: CellChange[Any]) -> Any:
    row = session.fetch("read_cell", name)
    before = None if row is None else bytes(row[0])
    after, answer = change(before, session.clock())
    if after != before:
        session.execute("put_cell", name, after)
    return answer


CHANGE_CELL = WriteVerb(_change_cells)
