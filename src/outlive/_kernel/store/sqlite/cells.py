"""Cells: small things that all workers of a store share, changed in the writer's transaction."""

from __future__ import annotations

from typing import Any

from outlive._kernel.store.contract import Action, CellChange
from outlive._kernel.store.sqlite.audit import put_audit
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.writer import each


def _change_cell(session: Session, call: tuple[str, CellChange[Any], Action | None]) -> Any:
    name, change, audit = call
    before = read_cell(session, name)
    after, answer = change(before, session.clock())
    if after != before:
        if after is None:
            session.execute("delete_cell", name)
        else:
            session.execute("put_cell", name, after)
        if audit is not None:
            put_audit(session, [audit])
    return answer


def read_cell(session: Session, name: str) -> bytes | None:
    """The content of a cell; None if it was never written."""
    row = session.fetch("read_cell", name)
    return None if row is None else bytes(row[0])


def list_cells(session: Session, argument: tuple[str | None, int]) -> list[str]:
    """The names of cells that were written."""
    rows: list[Any] = session.execute("list_cells", *argument).fetchall()
    return [name for (name,) in rows]


CHANGE_CELL = each(_change_cell)
"""A change that raises fails its group, and each is then made alone."""
