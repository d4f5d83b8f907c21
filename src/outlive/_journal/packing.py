"""JSON bytes to payloads and back: inline, through the codec chain, or as a blob.

A payload codec is the hook for compression and encryption: it turns the JSON of a value into other bytes and back, and
its name is written with the payload, so that a value can be read for as long as somebody has the codec. Without codecs
small values stay readable JSON in the journal.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from outlive._journal.value import Stored
from outlive._model import Limits, Payload
from outlive._model.payload import Blob
from outlive.errors import ConfigurationError, PayloadTooLargeError, UnreadableError, UnserialisableError


class PayloadCodec(Protocol):
    """Turns the stored bytes of a value into others: compresses or encrypts them."""

    @property
    def name(self) -> str:
        """Written with every payload it made; never change it."""

    def encode(self, data: bytes) -> bytes:
        """The bytes to store."""

    def decode(self, data: bytes) -> bytes:
        """The bytes that `encode` was given."""


class Packer:
    """Packs and unpacks values for one engine."""

    def __init__(self, limits: Limits, codecs: Sequence[PayloadCodec] = ()) -> None:
        self._inline_max = limits.payload_inline_bytes_max
        self._bytes_max = limits.payload_bytes_max
        self._codecs = tuple(codecs)
        self._by_name = {codec.name: codec for codec in codecs}
        self._via = tuple(codec.name for codec in codecs)
        if len(self._by_name) != len(self._codecs):
            raise ConfigurationError(f"two payload codecs have one name: {', '.join(self._via)}")

    def pack(self, data: bytes, what: str, *, as_blob: bool = False) -> tuple[Payload, Blob | None]:
        """The payload of a value, and the blob it needs if it is large, or if it is to be one in any case.

        Raises:
            PayloadTooLargeError: over `payload_bytes_max`.
            UnserialisableError: a payload codec failed.
        """
        if len(data) <= self._inline_max and not self._codecs and not as_blob:
            return Payload(v=msgspec.Raw(data)), None
        if len(data) > self._bytes_max:
            raise PayloadTooLargeError(what, len(data), self._bytes_max)
        for codec in self._codecs:
            try:
                data = codec.encode(data)
            except Exception as error:  # A codec is the user's code, and may look for a key that is not there.
                reason = f"{type(error).__qualname__}: {error}"
                raise UnserialisableError(what, "$", f"payload codec {codec.name!r}", reason) from error
        if len(data) <= self._inline_max and not as_blob:
            return Payload(data=base64.b64encode(data).decode(), via=self._via), None
        blob = Blob(id=hashlib.sha256(data).hexdigest(), data=data)
        return Payload(blob=blob.id, via=self._via, size=len(data)), blob

    def unpack(self, payload: Payload, blobs: Mapping[str, bytes]) -> Stored:
        """The JSON of a value again; `blobs` holds the content of the blobs it may need.

        Raises:
            UnreadableError: its blob is missing or damaged, or nobody here has its codec.
        """
        if payload.v is not msgspec.UNSET:
            return payload.v
        data = self._blob(payload, blobs) if payload.blob else payload.data.encode()
        try:
            if not payload.blob:
                data = base64.b64decode(data, validate=True)
            for name in reversed(payload.via):
                data = self._by_name[name].decode(data)
        except Exception as error:  # A codec may raise anything: damaged bytes, another key.
            raise UnreadableError("a payload", "JSON", self._why(payload, error)) from error
        return data

    def _why(self, payload: Payload, error: Exception) -> str:
        missing = [name for name in payload.via if name not in self._by_name]
        if missing:
            return f"no payload codec {missing[-1]!r} is configured here"
        return f"what was written via {', '.join(payload.via) or 'base64'} cannot be undone: {error!r}"

    def _blob(self, payload: Payload, blobs: Mapping[str, bytes]) -> bytes:
        data = blobs.get(payload.blob)
        if data is None:
            raise UnreadableError("a payload", "a blob", f"blob {payload.blob} is missing")
        if hashlib.sha256(data).hexdigest() != payload.blob:
            raise UnreadableError(
                "a payload", "a blob", f"blob {payload.blob} is damaged: its content has another hash"
            )
        return data
