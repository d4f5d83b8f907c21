"""Trees and blobs that are needed no longer. The contract of each verb is in `outlive._kernel.store.deleting`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from outlive._kernel.model.payload import Blob
from outlive._kernel.store.audit import Action
from outlive._kernel.store.deleting import References
from outlive._kernel.store.memory.audit import append_audit
from outlive._kernel.store.memory.state import MemoryState, Tree
from outlive._kernel.store.tables.references import ids_in


class MemoryDeletion:
    """The verbs of a store that delete, and those of blobs."""

    _state: MemoryState

    def now(self) -> int:
        """The clock of the store."""
        raise NotImplementedError

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """Equal content has an equal id."""
        self._put_blobs(blobs)

    def _put_blobs(self, blobs: Sequence[Blob]) -> None:
        for blob in blobs:
            self._state.blobs.setdefault(blob.id, blob.data)
            self._state.blobs_kept[blob.id] = self.now()

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The blobs that exist."""
        return {id: self._state.blobs[id] for id in ids if id in self._state.blobs}

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        """See `Deletion`."""
        gone = delete_trees(self._state, journals, ended_before=ended_before, now=self.now())
        if audit:
            append_audit(self._state, [audit[journal] for journal in gone if journal in audit], self.now())
        return gone

    async def give_back(self) -> bool:
        """See `Deletion`. Python does that by itself."""
        return False

    async def find_references(self, *, after: str = "", limit: int) -> References:
        """See `Deletion`. All at once: nothing can happen in the middle of it."""
        return References(references_of(self._state.trees.values()), None)

    async def keep_blobs(self, ids: Collection[str]) -> None:
        """See `Deletion`."""
        keep_blobs(self._state, ids, self.now())

    async def delete_blobs(self, *, kept_before: int, limit: int) -> int:
        """See `Deletion`."""
        return delete_blobs(self._state, kept_before, limit)


def delete_trees(state: MemoryState, journals: Sequence[int], *, ended_before: int, now: int) -> list[int]:
    """Delete what may go."""
    needed = _needed_ids(state)
    gone = [
        tree
        for journal in dict.fromkeys(journals)
        if (tree := state.trees.get(journal)) is not None
        and _has_ended(tree, ended_before)
        and not _needs_starter(state, tree)
        and not any(run.id in needed for run in tree.runs.values())
    ]
    keep_blobs(state, references_of(gone), now)
    for tree in gone:
        del state.trees[tree.journal]
        for run in tree.runs.values():
            del state.runs[run.id]
        for watchers in state.watches.values():
            watchers.pop(tree.root.id, None)
    return [tree.journal for tree in gone]


def _has_ended(tree: Tree, before: int) -> bool:
    return tree.is_over and tree.root.finished_at is not None and tree.root.finished_at < before


def _needs_starter(state: MemoryState, tree: Tree) -> bool:
    """Whether the run that started it is open; a later generation of that one was born after it."""
    starter = state.runs.get(tree.root.parent_id or "")
    return (
        starter is not None
        and starter.created_at <= tree.root.created_at
        and not state.trees[starter.journal].root.status.is_terminal
    )


def _needed_ids(state: MemoryState) -> set[str]:
    """The names that open runs wait for, and the ids of the runs that started them."""
    ids: set[str] = set()
    for tree in state.active.values():
        ids.update(wait.name for run in tree.runs.values() for wait in run.waits)
        ids.add(tree.root.parent_id or "")
    return ids


def references_of(trees: Iterable[Tree]) -> set[str]:
    """The blobs that these trees refer to."""
    ids: set[str] = set()
    for tree in trees:
        hanging = list(tree.inbox.values()), list(tree.answers.values()), list(tree.items.values())
        ids |= ids_in([msgspec.json.encode(hanging), *(row[3] for row in tree.rows)])
        ids |= ids_in(chunk.body for stream in tree.streams.values() for chunk in stream.chunks)
    return ids


def keep_blobs(state: MemoryState, ids: Collection[str], now: int) -> None:
    """Remember that these blobs are in use."""
    state.blobs_kept.update((id, now) for id in ids if id in state.blobs)


def delete_blobs(state: MemoryState, kept_before: int, limit: int) -> int:
    """Delete blobs that were not remembered for long."""
    gone = [id for id, kept_at in state.blobs_kept.items() if kept_at < kept_before][:limit]
    for id in gone:
        del state.blobs[id], state.blobs_kept[id]
    return len(gone)
