"""`engine.audit` and `engine.keys` through a server."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from outlive._features.security.audit_values import AuditCheck, AuditEntry
from outlive._features.security.key_values import ApiKey, NewKey
from outlive._kernel.client.finding import Page
from outlive._kernel.model import given
from outlive._kernel.model.instant import instant_of
from outlive._kernel.runtime.clock import SystemClock
from outlive.errors import InvalidArgumentError
from outlive.remote.connection import Connection
from outlive.remote.values import only_given, query_of


class RemoteAudit:
    """`engine.audit`, for the keys of admins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        actor: str | None = None,
        verb: str | None = None,
        target: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[AuditEntry]:
        """See `AuditLog`."""
        filters = only_given({"actor": actor, "verb": verb, "target": target, "since": since, "until": until})
        query = query_of(filters) | {"limit": limit, "after": after}
        found = await self._connection.operate("audit.list", query=query)
        return Page(found.items, next=found.next)

    async def verify(
        self, *, since: str | None = None, keep: given.Span | None = None, key: bytes | None = None
    ) -> AuditCheck:
        """See `AuditLog`. The server has a key if its `KeepAudit` has one; none is sent."""
        where = "engine.audit.verify"
        if key is not None:
            wanted = "it is sent to no server: leave it out, and the server uses its own; or verify the store itself"
            raise InvalidArgumentError(where, "key", "...", wanted)
        seconds = given.some_seconds(where, "keep", keep)
        found: AuditCheck = await self._connection.operate("audit.verify", query={"since": since, "keep": seconds})
        return found


class RemoteKeys:
    """`engine.keys`, for the keys of admins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(
        self,
        name: str,
        *,
        scope: str = "viewer",
        workflows: Collection[str] | None = None,
        tags: Mapping[str, str] | None = None,
        queues: Collection[str] | None = None,
        expires: given.Span | datetime | None = None,
    ) -> NewKey:
        """See `Keys`."""
        until = expires
        if expires is not None and not isinstance(expires, datetime):
            seconds = given.seconds("engine.keys.create", "expires", expires)
            until = instant_of(SystemClock().now()) + timedelta(seconds=seconds)
        names = None if workflows is None else given.texts("engine.keys.create", "workflows", workflows, like="order")
        lines = None if queues is None else given.texts("engine.keys.create", "queues", queues, like="gpu")
        marks = None if tags is None else given.tags("engine.keys.create", tags)
        body = {"name": name, "scope": scope, "workflows": names, "tags": marks, "queues": lines, "expires": until}
        found: NewKey = await self._connection.operate("keys.create", body=body)
        return found

    async def list(self) -> builtins.list[ApiKey]:
        """See `Keys`."""
        items: builtins.list[ApiKey] = (await self._connection.operate("keys.list")).items
        return items

    async def revoke(self, key_id: str, *, reason: str = "") -> ApiKey:
        """See `Keys`."""
        found: ApiKey = await self._connection.operate("keys.revoke", body={"reason": reason}, key_id=key_id)
        return found
