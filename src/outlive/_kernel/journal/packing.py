"""JSON bytes to payloads and back: inline, through the codec chain, or as a blob.

A payload codec is the hook for compression and encryption: it turns the JSON of a value into other bytes and back, and
its name is written with the payload, so that a value can be read for as long as the codec is there. Without codecs
small values stay readable JSON in the journal.

A codec may ask for more than the bytes, by the names of its parameters: `context` (bytes that `encode` and `decode` are
given alike, for the associated data of a cipher) and, when decoding, `bytes_max` (what the result may have at most).
The context is the owner of a payload, written beside it as `of`: the tree that made the value, or the root run that a
message is for. Reading with another owner in mind fails before any codec runs; lying about the owner fails in the
codec. What is not bound, and why, is in decision 0008.

A codec with a true attribute `required` has to be in the way of every value: without it the value is unreadable.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from outlive._kernel.journal.compression import READERS
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Limits, Payload
from outlive._kernel.model.payload import Blob
from outlive.errors import (
    ArgumentTypeError,
    ConfigurationError,
    PayloadTooLargeError,
    UnreadableError,
    UnserialisableError,
)


class PayloadCodec(Protocol):
    """Turns the stored bytes of a value into others: compresses or encrypts them."""

    @property
    def name(self) -> str:
        """Written with every payload it made; never change it."""

    def encode(self, data: bytes) -> bytes:
        """The bytes to store. Giving back the very bytes it got means: not this value; `decode` is not asked then."""

    def decode(self, data: bytes) -> bytes:
        """The bytes that `encode` was given."""


def tree_mark(nonce: int) -> str:
    """The owner of what a tree of runs makes: it keeps its nonce for life, also when it is renamed."""
    return f"tree:{nonce:016x}"


def inbox_mark(run_id: str) -> str:
    """The owner of what is sent to a run: its root by name, because a sender need not know more, and because the next
    generation of a run has the same name and takes over its messages."""
    return f"to:{run_id.partition('~')[0]}"


class _Link:
    """A codec of the chain, and what its methods ask for."""

    def __init__(self, codec: PayloadCodec) -> None:
        self.name = codec.name
        self._encode: Callable[..., bytes] = codec.encode
        self._decode: Callable[..., bytes] = codec.decode
        self._decode_wants = _wants(codec.decode)
        self.is_required = bool(getattr(codec, "required", False))
        self.is_binding = "context" in _wants(codec.encode)
        if self.is_binding != ("context" in self._decode_wants):
            raise ConfigurationError(f"payload codec {self.name!r}: encode and decode must both take context, or none")

    def encode(self, data: bytes, *, context: bytes) -> bytes:
        return _bytes_of(self._encode(data, **({"context": context} if self.is_binding else {})))

    def decode(self, data: bytes, **given: Any) -> bytes:
        return _bytes_of(self._decode(data, **{name: given[name] for name in self._decode_wants}))


def _checked(codecs: object) -> Sequence[PayloadCodec]:
    wanted = "give a list of codecs, for example codecs=[outlive.codecs.Compression()]"
    if not isinstance(codecs, Sequence) or isinstance(codecs, str):
        raise ArgumentTypeError("Engine", "codecs", codecs, wanted)
    for codec in codecs:
        if isinstance(codec, type) or not all(hasattr(codec, name) for name in ("name", "encode", "decode")):
            raise ArgumentTypeError("Engine", "codecs", codec, wanted)
    return codecs


class Packer:
    """Packs and unpacks values for one engine."""

    def __init__(self, limits: Limits, codecs: Sequence[PayloadCodec] = ()) -> None:
        self._inline_max = limits.payload_inline_bytes_max
        self._bytes_max = limits.payload_bytes_max
        self._chain = tuple(_Link(codec) for codec in _checked(codecs))
        self._by_name = {link.name: link for link in self._chain}
        if len(self._by_name) != len(self._chain):
            names = ", ".join(link.name for link in self._chain)
            raise ConfigurationError(f"two payload codecs have one name: {names}")
        # A codec that Outlive itself can undo needs no configuration: its name says everything.
        self._readers = {reader.name: _Link(reader) for reader in READERS} | self._by_name
        self._required = tuple(link.name for link in self._chain if link.is_required)
        self.refuses_plain = bool(self._required)
        """Whether a value that went through no codec is unreadable."""

    def check_size(self, data: bytes, what: str) -> None:
        """See that a value is not too large to be packed.

        Raises:
            PayloadTooLargeError: over `payload_bytes_max`.
        """
        if len(data) > self._bytes_max:
            raise PayloadTooLargeError(what, len(data), self._bytes_max)

    def pack(self, data: bytes, what: str, *, of: str = "", as_blob: bool = False) -> tuple[Payload, Blob | None]:
        """The payload of a value, and the blob it needs if it is large, or if it is to be one in any case; `of` is its
        owner, `tree_mark` or `inbox_mark`.

        Raises:
            PayloadTooLargeError: over `payload_bytes_max`.
            UnserialisableError: a payload codec failed.
        """
        if len(data) <= self._inline_max and not self._chain and not as_blob:
            return Payload(v=msgspec.Raw(data)), None
        self.check_size(data, what)
        data, via = self._encoded(data, what, of)
        if not any(self._by_name[name].is_binding for name in via):
            of = ""
        if len(data) <= self._inline_max and not as_blob:
            if not via:
                return Payload(v=msgspec.Raw(data)), None
            return Payload(data=base64.b64encode(data).decode(), via=via, of=of), None
        blob = Blob(id=hashlib.sha256(data).hexdigest(), data=data)
        return Payload(blob=blob.id, via=via, size=len(data), of=of), blob

    def _encoded(self, data: bytes, what: str, of: str) -> tuple[bytes, tuple[str, ...]]:
        via = []
        for link in self._chain:
            try:
                made = link.encode(data, context=of.encode())
            except Exception as error:  # A codec is the user's code, and may look for a key that is not there.
                reason = f"{type(error).__qualname__}: {error}"
                raise UnserialisableError(what, "$", f"payload codec {link.name!r}", reason) from error
            if made is not data:
                data = made
                via.append(link.name)
        return data, tuple(via)

    def unpack(self, payload: Payload, blobs: Mapping[str, bytes], *, owners: Collection[str] = ()) -> Stored:
        """The JSON of a value again; `blobs` holds the content of the blobs it may need.

        `owners` are the owners that the value may have; without any, every owner is accepted. A value that no
        codec bound has no owner.

        Raises:
            UnreadableError: its blob is missing or damaged, its codec is not configured here, its owner is another, or
                it was not made by a codec that is required.
        """
        is_plain = payload.v is not msgspec.UNSET
        if self._required:
            # A value that is stored as it is went through no codec, whatever else its row says.
            self._check_required(() if is_plain else payload.via, "a payload", "JSON")
        if payload.v is not msgspec.UNSET:
            return payload.v
        if payload.of and owners and payload.of not in owners:
            raise UnreadableError(
                "a payload",
                "JSON",
                f"it was written for {payload.of} and found in {' or '.join(owners)}: it was moved",
                advice="restore a backup",
            )
        data = self._blob(payload, blobs) if payload.blob else payload.data.encode()
        try:
            if not payload.blob:
                data = base64.b64decode(data, validate=True)
            for name in reversed(payload.via):
                data = self._readers[name].decode(data, context=payload.of.encode(), bytes_max=self._bytes_max)
        except UnreadableError:
            raise
        except Exception as error:  # A codec may raise anything: damaged bytes, another key.
            advice = "configure the codecs that it was written with, then resume the run"
            raise UnreadableError("a payload", "JSON", self._why(payload.via, error), advice=advice) from error
        return data

    def pack_bytes(self, data: bytes, what: str, *, of: str) -> tuple[bytes, tuple[str, ...]]:
        """Bytes that are not JSON and lie beside what describes them: what to store, and via which codecs it went.

        Raises:
            PayloadTooLargeError: over `payload_bytes_max`.
            UnserialisableError: a payload codec failed.
        """
        if len(data) > self._bytes_max:
            raise PayloadTooLargeError(what, len(data), self._bytes_max)
        return self._encoded(data, what, of)

    def unpack_bytes(self, data: bytes, via: Sequence[str], what: str, *, of: str) -> bytes:
        """These bytes again.

        Raises:
            UnreadableError: its codec is not configured here, what was written cannot be undone, or it was not made by
                a codec that is required.
        """
        self._check_required(via, what, "bytes")
        try:
            for name in reversed(via):
                data = self._readers[name].decode(data, context=of.encode(), bytes_max=self._bytes_max)
        except UnreadableError as error:
            raise UnreadableError(
                what, "bytes", error.reason, advice="restore a backup, or add what it needs"
            ) from error
        except Exception as error:  # A codec may raise anything: damaged bytes, another key.
            advice = "configure the codecs that it was written with"
            raise UnreadableError(what, "bytes", self._why(tuple(via), error), advice=advice) from error
        return data

    def _check_required(self, via: Sequence[str], what: str, kind: str) -> None:
        for name in self._required:
            if name not in via:
                raise UnreadableError(
                    what,
                    kind,
                    f"it was not made by the payload codec {name!r}, which is required here",
                    advice=f"restore a backup if it was planted; if it is older than {name}, read it "
                    "without required=True",
                )

    def _why(self, via: tuple[str, ...], error: Exception) -> str:
        missing = [name for name in via if name not in self._readers]
        if missing:
            return f"no payload codec {missing[-1]!r} is configured here"
        return f"what was written via {', '.join(via) or 'base64'} cannot be undone: {error!r}"

    def _blob(self, payload: Payload, blobs: Mapping[str, bytes]) -> bytes:
        data = blobs.get(payload.blob)
        if data is None:
            raise UnreadableError("a payload", "a blob", f"blob {payload.blob} is missing")
        if hashlib.sha256(data).hexdigest() != payload.blob:
            raise UnreadableError(
                "a payload", "a blob", f"blob {payload.blob} is damaged: its content has another hash"
            )
        return data


def _bytes_of(made: Any) -> bytes:
    """The output of a codec as bytes. The codec is the user's code, and only bytes can be stored or read on."""
    if isinstance(made, bytes):
        return made
    if isinstance(made, bytearray | memoryview):
        return bytes(made)
    raise TypeError(f"it gave {type(made).__qualname__}, and no bytes")


def _wants(method: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(method).parameters
    return tuple(name for name in ("context", "bytes_max") if name in parameters)
