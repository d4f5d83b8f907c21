"""Checkpoints: rows that a program of its own writes and reads, in the store of an engine or without one.

    async with outlive.checkpoints.open_store("sqlite:app.db") as store:
        rows = await store.load_run("import-7")

`engine.checkpoints` has the same in the store of an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from outlive._features.checkpoints.store import CheckpointStore
from outlive._kernel.client.access import check_loop
from outlive._kernel.journal.packing import Packer, PayloadCodec
from outlive._kernel.model import Limits
from outlive._kernel.model.checkpoint import Checkpoint, CheckpointKind
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.engine.url import store_for
from outlive.errors import StoreError

__all__ = ["Checkpoint", "CheckpointKind", "CheckpointStore", "open_store"]


@asynccontextmanager
async def open_store(
    url: str, *, codecs: Sequence[PayloadCodec] = (), limits: Limits | None = None
) -> AsyncIterator[CheckpointStore]:
    """The checkpoints in a store, for programs that want nothing else of it.

        async with outlive.checkpoints.open_store("sqlite:app.db") as store:
            rows = await store.load_run("import-7")

    No worker is started. Engines and other processes may use the same store meanwhile; with an engine at hand,
    `engine.checkpoints` is the same.

    Args:
        url: as `Engine` takes it.
        codecs: compress or encrypt outputs, in this order; names of states and tasks stay readable.
        limits: only `payload_bytes_max` counts, for one output.
    """
    clock = SystemClock()
    store = store_for(url, clock=clock.now)
    await store.open()
    is_open, loop = True, asyncio.get_running_loop()

    def usable() -> Store:
        if not is_open:
            raise StoreError(
                "these checkpoints were closed; use them inside `async with outlive.checkpoints.open_store(...)`"
            )
        check_loop(loop)
        return store

    try:
        yield CheckpointStore(usable, packer=Packer(limits or Limits(), codecs), nonce=clock.nonce)
    finally:
        is_open = False
        await store.close()
