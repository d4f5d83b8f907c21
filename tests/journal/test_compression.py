"""Compression of payloads: only where it helps, readable by everybody, and never a bomb."""

from __future__ import annotations

import importlib
import sys
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal import compression
from outlive._kernel.journal.packing import Packer
from outlive._kernel.model import Payload
from outlive.codecs import Compression
from outlive.errors import ConfigurationError, UnreadableError
from outlive.limits import Limits
from tests.journal.test_packing import again, json_of, random_json
from tests.journal.values import QUICK

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
LIMITS = Limits(payload_inline_bytes_max=4_000, payload_bytes_max=100_000)
ALGORITHMS = ["zlib", "zstd"]


@pytest.fixture(params=ALGORITHMS)
def algorithm(request: pytest.FixtureRequest) -> str:
    """Each that there is."""
    name: str = request.param
    return name


def packed(packer: Packer, data: bytes) -> Payload:
    """The payload of a value that stays inline."""
    payload, blob = packer.pack(data, "the value")
    assert blob is None
    return payload


def test_a_value_above_the_size_is_compressed(algorithm: str) -> None:
    """A value is compressed from one byte above the size on, and a smaller one stays readable JSON."""
    packer = Packer(LIMITS, [Compression(over=500, algorithm=algorithm)])

    assert packed(packer, json_of(500)) == Payload(v=msgspec.Raw(json_of(500)))
    assert packed(packer, json_of(501)).via == (algorithm,)
    assert again(packer, json_of(501)) == json_of(501)


def test_a_value_that_does_not_get_smaller_stays_as_it_is(algorithm: str) -> None:
    """A value that does not get smaller is stored as it came, and is not named as compressed."""
    packer = Packer(LIMITS, [Compression(over=0, algorithm=algorithm)])

    assert packed(packer, b"12345") == Payload(v=msgspec.Raw(b"12345"))
    noise = random_json(40)
    assert packed(packer, noise) == Payload(v=msgspec.Raw(noise))


def test_an_engine_without_compression_reads_what_is_compressed(algorithm: str) -> None:
    """The name of the codec says how, and no setting is needed."""
    data = json_of(3_000)
    payload = packed(Packer(LIMITS, [Compression(over=10, algorithm=algorithm)]), data)

    assert Packer(LIMITS).unpack(payload, {}) == data


@pytest.mark.parametrize("other", ALGORITHMS)
def test_changing_the_algorithm_keeps_old_values_readable(algorithm: str, other: str) -> None:
    """A value that was compressed with one algorithm is read by an engine that compresses with another."""
    data = json_of(3_000)
    payload = packed(Packer(LIMITS, [Compression(over=10, algorithm=algorithm)]), data)

    assert Packer(LIMITS, [Compression(over=10, algorithm=other)]).unpack(payload, {}) == data


def test_the_stored_bytes_are_the_ordinary_format() -> None:
    """Any other program can read them."""
    data = json_of(9_000)

    assert zlib.decompress(Compression(algorithm="zlib").encode(data)) == data
    assert zstd.decompress(Compression(algorithm="zstd").encode(data)) == data


@QUICK
@given(st.binary(max_size=5_000), st.sampled_from(ALGORITHMS), st.integers(1, 9))
def test_any_value_comes_back(data: bytes, algorithm: str, level: int) -> None:
    """At every level."""
    codec = Compression(over=0, level=level, algorithm=algorithm)
    made = codec.encode(data)

    assert made is data or codec.decode(made, bytes_max=5_000) == data


# -- Hostile bytes --------------------------------------------------------------------------------------------


def bomb(algorithm: str, size: int) -> bytes:
    """A few bytes that claim to be many."""
    return zlib.compress(bytes(size), 9) if algorithm == "zlib" else zstd.compress(bytes(size))


def test_a_bomb_is_refused_at_the_limit(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly at `payload_bytes_max`, and no decompressor is ever asked for more than one byte beyond it. [S24 S35]"""
    asked: list[int] = []

    class Spy:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def decompress(self, data: bytes, length: int) -> Any:
            asked.append(length)
            return self._inner.decompress(data, length)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    for module, name in ((zlib, "decompressobj"), (zstd, "ZstdDecompressor")):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda make=make: Spy(make()))
    codec = Compression(algorithm=algorithm)
    limit = LIMITS.payload_bytes_max

    assert len(codec.decode(bomb(algorithm, limit), bytes_max=limit)) == limit
    for size in (limit + 1, 50_000_000):
        with pytest.raises(UnreadableError, match=r"more than 100,000 bytes \(payload_bytes_max\)"):
            codec.decode(bomb(algorithm, size), bytes_max=limit)
    assert {limit + 1} == set(asked)


@QUICK
@given(st.sampled_from(ALGORITHMS), st.data())
def test_damaged_bytes_are_refused(algorithm: str, data: st.DataObject) -> None:
    """Cut off or with something added: an error that says so, never a part of the value."""
    codec = Compression(over=0, algorithm=algorithm)
    made = codec.encode(json_of(2_000))
    broken = data.draw(st.sampled_from([made[: data.draw(st.integers(0, len(made) - 1))], made + b"x", b"", b"junk"]))

    with pytest.raises(UnreadableError, match="damaged"):
        codec.decode(broken, bytes_max=100_000)


# -- Settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"algorithm": "lzma"}, "none of zlib, zstd"),
        ({"over": -1}, "at least 0"),
        ({"algorithm": "zlib", "level": 10}, "1 to 9 for zlib"),
        ({"algorithm": "zstd", "level": 23}, "1 to 22 for zstd"),
        ({"level": 0}, "must be 1 to"),
    ],
)
def test_settings_that_cannot_work_are_refused(options: dict[str, Any], complaint: str) -> None:
    """When the codec is made, not when the first value comes."""
    with pytest.raises(ConfigurationError, match=complaint):
        Compression(**options)


def test_a_python_without_zstd_writes_zlib_and_says_what_it_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """zstd unless it is missing; a value that needs it names the package."""
    data = json_of(9_000)
    assert Compression().name == "zstd"
    made = Compression().encode(data)

    monkeypatch.setattr(compression, "_find_zstd", lambda: None)

    assert Compression().name == "zlib"
    with pytest.raises(ConfigurationError, match=r"outlive\[zstd\]"):
        Compression(algorithm="zstd")
    with pytest.raises(UnreadableError, match=r"pip install 'outlive\[zstd\]'"):
        compression.ZSTD.decode(made, bytes_max=10_000)
