"""Deletes blobs that no row names any more, in every worker: page by page, once a day.

Why no blob is lost is written in `_kernel.store.deleting`. How far a round has come is in a cell that all workers
share, so that a worker goes on where another one was killed. What it does twice does no harm.

One reference no store can see: a batch knows the rows of chunks that have not begun by name only, inside of its own
arguments (`outlive._features.batches.workflows`). They are read here. If that fails, nothing is deleted.
"""

from __future__ import annotations

from functools import partial

import msgspec

from outlive._features.batches.workflows import BATCH
from outlive._kernel.journal.codec import creation_in
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.services.turns import read_turns, take_turn
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive._kernel.store.deleting import BLOB_GRACE
from outlive.telemetry import Counters, log

BLOBS_CELL = "outlive.blobs"
ROUND = 24 * 3_600 * MICROSECONDS
TURN_SECONDS = 60.0
PAUSE_SECONDS = 0.5
ROWS_AT_ONCE = 5_000
BLOBS_AT_ONCE = 20


class Round(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a round has come."""

    next_at: int = 0
    """When the next turn is; while a worker has one, when that is taken from it."""
    began_at: int = 0
    """0: none is under way."""
    after: str = ""
    """Where references are read next."""
    is_read: bool = False
    """Whether all were."""


class BlobCollector:
    """Deletes blobs without an owner. Safe in every worker of a store at once."""

    name = "blob collector"

    def __init__(self, store: Store, *, packer: Packer, counters: Counters) -> None:
        self._store, self._packer, self._counters = store, packer, counters

    async def run_once(self) -> float:
        """Take a turn, if it is time for one; seconds until the next."""
        now = self._store.now()
        seen = read_turns(Round, await self._store.read_cell(BLOBS_CELL))
        if seen.next_at > now:
            return (seen.next_at - now) / MICROSECONDS
        taken: Round | None = await self._store.change_cell(BLOBS_CELL, partial(take_turn, Round, TURN_SECONDS))
        if taken is None:
            return PAUSE_SECONDS
        after = await self._go_on(taken)
        await self._store.change_cell(BLOBS_CELL, lambda data, at: (msgspec.json.encode(after), None))
        return max(PAUSE_SECONDS, (after.next_at - self._store.now()) / MICROSECONDS)

    async def _go_on(self, taken: Round) -> Round:
        now = self._store.now()
        soon = now + round(PAUSE_SECONDS * MICROSECONDS)
        if not taken.began_at:
            return Round(next_at=soon, began_at=now)
        if not taken.is_read:
            found = await self._store.find_references(after=taken.after, limit=ROWS_AT_ONCE)
            await self._store.keep_blobs(found.ids)
            if found.next is not None:
                return msgspec.structs.replace(taken, next_at=soon, after=found.next)
            await self._keep_rows_of_batches()
            return Round(next_at=soon, began_at=taken.began_at, is_read=True)
        deleted = await self._store.delete_blobs(kept_before=taken.began_at - BLOB_GRACE, limit=BLOBS_AT_ONCE)
        self._counters.blobs_deleted += deleted
        if deleted:
            log.info("%d blobs were deleted that no run refers to", deleted)
        if deleted == BLOBS_AT_ONCE:
            return msgspec.structs.replace(taken, next_at=soon)
        return Round(next_at=max(soon, taken.began_at + ROUND))

    async def _keep_rows_of_batches(self) -> None:
        """Say of the rows of all batches that they are in use."""
        place: tuple[int, str] | None = None
        wanted = RunFilter(workflow=BATCH.name, roots_only=True)
        while page := await self._store.list_runs(wanted, limit=PAGE_SIZE_MAX, after=place, oldest_first=True):
            place = page[-1].created_at, page[-1].id
            for run in page:
                await self._keep_rows(run)

    async def _keep_rows(self, batch: Run) -> None:
        rows = await self._store.read_journal(batch.journal, limit=1)
        if not rows:
            return  # It was deleted meanwhile.
        payload = creation_in(rows[0], nonce=batch.nonce, run_id=batch.root_id).input
        blobs = await self._store.get_blobs([payload.blob]) if payload.blob else {}
        (plan,), _ = BATCH.signature.decode(self._packer.unpack(payload, blobs))
        await self._store.keep_blobs({chunk.payload.blob for chunk in plan.chunks if chunk.payload.blob})
