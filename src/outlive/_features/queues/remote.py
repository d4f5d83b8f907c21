"""`engine.queues` through a server."""

from __future__ import annotations

import builtins
from typing import Any

import msgspec

from outlive._features.queues.verbs import changeable_limits
from outlive._kernel.model.queue import Queue, RateTier
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.values.queue import QueueState, rate_tier
from outlive.remote.connection import Connection
from outlive.remote.values import attributed, name_of

LOOK_SECONDS = 0.25
"""How often a queue is looked at that is to be empty."""


class RemoteQueues:
    """`engine.queues`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(self) -> list[QueueState]:
        """See `Queues`."""
        items: builtins.list[QueueState] = (await self._connection.operate("queues.list")).items
        return items

    async def stats(self, queue: Queue | str) -> QueueState:
        """See `Queues`."""
        found: QueueState = await self._connection.operate("queues.stats", name=name_of(queue))
        return found

    async def set(self, queue: Queue | str, **limits: Any) -> None:
        """See `Queues`."""
        body = changeable_limits("engine.queues.set", limits)
        if body.get("rate"):
            body["rate"] = [rate_tier(each) for each in msgspec.convert(body["rate"], list[RateTier])]
        await self._connection.operate("queues.set", body=body, name=name_of(queue))

    async def reset(self, queue: Queue | str) -> None:
        """See `Queues`."""
        await self._connection.operate("queues.reset", name=name_of(queue))

    async def pause(self, queue: Queue | str, *, by: str = "", reason: str = "") -> None:
        """See `Queues`."""
        await self._connection.operate("queues.pause", body=attributed(by, reason), name=name_of(queue))

    async def resume(self, queue: Queue | str) -> None:
        """See `Queues`."""
        await self._connection.operate("queues.resume", name=name_of(queue))

    async def drain(self, queue: Queue | str, *, by: str = "", reason: str = "draining") -> None:
        """See `Queues`."""
        await self.pause(queue, by=by, reason=reason)
        while (await self.stats(queue)).running:
            await Wakeup().sleep(LOOK_SECONDS)
