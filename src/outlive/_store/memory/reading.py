"""Reading from dictionaries. What each verb promises is written in `outlive._store.contract`."""

from __future__ import annotations

from collections.abc import Sequence

from outlive._journal.codec import Row
from outlive._model import Run, RunFilter
from outlive._store.contract import PAGE_SIZE_MAX, Inbound, ItemResult
from outlive._store.memory.state import Cursor, MemoryState, is_wanted


class MemoryReads:
    """The verbs; a part of `MemoryStore`."""

    _state: MemoryState

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[Inbound]]:
        """Ids rise, and a dictionary keeps its order."""
        trees = self._state.trees
        return {id: list(trees[id].inbox.values()) for id in journals if id in trees and trees[id].inbox}

    async def find_mail(self, worker_id: str) -> list[int]:
        """The trees of this worker that have messages."""
        return [tree.journal for tree in self._state.active.values() if tree.inbox and tree.root.owner == worker_id]

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """Rows are dense: where one stands follows from its seq and that of the first."""
        tree = self._state.trees.get(journal)
        rows = tree.rows[max(0, after + 1 - tree.rows[0][0]) :] if tree else []
        return rows if limit is None else rows[:limit]

    async def read_journals(self, journals: Sequence[int]) -> dict[int, list[Row]]:
        """Copies, so that a reader's list does not grow with the journal."""
        return {id: list(self._state.trees[id].rows) for id in journals if id in self._state.trees}

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Those that are there."""
        return {id: self._state.blobs[id] for id in ids if id in self._state.blobs}

    async def find_run(self, run_id: str) -> Run | None:
        """The run with this id, if there is one."""
        return self._state.runs.get(run_id)

    async def find_runs(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """Those that are there."""
        return {id: self._state.runs[id] for id in run_ids if id in self._state.runs}

    async def list_runs(self, filter: RunFilter, *, limit: int = 100, before: Cursor = None) -> list[Run]:  # noqa: A002
        """All runs are looked at."""
        found = [run for run in self._state.runs.values() if is_wanted(run, filter, before)]
        return sorted(found, key=lambda run: (run.created_at, run.id), reverse=True)[: min(limit, PAGE_SIZE_MAX)]

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """All items of the tree are looked at."""
        if (run := self._state.runs.get(run_id)) is None:
            return []
        items = self._state.trees[run.journal].items.values()
        found = [item for item in items if item.run == run.number and item.index > after]
        return sorted(found, key=lambda item: item.index)[: min(limit, PAGE_SIZE_MAX)]
