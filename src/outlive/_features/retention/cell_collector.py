"""Removes cells that say nothing any more, in every worker: page by page, once a day.

Of most kinds of cells there are few: one for each queue, one for each flow. Some have names that come from data, and
would become more and more: a rate limit or a breaker for each customer, the bursts of a workflow, links of approvals. A
cell of these kinds goes when it says no more than if it had never been written. That is judged in the transaction that
removes it, so a cell that is used at that moment stays.
"""

from __future__ import annotations

from functools import partial

import msgspec

from outlive._kernel.model.cells import Cells, cell_table
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.services.turns import read_turns, take_turn
from outlive._kernel.store.contract import Store
from outlive.telemetry import Counters, log

CELL_TURNS_CELL = "outlive.cells"
ROUND = 24 * 3_600 * MICROSECONDS
TURN_SECONDS = 60.0
PAUSE_SECONDS = 0.5
CELLS_AT_ONCE = 100


class Walk(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a walk over the cells has come."""

    next_at: int = 0
    """When the next turn is; while a worker has one, when that is taken from it."""
    after: str = ""
    """The cell behind which it goes on."""


class CellCollector:
    """Removes what can be forgotten. Safe in every worker of a store at once."""

    name = "cell collector"

    def __init__(self, store: Store, *, counters: Counters) -> None:
        self._store, self._counters = store, counters

    async def run_once(self) -> float:
        """Take a turn, if it is time for one; seconds until the next."""
        now = self._store.now()
        seen = read_turns(Walk, await self._store.read_cell(CELL_TURNS_CELL))
        if seen.next_at > now:
            return (seen.next_at - now) / MICROSECONDS
        taken: Walk | None = await self._store.change_cell(CELL_TURNS_CELL, partial(take_turn, Walk, TURN_SECONDS))
        if taken is None:
            return PAUSE_SECONDS
        after = await self._go_on(taken.after)
        pause = ROUND if after is None else round(PAUSE_SECONDS * MICROSECONDS)
        walk = Walk(next_at=self._store.now() + pause, after=after or "")
        await self._store.change_cell(CELL_TURNS_CELL, lambda *_: (msgspec.json.encode(walk), None))
        return pause / MICROSECONDS

    async def _go_on(self, after: str) -> str | None:
        """Look at the next cells; the last of them, or None if there are no more."""
        several = [it for it in cell_table() if it.left is not None]
        cells = next((it for it in several if it.name >= after or after.startswith(it.name)), None)
        if cells is None:
            return None
        names = await self._store.examiner.list_cells(after=max(after, cells.name), limit=CELLS_AT_ONCE)
        own = [name for name in names if cells.has(name)]
        removed = [name for name in own if await self._store.change_cell(name, partial(_left, cells))]
        self._counters.cells_removed += len(removed)
        if removed:
            log.info("%d cells were removed that said nothing any more, of %s", len(removed), cells.name)
        if len(own) == CELLS_AT_ONCE:
            return own[-1]
        return next((it.name for it in several if it.name > cells.name), None)


def _left(cells: Cells, data: bytes | None, now_at: int) -> tuple[bytes | None, bool]:
    """The content that a cell keeps, and whether the cell was removed."""
    assert cells.left is not None
    kept = None if data is None else cells.left(data, now_at)
    return kept, data is not None and kept is None
