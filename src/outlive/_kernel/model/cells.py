"""The cells of a store, by what they hold.

A cell is a small value with a name, which is changed by compare and swap. Each of them is declared once, with the
features that write it: the audit log asks here which verb a change is, and the collector what may be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One cell, or all cells whose names begin alike."""

    name: str
    """The name of the cell. If it ends with `/`, the names of the cells begin so."""
    holds: str
    """The content, in a few words for people."""
    verb: str = ""
    """The verb of a change in the audit log, unless the caller names another one; empty for cells that people do not
    change."""
    left: Callable[[bytes, int], bytes | None] | None = None
    """The content that still says something at an instant; None if the cell may be removed. Cells without this stay."""
    service: str = ""
    """The service of a worker that looks soon when another process has changed one."""

    def has(self, cell: str) -> bool:
        """Whether a cell is one of these."""
        return cell.startswith(self.name) if self.name.endswith("/") else cell == self.name


_TABLE: dict[str, Cells] = {}


def declare_cells(*cells: Cells) -> None:
    """Add cells to the table."""
    _TABLE.update({it.name: it for it in cells})


def cell_table() -> Sequence[Cells]:
    """All cells, by their names."""
    return sorted(_TABLE.values(), key=lambda it: it.name)


def cells_of(cell: str) -> Cells | None:
    """The entry of a cell; None for a cell that is not in the table."""
    own = _TABLE.get(cell) or _TABLE.get(cell.partition("/")[0] + "/")
    return own if own is not None and own.has(cell) else None
