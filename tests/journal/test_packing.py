"""JSON to payloads and back: inline, through codecs, as blobs; limits at their exact places."""

from __future__ import annotations

import base64
import hashlib
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.packing import Packer
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload
from outlive.codecs import PayloadCodec
from outlive.errors import ConfigurationError, PayloadTooLargeError, UnreadableError, UnserialisableError
from outlive.limits import Limits
from tests.journal.values import QUICK

INLINE_MAX, BYTES_MAX = 100, 1000
LIMITS = Limits(payload_inline_bytes_max=INLINE_MAX, payload_bytes_max=BYTES_MAX)


class Zlib:
    """Compresses."""

    name = "zlib"

    def encode(self, data: bytes) -> bytes:
        """Smaller bytes."""
        return zlib.compress(data)

    def decode(self, data: bytes) -> bytes:
        """The bytes again."""
        return zlib.decompress(data)


class Xor:
    """Encrypts, in a way of speaking."""

    name = "xor"

    def encode(self, data: bytes) -> bytes:
        """Other bytes."""
        return b"!" + bytes(byte ^ 0x5A for byte in data)

    def decode(self, data: bytes) -> bytes:
        """The bytes again."""
        assert data[:1] == b"!"
        return bytes(byte ^ 0x5A for byte in data[1:])


PLAIN = Packer(LIMITS)
ZIPPED = Packer(LIMITS, [Zlib()])
BOTH = Packer(LIMITS, [Zlib(), Xor()])


def json_of(size: int) -> bytes:
    """JSON text of exactly this many bytes."""
    return b'"' + b"x" * (size - 2) + b'"'


