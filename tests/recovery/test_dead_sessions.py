"""Workers that have died are seen to have died, and their runs go on long before any lease has run out."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import outlive
from outlive._kernel.client.timeline import Timeline
from outlive._kernel.lease.process import this_process
from outlive._kernel.runtime.session.dead_sessions import LOOK_SECONDS, DeadSessionEnder
from outlive._kernel.store.contract import Store
from outlive.errors.store import LeaseUrlError, StoreMovedError
from outlive.telemetry import Counters
from outlive.types import WorkerOptions
from tests.engine.faults import unavailable
from tests.engine.hand_clock import HandClock
from tests.engine.inside import abandon_sessions, dead_session_ender_of, ring, session_id_of, store_of, worker_of
from tests.engine.support import DAY, Place, hold, in_time, note, stage, until, waits


@outlive.workflow
async def rescued(name: str) -> list[str]:
    return [await note(f"{name} before"), await hold(name)]


class Renamed:
    """A store in which the worker of an engine lives in another process than it does."""

    def __init__(self, inner: Store, process: str) -> None:
        self.inner, self.process = inner, process

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def register_worker(self, worker: Any, *, lease_seconds: float) -> None:
        """With the other process."""
        worker = msgspec.structs.replace(worker, process=self.process)
        await self.inner.register_worker(worker, lease_seconds=lease_seconds)


def a_dead_process() -> str:
    """A process of this machine that is gone: another one has its number."""
    process, began = this_process().rsplit("/", 1)
    return f"{process}/{int(began) + 1}"


async def go_silent(engine: outlive.Engine) -> None:
    """End an engine without a word; its session has its lease, and its lock if there is one."""
    abandon_sessions(engine)
    await engine.__aexit__(None, None, None)


async def test_run_of_a_dead_neighbour_goes_on_at_once(place: Place) -> None:
    """Its process is gone, whatever its lease says."""
    first = place.engine(wrap=lambda store: Renamed(store, a_dead_process()))
    await first.__aenter__()
    await first.start(rescued, "a", id="run-1")
    await stage.gate("a").reached()
    await go_silent(first)

    async with place.engine() as second:
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert ["a before", "a"] == await in_time(second.get("run-1").result())
        assert 1 == second.counters.sessions_ended
    assert 1 == stage.count("a before")


async def test_timeline_says_which_worker_was_lost(place: Place) -> None:
    """By its name, though the row of its session is deleted."""
    first = place.engine(name="orders-1", wrap=lambda store: Renamed(store, a_dead_process()))
    await first.__aenter__()
    await first.start(rescued, "a", id="run-1")
    await stage.gate("a").reached()
    await go_silent(first)

    async with place.engine(name="orders-2") as second:
        await stage.gate("a").reached()
        stage.gate("a").open()
        await in_time(second.get("run-1").result())
        lines = Timeline(await second.history("run-1")).lines()
        workers = [worker.name for worker in await store_of(second).list_workers()]
    assert "worker orders-1 was lost; worker orders-2 took over" in [line.name for line in lines]
    assert workers == ["orders-2"]


async def test_neighbour_that_lives_keeps_its_runs(place: Place) -> None:
    """Its process is there: it is not looked at twice."""
    async with place.engine() as first, place.engine() as second:
        run = await first.start(rescued, "a", id="run-1")
        await stage.gate("a").reached()
        ender = dead_session_ender_of(second)
        before = ender.looks
        ender.be_due()
        ring(second)

        async def has_looked() -> bool:
            return ender.looks > before

        await until(has_looked)
        stage.gate("a").open()
        assert ["a before", "a"] == await in_time(run.result())
        assert 0 == second.counters.sessions_ended
    assert 1 == stage.count("a")


async def test_named_worker_takes_its_own_runs_when_it_comes_back(place: Place) -> None:
    """Wherever it comes back, and though its lease has not run out: the name is its own. [SF-X1]"""
    first = place.engine(name="orders-1")
    await first.__aenter__()
    await first.start(rescued, "a", id="run-1")
    await stage.gate("a").reached()
    await go_silent(first)

    async with place.engine(name="orders-1") as second:
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert ["a before", "a"] == await in_time(second.get("run-1").result())


@pytest.mark.usefixtures("quick_beats")
async def test_second_worker_of_a_name_ends_the_session_of_the_first(place: Place) -> None:
    """Two cannot have it; the older one gives up what it has, and nothing is done twice by it."""
    async with place.engine(name="orders-1") as first:
        await first.start(rescued, "a", id="run-1")
        await stage.gate("a").reached()
        old = worker_of(first).id
        async with place.engine(name="orders-1") as second:
            await stage.gate("a").reached()
            stage.gate("a").open()
            assert ["a before", "a"] == await in_time(second.get("run-1").result())
            await first.__aexit__(None, None, None)
            workers = {worker.id for worker in await store_of(second).list_workers()}
    assert old not in workers


@pytest.mark.usefixtures("quick_beats")
async def test_two_workers_of_a_name_do_not_end_each_other_for_ever(place: Place) -> None:
    """A mistake, or a machine that comes back after its successor has begun: the older one is ended once."""
    async with place.engine(name="orders-1") as first, place.engine(name="orders-1") as second:
        old = session_id_of(first)

        async def has_begun_again() -> bool:
            return session_id_of(first) not in ("", old)

        await until(has_begun_again)
        looked = dead_session_ender_of(first)

        async def has_looked() -> bool:
            return looked.looks > 0

        await until(has_looked)
        live = {worker.id for worker in await store_of(first).list_workers() if worker.is_live}
        assert live == {session_id_of(first), session_id_of(second)}
        assert [0, 1] == [engine.counters.sessions_ended for engine in (first, second)]


async def test_process_that_is_alone_takes_everything_at_once(place: Place) -> None:
    """Its settings say that it is alone, so every other worker that it finds has died."""
    first = place.engine()
    await first.__aenter__()
    await first.start(rescued, "a", id="run-1")
    await stage.gate("a").reached()
    await go_silent(first)

    async with place.engine(lease="none") as second:
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert ["a before", "a"] == await in_time(second.get("run-1").result())


@outlive.workflow
async def rescued_nap() -> str:
    await asyncio.sleep(DAY)
    return "woken"


async def test_two_that_each_say_that_they_are_alone_do_not_stop_everything(place: Place) -> None:
    """A mistake; the later one goes on with everything."""
    async with place.engine(lease="none") as first, place.engine(lease="none") as second:

        async def have_looked() -> bool:
            enders = [dead_session_ender_of(engine) for engine in (first, second)]
            return all(ender.looks for ender in enders) and second.counters.sessions_ended == 1

        await until(have_looked)
        run = await first.start(rescued_nap, id="run-1")
        await waits(run)
        place.clock.skip(seconds=DAY)

        assert "woken" == await in_time(run.result())
        assert 0 == first.counters.sessions_ended


@pytest.mark.parametrize("lease", ["", "unknown", "etcd", None, 3])
def test_lease_that_names_nothing_is_refused(lease: Any) -> None:
    """With the names of what there is."""
    with pytest.raises(LeaseUrlError, match='use "store", "none"'):
        outlive.Engine("memory:", worker=WorkerOptions(lease=lease))


def test_empty_name_is_refused() -> None:
    """It would be everybody's."""
    with pytest.raises(outlive.errors.ConfigurationError, match="a name of its own"):
        outlive.Engine("memory:", worker=WorkerOptions(name=" "))


