"""Values of users in their public form, which every program can read: what is sent to code that has not the types."""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._garbage_collection import collection_paused
from outlive._kernel.journal.readable import public_custom
from outlive.errors import ArgumentTypeError, OutliveError


def plain_json(where: str, data: object) -> Any:
    """A value as plain JSON: dictionaries, lists, text, numbers, true, false and None.

    Raises:
        ArgumentTypeError: it cannot be written as JSON; `where` it was given is in the message.
    """
    return decode_sent(encode_plain(where, data))


def decode_sent(data: bytes) -> Any:
    """The value in JSON that a stranger may have sent. Python's collector would look again and again at the many maps
    and lists of a large one, which takes three times as long as to read it."""
    with collection_paused():
        return msgspec.json.decode(data)


def encode_plain(where: str, data: object) -> bytes:
    """The JSON of a value.

    Raises:
        ArgumentTypeError: it cannot be written as JSON; `where` it was given is in the message.
    """
    try:
        return msgspec.json.encode(data, enc_hook=public_custom)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError, OutliveError) as error:
        raise ArgumentTypeError(where, "data", data, f"give plain JSON values: {error}") from None
