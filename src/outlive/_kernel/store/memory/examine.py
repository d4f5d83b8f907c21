"""The eyes of a checker on dictionaries. The contract of each verb is in `outlive._kernel.store.examine`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Watch
from outlive._kernel.store.examine import HANDLE_MIN, InboxRow, ItemRows, Repair, RunRow, StreamRows, TreeRows
from outlive._kernel.store.memory.state import MemoryState, Stream, Tree


class MemoryExaminer:
    """Looks at one state."""

    def __init__(
        self,
        state: MemoryState,
        *,
        put_run: Callable[[Tree, Run], None],
        wake_for_inbox: Callable[[Tree], None],
        now: Callable[[], int],
    ) -> None:
        self._state, self._put_run, self._wake_for_inbox, self._now = state, put_run, wake_for_inbox, now

    async def check_database(self) -> list[str]:
        """See `Examiner`."""
        return [f"run {id} is known and in no tree" for id, run in self._state.runs.items() if self._is_lost(run)]

    def _is_lost(self, run: Run) -> bool:
        tree = self._state.trees.get(run.journal)
        return tree is None or tree.runs.get(run.number) is not run

    async def list_journals(self, *, after: int = HANDLE_MIN, limit: int) -> list[int]:
        """See `Examiner`."""
        return sorted(journal for journal in self._state.trees if journal > after)[:limit]

    async def examine(self, journals: Sequence[int]) -> list[TreeRows]:
        """See `Examiner`."""
        return [self._examine(self._state.trees.get(journal) or Tree(journal)) for journal in journals]

    def _examine(self, tree: Tree) -> TreeRows:
        tail = tree.rows[-1][0] if tree.rows else -1
        indexes: dict[int, list[int]] = {}
        for run, index in sorted(tree.items):
            indexes.setdefault(run, []).append(index)
        return TreeRows(
            journal=tree.journal,
            runs=tuple(self._row_of(tree, number) for number in sorted(tree.runs)),
            tail=tail,
            count=len(tree.rows),
            lasts=((tail, 1),) if tree.is_over else (),
            inbox=tuple(
                InboxRow(id=it.id, run=it.run, kind=it.kind.value, key=it.key, is_remembered=it.key in tree.keys)
                for it in tree.inbox.values()
            ),
            items=tuple(
                ItemRows(run=run, count=len(found), first=found[0], last=found[-1]) for run, found in indexes.items()
            ),
            streams=tuple(_stream_rows(*key, tree.streams[key]) for key in sorted(tree.streams)),
            keys=tuple(sorted(tree.keys)),
            answered=tuple(sorted(tree.answers)),
        )

    def _row_of(self, tree: Tree, number: int) -> RunRow:
        run = tree.runs[number]
        key = tree.journal if number == 0 else -number
        return RunRow(key=key, journal=run.journal, number=number, id=run.id, root_id=run.root_id, run=run)

    async def list_watches(self, *, after: tuple[str, str] = ("", ""), limit: int) -> list[Watch]:
        """See `Examiner`."""
        watches = {(it.run_id, it.watcher): it for kept in self._state.watches.values() for it in kept.values()}
        return [watches[place] for place in sorted(watches) if place > after][:limit]

    async def list_checkpoints(self, *, after: bytes = b"", limit: int) -> list[bytes]:
        """See `Examiner`."""
        ids = (run_id.encode() for run_id, rows in self._state.checkpoints.items() if rows)
        return sorted(run_id for run_id in ids if run_id > after)[:limit]

    async def list_cells(self, *, after: str | None = None, limit: int) -> list[str]:
        """See `Examiner`."""
        return sorted(name for name in self._state.cells if after is None or name > after)[:limit]

    async def repair(self, repair: Repair) -> bool:
        """See `Examiner`."""
        tree = self._state.trees.get(repair.journal)
        if tree is None or not tree.rows or tree.rows[-1][0] != repair.after:
            return False
        own = {run.id for run in tree.runs.values()}
        if any(run.id in self._state.runs and run.id not in own for _, run in repair.runs):
            return False
        for key in repair.removed:
            self._state.runs.pop(tree.runs.pop(-key).id, None)
        for _, run in repair.runs:
            if (before := tree.runs.get(run.number)) is not None:
                self._state.runs.setdefault(before.id, before)
            self._put_run(tree, run)
        if not tree.is_over:
            self._state.active[tree.journal] = tree
        self._wake_for_inbox(tree)
        is_stopped = tree.is_over or tree.root.status is RunStatus.PARKED
        if repair.wake and not is_stopped and (tree.root.wake_at is None or tree.root.wake_at > self._now()):
            self._put_run(tree, replace(tree.root, wake_at=self._now()))
        return True


def _stream_rows(run: int, name: str, stream: Stream) -> StreamRows:
    begins = [1, *(chunk.first + chunk.count for chunk in stream.chunks)]
    gaps = sum(chunk.first != begin for chunk, begin in zip(stream.chunks, begins, strict=False))
    items = sum(chunk.count for chunk in stream.chunks)
    return StreamRows(
        run=run, name=name, position=stream.state.position, number=stream.state.number, items=items, gaps=gaps
    )
