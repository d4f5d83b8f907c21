"""A value as it lies in the journal: JSON in place, packed by codecs, or a reference to a blob."""

from __future__ import annotations

import msgspec


class Payload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One stored value. Exactly one of `v`, `data` and `blob` is set.

    `v` is the JSON itself; `data` is base64 text of what the codecs named in `via` made of that JSON; `blob` is
    the id of a blob that holds those bytes (or the plain JSON, when `via` is empty). `of` names the owner that a codec
    bound it to, if one did.
    """

    v: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data: str = ""
    blob: str = ""
    via: tuple[str, ...] = ()
    size: int = 0
    of: str = ""


NO_PAYLOAD = Payload()
"""In place of a payload that is not packed yet."""


class Blob(msgspec.Struct, frozen=True, gc=False):
    """Bytes known by their content: the id is the SHA-256 of `data`, so equal content is stored once."""

    id: str
    data: bytes
