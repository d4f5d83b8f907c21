"""Compressing payloads: zstd where this Python has it, else zlib.

The name that stands with a payload is that of the algorithm, and the bytes are its ordinary format (a zlib stream, a
zstd frame), so that every engine, and any other program, can undo it without any configuration.

What comes out of a store is not trusted to be small: a few kilobytes can claim to be terabytes. Decompressing stops
one byte after `payload_bytes_max`, whatever the header says.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from outlive.errors import ConfigurationError, UnreadableError

BYTES_MAX = 64 * 1024 * 1024
"""Where decompressing stops unless an engine says otherwise."""
LEVEL_ZLIB = 6
LEVEL_ZSTD = 3


def _find_zstd() -> Any:
    # In Python 3.14; a package of the same shape for those before.
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    return None


class Compression:
    """Compresses the larger values, if that makes them smaller.

    Args:
        over: values of more bytes than this are compressed; smaller ones stay readable in the journal.
        level: of the algorithm, which means 1 to 9 for zlib and 1 to 22 for zstd; a middle one unless given.
        algorithm: `zstd` or `zlib`; unless given, zstd if this Python has it.
    """

    def __init__(self, over: int = 4096, level: int | None = None, algorithm: str | None = None) -> None:
        zstd = None if algorithm == "zlib" else _find_zstd()
        if algorithm not in (None, "zlib", "zstd"):
            raise ConfigurationError(f"algorithm={algorithm!r} is none of zlib, zstd")
        if algorithm == "zstd" and zstd is None:
            raise ConfigurationError("this Python has no zstd: pip install 'outlive[zstd]', or use algorithm='zlib'")
        if over < 0:
            raise ConfigurationError(f"over={over!r} must be at least 0 bytes")
        self.name = "zlib" if zstd is None else "zstd"
        default, highest = (LEVEL_ZLIB, 9) if zstd is None else (LEVEL_ZSTD, 22)
        level = default if level is None else level
        if not 1 <= level <= highest:
            raise ConfigurationError(f"level={level!r} must be 1 to {highest} for {self.name}")
        self._over = over
        self._level = level
        self._compress: Callable[[bytes, int], bytes] = zlib.compress if zstd is None else zstd.compress

    def encode(self, data: bytes) -> bytes:
        """The compressed bytes, or the very same if that is not a gain."""
        if len(data) <= self._over:
            return data
        made = self._compress(data, self._level)
        return made if len(made) < len(data) else data

    def decode(self, data: bytes, *, bytes_max: int = BYTES_MAX) -> bytes:
        """The bytes that were compressed.

        Raises:
            UnreadableError: damaged, or more than `bytes_max`.
        """
        return (ZLIB if self.name == "zlib" else ZSTD).decode(data, bytes_max=bytes_max)


class _Reader:
    """Undoes one algorithm; never used to write."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, data: bytes, *, bytes_max: int = BYTES_MAX) -> bytes:
        undo = self._decompressor()
        try:
            made: bytes = undo.decompress(data, bytes_max + 1)
        except Exception as error:  # Both algorithms have an error class of their own.
            raise self._unreadable(f"damaged: {error}") from error
        if len(made) > bytes_max:
            raise self._unreadable(
                f"it has more than {bytes_max:,} bytes (payload_bytes_max)", advice="raise the limit if you trust it"
            )
        if not undo.eof or undo.unused_data:
            raise self._unreadable("damaged: it was cut off, or something was added")
        return made

    def _decompressor(self) -> Any:
        if self.name == "zlib":
            return zlib.decompressobj()
        zstd = _find_zstd()
        if zstd is None:
            raise self._unreadable("this Python has no zstd", advice="pip install 'outlive[zstd]', then resume the run")
        return zstd.ZstdDecompressor()

    def _unreadable(self, reason: str, *, advice: str = "restore a backup") -> UnreadableError:
        return UnreadableError("a payload", f"something compressed with {self.name}", reason, advice=advice)


ZLIB, ZSTD = _Reader("zlib"), _Reader("zstd")
READERS = (ZLIB, ZSTD)
"""The compressions that every engine can read, also one without `Compression`."""
