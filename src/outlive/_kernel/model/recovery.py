"""How a worker treats runs whose worker was lost."""

from __future__ import annotations

from dataclasses import dataclass

from outlive._kernel.model import given


@dataclass(frozen=True, slots=True)
class Recovery:
    """How an engine takes over runs that lost their worker (orphans), and which of them go on by themselves.

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
        for name in ("enabled", "auto_resume"):
            given.flag("Recovery", name, getattr(self, name))
        for name in ("orphans_at_start_max", "orphans_per_check_max"):
            given.keep(self, **{name: given.whole("Recovery", name, getattr(self, name))})
        given.keep(
            self,
            check_seconds=given.seconds("Recovery", "check_seconds", self.check_seconds),
            stale_after=given.seconds("Recovery", "stale_after", self.stale_after, or_zero=True),
            resume_age_max=given.some_seconds("Recovery", "resume_age_max", self.resume_age_max),
        )
