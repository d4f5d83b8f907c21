"""`engine.keys`: who may use the HTTP API, and for what.

A key is a cell of the store. Each request reads the cell of its key, so a key that is revoked is refused by all servers
from then on, and a store that is away lets no request in. The secret itself is nowhere: the cell has its hash.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec.structs import replace

from outlive._features.security.key import SCOPES, Scope
from outlive._features.security.key_values import ApiKey, NewKey
from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import ACTOR_CHARACTERS_MAX, doing
from outlive._kernel.client.secret_token import UNKNOWN_HASH, new_token, read_token
from outlive._kernel.model import given
from outlive._kernel.model.given import Span
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive._kernel.model.queue import DEFAULT, queue_names
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Store
from outlive._kernel.values.run import when
from outlive.errors import InvalidArgumentError, StoreError
from outlive.errors.key import KeyNotFoundError
from outlive.telemetry import log

PREFIX = "olv"
KEY_CELLS = "outlive.key/"
USE_SECONDS = 60
"""How exact `last_used_at` is: it is written at most once in so long."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of the cell of a key. A key with a bound that this release does not know lets no request in."""

    name: str
    scope: Scope
    hash: str
    created_at: int
    workflows: tuple[str, ...] | None = None
    tags: dict[str, str] = {}
    queues: tuple[str, ...] | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None


_decode = msgspec.json.Decoder(KeyRecord).decode


