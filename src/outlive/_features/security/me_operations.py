"""The principal of a request, and its rights."""

from __future__ import annotations

from msgspec import Struct

from outlive.http.operation import OPERATIONS, Call, operation


class MeView(Struct, frozen=True, kw_only=True):
    """The principal that asks."""

    name: str
    """The owner of the key, or what a proxy says; `local` for programs of this machine."""
    scopes: list[str]
    workflows: list[str] | None
    """The only workflows that it may see and use; null for all."""
    tags: dict[str, str]
    """It may see and use only runs with all of these tags, and what it starts has them; empty for all runs."""
    namespace: str
    """The tenant whose runs it sees; empty for the one of the server."""
    operations: list[str]
    """The operations that it may use, by their names in the OpenAPI document."""


@operation("me.get", "GET", "/me", scope="viewer", reach="nothing")
async def get_me(call: Call) -> MeView:
    """The principal of this request, with its scopes, and the operations that it may use."""
    own = call.principal
    return MeView(
        name=own.name,
        scopes=sorted(own.scopes),
        workflows=None if own.workflows is None else sorted(own.workflows),
        tags=own.tags,
        namespace=own.namespace,
        operations=sorted(it.name for it in OPERATIONS.values() if own.may_use(it.scope, it.reach)),
    )
