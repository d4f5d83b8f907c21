"""How much one request, and one sender, may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from outlive._model.limit import TokenBucket


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """How much one request, and one sender, may ask for."""

    body_bytes_max: int = 4 * 1024 * 1024
    body_seconds: float = 30.0
    """How long the body of a request may take to arrive."""
    check_again_seconds: float = 5.0
    """How often a request that follows events is asked again who it is: a key that was revoked sees no more then."""
    wait_seconds_max: float = 60.0
    """How long a request may wait for a result or an answer."""
    rate: TokenBucket | None = None
    """How many requests one principal may send; None for no limit."""
    followers_max: int = 2_000
    """How many requests may follow events at once."""
    look_seconds: float = 0.25
    """How often a follower looks at the store at most; less often while nothing happens."""
