"""API keys: created, listed and revoked by those who may do everything."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

import outlive.errors as e
from outlive._model.key import Scope
from outlive.client.keys import ApiKey
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Instant, Name, Text


class CreateKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be made."""

    name: Name
    """Whose it is; the audit log has what is done with it under this name."""
    scope: Scope = "viewer"
    workflows: list[Name] | None = None
    """The only workflows that it may see and use; null for all."""
    tags: dict[str, str] | None = None
    """It may see and use only runs with all of these tags, and what it starts has them; null for all runs."""
    queues: list[Name] | None = None
    """The only queues that a worker may claim tasks from; null for all."""
    expires: Instant | None = None
    """When it is valid no longer; null for never."""


class RevokeKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a key is revoked."""

    reason: Text = ""


class KeyView(Struct, frozen=True, kw_only=True):
    """A key, without its secret."""

    id: str
    name: str
    scope: Scope
    workflows: list[str] | None
    tags: dict[str, str]
    queues: list[str] | None
    status: Literal["active", "expired", "revoked"]
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    last_used: datetime | None
    """To the minute."""


class NewKeyView(Struct, frozen=True, kw_only=True):
    """A key that was just made."""

    key: KeyView
    secret: str
    """It can be seen only here."""


class KeysList(Struct, frozen=True):
    """Keys."""

    items: list[KeyView]


@operation("keys.create", "POST", "/keys", scope="admin", answers=201)
async def create_key(call: Call, body: CreateKey) -> NewKeyView:
    """Make a key. Its secret is in the answer, and nowhere else."""
    made = await call.engine.keys.create(
        body.name,
        scope=body.scope,
        workflows=body.workflows,
        tags=body.tags,
        queues=body.queues,
        expires=body.expires,
    )
    return NewKeyView(key=_view(made.key), secret=made.secret)


@operation("keys.list", "GET", "/keys", scope="admin")
async def list_keys(call: Call) -> KeysList:
    """All keys, the newest first; also those that were revoked or have expired."""
    return KeysList([_view(key) for key in await call.engine.keys.list()])


@operation("keys.revoke", "POST", "/keys/{key_id}/revoke", scope="admin", raises=(e.KeyNotFoundError,))
async def revoke_key(call: Call, key_id: str, body: RevokeKey | None = None) -> KeyView:
    """Let a key be valid no longer: at once, on all servers. Twice is fine."""
    return _view(await call.engine.keys.revoke(key_id, reason=(body or RevokeKey()).reason))


def _view(key: ApiKey) -> KeyView:
    return KeyView(
        id=key.id,
        name=key.name,
        scope=key.scope,
        workflows=None if key.workflows is None else sorted(key.workflows),
        tags=key.tags,
        queues=None if key.queues is None else sorted(key.queues),
        status=key.status,
        created=key.created,
        expires=key.expires,
        revoked=key.revoked,
        last_used=key.last_used,
    )
