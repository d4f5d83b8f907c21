"""The supervisor of services: what each of them does, and that none of them disturbs another."""

import asyncio
from collections.abc import Callable

import pytest

from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.services.supervisor import RETRY_SECONDS, RETRY_SECONDS_MAX, Services
from outlive._kernel.runtime.wakeup import Wakeup
from outlive.errors import StoreUnavailableError
from outlive.telemetry import Counters

HOUR = 3_600.0


class Steady:
    """A service that counts how often it is called, and does what the test says."""

    def __init__(self, name: str = "steady", act: Callable[[], float] = lambda: HOUR) -> None:
        self.name = name
        self.calls = 0
        self._act = act
        self._called = Wakeup()

    async def run_once(self) -> float:
        """Called by the supervisor."""
        self.calls += 1
        self._called.ring()
        return self._act()

    async def called(self, times: int) -> None:
        """Return when it was called so often."""
        while self.calls < times:
            await self._called.sleep(None)


class NoSpread(SystemClock):
    """Real time, without chance."""

    def random(self) -> float:
        """See `Clock`."""
        return 0.5


def fail() -> float:
    """What a service that fails does."""
    raise RuntimeError("out of order")


async def test_a_service_runs_again_when_its_pause_is_over() -> None:
    """A service runs again after the pause that its `run_once` returned."""
    service = Steady(act=lambda: 0.0)
    services = Services([service], clock=SystemClock(), counters=Counters())
    services.start()

    await service.called(3)

    await services.stop()


@pytest.mark.timeout(10)
async def test_a_service_that_always_has_more_to_do_does_not_stop_the_loop() -> None:
    """It did: a test of it ran until its timeout was raised in the service, which took that for a failure."""
    counters = Counters()
    services = Services([Steady(act=lambda: 0.0)], clock=SystemClock(), counters=counters)
    services.start()

    for _ in range(10):
        await asyncio.sleep(0)

    assert 0 == counters.service_failures
    await services.stop()


async def test_a_rung_service_looks_at_once() -> None:
    """It does not sleep to the end of its pause. [CA-S15]"""
    service, other = Steady(), Steady("other")
    services = Services([service, other], clock=SystemClock(), counters=Counters())
    services.start()
    await service.called(1)
    await other.called(1)

    services.ring("steady")
    await service.called(2)

    assert 1 == other.calls
    await services.stop()


async def test_a_service_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged and counted, backs off although it is rung, and is tried again."""
    broken, other = Steady("broken", fail), Steady("other", lambda: 0.0)
    counters = Counters()
    services = Services([broken, other], clock=NoSpread(), counters=counters)
    services.start()
    await broken.called(1)
    services.ring()
    await other.called(50)

    assert (1, 1) == (broken.calls, counters.service_failures)
    assert "the broken failed; it is tried again" in caplog.text
    async with asyncio.timeout(RETRY_SECONDS * 10):
        await broken.called(2)
    await services.stop()


async def test_a_store_that_is_away_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is not a failure of the service."""

    def refuse() -> float:
        raise StoreUnavailableError("the store", "it is away")

    service, counters = Steady(act=refuse), Counters()
    services = Services([service], clock=SystemClock(), counters=counters)
    services.start()
    await service.called(2)
    await services.stop()

    assert 0 == counters.service_failures
    assert 1 == caplog.text.count("the steady goes on when it is back")


async def test_a_service_that_keeps_failing_is_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is twice as long as the one before, up to a limit; a success makes the next pause short again."""
    fails = iter([True] * 12 + [False, True])

    class Skipping(NoSpread):
        """Goes on by what is slept."""

        seconds = 0.0

        def monotonic(self) -> float:
            """See `Clock`."""
            return self.seconds

    class Skipped(Wakeup):
        """Sleeps by moving the clock."""

        async def sleep(self, seconds: float | None) -> None:
            """See `Wakeup`."""
            assert seconds is not None
            pauses.append(seconds)
            clock.seconds += seconds
            await asyncio.sleep(0)

    def act() -> float:
        if (fails_now := next(fails, None)) is None:
            services.begin_nothing()
        return fail() if fails_now else 7.0

    monkeypatch.setattr("outlive._kernel.runtime.services.supervisor.Wakeup", Skipped)
    pauses: list[float] = []
    clock, service = Skipping(), Steady(act=act)
    services = Services([service], clock=clock, counters=Counters())
    services.start()
    await service.called(15)
    await services.stop()

    doubled = [RETRY_SECONDS * 2**failures for failures in range(7)]
    assert pauses[:14] == [*doubled, *[RETRY_SECONDS_MAX] * 5, 7.0, RETRY_SECONDS]


async def test_a_service_rests_while_it_sleeps() -> None:
    """A test engine moves its clock only then."""
    service = Steady()
    services = Services([service], clock=SystemClock(), counters=Counters())
    services.start()

    states = [services.is_resting]
    await service.called(1)
    await asyncio.sleep(0)
    states.append(services.is_resting)
    await services.stop()
    states.append(services.is_resting)

    assert [False, True, True] == states


async def test_stopping_cancels_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine does not wait for a service for ever."""
    monkeypatch.setattr("outlive._kernel.runtime.services.supervisor.STOP_SECONDS", 0.01)
    begun = asyncio.Event()

    class Slow:
        """Never returns."""

        name = "slow"

        async def run_once(self) -> float:
            """Wait."""
            begun.set()
            await asyncio.get_running_loop().create_future()
            return 0.0

    services = Services([Slow()], clock=SystemClock(), counters=Counters())
    services.start()
    await begun.wait()

    await services.stop()

    assert services.is_resting


class Busy:
    """A service that is in the middle of its work until it may end."""

    name = "busy"

    def __init__(self) -> None:
        self.begun, self.may_end, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ended = ""

    async def run_once(self) -> float:
        """Wait."""
        self.begun.set()
        try:
            await self.may_end.wait()
            self.ended = "done"
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        finally:
            self.has_ended.set()
        return HOUR


@pytest.fixture
def busy() -> Busy:
    """A service."""
    return Busy()


@pytest.fixture
async def services(busy: Busy) -> Services:
    """The services of a worker, one of them in the middle of its work."""
    services = Services([busy], clock=SystemClock(), counters=Counters())
    services.start()
    await busy.begun.wait()
    return services


async def test_a_service_may_end_its_work_when_the_worker_stops(busy: Busy, services: Services) -> None:
    """It is not cancelled while its time is not over."""
    stopping = asyncio.ensure_future(services.stop())
    await asyncio.sleep(0)
    busy.may_end.set()
    await stopping

    assert (busy.ended, services.is_resting) == ("done", True)


async def test_services_that_begin_nothing_end_without_a_stop(busy: Busy, services: Services) -> None:
    """Each of them does what it does to its end, and does not begin again."""
    services.begin_nothing()
    busy.may_end.set()
    async with asyncio.timeout(10):
        await busy.has_ended.wait()
    busy.begun.clear()
    services.ring()
    for _ in range(10):
        await asyncio.sleep(0)

    assert (busy.ended, busy.begun.is_set()) == ("done", False)
    await services.stop()


async def test_services_that_are_abandoned_are_cancelled_at_once(busy: Busy, services: Services) -> None:
    """They end as in a killed process: nothing waits for their work."""
    services.abandon()
    async with asyncio.timeout(10):
        await busy.has_ended.wait()

    assert busy.ended == "cancelled"
