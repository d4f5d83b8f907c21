"""What a worker does with runs whose worker was lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from outlive.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Recovery:
    """How an engine takes over runs that lost their worker (orphans), and which of these go on by themselves.

    Orphans are taken oldest first and at a bounded rate; new work is never behind all of them. An orphan that is not
    to go on is parked with the reason; `engine.resume(id)` lets it go on all the same.
    """

    enabled: bool = True
    """Whether this worker takes orphans at all."""
    orphans_at_start_max: int = 1_000
    """Orphans taken in one go when a worker starts: its own runs of before, as a rule."""
    orphans_per_check_max: int = 500
    """Orphans taken within `check_seconds` later on."""
    check_seconds: float = 0.5
    """The span that `orphans_per_check_max` counts for; moved by up to a quarter either way, so that the workers of a
    fleet do not act in step."""
    stale_after: float = 0.0
    """Seconds that an orphan is left alone after its worker was lost."""
    auto_resume: bool = True
    """Whether orphans go on by themselves."""
    resume_age_max: float | None = None
    """Seconds after its last progress from which on an orphan does not go on by itself; None for never."""

    def __post_init__(self) -> None:
        for name in ("orphans_at_start_max", "orphans_per_check_max"):
            if not isinstance(value := getattr(self, name), int) or value < 1:
                raise ConfigurationError(
                    f"Recovery({name}={value!r}): a whole number from 1 on; for no orphans at all say enabled=False"
                )
        if not 0 < self.check_seconds < math.inf:
            raise ConfigurationError(f"Recovery(check_seconds={self.check_seconds!r}): must be more than 0 seconds")
        if not 0 <= self.stale_after < math.inf:
            raise ConfigurationError(f"Recovery(stale_after={self.stale_after!r}): must be at least 0 seconds")
        if self.resume_age_max is not None and not 0 < self.resume_age_max < math.inf:
            raise ConfigurationError(
                f"Recovery(resume_age_max={self.resume_age_max!r}): must be more than 0 seconds, or None for no limit"
            )