class Away:
    """Leases that answer a look with what is planned for it."""

    def __init__(self, *answers: Exception | None) -> None:
        self.answers = list(answers)

    async def find_lost(self, worker_id: str) -> list[Any]:
        """As planned."""
        del worker_id
        if (error := self.answers.pop(0)) is not None:
            raise error
        return []


def looking(leases: Any) -> tuple[DeadSessionEnder, HandClock]:
    """One who looks for the dead, and the clock that says when."""
    clock = HandClock()
    worker: Any = SimpleNamespace(id="worker-a", name="a")
    return DeadSessionEnder(leases, worker, clock=clock, counters=Counters(), is_named=False), clock


async def test_a_look_that_fails_is_logged_once_while_the_store_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """Not with every look; and again when it is away again."""
    ender, clock = looking(Away(unavailable(), unavailable(), None, unavailable()))

    logged = []
    for _ in range(4):
        await ender.look_when_due()
        await ender.look_when_due()  # It is not time yet.
        clock.at += 2 * LOOK_SECONDS
        logged.append(caplog.text.count("workers that have died are not noticed"))

    assert logged == [1, 1, 1, 2]


async def test_a_look_at_a_store_that_has_moved_ends_the_session() -> None:
    """It will never be back."""
    ender, _ = looking(Away(StoreMovedError("the store")))

    with pytest.raises(StoreMovedError):
        await ender.look_when_due()


