"""API keys as people and programs see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from outlive._features.security.key import Scope


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret, which cannot be seen again."""

    id: str
    name: str
    """The name of the owner: the actor of everything that is done with the key."""
    scope: Scope
    workflows: tuple[str, ...] | None
    """The only workflows that it may see and use; None for all."""
    tags: dict[str, str]
    """It may see and use only runs with all of these tags, and what it starts has them; empty for all runs."""
    queues: tuple[str, ...] | None
    """The only queues that a worker may claim tasks from; None for all."""
    status: Literal["active", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None
    """When it is valid no longer; None for never."""
    revoked_at: datetime | None
    last_used_at: datetime | None
    """To the minute."""

    def __repr__(self) -> str:
        return f"<ApiKey {self.id} of {self.name}: {self.scope}, {self.status}>"


class NewKey(msgspec.Struct, frozen=True):
    """A key that was just made. Its secret is here and nowhere else."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"<NewKey {self.key.id} of {self.key.name}: {self.key.scope}>"