class Keys:
    """Creates, lists, revokes and checks API keys."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def create(
        self,
        name: str,
        *,
        scope: str = "viewer",
        workflows: Collection[str] | None = None,
        tags: Mapping[str, str] | None = None,
        queues: Collection[str] | None = None,
        expires: Span | datetime | None = None,
    ) -> NewKey:
        """Make a key. Its secret is in the answer, and can be had only there.

        Args:
            name: whose it is; the audit log has what is done with it under this name.
            scope: "viewer" (sees), "operator" (starts, signals, approves, cancels, ...), "admin" (changes what is for
                all: keys, flows, purges), or "worker" (takes steps over HTTP).
            workflows: the only workflows that it may see and use, by name; all unless given. A worker has none.
            tags: it may see and use only runs with all of these tags, and every run that it starts has them; all runs
                unless given. A worker has none.
            queues: the only queues that a worker may claim tasks from, by name; all unless given.
            expires: after how long it is valid no longer, or when; never unless given.
        """
        where = "engine.keys.create"
        name = given.text(where, "name", name, like="ci", most=ACTOR_CHARACTERS_MAX)
        given.one_of(where, "scope", scope, SCOPES)
        marks = _tags(where, tags)
        _check_bounds(where, scope, workflows, marks, queues)
        store = self._access.store
        now_at = store.now()
        token = new_token(PREFIX)
        record = KeyRecord(
            name=name,
            scope=scope,  # type: ignore[arg-type]  # It is one of them.
            hash=token.hash,
            created_at=now_at,
            workflows=None if workflows is None else _workflows(where, workflows),
            tags=marks,
            queues=None if queues is None else _queues(where, queues),
            expires_at=None if expires is None else _expires_at(where, expires, now_at),
        )
        with doing("key.create", token.id, f"{name}, {scope}"):
            await store.change_cell(KEY_CELLS + token.id, lambda *_: (msgspec.json.encode(record), None))
        return NewKey(_shown(token.id, record, now_at), token.text)

    async def list(self) -> builtins.list[ApiKey]:
        """All keys, also revoked and expired ones; the newest first."""
        store = self._access.store
        found: builtins.list[ApiKey] = []
        after = KEY_CELLS
        while True:
            names = await store.examiner.list_cells(after=after, limit=PAGE_SIZE_MAX)
            for cell in names:
                if not cell.startswith(KEY_CELLS):
                    return sorted(found, key=lambda key: (key.created_at, key.id), reverse=True)
                record = _read(cell, await store.read_cell(cell))
                if record is not None:
                    found.append(_shown(cell[len(KEY_CELLS) :], record, store.now()))
            if not names:
                return sorted(found, key=lambda key: (key.created_at, key.id), reverse=True)
            after = names[-1]

    async def revoke(self, key_id: str, *, reason: str = "") -> ApiKey:
        """Let a key be valid no longer: from now on, on all servers. Twice is fine.

        Raises:
            KeyNotFoundError: there is no such key.
        """
        where = "engine.keys.revoke"
        key_id = given.text(where, "key_id", key_id, like="the id that a list of the keys shows")
        reason = given.text(where, "reason", reason, like="lost", least=0, most=given.TEXT_CHARACTERS_MAX)
        cell = KEY_CELLS + key_id

        def revoke(record: KeyRecord, now_at: int) -> KeyRecord:
            return record if record.revoked_at is not None else replace(record, revoked_at=now_at)

        with doing("key.revoke", key_id, reason):
            return await self._change(cell, revoke)

    async def _find(self, secret: str) -> ApiKey | None:
        """The key with this secret, if it is valid now; that it was used is remembered.

        Raises:
            StoreUnavailableError: that cannot be known.
        """
        token = read_token(PREFIX, secret)
        if token is None:
            return None
        store = self._access.timed_store
        cell = KEY_CELLS + token.id
        record = _read(cell, await store.read_cell(cell))
        # An id that does not exist costs equal work.
        is_right = token.fits(UNKNOWN_HASH if record is None else record.hash)
        if record is None or not is_right:
            return None
        key = _shown(token.id, record, store.now())
        if key.status != "active":
            return None
        await self._note_use(cell, record, store.now())
        return key

    async def _note_use(self, cell: str, record: KeyRecord, now_at: int) -> None:
        if record.last_used_at is not None and now_at - record.last_used_at < USE_SECONDS * MICROSECONDS:
            return

        def use(held: bytes | None, at: int) -> tuple[bytes, None]:
            there = _read(cell, held)
            return (held or b"") if there is None else msgspec.json.encode(replace(there, last_used_at=at)), None

        # Not knowing when a key was used is not a reason to refuse it.
        with suppress(StoreError):
            await self._access.timed_store.change_cell(cell, use)

    async def _change(self, cell: str, change: Callable[[KeyRecord, int], KeyRecord]) -> ApiKey:
        key_id = cell[len(KEY_CELLS) :]

        def write(held: bytes | None, now_at: int) -> tuple[bytes, ApiKey]:
            record = _read(cell, held)
            if record is None:
                raise KeyNotFoundError(key_id)
            changed = change(record, now_at)
            return msgspec.json.encode(changed), _shown(key_id, changed, now_at)

        store = self._access.store
        if await store.read_cell(cell) is None:
            raise KeyNotFoundError(key_id)  # A change would make the cell.
        return await store.change_cell(cell, write)


async def is_active(store: Store, key_id: str) -> bool:
    """Whether a key is valid now.

    Raises:
        StoreUnavailableError: that cannot be known.
    """
    record = _read(KEY_CELLS + key_id, await store.read_cell(KEY_CELLS + key_id))
    return record is not None and _shown(key_id, record, store.now()).status == "active"


def _read(cell: str, held: bytes | None) -> KeyRecord | None:
    if held is None:
        return None
    try:
        return _decode(held)
    except msgspec.MsgspecError as error:
        log.error("%s cannot be read, and lets no request in: %s", cell, error)
        return None


def _workflows(where: str, workflows: Collection[str]) -> tuple[str, ...]:
    names = given.texts(where, "workflows", workflows, like="order")
    if not names:
        raise InvalidArgumentError(where, "workflows", workflows, "name at least one, or leave it out for all")
    return tuple(sorted(set(names)))


def _tags(where: str, tags: Mapping[str, str] | None) -> dict[str, str]:
    plain = given.tags(where, tags)
    if tags is not None and not plain:
        raise InvalidArgumentError(where, "tags", tags, "name at least one, or leave it out for all runs")
    if any("=" in name for name in plain):
        raise InvalidArgumentError(where, "tags", tags, "use names of tags without '='")
    return dict(sorted(plain.items()))


def _queues(where: str, queues: Collection[str]) -> tuple[str, ...]:
    names = queue_names(where, given.texts(where, "queues", queues, like="gpu"))
    return tuple(sorted(name or DEFAULT for name in names))


def _check_bounds(where: str, scope: str, workflows: object, tags: object, queues: object) -> None:
    """See that the scope can be bound so: a key that lets nothing in, or more than it seems to, is not made."""
    if scope == "worker" and tags:
        wanted = "a worker takes tasks from queues, whichever run put them there; bind it to queues instead"
        raise InvalidArgumentError(where, "tags", tags, wanted)
    if scope == "worker" and workflows is not None:
        wanted = "a worker takes tasks from queues, whichever workflow put them there; bind it to queues instead"
        raise InvalidArgumentError(where, "workflows", workflows, wanted)
    if scope != "worker" and queues is not None:
        wanted = "only the scope worker is bound to queues; bind this one to workflows, or leave it out"
        raise InvalidArgumentError(where, "queues", queues, wanted)


def _expires_at(where: str, expires: Span | datetime, now_at: int) -> int:
    if isinstance(expires, datetime):
        at = round(given.instant(where, "expires", expires).timestamp() * MICROSECONDS)
        if at <= now_at:
            raise InvalidArgumentError(where, "expires", expires, "it is in the past")
        return at
    return now_at + round(given.seconds(where, "expires", expires) * MICROSECONDS)


def _shown(key_id: str, record: KeyRecord, now_at: int) -> ApiKey:
    is_expired = record.expires_at is not None and record.expires_at <= now_at
    return ApiKey(
        id=key_id,
        name=record.name,
        scope=record.scope,
        workflows=record.workflows,
        tags=dict(record.tags),
        queues=record.queues,
        status="revoked" if record.revoked_at is not None else "expired" if is_expired else "active",
        created_at=instant_of(record.created_at),
        expires_at=when(record.expires_at),
        revoked_at=when(record.revoked_at),
        last_used_at=when(record.last_used_at),
    )
