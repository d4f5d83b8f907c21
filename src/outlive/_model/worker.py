"""What a worker is given: its name, and its lease."""

from __future__ import annotations

from outlive._model import given
from outlive.errors import InvalidArgumentError

LEASE_SECONDS_MIN = 1.0


def worker_name(name: object) -> str:
    """A name that tells one worker from the others."""
    plain = given.text("Engine", "name", name, like="worker-1")
    if not plain.strip():
        wanted = "leave it out, or give every worker a name of its own, for example name='worker-1'"
        raise InvalidArgumentError("Engine", "name", name, wanted)
    return plain


def lease_of(lease_seconds: object) -> float:
    """How long a worker without a sign of life is taken for alive."""
    seconds = given.seconds("Engine", "lease_seconds", lease_seconds)
    if seconds < LEASE_SECONDS_MIN:
        wanted = f"it is too short; give at least {LEASE_SECONDS_MIN:g}, for example lease_seconds=10"
        raise InvalidArgumentError("Engine", "lease_seconds", lease_seconds, wanted)
    return seconds
