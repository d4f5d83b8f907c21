"""What is read from the store for claimed trees, and which blobs that refers to, found without decoding it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from outlive._journal.codec import Row
from outlive._store.contract import Inbound

# Payload objects are written by one encoder, so a reference always looks like this. A user's text that happens to look
# the same costs one look-up that finds nothing.
_REFERENCE = re.compile(rb'"blob":"([0-9a-f]{64})"')


class Found(msgspec.Struct):
    """What was read from the store for some claims: journals, messages, and the blobs that both refer to."""

    journals: dict[int, list[Row]]
    mail: dict[int, list[Inbound]]
    blobs: dict[str, bytes]


def blob_ids(journals: Iterable[list[Row]], mail: Iterable[list[Inbound]]) -> set[str]:
    """The ids of all blobs that are needed to read these."""
    ids: set[str] = set()
    for rows in journals:
        for row in rows:
            if b'"blob"' in row[3]:
                ids.update(match.decode() for match in _REFERENCE.findall(row[3]))
    for messages in mail:
        for message in messages:
            for payload in (message.payload, message.ended.result if message.ended else None):
                if payload is not None and payload.blob:
                    ids.add(payload.blob)
    return ids
