"""Which blobs a journal or a message refers to, found without decoding either."""

from __future__ import annotations

import re
from collections.abc import Iterable

from outlive._journal.codec import Row
from outlive._store.contract import Inbound

# Payload objects are written by one encoder, so a reference always looks like this. A user's text that happens to look
# the same costs one look-up that finds nothing.
_REFERENCE = re.compile(rb'"blob":"([0-9a-f]{64})"')


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
