"""The rows that the claimer reads from the store for claimed trees, and the blobs to which they refer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from outlive._kernel.journal.codec import Row, open_row, salt_of
from outlive._kernel.journal.event import RunClaimed, RunCreated, SnapshotTaken
from outlive._kernel.journal.history import blobs_of
from outlive._kernel.model import Payload, Run
from outlive._kernel.model.stalls import Stall
from outlive._kernel.store.contract import InboxMessage
from outlive.errors import OutliveError


class ClaimData(msgspec.Struct):
    """Journals and messages of claimed trees, and the blobs that both refer to."""

    journals: dict[int, list[Row]]
    inbox: dict[int, list[InboxMessage]]
    blobs: dict[str, bytes]
    stalls: list[Stall] = []
    """Stalls of these trees and of others. They are read only if one of these trees has lost its worker."""
    last_words: dict[int, str] = {}
    """The last reports of lost workers about these trees, as far as there are any, by journal."""


def lost_owner(rows: Sequence[Row], run: Run) -> str:
    """The session that owned a tree before the claim that its journal ends with; empty if that cannot be read."""
    with suppress(OutliveError):
        for row in reversed(rows[:-1]):
            event = open_row(row, salt=salt_of(run.nonce), run_id=run.id)
            if isinstance(event, RunClaimed | RunCreated | SnapshotTaken) and event.run == 0:
                return event.worker
    return ""


def blob_ids(journals: Iterable[list[Row]], inbox: Iterable[list[InboxMessage]]) -> set[str]:
    """The ids of all blobs that journals and messages refer to, found without decoding them."""
    ids: set[str] = set()
    for rows in journals:
        ids |= blobs_of(rows)
    for messages in inbox:
        ids |= {payload.blob for payload in payloads_of(messages) if payload.blob}
    return ids


def payloads_of(messages: Iterable[InboxMessage]) -> Iterator[Payload]:
    """The values that messages bring."""
    for message in messages:
        for payload in (message.payload, message.ended.result if message.ended else None):
            if payload is not None:
                yield payload
