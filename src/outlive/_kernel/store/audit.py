"""The part of a store's contract that is about the audit log: who did what, in one chain of rows.

What a principal does is written as an `Action` in the transaction of the deed itself: with a change of a tree, a
message, a change of a schedule or of a cell, or a deletion. So there is no deed without its row, and no row without its
deed.
What is done without an action writes nothing here and costs nothing.

Rows have numbers without a gap, and each has a hash over the one before it and over itself. A row that was changed, or
taken out, breaks the chain at that place. Old rows go only from the beginning, and a row that says so is added to the
end: it holds the number and the hash of the last row that went.

Who can write to the store can make another chain, as good as this one. Workers may have a key that the store does not
have: they seal the last row now and then by a row with a proof, and prove which rows they have deleted.

Every sentence of a docstring is checked by `outlive_conformance.suite.audit` on every backend.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

NO_HASH = "0" * 64
"""Stands for the hash of the row before the first row."""
PRUNED = "audit.prune"
"""The verb of the row that says that old rows have gone: `target` is the number of the last one, `reason` its hash."""
SEALED = "audit.seal"
"""The verb of a row that seals an earlier one: `target` is the number of that one, `reason` its hash."""
STORE = "outlive"
"""The actor of what a store does by itself."""


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a principal did or was refused, on its way into the audit log."""

    actor: str
    """The name of the principal."""
    verb: str
    target: str = ""
    """The object of the action: the id of a run, the name of a schedule, a queue, a flow or a key."""
    reason: str = ""
    """The principal's own words, or why it was refused."""
    key: str = ""
    """The id of the API key that was used."""
    via: str = ""
    """The way in: `http`, `cli` or `code`."""
    address: str = ""
    """Where the request came from."""
    is_denied: bool = False
    request: str = ""
    """A digest of the request and of the key that its sender gave it; empty if it had no key."""
    proof: str = ""
    """The proof in a row that the store itself writes: it shows that the writer has the key (`proof_of`)."""


class AuditRow(msgspec.Struct, frozen=True):
    """An action as it lies in the log."""

    number: int
    """From 1 on, without a gap."""
    at: int
    """By the clock of the store."""
    body: str
    """The action, as JSON."""
    hash: str
    found_by: tuple[str, str, str] | None = None
    """Actor, verb and target as the columns have them by which rows are listed; None if they were not read."""


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows are meant; a field that is None excludes none."""

    actor: str | None = None
    verb: str | None = None
    target: str | None = None
    since_at: int | None = None
    until_at: int | None = None
    """Rows before this instant."""


class AuditTable(Protocol):
    """The audit log of a store."""

    async def append_audit(self, actions: Sequence[Action]) -> None:
        """Add actions that come with no other write, in order and in one transaction: what was refused or only read."""

    async def read_audit(self, *, after: int = 0, limit: int) -> list[AuditRow]:
        """The rows with a number above `after`, ascending; at most `limit`. As they lie in the store, with what they
        are found by if that is stored beside the action: the caller verifies them."""

    async def list_audit(self, wanted: AuditFilter, *, before: int | None = None, limit: int) -> list[AuditRow]:
        """The rows that pass the filter, the newest first, with a number below `before`; at most `limit`."""

    async def prune_audit(self, *, before: int, limit: int, key: bytes | None = None) -> int:
        """Delete rows from the beginning of the log that were written before the instant `before`, at most `limit`; how
        many. The last row stays. If any go, a row with the verb `PRUNED` is added in the same transaction, with a proof
        if there is a `key`."""

    async def carry_audit(self, rows: Sequence[AuditRow]) -> bool:
        """Add rows of another store's log as they are, in one transaction; `rows` ascend without a gap. Rows that are
        here already are left. False, and nothing is added, if they do not continue this log."""


def body_of(action: Action) -> str:
    """An action as JSON, without characters that a database could refuse."""
    return msgspec.json.encode(action).decode()


def hash_of(previous: str, number: int, at: int, body: str) -> str:
    """The hash of a row behind the one with the hash `previous`. (PostgreSQL has it in functions/append_audit.sql.)"""
    return hashlib.sha256(f"{previous}\n{number}\n{at}\n{body}".encode()).hexdigest()


def row_after(last: AuditRow | None, action: Action, at: int) -> AuditRow:
    """The next row of a log that ends with `last`."""
    number, previous = (1, NO_HASH) if last is None else (last.number + 1, last.hash)
    body = body_of(action)
    return AuditRow(number, at, body, hash_of(previous, number, at, body))


def rows_to_add(last: AuditRow | None, rows: Sequence[AuditRow]) -> list[AuditRow] | None:
    """Which rows of another log are not yet in one that ends with `last`; None if they do not continue it."""
    if last is None:
        return list(rows)
    left = [row for row in rows if row.number > last.number]
    here = next((row for row in rows if row.number == last.number), None)
    if here is not None:
        return left if replace(here, found_by=None) == replace(last, found_by=None) else None
    if not left:
        return []
    first = left[0]
    is_next = first.number == last.number + 1 and first.hash == hash_of(last.hash, first.number, first.at, first.body)
    return left if is_next else None


def pruned(last: AuditRow, key: bytes | None = None) -> Action:
    """An entry of the log about its rows up to this one, which were deleted."""
    return _about(PRUNED, last, key)


def sealed(last: AuditRow, key: bytes) -> Action:
    """An entry of the log about its last row: it proves all rows up to that one to a person who has the key."""
    return _about(SEALED, last, key)


def _about(verb: str, row: AuditRow, key: bytes | None) -> Action:
    number = str(row.number)
    proof = "" if key is None else proof_of(key, verb, number, row.hash)
    return Action(actor=STORE, verb=verb, target=number, reason=row.hash, proof=proof)


def proof_of(key: bytes, verb: str, number: str, digest: str) -> str:
    """The proof in a row of the store, which only a process with the key can write: it covers the verb, and the number
    and digest of the row."""
    return hmac.new(key, f"{verb}\n{number}\n{digest}".encode(), hashlib.sha256).hexdigest()


decode_action = msgspec.json.Decoder(Action).decode
