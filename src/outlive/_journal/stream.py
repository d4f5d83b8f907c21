"""The lines of a stream: what a run emitted at one moment, as a store keeps it.

A line holds one or more items that one step, or the workflow itself, emitted to one stream: a payload (a JSON array,
through the codecs, as a blob if it is large), the call of the step, its attempt and the epoch. A store appends lines
to chunks and never looks into them, so each line has a checksum of its own:

    8f0a1c22[{"v":["Hel","lo"]},"reply"]\\n

The checksum is the CRC-32 of the JSON behind it, as eight hexadecimal digits. Fields that have their default are left
out from the end. JSON has no raw line feed, so a line feed ends a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

from outlive._model import Payload
from outlive.errors import UnreadableError

_CRC_CHARACTERS = 8


class SealedItems(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Items that were emitted together."""

    payload: Payload
    call: str = ""
    """The call of the step; empty for the workflow itself."""
    attempt: int = 1
    epoch: int = 1


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SealedItems).decode


def array_of(items: Sequence[bytes]) -> bytes:
    """The JSON array of items that are JSON already."""
    return b"[" + b",".join(items) + b"]"


def seal_items(sealed: SealedItems) -> bytes:
    """The line of these items."""
    data = _encode(sealed)
    return b"%08x%s\n" % (crc32(data), data)


def open_lines(body: bytes, what: str) -> Iterator[SealedItems]:
    """The lines of a chunk; `what` names it in the error.

    Raises:
        UnreadableError: one of them is not what was written.
    """
    for line in body.split(b"\n")[:-1] if body.endswith(b"\n") else [b""]:
        data = line[_CRC_CHARACTERS:]
        if line[:_CRC_CHARACTERS] != b"%08x" % crc32(data):
            raise UnreadableError(what, "items of a stream", "a line has another checksum", advice="restore a backup")
        try:
            yield _decode(data)
        except msgspec.MsgspecError as error:
            raise UnreadableError(what, "items of a stream", str(error), advice="upgrade Outlive") from error
