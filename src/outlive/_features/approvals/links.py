"""`engine.approvals.links`: links with which a person decides on one approval, in one way, once, without a key.

A link is bound to a run, to one request of it, to the decision and to the person whom it was made for. It is not for
another run that takes the id later. Looking at it does nothing, however often: programs that read mail open every link
in it. Its record is a cell with the hash of its secret.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from outlive._features.approvals.deciding import Decider
from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import ACTOR_CHARACTERS_MAX, acting, check_acts_on, doing
from outlive._kernel.client.secret_token import UNKNOWN_HASH, Token, new_token, read_token
from outlive._kernel.model import given
from outlive._kernel.model.approval import Approval
from outlive._kernel.model.given import Span
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.values.approval import LINK_SPAN, ApprovalRequest, DecisionLink, NewLink
from outlive.errors import RunNotFoundError
from outlive.errors.key import LinkRefusedError
from outlive.errors.run import ApprovalClosedError, ApprovalNotFoundError

PREFIX = "old"
LINK_CELLS = "outlive.link/"


class LinkRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of the cell of a link."""

    hash: str
    run_id: str
    name: str
    request: str
    approved: bool
    by: str
    expires_at: int
    used_at: int | None = None
    nonce: int = 0
    """The nonce of the tree, because another run can take its id."""


_decode = msgspec.json.Decoder(LinkRecord).decode


class Links:
    """Makes links, shows what they are for, and decides with them."""

    def __init__(self, access: Access, decider: Decider) -> None:
        self._access, self._decider = access, decider

    async def create(
        self, run_id: str, name: str, *, approved: bool, by: str, expires: Span = LINK_SPAN, request: str | None = None
    ) -> NewLink:
        """Make a link that decides on an approval that a run waits for.

        Args:
            name: of the approval.
            approved: whether it approves, or rejects: make two of them to offer both.
            by: the person whom it is for; the decision and the audit log have this name.
            expires: after how long it is valid no longer; a week unless given.
            request: which of several requests of this name; the open one unless given.

        Raises:
            ApprovalNotFoundError: the run does not wait for it.
        """
        where = "engine.approvals.links.create"
        given.flag(where, "approved", approved)
        by = given.text(where, "by", by, like="ann", most=ACTOR_CHARACTERS_MAX)
        seconds = given.seconds(where, "expires", expires)
        entry, nonce = await self._pending(run_id, name, request)
        store = self._access.store
        token = new_token(PREFIX)
        record = LinkRecord(
            hash=token.hash,
            run_id=entry.run_id,
            name=entry.name,
            request=entry.id,
            approved=approved,
            by=by,
            expires_at=store.now() + round(seconds * MICROSECONDS),
            nonce=nonce,
        )
        with doing("link.create", entry.run_id, f"{'approve' if approved else 'reject'} {entry.name}, for {by}"):
            await store.change_cell(LINK_CELLS + token.id, lambda *_: (msgspec.json.encode(record), None))
        return NewLink(**asdict(_shown(record, entry)), path=f"/decide/{token.text}")

    async def show(self, token: str) -> DecisionLink:
        """The request that a link is for, and the decision that it makes; nothing happens.

        Raises:
            LinkRefusedError: it is not valid, was used, or has expired; or the request is decided or closed.
        """
        _, record = await self._find(token)
        return _shown(record, await self._open(record))

    async def use(self, token: str, *, form: Any = None, comment: str = "") -> Approval[Any]:
        """Decide with a link. Once: then it is used.

        Raises:
            LinkRefusedError: as `show`. ApprovalFormError: the form does not fit; the link can be used again.
        """
        found, record = await self._find(token)
        await self._open(record)
        try:
            with acting(record.by, key=f"link {found.id}", via="link"):
                decided = await self._decider.decide(
                    record.run_id,
                    record.name,
                    approved=record.approved,
                    by=record.by,
                    form=form,
                    comment=comment,
                    request=record.request,
                    nonce=record.nonce,
                )
        except (ApprovalClosedError, ApprovalNotFoundError, RunNotFoundError):
            raise LinkRefusedError from None
        # After the decision, which is durable and the only one: a process that dies here has lost nothing.
        await self._access.timed_store.change_cell(LINK_CELLS + found.id, _use)
        if not decided.is_first:
            raise LinkRefusedError
        return decided

    async def _find(self, text: str) -> tuple[Token, LinkRecord]:
        token = read_token(PREFIX, text)
        if token is None:
            raise LinkRefusedError
        store = self._access.timed_store
        held = await store.read_cell(LINK_CELLS + token.id)
        record = _read(held)
        is_right = token.fits(UNKNOWN_HASH if record is None else record.hash)
        if record is None or not is_right or record.used_at is not None or record.expires_at <= store.now():
            raise LinkRefusedError
        return token, record

    async def _open(self, record: LinkRecord) -> ApprovalRequest:
        try:
            entry, nonce = await self._pending(record.run_id, record.name, record.request)
        except (ApprovalNotFoundError, RunNotFoundError):
            raise LinkRefusedError from None
        if nonce != record.nonce:
            raise LinkRefusedError
        return entry

    async def _pending(self, run_id: str, name: str, request: str | None) -> tuple[ApprovalRequest, int]:
        """An open request, and the nonce of its tree, read first: if another run takes the id meanwhile, the two do not
        fit together, and `decide` refuses them."""
        run = await self._access.info(run_id)
        check_acts_on(await self._access.root_of(run))
        waiting = [entry for entry in await self._decider.entries(run_id) if entry.status == "pending"]
        for entry in waiting:
            if entry.name == name and request in (None, entry.id):
                return entry, run.nonce
        raise ApprovalNotFoundError(
            run_id, name, [f"{entry.run_id} {entry.name}" for entry in waiting], request=request
        )


def _use(held: bytes | None, now_at: int) -> tuple[bytes | None, None]:
    record = _read(held)
    return held if record is None else msgspec.json.encode(replace(record, used_at=now_at)), None


def left_of_link(held: bytes, now_at: int) -> bytes | None:
    """The cell of a link, unless the link has expired: it is refused with its record and without it."""
    record = _read(held)
    return None if record is not None and record.expires_at <= now_at else held


def _read(held: bytes | None) -> LinkRecord | None:
    try:
        return None if held is None else _decode(held)
    except msgspec.MsgspecError:
        return None


def _shown(record: LinkRecord, entry: ApprovalRequest) -> DecisionLink:
    return DecisionLink(
        run_id=record.run_id,
        name=record.name,
        title=entry.title,
        approved=record.approved,
        by=record.by,
        expires=instant_of(record.expires_at),
        has_form=entry.schema is not None,
    )
