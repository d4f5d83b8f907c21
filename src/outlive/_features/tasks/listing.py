"""Keeps what remote workers can do, as they say it with each claim, for `engine.workers.steps`.

A claim is made for every task, and what its worker can do hardly ever changes. So the cell of the queue is written when
a claim says something else than the last one that this process has seen, and when half of the time has passed for which
it was written. A claim never fails because of it.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from outlive._kernel.client.workers import QUEUES_LISTED_MAX, cells_of_queues
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.worker_steps import REMOTE_STEPS_CELLS, StepShape, left_of_remote_steps, with_remote
from outlive._kernel.store.contract import Store
from outlive.errors import StoreError
from outlive.telemetry import log

LISTED_SECONDS = 60
"""How long a step stays listed after its worker has claimed, beyond the time for which the claim may wait."""
REMEMBERED_MAX = 1_000
"""How many different claims a process remembers."""

Said = Mapping[str, StepShape | None]
"""The steps of a claim by name, each with its schemas if the worker has said them."""


class RemoteListing:
    """Keeps the list of remote steps of one store."""

    def __init__(self) -> None:
        self._until: OrderedDict[bytes, int] = OrderedDict()
        """Until when claims like this one need not be written again."""

    async def note(self, store: Store, queue: str, said: Said, *, seconds: float) -> None:
        """Keep what a worker of a queue can do; the worker waits so many seconds at most before it claims again."""
        now_at, span = store.now(), round((seconds + LISTED_SECONDS) * MICROSECONDS)
        digest = hashlib.sha256(msgspec.json.encode([queue, said])).digest()
        if not said or self._until.get(digest, 0) > now_at:
            return
        try:
            await self._write(store, REMOTE_STEPS_CELLS + queue, said, until_at=now_at + span)
        except StoreError as error:  # The claim itself meets it too, or the next one writes it.
            log.debug("the steps of a remote worker could not be listed: %s", error)
            return
        self._until[digest] = now_at + span // 2
        self._until.move_to_end(digest)
        if len(self._until) > REMEMBERED_MAX:
            self._until.popitem(last=False)

    async def _write(self, store: Store, cell: str, said: Said, *, until_at: int) -> None:
        if await store.read_cell(cell) is None and not await self._has_room(store):
            return
        await store.change_cell(
            cell, lambda held, now_at: (with_remote(held, said, until_at=until_at, now_at=now_at), None)
        )

    async def _has_room(self, store: Store) -> bool:
        """Whether one more queue can be listed; if there are too many, cells that say nothing any more make room."""
        names = await cells_of_queues(store)
        if len(names) < QUEUES_LISTED_MAX:
            return True
        for name in names:
            await store.change_cell(
                name, lambda held, now_at: (None if held is None else left_of_remote_steps(held, now_at), None)
            )
        return len(await cells_of_queues(store)) < QUEUES_LISTED_MAX
