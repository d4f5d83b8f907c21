"""Tokens that let a page of a browser follow one run: for minutes, read-only, and for nothing else.

A token is bound to a run, to the tree that has this id now, and to the key that it was made with: a key that was
revoked or has expired lets its tokens in no longer. It may be bound to one stream of the run, so that its reader sees
what the run emits there and not its journal. Its record is a cell with the hash of its secret.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from outlive._features.security.keys import is_active
from outlive._kernel.client.access import Access
from outlive._kernel.client.acting import check_acts_on, doing
from outlive._kernel.client.secret_token import UNKNOWN_HASH, new_token, read_token
from outlive._kernel.model import given
from outlive._kernel.model.instant import MICROSECONDS, instant_of
from outlive.errors import RunNotFoundError

PREFIX = "olt"
TOKEN_CELLS = "outlive.token/"
SECONDS_MAX = 3_600


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The content of the cell of a token. A token with a bound that this release does not know lets no request in."""

    hash: str
    run_id: str
    nonce: int
    """The nonce of the tree, because another run can take its id."""
    expires_at: int
    by: str
    """The maker of the token."""
    key: str = ""
    """The id of the API key that it was made with; empty if there was none in the store."""
    stream: str = ""
    """The only stream that it is for; empty for everything that happens to the run."""


class NewRunToken(msgspec.Struct, frozen=True):
    """A token that was just made. It is here and nowhere else."""

    token: str
    """The token that a request sends as `Authorization: Bearer ...`."""
    run_id: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"<NewRunToken for {self.run_id}>"


_decode = msgspec.json.Decoder(TokenRecord).decode


class RunTokens:
    """Makes tokens, and finds what a token is for."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def create(self, run_id: str, *, stream: str, seconds: float, by: str, key: str) -> NewRunToken:
        """Make a token for a run.

        Args:
            stream: the only stream that it is for; empty for everything.
            seconds: how long it is valid.
            by: who makes it, for the audit log.
            key: the id of the API key that it is made with; empty for none.

        Raises:
            RunNotFoundError: no run has this id.
        """
        seconds = given.seconds("runs.create_token", "expires_seconds", seconds)
        run = await self._access.info(run_id)
        check_acts_on(await self._access.root_of(run))
        store = self._access.store
        token = new_token(PREFIX)
        expires_at = store.now() + round(seconds * MICROSECONDS)
        record = TokenRecord(
            hash=token.hash, run_id=run.id, nonce=run.nonce, expires_at=expires_at, by=by, key=key, stream=stream
        )
        with doing("token.create", run.id, f"stream {stream}" if stream else ""):
            await store.change_cell(TOKEN_CELLS + token.id, lambda *_: (msgspec.json.encode(record), None))
        return NewRunToken(token.text, run.id, instant_of(expires_at))

    async def find(self, secret: str) -> TokenRecord | None:
        """The record of a token, if it is valid now; otherwise None.

        Raises:
            StoreUnavailableError: that cannot be known.
        """
        token = read_token(PREFIX, secret)
        if token is None:
            return None
        store = self._access.timed_store
        record = _read(await store.read_cell(TOKEN_CELLS + token.id))
        # An id that does not exist costs equal work.
        is_right = token.fits(UNKNOWN_HASH if record is None else record.hash)
        if record is None or not is_right or record.expires_at <= store.now():
            return None
        if record.key and not await is_active(store, record.key):
            return None
        return record if await self.is_of(record.run_id, record.nonce) else None

    async def is_of(self, run_id: str, nonce: int) -> bool:
        """Whether a token was made for this run, and not for an earlier one of the id."""
        try:
            return (await self._access.info(run_id)).nonce == nonce
        except RunNotFoundError:
            return False


def left_of_token(held: bytes, now_at: int) -> bytes | None:
    """The cell of a token, unless the token has expired."""
    record = _read(held)
    return None if record is not None and record.expires_at <= now_at else held


def _read(held: bytes | None) -> TokenRecord | None:
    try:
        return None if held is None else _decode(held)
    except msgspec.MsgspecError:
        return None
