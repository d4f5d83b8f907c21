"""The audit log: who did what, and whether anything of it was changed."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from outlive._features.security.audit_values import AuditCheck, AuditEntry
from outlive.http.operation import Call, operation
from outlive.http.wire.page import Instant, Key, Limit, Name


class AuditQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which actions are meant."""

    actor: Name | None = None
    verb: Name | None = None
    target: Key | None = None
    """The id of a run or of a key, the name of a workflow, a schedule, a queue or a flow."""
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 100
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}$")] | None = None
    """`next` of the page before."""


class ActionsPage(Struct, frozen=True):
    """Actions, the newest first."""

    items: list[AuditEntry]
    next: str | None


class AuditCheckQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The check to compare with."""

    since: Annotated[str, Meta(max_length=200)] | None = None
    """`head` of an earlier check: rows that were cut off or pruned since are noticed."""
    keep: Annotated[float, Meta(gt=0)] | None = None
    """How many seconds rows are kept; as the server's settings say unless given."""


@operation("audit.list", "GET", "/audit", scope="admin")
async def list_actions(call: Call, query: AuditQuery) -> ActionsPage:
    """The actions of people and keys, also refused ones."""
    page = await call.engine.audit.list(
        actor=query.actor,
        verb=query.verb,
        target=query.target,
        since=query.since,
        until=query.until,
        limit=query.limit,
        after=query.after,
    )
    return ActionsPage(page, page.next)


@operation("audit.verify", "GET", "/audit/verify", scope="admin", waits=True)
async def verify_audit(call: Call, query: AuditCheckQuery) -> AuditCheck:
    """Check every row of the log against the one before it, and what was pruned against what is to be kept."""
    return await call.engine.audit.verify(since=query.since, keep=query.keep)
