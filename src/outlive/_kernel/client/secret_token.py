"""Secrets that are shown once and kept as a hash.

A secret is 256 random bits, so that it can neither be guessed nor found from its hash, and needs no slow hash. It
carries the id under which its record lies: one record is read, and the rest is compared in constant time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
from typing import NamedTuple

SECRET_BYTES = 32
ID_BYTES = 10
UNKNOWN_HASH = "0" * 64
"""A hash that no secret has: one that names no record is compared with it, which takes as long."""
_ANYWHERE = re.compile(r"\b([a-z]{2,8}_[a-z2-7]{16})_[A-Za-z0-9_-]+")
_FORM = re.compile(r"([a-z]{2,8})_([a-z2-7]{16})_([A-Za-z0-9_-]{43})")


class Token(NamedTuple):
    """A secret, and the id in it."""

    id: str
    text: str

    @property
    def hash(self) -> str:
        """The hash of the token, which is stored instead of it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def fits(self, hash: str) -> bool:  # noqa: A002 (that is what it is)
        """Whether this hash is of this secret, in the same time whether it is or not."""
        return hmac.compare_digest(self.hash, hash)


def new_token(prefix: str) -> Token:
    """A secret that was never there before: `olv_<id>_<secret>`."""
    id = base64.b32encode(os.urandom(ID_BYTES)).decode().lower()
    secret = base64.urlsafe_b64encode(os.urandom(SECRET_BYTES)).decode().rstrip("=")
    return Token(id, f"{prefix}_{id}_{secret}")


def read_token(prefix: str, text: str) -> Token | None:
    """The secret in a text; None if it has another form."""
    match = _FORM.fullmatch(text)
    return Token(match[2], text) if match is not None and match[1] == prefix else None


def has_form(text: str) -> bool:
    """Whether a text has the form of such a secret."""
    return _FORM.fullmatch(text) is not None


def without_secrets(text: str) -> str:
    """A text in which of each secret only the id is left."""
    return _ANYWHERE.sub(r"\1_...", text)
