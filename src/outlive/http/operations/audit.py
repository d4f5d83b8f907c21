"""The audit log: who did what, and whether anything of it was changed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

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


class ActionView(Struct, frozen=True, kw_only=True):
    """One action."""

    number: int
    at: datetime
    actor: str
    verb: str
    target: str
    reason: str
    key: str
    """The id of the API key that was used."""
    via: str
    address: str
    is_denied: bool
    """Whether it was refused: then nothing was done."""
    hash: str
    """Over this row and the one before it."""


class ActionsPage(Struct, frozen=True):
    """Actions, the newest first."""

    items: list[ActionView]
    next: str | None


class AuditCheckQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to compare with."""

    since: Annotated[str, Meta(max_length=200)] | None = None
    """`head` of an earlier check: rows that were cut off or pruned since are noticed."""
    keep: Annotated[float, Meta(gt=0)] | None = None
    """How many seconds rows are kept; as the server's settings say unless given."""


class AuditCheckView(Struct, frozen=True, kw_only=True):
    """What a check of the log has found."""

    rows: int
    first: int
    head: str
    """Keep it elsewhere, and give it as `since` to a later check."""
    problems: list[str]
    pruned: int
    """How many rows have gone from the beginning, as the log says."""
    pruned_at: datetime | None
    """When the last of them went."""
    pruned_since: int
    """How many of them went after the earlier check."""
    sealed: int
    """The number of the last row that is proven by a key; 0 without a key."""


@operation("audit.list", "GET", "/audit", scope="admin")
async def list_actions(call: Call, query: AuditQuery) -> ActionsPage:
    """What people and keys did, and what they were refused."""
    page = await call.engine.audit.list(
        actor=query.actor,
        verb=query.verb,
        target=query.target,
        since=query.since,
        until=query.until,
        limit=query.limit,
        after=query.after,
    )
    items = [
        ActionView(
            number=entry.number,
            at=entry.at,
            actor=entry.actor,
            verb=entry.verb,
            target=entry.target,
            reason=entry.reason,
            key=entry.key,
            via=entry.via,
            address=entry.address,
            is_denied=entry.is_denied,
            hash=entry.hash,
        )
        for entry in page
    ]
    return ActionsPage(items, page.next)


@operation("audit.verify", "GET", "/audit/verify", scope="admin", waits=True)
async def verify_audit(call: Call, query: AuditCheckQuery) -> AuditCheckView:
    """Check every row of the log against the one before it, and what was pruned against what is to be kept."""
    check = await call.engine.audit.verify(since=query.since, keep=query.keep)
    return AuditCheckView(
        rows=check.rows,
        first=check.first,
        head=check.head,
        problems=list(check.problems),
        pruned=check.pruned,
        pruned_at=check.pruned_at,
        pruned_since=check.pruned_since,
        sealed=check.sealed,
    )
