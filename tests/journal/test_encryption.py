"""Encryption of payloads: AES-256-GCM, keys that change, and values that stay where they belong."""

from __future__ import annotations

import base64
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.packing import Packer, inbox_mark, tree_mark
from outlive._kernel.model import Payload
from outlive.codecs import Compression, Encryption
from outlive.errors import ConfigurationError, UnreadableError, UnserialisableError
from outlive.limits import Limits
from tests.journal.test_packing import json_of
from tests.journal.values import QUICK

OLD, NEW = bytes(range(32)), bytes(range(1, 33))
LIMITS = Limits(payload_inline_bytes_max=2_000, payload_bytes_max=100_000)
MINE, THEIRS = tree_mark(1), tree_mark(2)


def packer(current: str = "new", **keys: bytes) -> Packer:
    """A packer that encrypts."""
    return Packer(LIMITS, [Encryption(keys=keys or {"old": OLD, "new": NEW}, current=current)])


def test_a_value_comes_back() -> None:
    """Inline and as a blob; nothing of it is readable in between."""
    for size in (20, 50_000):
        data = json_of(size)
        payload, blob = packer().pack(data, "the value", of=MINE)
        stored = base64.b64decode(payload.data) if blob is None else blob.data
        blobs = {} if blob is None else {blob.id: blob.data}

        assert b"xxx" not in stored
        assert payload.via == ("aes256gcm",)
        assert packer().unpack(payload, blobs, owners=[MINE]) == data


@QUICK
@given(st.binary(max_size=500).map(msgspec.json.encode), st.text(max_size=20))
def test_any_value_comes_back_for_any_owner(data: bytes, owner: str) -> None:
    """Any bytes come back, and so they do for any owner."""
    payload, _ = packer().pack(data, "the value", of=owner)

    assert packer().unpack(payload, {}, owners=[owner]) == data


@pytest.mark.parametrize("codecs", [[], [Compression(over=10)]], ids=["plain", "compressed"])
@pytest.mark.parametrize("size", [20, 50_000])
def test_a_plain_value_is_unreadable_where_encryption_is_required(codecs: list[Any], size: int) -> None:
    """A value that was not encrypted is unreadable where encryption is required: in place, as a blob, and compressed.
    [S29]"""
    data = json_of(size)
    payload, blob = Packer(LIMITS, codecs).pack(data, "the value", of=MINE)
    blobs = {} if blob is None else {blob.id: blob.data}
    stored, via = Packer(LIMITS, codecs).pack_bytes(data, "the output", of=MINE)
    strict = Packer(LIMITS, [Compression(over=10), Encryption({"new": NEW}, "new", required=True)])

    refused = pytest.raises(UnreadableError, match=r"not made by .*'aes256gcm', which is required .* required=True")
    with refused:
        strict.unpack(payload, blobs, owners=[MINE])
    with refused:
        strict.unpack_bytes(stored, via, "the output", of=MINE)
    assert bytes(packer().unpack(payload, blobs, owners=[MINE])) == data
    own, own_blob = strict.pack(data, "the value", of=MINE)
    own_blobs = {} if own_blob is None else {own_blob.id: own_blob.data}
    assert strict.unpack(own, own_blobs, owners=[MINE]) == data


@pytest.mark.parametrize("size", [20, 50_000])
def test_a_plain_value_that_says_it_was_encrypted_is_unreadable(size: int) -> None:
    """A row is what its writer says: the codec that it names has not seen a value that lies there. [S29]"""
    payload, blob = Packer(LIMITS, []).pack(json_of(size), "the value", of=MINE)
    blobs = {} if blob is None else {blob.id: blob.data}
    strict = Packer(LIMITS, [Encryption({"new": NEW}, "new", required=True)])

    for of in ("", MINE):
        planted = msgspec.structs.replace(payload, via=("aes256gcm",), of=of)
        with pytest.raises(UnreadableError):
            strict.unpack(planted, blobs, owners=[MINE])


