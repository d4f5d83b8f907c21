"""API keys: created, listed and revoked by principals that may do everything."""

from __future__ import annotations

from msgspec import Struct

from outlive._features.security.key import Scope
from outlive._features.security.key_values import ApiKey, NewKey
from outlive.errors.key import KeyNotFoundError
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Instant, Name, Text


class CreateKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to be made."""

    name: Name
    """The name of the owner; the audit log has everything that is done with the key under this name."""
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


class KeysList(Struct, frozen=True):
    """Keys."""

    items: list[ApiKey]


@operation("keys.create", "POST", "/keys", scope="admin", answers=201)
async def create_key(call: Call, body: CreateKey) -> NewKey:
    """Make a key. Its secret is in the answer, and nowhere else."""
    return await call.engine.keys.create(
        body.name,
        scope=body.scope,
        workflows=body.workflows,
        tags=body.tags,
        queues=body.queues,
        expires=body.expires,
    )


@operation("keys.list", "GET", "/keys", scope="admin")
async def list_keys(call: Call) -> KeysList:
    """All keys, the newest first; also revoked and expired ones."""
    return KeysList(await call.engine.keys.list())


@operation("keys.revoke", "POST", "/keys/{key_id}/revoke", scope="admin", raises=(KeyNotFoundError,))
async def revoke_key(call: Call, key_id: str, body: RevokeKey | None = None) -> ApiKey:
    """Let a key be valid no longer: at once, on all servers. Twice is fine."""
    return await call.engine.keys.revoke(key_id, reason=(body or RevokeKey()).reason)
