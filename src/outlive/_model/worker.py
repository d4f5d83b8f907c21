"""What a worker is given: its name, and its lease; and the id of a session, which carries the name.

A journal names the sessions that moved its runs. The row of a session is deleted when it ends, so the id itself says
which worker it was: a person who finds that a worker was lost sees which one.
"""

from __future__ import annotations

import hashlib
import hmac

from outlive._model import given
from outlive.errors import InvalidArgumentError

LEASE_SECONDS_MIN = 1.0
NAME_CHARACTERS_MAX = 80
"""How much of a name is in the ids of its sessions."""
UNIQUE_CHARACTERS = 12
LEASE_HASH_CHARACTERS = 32
"""How much of the hash of a lease is in the id of a session: 128 bits, for which no other lease can be found."""


def worker_name(name: object) -> str:
    """A name that tells one worker from the others."""
    plain = given.text("Engine", "name", name, like="worker-1")
    if not plain.strip():
        wanted = "leave it out, or give every worker a name of its own, for example name='worker-1'"
        raise InvalidArgumentError("Engine", "name", name, wanted)
    return plain


def remote_name(worker: object) -> str:
    """The name of a program outside that takes tasks: `remote`, and what it calls itself, if it says so."""
    where = "engine.tasks.claim"
    plain = given.text(where, "worker", worker, like="resizer-1", least=0)
    if not plain.isprintable():
        wanted = "it is shown in logs and lists: give one line without control characters, for example 'resizer-1'"
        raise InvalidArgumentError(where, "worker", worker, wanted)
    return f"remote {plain}".rstrip()


def session_id(name: str, unique: str) -> str:
    """The id of a session of the worker with this name; the end of `unique` tells it from its other sessions."""
    return f"{name[:NAME_CHARACTERS_MAX]}#{unique[-UNIQUE_CHARACTERS:]}"


def remote_session_id(name: str, lease: str) -> str:
    """The id of the session of a program outside that has this secret lease. Everyone may see the id: it has only the
    hash of the lease."""
    return f"{name[:NAME_CHARACTERS_MAX]}#{_lease_hash(lease)}"


def is_lease_of(lease: str, session_id: str) -> bool:
    """Whether this is the secret lease of a session, in the same time whether it is or not."""
    return hmac.compare_digest(_lease_hash(lease).encode(), session_id.rpartition("#")[2].encode())


def name_in(session_id: str) -> str:
    """The name of the worker that had this session."""
    return session_id.rpartition("#")[0] or session_id


def _lease_hash(lease: str) -> str:
    return hashlib.sha256(lease.encode("utf-8", "surrogatepass")).hexdigest()[:LEASE_HASH_CHARACTERS]


def lease_of(lease_seconds: object) -> float:
    """How long a worker without a sign of life is taken for alive."""
    seconds = given.seconds("Engine", "lease_seconds", lease_seconds)
    if seconds < LEASE_SECONDS_MIN:
        wanted = f"it is too short; give at least {LEASE_SECONDS_MIN:g}, for example lease_seconds=10"
        raise InvalidArgumentError("Engine", "lease_seconds", lease_seconds, wanted)
    return seconds
