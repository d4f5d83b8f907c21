"""Encrypting payloads with AES-256-GCM.

The bytes, in this order: the version of this layout (1), the length of the key's id (1 byte), the id, the nonce (12
bytes, random), the ciphertext with its tag. Version, id and context are authenticated: neither can be exchanged. The
context is the owner of the payload (`outlive._kernel.journal.packing`), so that a value cannot be moved to another run.

Nonces are random, and 96 bits are few: after 2**32 values under one key the chance that two of them share a nonce is
about one in 2**33. Change the key before; one value a millisecond takes seven weeks to get there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from outlive.errors import ConfigurationError, UnreadableError

KEY_BYTES = 32
NONCE_BYTES = 12
KEY_ID_BYTES_MAX = 64
_VERSION = 1


class Encryption:
    """Encrypts every value; needs the package `cryptography` (`pip install 'outlive[crypto]'`).

    Args:
        keys: 32 random bytes each, by a name that you choose. The names are stored in the clear.
        current: the name of the key that new values are encrypted with; the others are for reading.
        required: whether values that are not encrypted are unreadable. Without it they are read as they are, because
            they may be older than the encryption; a person who can write to the store could put some there.
    """

    name = "aes256gcm"

    def __init__(self, keys: Mapping[str, bytes], current: str, *, required: bool = False) -> None:
        if current not in keys:
            raise ConfigurationError(f"current={current!r} is none of the keys: {', '.join(keys) or 'there are none'}")
        self._ciphers = {key_id: _cipher(key_id, key) for key_id, key in keys.items()}
        self._cipher = self._ciphers[current]
        self._header = _header(current)
        self.required = required
        """Whether `Packer` reads no value that this has not made."""

    def encode(self, data: bytes, *, context: bytes = b"") -> bytes:
        """The encrypted bytes."""
        nonce = os.urandom(NONCE_BYTES)
        sealed: bytes = self._cipher.encrypt(nonce, data, self._header + context)
        return self._header + nonce + sealed

    def decode(self, data: bytes, *, context: bytes = b"") -> bytes:
        """The bytes that were encrypted.

        Raises:
            UnreadableError: its key is not here, or the bytes, the key or the owner are not those it was made with.
        """
        if len(data) < 2 or data[0] != _VERSION:
            raise _unreadable(
                "its first bytes are unknown", advice="upgrade outlive, or restore a backup if it was damaged"
            )
        header, rest = data[: 2 + data[1]], data[2 + data[1] :]
        key_id = header[2:].decode("utf-8", "backslashreplace")
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise _unreadable(
                f"no key {key_id!r} is here", advice="put it into Encryption(keys=...), then resume the run"
            )
        try:
            opened: bytes = cipher.decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], header + context)
        except Exception as error:  # The library says as little as possible about what is wrong.
            raise _unreadable(
                f"it was altered or moved, or key {key_id!r} is another one now", advice="restore the key or a backup"
            ) from error
        return opened

    def __repr__(self) -> str:
        return f"<Encryption with keys {', '.join(self._ciphers)}>"


def _header(key_id: str) -> bytes:
    name = key_id.encode()
    return bytes([_VERSION, len(name)]) + name


def _cipher(key_id: object, key: object) -> Any:
    if not isinstance(key_id, str) or not 0 < len(key_id.encode()) <= KEY_ID_BYTES_MAX:
        raise ConfigurationError(f"the name of a key is text of 1 to {KEY_ID_BYTES_MAX} bytes, and not {key_id!r}")
    # Never the key itself: errors end up in logs.
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        got = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise ConfigurationError(f"key {key_id!r} must be {KEY_BYTES} random bytes, not {got}: os.urandom({KEY_BYTES})")
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ConfigurationError("Encryption needs the package cryptography: pip install 'outlive[crypto]'") from error
    return AESGCM(key)


def _unreadable(reason: str, *, advice: str) -> UnreadableError:
    return UnreadableError("a payload", "something encrypted", reason, advice=advice)
