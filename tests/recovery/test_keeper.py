"""A worker trusts its lease for no longer than others have to respect it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.session.keeper import LeaseKeeper
from outlive.errors import StoreUnavailableError
from outlive.telemetry import Counters
from tests.engine.hand_clock import HandClock

LEASE_SECONDS = 30.0


class SlowBeat:
    """A store that does not answer for a while."""

    def __init__(self, clock: HandClock, *, seconds: float, is_away: bool = True) -> None:
        self.clock, self.seconds, self.is_away = clock, seconds, is_away
        self.renewals = 0

    def renew(self, *, lease_seconds: float) -> bool:
        """Take the time, and fail if it is away."""
        del lease_seconds
        self.renewals += 1
        self.clock.at += self.seconds
        if self.is_away:
            raise StoreUnavailableError("the store", "no answer in time")
        return True

    def close(self) -> None:
        """Nothing to let go of."""


@pytest.fixture
async def clock() -> HandClock:
    """The time of one test."""
    return HandClock()


def live_through(clock: HandClock) -> float:
    """Let all the pauses pass that the keeper asks for, until it asks for no more; when that is."""
    while clock.tick():
        pass
    return clock.at


def keeper_on(clock: HandClock, beat: SlowBeat, *, asked_at: float) -> LeaseDeadline:
    """Begin to keep a lease; until when it is trusted."""
    trust = LeaseDeadline(clock.monotonic)
    LeaseKeeper(
        beat,
        clock=clock,
        counters=Counters(),
        lease=trust,
        asked_at=asked_at,
        lease_seconds=LEASE_SECONDS,
        fence=lambda _: None,
    ).start()
    return trust


@pytest.mark.parametrize("seconds", [0.0, 1.0, LEASE_SECONDS / 3, LEASE_SECONDS / 3 + 0.5])
async def test_worker_is_fenced_before_its_lease_has_ended(clock: HandClock, seconds: float) -> None:
    """However long each renewal hangs before it fails."""
    keeper_on(clock, SlowBeat(clock, seconds=seconds), asked_at=clock.at)

    assert live_through(clock) < 100.0 + LEASE_SECONDS


async def test_a_lost_lease_says_why_it_was_not_renewed(clock: HandClock, caplog: pytest.LogCaptureFixture) -> None:
    """The disk is full, for example: "not in time" alone does not tell an operator what to do."""
    keeper_on(clock, SlowBeat(clock, seconds=0.0), asked_at=clock.at)

    live_through(clock)

    assert "it was not renewed in time: the store is unavailable: no answer in time" in caplog.text


async def test_lease_counts_from_before_it_was_asked_for(clock: HandClock) -> None:
    """The store may have given it long before its answer arrived."""
    trust = keeper_on(clock, SlowBeat(clock, seconds=0.0), asked_at=clock.at - 5.0)

    assert trust.until < 95.0 + LEASE_SECONDS
    assert live_through(clock) < 95.0 + LEASE_SECONDS


async def test_a_process_that_was_stopped_for_too_long_does_not_renew(clock: HandClock) -> None:
    """Others may own everything by now: a renewal that succeeds would say nothing."""
    beat = SlowBeat(clock, seconds=0.0, is_away=False)
    keeper_on(clock, beat, asked_at=clock.at)

    assert not clock.tick(after=LEASE_SECONDS)
    assert beat.renewals == 0


async def test_renewal_that_is_answered_after_trust_has_ended_is_worth_nothing(clock: HandClock) -> None:
    """Others may have taken everything over before the store wrote it: the worker is fenced, and trusts no more."""
    beat = SlowBeat(clock, seconds=LEASE_SECONDS, is_away=False)
    trust = keeper_on(clock, beat, asked_at=clock.at)

    assert not clock.tick()

    assert beat.renewals == 1
    assert trust.until < clock.at


async def test_renewal_counts_from_when_it_was_sent(clock: HandClock) -> None:
    """An answer that takes long, but not too long, does not make the lease longer than the store gave it."""
    trust = keeper_on(clock, SlowBeat(clock, seconds=10.0, is_away=False), asked_at=clock.at)

    assert clock.tick()

    assert clock.at == 100.0 + LEASE_SECONDS / 3 + 10.0
    assert trust.until < 100.0 + LEASE_SECONDS / 3 + LEASE_SECONDS


class DeafClock(HandClock):
    """A clock whose loops do not hear at once that they are to end: they are in the middle of something."""

    def pulse(self, beats: Generator[float, None, None], *, name: str) -> Callable[[], None]:
        """Kept for the test."""
        super().pulse(beats, name=name)
        return lambda: None


class OverBeat:
    """A store that says that the session has ended; but before it does, something happens."""

    def __init__(self) -> None:
        self.happens: Callable[[], None] = lambda: None

    def renew(self, *, lease_seconds: float) -> bool:
        """It has ended."""
        del lease_seconds
        self.happens()
        return False

    def close(self) -> None:
        """Nothing to let go of."""


@pytest.mark.parametrize("is_given_up", [True, False])
async def test_keeper_that_has_stopped_says_nothing_more(
    caplog: pytest.LogCaptureFixture, *, is_given_up: bool
) -> None:
    """A renewal that was on its way tells of a session that has ended; the next one must not hear of it."""
    said: list[str] = []
    clock, beat = DeafClock(), OverBeat()
    keeper = LeaseKeeper(
        beat,
        clock=clock,
        counters=Counters(),
        lease=LeaseDeadline(clock.monotonic),
        asked_at=clock.at,
        lease_seconds=LEASE_SECONDS,
        fence=said.append,
    )
    keeper.start()
    beat.happens = partial(keeper.end_session, "it stood still") if is_given_up else keeper.stop

    clock.tick()
    await asyncio.sleep(0)

    assert said == ["it stood still"] * is_given_up
    assert is_given_up == ("lost its lease" in caplog.text)
    assert not keeper.is_trusted() or not is_given_up


class GivenUpBeat(OverBeat):
    """A store that renews the lease; but before it answers, something happens."""

    def renew(self, *, lease_seconds: float) -> bool:
        """It is renewed."""
        super().renew(lease_seconds=lease_seconds)
        return True


async def test_renewal_of_a_session_that_was_given_up_meanwhile_is_worth_nothing() -> None:
    """The worker that gave it up wants others to go on: nothing begins here any more, though the store has said yes."""
    lost: list[str] = []
    clock, beat = DeafClock(), GivenUpBeat()
    trust = LeaseDeadline(clock.monotonic)
    keeper = LeaseKeeper(
        beat,
        clock=clock,
        counters=Counters(),
        lease=trust,
        asked_at=clock.at,
        lease_seconds=LEASE_SECONDS,
        fence=lost.append,
    )
    keeper.start()
    assert keeper.is_trusted()
    beat.happens = partial(keeper.end_session, "the loop stands still")

    clock.tick()

    assert not keeper.is_trusted()
    assert trust.until <= 0.0
    await asyncio.sleep(0)
    assert lost == ["the loop stands still"]


class RacingTrust:
    """A number that the keeper's thread moves forward; just before it does, something happens."""

    def __init__(self) -> None:
        self._until = 0.0
        self.happens: Callable[[], None] | None = None

    @property
    def until(self) -> float:
        """Until when the lease is trusted."""
        return self._until

    @until.setter
    def until(self, instant: float) -> None:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        self._until = instant


async def test_session_that_is_given_up_while_its_renewal_is_noted_is_not_trusted(clock: HandClock) -> None:
    """Two threads meet in the middle of a line, and the thread that gives the session up has the last word."""
    trust: Any = RacingTrust()
    beat = SlowBeat(clock, seconds=0.0, is_away=False)
    lost: list[str] = []
    keeper = LeaseKeeper(
        beat,
        clock=clock,
        counters=Counters(),
        lease=trust,
        asked_at=clock.at,
        lease_seconds=LEASE_SECONDS,
        fence=lost.append,
    )
    trust.happens = partial(keeper.end_session, "the loop stands still")

    assert keeper.beat_once() == ""

    assert not keeper.is_trusted()
    assert trust.until <= 0.0
    await asyncio.sleep(0)
    assert lost == ["the loop stands still"]


def test_nothing_is_trusted_before_there_is_a_lease() -> None:
    """Not even at the first instant of a clock that begins at nought."""
    assert not LeaseDeadline(lambda: 0.0).is_held