def test_equal_values_do_not_look_equal() -> None:
    """Neither inline nor as a blob, whose id is the hash of the encrypted bytes: nonces are random. [S29]"""
    first, second = (packer().pack(json_of(50_000), "the value", of=MINE)[0] for _ in range(2))
    short, again = (packer().pack(b"1", "the value", of=MINE)[0] for _ in range(2))

    assert first.blob != second.blob
    assert short.data != again.data


def test_compression_goes_first() -> None:
    """In the order of the chain; encrypted bytes would not get smaller."""
    chain = Packer(LIMITS, [Compression(over=100), Encryption({"new": NEW}, "new")])
    payload, blob = chain.pack(json_of(50_000), "the value", of=MINE)

    assert blob is None
    assert payload.via == ("zstd", "aes256gcm")
    assert chain.unpack(payload, {}, owners=[MINE]) == json_of(50_000)
    assert chain.pack(b"1", "the value", of=MINE)[0].via == ("aes256gcm",)


# -- Keys -----------------------------------------------------------------------------------------------------


def test_new_values_have_the_current_key_and_old_ones_stay_readable() -> None:
    """Rotation: as long as the old key is there. [S29]"""
    before, _ = packer("old", old=OLD).pack(b"1", "the value", of=MINE)
    after, _ = packer().pack(b"2", "the value", of=MINE)

    assert packer().unpack(before, {}, owners=[MINE]) == b"1"
    assert packer("new", new=NEW).unpack(after, {}, owners=[MINE]) == b"2"


def test_a_missing_key_is_named() -> None:
    """The error names the key, so that an operator can bring it back."""
    before, _ = packer("old", old=OLD).pack(b"1", "the value", of=MINE)

    with pytest.raises(UnreadableError, match=r"no key 'old' is here; put it into Encryption\(keys=\.\.\.\)"):
        packer("new", new=NEW).unpack(before, {}, owners=[MINE])


def test_another_key_under_the_same_name_is_noticed() -> None:
    """It opens nothing, and says which one it is."""
    before, _ = packer("new", new=OLD).pack(b"1", "the value", of=MINE)

    with pytest.raises(UnreadableError, match="key 'new' is another one now"):
        packer("new", new=NEW).unpack(before, {}, owners=[MINE])


def test_an_engine_without_the_codec_says_which_is_missing() -> None:
    """By its name in the payload."""
    payload, _ = packer().pack(b"1", "the value", of=MINE)

    with pytest.raises(UnreadableError, match="no payload codec 'aes256gcm' is configured here"):
        Packer(LIMITS).unpack(payload, {})


# -- Owners ---------------------------------------------------------------------------------------------------


def test_a_value_that_was_moved_to_another_run_is_refused() -> None:
    """Before any codec runs: its owner stands beside it. [S29]"""
    payload, _ = packer().pack(b"1", "the value", of=MINE)

    with pytest.raises(UnreadableError, match=f"written for {MINE} and found in {THEIRS}: it was moved"):
        packer().unpack(payload, {}, owners=[THEIRS])


def test_a_value_with_a_forged_owner_is_refused() -> None:
    """The owner is part of what is authenticated; leaving it out is not a way out either. [S29]"""
    payload, _ = packer().pack(b"1", "the value", of=MINE)

    for owner in (THEIRS, ""):
        forged = msgspec.structs.replace(payload, of=owner)
        with pytest.raises(UnreadableError, match="altered or moved"):
            packer().unpack(forged, {}, owners=[THEIRS])


def test_a_reader_who_knows_no_owner_can_read_everything() -> None:
    """A reader with the key reads a value without knowing which run it belongs to."""
    payload, _ = packer().pack(b"1", "the value", of=inbox_mark("run-1~3"))

    assert payload.of == "to:run-1"
    assert packer().unpack(payload, {}) == b"1"


