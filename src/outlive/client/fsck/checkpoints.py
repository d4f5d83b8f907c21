"""Checkpoints of users' programs: each row by its own checksum, because nothing else in the store speaks of them.

A row never changes, so one look is enough, also while others append and clear. A row that is missing cannot be known:
numbers may have gaps.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from outlive._journal.checkpoint import open_checkpoint
from outlive._store.contract import Store
from outlive.client.fsck.problem import Kind, Problem
from outlive.errors import CorruptCheckpointError, FormatTooNewError

RUNS_MAX = 100
"""Ids that are listed at once."""


async def find_damaged_checkpoints(store: Store) -> AsyncIterator[Problem]:
    """Every row that is not what was written, or that this release cannot read."""
    after = b""
    while page := await store.examiner.list_checkpoints(after=after, limit=RUNS_MAX):
        for raw in page:
            try:
                run_id = raw.decode()
            except UnicodeDecodeError:
                shown = raw.decode("utf-8", "replace")
                yield Problem(shown, "checkpoints of an id that is no text any more", None, Kind.CHECKPOINT)
                continue
            for row in await store.read_checkpoints(run_id):
                try:
                    open_checkpoint(run_id, row)
                except (CorruptCheckpointError, FormatTooNewError) as error:
                    yield Problem(run_id, f"checkpoint {row[0]}: {error.reason}", None, Kind.CHECKPOINT)
        after = page[-1]
