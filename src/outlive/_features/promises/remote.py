"""`engine.promises` through a server."""

from __future__ import annotations

from typing import Any

from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import given
from outlive.errors.base import message_of
from outlive.remote.connection import Connection


class RemotePromises:
    """`engine.promises`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def resolve(self, promise: str, value: Any = None) -> bool:
        """Settle a promise of a run with a value; whether it was this call that settled it."""
        body = {"value": plain_json("engine.promises.resolve", value)}
        is_new: bool = (await self._connection.operate("promises.resolve", body=body, promise_id=promise)).is_new
        return is_new

    async def fail(self, promise: str, error: Exception) -> bool:
        """Settle a promise of a run with an error, which the run gets with its name and its message."""
        given.instance("engine.promises.fail", "error", error, Exception, like='ValueError("no such order")')
        body = {"message": message_of(error), "type": type(error).__name__}
        is_new: bool = (await self._connection.operate("promises.fail", body=body, promise_id=promise)).is_new
        return is_new