def test_without_encryption_no_owner_is_written() -> None:
    """It would cost bytes and prove nothing."""
    payload, _ = Packer(LIMITS, [Compression(over=1)]).pack(json_of(1_000), "the value", of=MINE)

    assert payload.of == ""


@QUICK
@given(st.integers(0, 60), st.integers(1, 255))
def test_every_changed_byte_is_noticed(place: int, change: int) -> None:
    """In the head, the name of the key, the nonce, the text and the tag. [S29]"""
    payload, _ = packer().pack(json_of(40), "the value", of=MINE)
    stored = bytearray(base64.b64decode(payload.data))
    stored[place % len(stored)] ^= change
    altered = Payload(data=base64.b64encode(stored).decode(), via=payload.via, of=payload.of)

    with pytest.raises(UnreadableError):
        packer().unpack(altered, {}, owners=[MINE])


@QUICK
@given(st.binary(max_size=40))
def test_any_bytes_are_refused_in_words(junk: bytes) -> None:
    """Any bytes in the place of a value are refused: none at all, too."""
    with pytest.raises(UnreadableError, match="something encrypted"):
        Encryption({"new": NEW}, "new").decode(junk, context=b"")


# -- Settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "current", "complaint"),
    [
        ({"a": OLD}, "b", "'b' is none of the keys: a"),
        ({}, "b", "there are none"),
        ({"a": b"short"}, "a", "must be 32 random bytes, not 5 bytes"),
        ({"a": "x" * 32}, "a", "not str"),
        ({"": OLD}, "", "1 to 64 bytes"),
        ({"x" * 65: OLD}, "x" * 65, "1 to 64 bytes"),
    ],
)
def test_settings_that_cannot_work_are_refused(keys: Any, current: str, complaint: str) -> None:
    """When the codec is made; and no error ever shows a key."""
    with pytest.raises(ConfigurationError, match=complaint) as caught:
        Encryption(keys=keys, current=current)
    assert "short" not in str(caught.value)


def test_the_codec_does_not_show_its_keys() -> None:
    """Neither in logs nor in tracebacks."""
    assert repr(Encryption({"old": OLD}, "old")) == "<Encryption with keys old>"


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is an extra."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'outlive\[crypto\]'"):
        Encryption({"old": OLD}, "old")


# -- The hook -------------------------------------------------------------------------------------------------


class Asking:
    """A codec of a user that asks for everything."""

    name = "asking"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def encode(self, data: bytes, context: bytes = b"") -> bytes:
        """Notes what it is given."""
        self.seen.append(context)
        return b"!" + data

    def decode(self, data: bytes, context: bytes = b"", bytes_max: int = 0) -> bytes:
        """Notes what it is given."""
        self.seen += [context, bytes_max]
        return data[1:]


def test_a_codec_is_given_what_its_parameters_ask_for() -> None:
    """By name; the context is the same both times."""
    codec = Asking()
    chain = Packer(LIMITS, [codec])
    payload, _ = chain.pack(b"1", "the value", of=MINE)

    assert chain.unpack(payload, {}, owners=[MINE]) == b"1"
    assert codec.seen == [MINE.encode(), MINE.encode(), 100_000]


def test_a_codec_that_binds_only_one_way_is_refused() -> None:
    """It could never be read."""

    class Half(Asking):
        def decode(self, data: bytes) -> bytes:  # type: ignore[override]
            return data

    with pytest.raises(ConfigurationError, match="must both take context"):
        Packer(LIMITS, [Half()])


def test_a_codec_that_cannot_encrypt_refuses_the_value() -> None:
    """Nothing is ever stored in the clear because a codec failed."""

    class Broken(Asking):
        def encode(self, data: bytes, context: bytes = b"") -> bytes:
            raise LookupError("no key today")

    with pytest.raises(UnserialisableError, match="payload codec 'asking': LookupError: no key today"):
        Packer(LIMITS, [Broken()]).pack(b"1", "the value")
