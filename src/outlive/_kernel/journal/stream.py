"""The lines of a stream: what a run emitted, as a store keeps it.

A line of items holds what one step, or the workflow itself, emitted to one stream at one moment: a JSON array, in place
or as a payload (through the codecs, as a blob if it is large). Which step and which attempt it was is said by a line of
its own before it, which is left out where it would say the same again. A store appends lines to chunks and never looks
into them, so that each line has a checksum of its own:

    =2d1f03a4["reply",1,1]
    8f0a1c22["Hel","lo"]
    c3b80d17[" there"]

The checksum is the CRC-32 of the JSON behind it, as eight hexadecimal digits. JSON has no raw line feed, so a line feed
ends a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

import msgspec

from outlive._kernel.model import Payload
from outlive.errors import UnreadableError

_CRC_CHARACTERS = 8
_SOURCE = b"="
_WHAT = "items of a stream"


class Source(msgspec.Struct, frozen=True, array_like=True):
    """The source of the items that follow: one attempt of a step, or the workflow."""

    call: str
    """The call of the step; empty for the workflow itself."""
    attempt: int
    epoch: int


_encode = msgspec.json.Encoder().encode
_decode_source = msgspec.json.Decoder(Source).decode
_decode_payload = msgspec.json.Decoder(Payload).decode


def array_of(items: Sequence[bytes]) -> bytes:
    """The JSON array of items that are JSON already."""
    return b"[" + b",".join(items) + b"]"


def seal_source(source: Source) -> bytes:
    """The line that says whose items follow."""
    return _SOURCE + _sealed(_encode(source))


def seal_items(payload: Payload) -> bytes:
    """The line of these items."""
    return _sealed(bytes(payload.v) if payload.v is not msgspec.UNSET else _encode(payload))


def _sealed(data: bytes) -> bytes:
    return b"%08x%s\n" % (crc32(data), data)


def open_lines(body: bytes, what: str) -> Iterator[tuple[Source, Payload]]:
    """The items of a chunk, line by line, and whose they are; `what` names the stream in the error.

    Raises:
        UnreadableError: one of the lines is not what was written.
    """
    source: Source | None = None
    for line in body.split(b"\n")[:-1] if body.endswith(b"\n") else [b""]:
        is_source = line.startswith(_SOURCE)
        sealed = line[1:] if is_source else line
        data = sealed[_CRC_CHARACTERS:]
        if sealed[:_CRC_CHARACTERS] != b"%08x" % crc32(data):
            raise UnreadableError(what, _WHAT, "a line has another checksum", advice="restore a backup")
        try:
            if is_source:
                source = _decode_source(data)
                continue
            payload = Payload(v=msgspec.Raw(data)) if data.startswith(b"[") else _decode_payload(data)
        except msgspec.MsgspecError as error:
            raise UnreadableError(what, _WHAT, str(error), advice="upgrade Outlive") from error
        if source is None:
            raise UnreadableError(what, _WHAT, "nothing says whose items they are", advice="restore a backup")
        yield source, payload
