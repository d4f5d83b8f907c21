"""Signatures in the layout of Standard Webhooks: HMAC-SHA256 over the id, the time and the body of a delivery. Pure.

A secret may hold two keys with a space between them, the old one and the new one: that is how they are changed without
losing a delivery.
"""

from __future__ import annotations

import base64
import binascii
import hmac

PREFIX = "whsec_"
"""How a key begins that is written in Base64."""
ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
KEYS_MAX = 10
"""Keys of one secret that count."""


def keys_in(secret: str) -> list[str]:
    """The keys that count now: one, or an old and a new one. An empty one does not: everyone has it."""
    return [key for key in secret.split()[:KEYS_MAX] if key_of(key)]


def key_of(key: str) -> bytes:
    """The bytes of a key: those behind `whsec_` are Base64, any other key is text."""
    if key.startswith(PREFIX):
        try:
            return base64.b64decode(key.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            """It only looks like one."""
    return key.encode()


def signatures(secret: str, delivery: str, timestamp: str, body: bytes) -> list[bytes]:
    """The signature by each key, in Base64."""
    signed = f"{delivery}.{timestamp}.".encode("latin-1") + body
    return [base64.b64encode(hmac.digest(key_of(key), signed, "sha256")) for key in keys_in(secret)]


def signed_headers(secret: str, delivery: str, body: bytes, *, now_seconds: float) -> dict[str, str]:
    """The headers of a request that is sent now, with one signature for each key."""
    timestamp = str(int(now_seconds))
    made = " ".join(f"v1,{each.decode()}" for each in signatures(secret, delivery, timestamp, body))
    return {ID: delivery, TIMESTAMP: timestamp, SIGNATURE: made}
