"""`engine.events` through a server."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any

from outlive._features.events.values import Sink
from outlive._kernel.model.trigger import Sent, TriggerInfo
from outlive.remote.connection import Connection
from outlive.remote.values import refuse_of_store


class RemoteEvents:
    """`engine.events`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def send(
        self,
        event_type: str,
        data: Any = None,
        *,
        id: str | None = None,
        source: str = "",
        headers: Mapping[str, str] | None = None,
        connection: Any = None,
    ) -> Sent:
        """See `Events`."""
        refuse_of_store("engine.events.send", connection=connection)
        body = {"type": event_type, "data": data, "id": id, "source": source, "headers": headers}
        found: Sent = await self._connection.operate("events.send", body=body)
        return found

    async def triggers(self) -> list[TriggerInfo]:
        """The workflows that events and webhooks start, by name."""
        items: builtins.list[TriggerInfo] = (await self._connection.operate("events.triggers")).items
        return items

    async def forget(self, workflow: str) -> None:
        """See `Events.forget`."""
        await self._connection.operate("events.forget", workflow=workflow)

    async def add_sink(self, name: str, url: str, *, types: Sequence[str] = ("*",), secret: str | None = None) -> None:
        """See `Events.add_sink`."""
        await self._connection.operate(
            "events.add_sink", body={"url": url, "types": list(types), "secret": secret}, name=name
        )

    async def remove_sink(self, name: str) -> None:
        """See `Events.remove_sink`."""
        await self._connection.operate("events.remove_sink", name=name)

    async def sinks(self) -> list[Sink]:
        """All sinks, by name."""
        items: builtins.list[Sink] = (await self._connection.operate("events.sinks")).items
        return items
