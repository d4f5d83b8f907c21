"""`engine.audit`: who did what, from the store, and whether the log is whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from outlive._features.security.audit_chain import Chain, Head, entry_of
from outlive._features.security.audit_values import AuditCheck, AuditEntry
from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import ACTING, acting
from outlive._kernel.client.finding import Page
from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.retention import KeepAudit
from outlive._kernel.store.audit import Action, AuditFilter, AuditRow, decode_action
from outlive._kernel.store.contract import PAGE_SIZE_MAX
from outlive.errors import InvalidArgumentError

NUMBER_DIGITS_MAX = 18
"""The limit for the number of a row; a store can keep one digit more."""


class AuditLog:
    """Lists and checks what was done."""

    def __init__(self, access: Access, keep: KeepAudit | None = None) -> None:
        self._access, self._keep = access, keep

    acting = staticmethod(acting)

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
        """Actions, the newest first, a page at a time.

        Args:
            target: the id of a run, the name of a workflow, a schedule, a queue, a flow or a sink, the id of a key, or
                `*` for the whole store.
            after: `next` of the page before.
        """
        where = "engine.audit.list"
        given.whole(where, "limit", limit, most=PAGE_SIZE_MAX)
        wanted = AuditFilter(
            actor=_text(where, "actor", actor),
            verb=_text(where, "verb", verb),
            target=_text(where, "target", target),
            since_at=_at(where, "since", since),
            until_at=_at(where, "until", until),
        )
        if after is not None and not (after.isascii() and after.isdigit() and len(after) <= NUMBER_DIGITS_MAX):
            raise InvalidArgumentError(where, "after", after, "give `next` of the page before")
        rows = await self._access.store.list_audit(wanted, before=None if after is None else int(after), limit=limit)
        return Page([entry_of(row) for row in rows], next=str(rows[-1].number) if len(rows) == limit else None)

    async def verify(
        self, *, since: str | None = None, keep: given.Span | None = None, key: bytes | None = None
    ) -> AuditCheck:
        """Check every row of the log against the one before it, and what was pruned against what was to be kept.

        Who can write to the store can also write a log that is whole by itself: one whose end was cut off, whose
        beginning was cut off behind a row that says it was pruned, or another one from the beginning. The `head` of an
        earlier check, given as `since`, shows the first and the last, and what was pruned since. A `key` that the store
        does not have shows all three, if workers have it too (`KeepAudit`). What cannot be shown is a problem.

        Args:
            since: the `head` of an earlier check.
            keep: how long rows stay; as the `KeepAudit` of this engine unless given.
            key: what the workers seal the log with; that of the `KeepAudit` of this engine unless given.
        """
        where = "engine.audit.verify"
        known = None if since is None else Head.read(where, since)
        own = self._keep
        span = own.keep if keep is None and own is not None else keep
        secret = own.key if key is None and own is not None else key
        kept = None if span is None and secret is None else KeepAudit(span, secret)
        check = Chain(known, kept, now_at=self._access.store.now())
        after = 0
        while rows := await self._access.store.read_audit(after=after, limit=PAGE_SIZE_MAX):
            for row in rows:
                check.take(row)
            after = rows[-1].number
        return check.done()

    async def _has_done(self, request: str, target: str) -> bool:
        """Whether something was done to a target by a request that its sender named (`acting(request=...)`).

        It is looked for among the newest actions on that target. An action is in the log if and only if it happened, so
        a request whose answer was lost finds out here.
        """
        rows = await self._access.timed_store.list_audit(AuditFilter(target=target), limit=PAGE_SIZE_MAX)
        return any(request in row.body and _is_by(row, request) for row in rows)

    async def _record(self, verb: str, target: str = "", *, reason: str = "", is_denied: bool = False) -> None:
        """Write something into the log that wrote nothing else: an export, an attempt. Nothing is written if no
        principal acts (`engine.audit.acting`)."""
        where, principal = "engine.audit.record", ACTING.get()
        verb = given.text(where, "verb", verb, like="export")
        target = given.text(where, "target", target, like="order-42", least=0)
        reason = given.text(where, "reason", reason, like="", least=0, most=given.TEXT_CHARACTERS_MAX)
        if principal is not None:
            await self._access.timed_store.append_audit([principal.action(verb, target, reason, is_denied=is_denied)])

    async def _append(self, actions: Sequence[Action]) -> None:
        """Write several actions, each with its actor."""
        await self._access.timed_store.append_audit(actions)


def _is_by(row: AuditRow, request: str) -> bool:
    try:
        action = decode_action(row.body)
    except msgspec.MsgspecError:
        return False
    return action.request == request and not action.is_denied


def _text(where: str, name: str, value: object) -> str | None:
    return None if value is None else given.text(where, name, value, like="ann", most=given.KEY_CHARACTERS_MAX)


def _at(where: str, name: str, value: datetime | None) -> int | None:
    return None if value is None else round(given.instant(where, name, value).timestamp() * MICROSECONDS)
