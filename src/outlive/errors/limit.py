"""How a step is refused before it begins."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class CircuitOpenError(OutliveError):
    """A step was not called: its breaker is open, and says so at once (`when_open="fail"`)."""

    def __init__(self, name: str, retry_after: float) -> None:
        self.name, self.retry_after = name, retry_after
        super().__init__(
            f"breaker {name} is open: what it protects has failed too often; the next call may be tried in "
            f"{retry_after:g} s. Catch this, or let steps wait with when_open='wait'"
        )


class RateLimitedError(OutliveError):
    """A step was not called: its rate limit has no room now, and says so at once (`when_full="fail"`)."""

    def __init__(self, name: str, tier: str, retry_after: float) -> None:
        self.name, self.tier, self.retry_after = name, tier, retry_after
        super().__init__(
            f"rate limit {name} is full: its tier of {tier} has room again in {retry_after:g} s. Catch this, or let "
            f"steps wait with when_full='wait'"
        )