class Fleet:
    """Leases of a fleet, of which some have died."""

    def __init__(self) -> None:
        self.lost: list[Any] = []
        self.workers: list[Any] = []
        self.ended: list[str] = []
        self.looks = 0
        self.look_now: Any = None

    def watch(self, look_now: Any) -> None:
        """Call it when a session may have died."""
        self.look_now = look_now

    async def find_lost(self, worker_id: str) -> list[Any]:
        """The sessions that the test has planned as lost."""
        self.looks += 1
        lost, self.lost = self.lost, []
        return lost

    async def list_workers(self) -> list[Any]:
        """All of them."""
        return self.workers

    async def end_session(self, worker_id: str) -> None:
        """Note it."""
        self.ended.append(worker_id)


class FixedClock(HandClock):
    """Chance is known."""

    chance = 0.0

    def random(self) -> float:
        """As it is set."""
        return self.chance


def session(id: str, *, name: str = "a", started_at: int = 5, is_live: bool = True) -> Any:
    """A session of a worker."""
    return SimpleNamespace(id=id, name=name, started_at=started_at, is_live=is_live)


async def test_the_dead_are_looked_for_about_once_a_second_and_when_a_worker_may_have_died() -> None:
    """Each of them is ended once and counted."""
    fleet, clock, counters, rung = Fleet(), FixedClock(), Counters(), list[str]()
    leases: Any = fleet
    ender = DeadSessionEnder(leases, session("me"), clock=clock, counters=counters, is_named=False)
    ender.watch(lambda: rung.append("rung"))
    fleet.lost = [session("dead-1"), session("dead-2")]
    await ender.look_when_due()
    assert (["dead-1", "dead-2"], 2, 1) == (fleet.ended, counters.sessions_ended, fleet.looks)
    for chance, share in ((0.5, 0.75), (0.9, 1.0), (0.0, 1.2)):
        clock.chance = chance
        looks = fleet.looks
        clock.at += LOOK_SECONDS * share - 0.01
        await ender.look_when_due()
        assert looks == fleet.looks
        clock.at += 0.02
        await ender.look_when_due()
        assert looks + 1 == fleet.looks
    await ender.look_when_due()
    assert 4 == fleet.looks
    fleet.look_now()
    assert ["rung"] == rung
    await ender.look_when_due()
    assert 5 == fleet.looks
    assert 2 == counters.sessions_ended


@pytest.mark.parametrize("is_named", [True, False])
async def test_named_worker_ends_its_former_lives_once(*, is_named: bool) -> None:
    """A named worker ends, only when it begins, the live sessions of its name that did not begin after its own."""
    fleet, clock, counters = Fleet(), FixedClock(), Counters()
    fleet.workers = [
        session("me"),
        session("former", started_at=4),
        session("twin", started_at=5),
        session("later", started_at=6),
        session("other", name="b", started_at=4),
        session("ended", started_at=4, is_live=False),
    ]
    leases: Any = fleet
    ender = DeadSessionEnder(leases, session("me"), clock=clock, counters=counters, is_named=is_named)
    for _ in range(2):
        await ender.look_when_due()
        clock.at += 2 * LOOK_SECONDS
    assert (["former", "twin"] if is_named else []) == fleet.ended