def random_json(size: int) -> bytes:
    """JSON text that does not compress."""
    noise = b"".join(hashlib.sha256(bytes([n])).digest() for n in range(size // 32 + 1))
    return b'"' + base64.b64encode(noise)[: size - 2] + b'"'


def again(packer: Packer, data: bytes) -> bytes:
    """JSON that went through a journal and, if it is large, through the blobs."""
    payload, blob = packer.pack(data, "the value")
    stored = msgspec.json.decode(msgspec.json.encode(payload), type=Payload)
    assert stored == payload
    return bytes(memoryview(packer.unpack(stored, {blob.id: blob.data} if blob else {})))


# -- Where a value goes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, INLINE_MAX - 1, INLINE_MAX])
def test_a_small_value_is_readable_json_in_the_journal(size: int) -> None:
    """Up to and with the limit, without codecs."""
    payload, blob = PLAIN.pack(json_of(size), "the value")

    assert blob is None
    assert payload == Payload(v=msgspec.Raw(json_of(size)))
    assert again(PLAIN, json_of(size)) == json_of(size)


@pytest.mark.parametrize("size", [INLINE_MAX + 1, BYTES_MAX - 1, BYTES_MAX])
def test_a_larger_value_is_a_blob_known_by_its_content(size: int) -> None:
    """From one byte above the limit on, up to and with the limit on all payloads."""
    data = json_of(size)
    payload, blob = PLAIN.pack(data, "the value")

    assert blob is not None
    assert blob.data == data
    assert blob.id == hashlib.sha256(data).hexdigest()
    assert payload == Payload(blob=blob.id, size=size)
    assert again(PLAIN, data) == data


@pytest.mark.parametrize("packer", [PLAIN, ZIPPED, BOTH], ids=["plain", "zipped", "both"])
def test_a_value_above_the_limit_is_refused(packer: Packer) -> None:
    """A value is measured before any codec: its size in memory counts, not how well it compresses."""
    packer.pack(json_of(BYTES_MAX), "the value")

    with pytest.raises(PayloadTooLargeError, match=r"result of step x has 1,001 bytes and the limit payload_bytes_max"):
        packer.pack(json_of(BYTES_MAX + 1), "result of step x")


def test_equal_content_is_one_blob() -> None:
    """The id is the content: storing it again stores nothing."""
    first, second = (PLAIN.pack(json_of(500), what)[1] for what in ("one", "two"))

    assert first == second
    assert PLAIN.pack(json_of(501), "three")[1] != first


# -- Codecs ---------------------------------------------------------------------------------------------------


def test_codecs_are_named_with_the_value() -> None:
    """In the order in which they were applied; small values stay in the journal."""
    data = json_of(BYTES_MAX)
    payload, blob = BOTH.pack(data, "the value")

    assert blob is None, "it compresses to less than the limit"
    assert payload.via == ("zlib", "xor")
    assert base64.b64decode(payload.data) == Xor().encode(Zlib().encode(data))
    assert again(BOTH, data) == data


def test_a_value_that_is_large_after_the_codecs_is_a_blob() -> None:
    """A value that is large after the codecs is a blob of what the codecs made."""
    data = random_json(900)
    payload, blob = BOTH.pack(data, "the value")

    assert blob is not None
    assert blob.data == Xor().encode(Zlib().encode(data))
    assert (payload.via, payload.size, payload.blob) == (("zlib", "xor"), len(blob.data), blob.id)
    assert again(BOTH, data) == data


@QUICK
@given(st.binary(max_size=BYTES_MAX // 2).map(msgspec.json.encode))
def test_any_value_comes_back_through_any_chain(data: bytes) -> None:
    """Inline or as a blob."""
    for packer in (PLAIN, ZIPPED, BOTH):
        assert again(packer, data) == data


def test_a_value_is_read_with_the_codecs_that_wrote_it() -> None:
    """A chain may change: what the old one wrote is read for as long as its codecs are there."""
    old, _ = ZIPPED.pack(json_of(50), "the value")
    plain, _ = PLAIN.pack(json_of(50), "the value")

    assert bytes(memoryview(BOTH.unpack(old, {}))) == json_of(50)
    assert bytes(memoryview(BOTH.unpack(plain, {}))) == json_of(50)


class Careless:
    """Gives back something else than bytes."""

    name = "careless"

    def encode(self, data: bytes) -> bytes:
        """Text."""
        return data.decode()  # type: ignore[return-value]

    def decode(self, data: bytes) -> bytes:
        """Text."""
        return data.decode()  # type: ignore[return-value]


def test_a_codec_that_gives_no_bytes_is_named() -> None:
    """When it writes the value is refused, when it reads it is unreadable; the error blames the codec alone."""
    packer = Packer(LIMITS, [Careless()])
    written = Payload(data=base64.b64encode(b"1").decode(), via=("careless",))

    with pytest.raises(UnserialisableError, match=r"payload codec 'careless'.*gave str, and no bytes"):
        packer.pack(b"1", "a value")
    with pytest.raises(UnreadableError, match=r"careless.*gave str, and no bytes"):
        packer.unpack(written, {})


def test_two_codecs_of_one_name_are_a_mistake() -> None:
    """A name in a journal must mean one thing."""
    with pytest.raises(ConfigurationError, match="two payload codecs have one name: zlib, zlib"):
        Packer(LIMITS, [Zlib(), Zlib()])


# -- What cannot be read --------------------------------------------------------------------------------------


def unreadable(packer: Packer, payload: Payload, blobs: dict[str, bytes]) -> str:
    """Why a payload cannot be read."""
    with pytest.raises(UnreadableError) as caught:
        packer.unpack(payload, blobs)
    return str(caught.value)


def test_an_unknown_codec_is_named() -> None:
    """The operator sees which key or library is missing."""
    payload, _ = BOTH.pack(json_of(50), "the value")

    assert "no payload codec 'xor' is configured here" in unreadable(ZIPPED, payload, {})


def test_a_missing_blob_is_named() -> None:
    """Not silently empty."""
    payload, _ = PLAIN.pack(json_of(500), "the value")

    assert f"blob {payload.blob} is missing" in unreadable(PLAIN, payload, {})


def test_a_damaged_blob_is_found() -> None:
    """Its id is the hash of its content, so any change shows."""
    payload, blob = PLAIN.pack(json_of(500), "the value")
    assert blob is not None
    for index in (0, 250, 499):
        damaged = bytearray(blob.data)
        damaged[index] ^= 1
        assert "is damaged" in unreadable(PLAIN, payload, {blob.id: bytes(damaged)})
    assert "is damaged" in unreadable(PLAIN, payload, {blob.id: blob.data[:-1]})


class WrongKey:
    """A codec that cannot make sense of what it is given."""

    name = "zlib"

    def encode(self, data: bytes) -> bytes:
        """Never called."""
        return data

    def decode(self, data: bytes) -> bytes:
        """Fails, as decryption with another key does."""
        raise RuntimeError("wrong key")


@pytest.mark.parametrize("payload", [Payload(data="????", via=("zlib",)), Payload(data="AAAA", via=("zlib",))])
def test_a_payload_that_a_codec_cannot_read_is_unreadable(payload: Payload) -> None:
    """A payload that a codec cannot read is unreadable, whatever the codec raises."""
    assert "zlib" in unreadable(ZIPPED, payload, {})


def test_a_codec_with_another_key_is_named() -> None:
    """The reason of the codec is in the error."""
    payload, _ = ZIPPED.pack(json_of(50), "the value")
    codec: PayloadCodec = WrongKey()

    assert "wrong key" in unreadable(Packer(LIMITS, [codec]), payload, {})


def test_stored_json_can_be_bytes_or_raw() -> None:
    """Readers take both, so that nothing is copied on the way."""
    values: list[Stored] = [PLAIN.unpack(PLAIN.pack(json_of(size), "x")[0], {}) for size in (10, 50)]

    assert [bytes(memoryview(value)) for value in values] == [json_of(10), json_of(50)]
