"""The pace of orphans: bounded, jittered, and leaving room."""

from __future__ import annotations

from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.session.pace import OrphanPace
from outlive.limits import Limits
from outlive.types import Recovery


class StandingClock(SystemClock):
    """Time that moves when the test says so, and known chance."""

    def __init__(self, chance: float = 0.5) -> None:
        super().__init__()
        self.seconds = 100.0
        self._chance = chance

    def monotonic(self) -> float:
        """The time that the test has set."""
        return self.seconds

    def random(self) -> float:
        """Always the same."""
        return self._chance


def started(recovery: Recovery, clock: StandingClock, *, room_max: int = 1_000) -> OrphanPace:
    """A pace whose start is over: it found no orphans."""
    pace = OrphanPace(recovery, clock=clock, room_max=room_max)
    pace.took(0, asked=pace.allowance(limit=500, room=room_max))
    return pace


def test_a_start_takes_a_thousand_at_once() -> None:
    """Claim after claim without a pause, with the limits that an engine has by default."""
    limits = Limits()
    pace = OrphanPace(Recovery(), clock=StandingClock(), room_max=limits.runs_active_max)
    held = 0
    while orphans := pace.allowance(limit=limits.claim_batch_max, room=limits.runs_active_max - held):
        pace.took(orphans, asked=orphans)
        held += orphans

    assert 1_000 == held


def test_a_claim_leaves_a_tenth_to_others() -> None:
    """A claim at the start takes only so many orphans that a tenth of the room is left for other runs."""
    assert 450 == OrphanPace(Recovery(), clock=StandingClock(), room_max=1_000).allowance(limit=500, room=1_000)


def test_a_tenth_of_the_room_is_for_others() -> None:
    """Always, also at the start."""
    for pace in (
        started(Recovery(), StandingClock()),
        OrphanPace(Recovery(), clock=StandingClock(), room_max=1_000),
    ):
        assert 50 == pace.allowance(limit=150, room=150)
        assert 0 == pace.allowance(limit=100, room=100)


def test_an_allowance_that_is_spent_comes_back_after_a_check() -> None:
    """Nothing in between, and a claimer that waits knows for how long."""
    clock = StandingClock()
    pace = started(Recovery(orphans_per_check_max=10, check_seconds=4), clock)
    assert pace.wait_seconds() is None
    pace.took(7, asked=10)
    assert 3 == pace.allowance(limit=500, room=1_000)
    pace.took(3, asked=3)

    assert 0 == pace.allowance(limit=500, room=1_000)
    assert 4 == pace.wait_seconds()
    clock.seconds += 3.9
    assert 0 == pace.allowance(limit=500, room=1_000)
    clock.seconds += 0.1
    assert 10 == pace.allowance(limit=500, room=1_000)
    assert pace.wait_seconds() is None


def test_checks_of_a_fleet_do_not_stay_in_step() -> None:
    """Chance moves them by a quarter either way."""
    waits = []
    for chance in (0.0, 0.999_999):
        pace = started(Recovery(orphans_per_check_max=1, check_seconds=4), StandingClock(chance))
        pace.took(1, asked=1)
        waits.append(pace.wait_seconds())

    assert [3, 5] == [round(wait or 0, 3) for wait in waits]


def test_orphans_taken_at_the_start_count_for_the_first_check() -> None:
    """The orphans that a worker takes at its start count towards its first check."""
    pace = OrphanPace(Recovery(orphans_per_check_max=10), clock=StandingClock(), room_max=1_000)
    pace.took(4, asked=450)

    assert 6 == pace.allowance(limit=500, room=1_000)


def test_nothing_is_allowed_without_recovery() -> None:
    """Neither at the start nor later."""
    pace = OrphanPace(Recovery(enabled=False), clock=StandingClock(), room_max=1_000)

    assert 0 == pace.allowance(limit=500, room=1_000)


def test_a_start_that_ends_without_an_orphan_is_followed_by_checks() -> None:
    """It took all it asked for, and then nothing was left, or others were faster. There will be orphans again."""
    clock = StandingClock()
    pace = OrphanPace(Recovery(), clock=clock, room_max=10_000)
    for orphans in (450, 450, 0):
        pace.took(orphans, asked=pace.allowance(limit=500, room=5_000))

    clock.seconds += 1
    assert 450 == pace.allowance(limit=500, room=5_000)


def test_pace_does_not_wait_for_an_allowance_that_has_come() -> None:
    """The pace has nothing to wait for once its allowance is there, even if no claim has used it because the store was
    away."""
    clock = StandingClock()
    pace = started(Recovery(orphans_per_check_max=10, check_seconds=4), clock)
    pace.took(10, asked=10)

    clock.seconds += 4
    assert pace.wait_seconds() is None
