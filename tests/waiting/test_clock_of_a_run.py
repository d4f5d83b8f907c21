"""The clock of a run: it begins when a worker begins the run, and stands still while the run rests after its end."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import outlive
from outlive._kernel.model import WaitKind
from outlive.errors import InvalidArgumentError, RunFailedError, RunTimedOutError
from outlive.errors.run import NotBegunError
from tests.engine.inside import crash, row_of
from tests.engine.support import Place, in_time, registry_of, until, waits

pytestmark = pytest.mark.any_store

HOUR = 3600
NAP = 1800


class World:
    """What steps find."""

    is_repaired = False
    calls: list[str]


world = World()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing has happened, and nothing works."""
    world.is_repaired, world.calls = False, []


@outlive.step
async def clock_work() -> str:
    """Works when it is repaired."""
    world.calls.append("work")
    if not world.is_repaired:
        raise ValueError("not yet")
    return "done"


@outlive.workflow
async def clock_nap() -> str:
    """Sleeps, after it has said when it began."""
    world.calls.append("begun")
    outlive.publish(begun=outlive.now().timestamp())
    await asyncio.sleep(NAP)
    return "rested"


@outlive.workflow
async def clock_nap_beside() -> str:
    """Sleeps beside a step that fails."""
    nap = asyncio.ensure_future(asyncio.sleep(NAP))
    await clock_work()
    await nap
    return "rested"


@outlive.workflow
async def clock_generations(left: int) -> str:
    """Sleeps in its second life."""
    if left:
        outlive.continue_as_new(left - 1)
    await asyncio.sleep(NAP)
    return "rested"


@outlive.workflow
async def clock_family() -> str:
    """Has a child, and a run of its own, that sleep."""
    await outlive.start(clock_nap, detached=True, id="detached")
    return await clock_nap()


@outlive.workflow
async def clock_item(number: int) -> int:
    """Sleeps, as an item of a batch."""
    await asyncio.sleep(NAP)
    return number


line = outlive.Queue("clock.line", concurrency=1)


@outlive.workflow(queue=line)
async def clock_first() -> str:
    """Has the only slot for as long as the test wants."""
    return await outlive.wait_for_signal("go", str)


@outlive.workflow(queue=line)
async def clock_second() -> str:
    """Sleeps, when it is its turn."""
    await asyncio.sleep(NAP)
    return "rested"


@outlive.workflow
async def clock_starter() -> str:
    """Starts a run of its own, which has to stand in line."""
    return (await outlive.start(clock_second, detached=True, id="r", timeout=2 * HOUR)).id


async def left_of(place: Place, run: outlive.types.RunHandle[Any], kind: WaitKind = WaitKind.TIMER) -> float:
    """How many seconds are left of what a run waits for."""
    await waits(run)
    timers = [wait.until_at for wait in (await row_of(run)).waits if wait.kind is kind and wait.until_at]
    return (min(timers) - place.clock.now()) / 1_000_000


async def deadline_of(place: Place, run: outlive.types.RunHandle[Any]) -> float:
    """How many seconds a run has left."""
    at = (await row_of(run)).timeout_at
    assert at is not None
    return (at - place.clock.now()) / 1_000_000


async def is_there(engine: outlive.Engine, run_id: str) -> bool:
    """Whether there is such a run."""
    return bool(await engine.list(id_prefix=run_id))


def is_whole(seconds: float, of: float = NAP) -> bool:
    """Whether nothing of a span is spent but what this test took."""
    return of - 20 < seconds <= of


async def test_time_without_a_worker_spends_nothing(place: Place) -> None:
    """Neither of the first wait nor of the timeout; and both go on when another worker takes the run over."""
    async with place.engine(worker=False) as client:
        run = await client.start(clock_nap, id="r", timeout=2 * HOUR)
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        run = engine.get("r")
        assert is_whole(await left_of(place, run))
        assert is_whole(await deadline_of(place, run), 2 * HOUR)
        begun = (await run.published())["begun"]
        assert begun == pytest.approx(place.clock.now() / 1_000_000, abs=20)
        await crash(engine)
    place.clock.skip(seconds=600)
    async with place.engine() as engine:
        run = engine.get("r")
        assert is_whole(await left_of(place, run), NAP - 600)
        assert is_whole(await deadline_of(place, run), 2 * HOUR - 600)
        assert (await run.published())["begun"] == begun
        place.clock.skip(seconds=NAP)
        assert await in_time(run.result()) == "rested"


@pytest.mark.every_store
async def test_delay_spends_nothing(place: Place) -> None:
    """A payment that may take half an hour has it, though the run was started an hour before that."""
    async with place.engine() as engine:
        run = await engine.start(clock_nap, id="r", delay=HOUR, timeout=2 * HOUR)
        place.clock.skip(seconds=HOUR + 1)
        assert is_whole(await left_of(place, run))
        assert is_whole(await deadline_of(place, run), 2 * HOUR)


@pytest.mark.every_store
@pytest.mark.parametrize("how", ["started", "started by a run", "taken over", "a batch"])
async def test_time_in_line_spends_nothing(place: Place, how: str) -> None:
    """A run in line spends none of its time, however it was started, and also if a worker dies meanwhile."""
    engine = await place.engine().__aenter__()
    await waits(await engine.start(clock_first, id="first"))
    if how == "a batch":
        await engine.start_batch(clock_item, [1], id="b", queue=line)
    elif how == "started by a run":
        await in_time((await engine.start(clock_starter)).result())
    else:
        await engine.start(clock_second, id="r", timeout=2 * HOUR)
    place.clock.skip(seconds=3 * HOUR)
    if how == "taken over":
        await crash(engine)
        engine = await place.engine().__aenter__()
    await engine.signal("first", "go", "on")

    run = engine.get("b~chunk1" if how == "a batch" else "r")
    await until(partial(is_there, engine, run.id))
    assert is_whole(await left_of(place, run))
    assert how == "a batch" or is_whole(await deadline_of(place, run), 2 * HOUR)
    await engine.__aexit__(None, None, None)


async def test_timeout_counts_from_the_beginning(place: Place) -> None:
    """A run that has waited for a worker for longer than its timeout has all of it, and times out after it."""
    async with place.engine(worker=False) as client:
        await client.start(clock_nap, id="r", timeout=60)
        place.clock.skip(seconds=HOUR)
    async with place.engine() as engine:
        run = engine.get("r")
        await waits(run)
        place.clock.skip(seconds=61)
        with pytest.raises(RunTimedOutError):
            await in_time(run.result())


async def test_next_generation_begins_with_its_own_first_line(place: Place) -> None:
    """The time that the generation before waited in line does not count for the next generation."""
    async with place.engine(worker=False) as client:
        await client.start(clock_generations, 1, id="r", timeout=2 * HOUR)
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        assert is_whole(await left_of(place, engine.get("r")))
        assert is_whole(await deadline_of(place, engine.get("r")), 2 * HOUR)


async def test_child_and_detached_run_begin_when_they_begin(place: Place) -> None:
    """A child with its call, a detached run with its first claim."""
    async with place.engine(worker=False) as client:
        await client.start(clock_family, id="r")
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        assert is_whole(await left_of(place, engine.get("r")))
        detached = engine.get("detached")
        await until(partial(is_there, engine, detached.id))
        assert is_whole(await left_of(place, detached))
        assert (await detached.published())["begun"] == pytest.approx(place.clock.now() / 1_000_000, abs=20)


async def test_items_of_a_batch_begin_when_their_chunk_begins(place: Place) -> None:
    """However long the batch had no worker."""
    async with place.engine(worker=False) as client:
        batch = await client.start_batch(clock_item, [1, 2], id="b")
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        batch = engine.batches.get("b")
        chunk = engine.get("b~chunk1")
        await until(partial(is_there, engine, chunk.id))
        assert is_whole(await left_of(place, chunk))
        place.clock.skip(seconds=NAP)
        assert await in_time(batch.result()) == {"total": 2, "succeeded": 2, "failed": 0}


async def test_run_of_a_schedule_begins_when_a_worker_begins_it(place: Place) -> None:
    """Its tick is its creation, and not its beginning."""
    async with place.engine(worker=False) as client:
        await client.schedules.set("naps", outlive.every(hours=24), clock_nap)
        run = await client.schedules.trigger("naps")
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        assert is_whole(await left_of(place, engine.get(run.id)))


@pytest.mark.parametrize("what", ["run", "workflow"])
async def test_pause_before_the_beginning_spends_nothing(place: Place, what: str) -> None:
    """A run that was paused in line begins when a worker begins it after that."""
    async with place.engine(worker=False) as client:
        run = await client.start(clock_nap, id="r", timeout=2 * HOUR)
        await (run.pause() if what == "run" else client.pause(workflow="clock_nap"))
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        run = engine.get("r")
        await (run.resume() if what == "run" else engine.resume(workflow="clock_nap"))
        assert is_whole(await left_of(place, run))
        assert is_whole(await deadline_of(place, run), 2 * HOUR)


@pytest.mark.parametrize("verb", ["retry", "fork"])
async def test_time_until_the_next_claim_spends_nothing(place: Place, verb: str) -> None:
    """Neither the time between the end and the retry nor that between the retry and the claim."""
    async with place.engine() as engine:
        await engine.start(clock_nap_beside, id="r", timeout=2 * HOUR)
        with pytest.raises(RunFailedError):
            await in_time(engine.get("r").result())
    place.clock.skip(seconds=HOUR)
    world.is_repaired = True
    async with place.engine(worker=False) as client:
        run = client.get("r")
        if verb == "retry":
            await run.retry()
        else:
            run = await client.fork("r", at="clock_work", id="f")
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        run = engine.get(run.id)
        assert is_whole(await left_of(place, run))
        assert is_whole(await deadline_of(place, run), 2 * HOUR)
        await crash(engine)
    async with place.engine() as engine:
        # A fork of it has the same time left.
        fork = await engine.fork(run.id, id="again")
        assert is_whole(await left_of(place, fork))
        place.clock.skip(seconds=NAP)
        assert await in_time(engine.get(run.id).result()) == await in_time(fork.result()) == "rested"


@pytest.mark.parametrize("verb", ["retry", "fork"])
async def test_run_that_had_not_begun_begins_with_its_first_claim(place: Place, verb: str) -> None:
    """It was cancelled before that, and a person brings it back, or forks it."""
    async with place.engine(worker=False) as client:
        run = await client.start(clock_nap, id="r", timeout=2 * HOUR)
        place.clock.skip(seconds=HOUR)
        if verb == "retry":
            await run.cancel()
            place.clock.skip(seconds=HOUR)
            await run.retry()
        else:
            run = await client.fork("r", id="f")
        place.clock.skip(seconds=3 * HOUR)
    async with place.engine() as engine:
        run = engine.get(run.id)
        assert is_whole(await left_of(place, run))
        assert is_whole(await deadline_of(place, run), 2 * HOUR)
        assert (await run.published())["begun"] == pytest.approx(place.clock.now() / 1_000_000, abs=20)


@outlive.workflow
async def clock_asks() -> bool:
    """Asks a person, who has half an hour."""
    return (await outlive.wait_for_approval("refund", deadline=NAP)).approved


async def test_time_without_a_worker_counts_once_however_often_a_run_is_brought_back(place: Place) -> None:
    """A fork that is cancelled and retried before a worker takes it has rested once, for its timers and for people."""
    async with place.engine() as engine:
        await waits(await engine.start(clock_asks, id="r"))
    async with place.engine(worker=False) as client:
        run = await client.fork("r", id="f")
        place.clock.skip(seconds=HOUR)
        await run.cancel()
        place.clock.skip(seconds=HOUR)
        await run.retry()
        place.clock.skip(seconds=HOUR)
    async with place.engine() as engine:
        run = engine.get("f")
        assert is_whole(await left_of(place, run, WaitKind.APPROVAL))
        [request] = await run.approvals()
        assert request.deadline is not None
        assert is_whole(request.deadline.timestamp() - place.clock.now() / 1_000_000)


class Circle(enum.Enum):
    """A state that is entered many times, and one that takes long."""

    TURN = "turn"
    REST = "rest"
    DONE = "done"


@dataclass
class Turns:
    """How often it went round."""

    count: int = 0


wheel = outlive.Machine("clock.wheel", Circle, data=Turns, start=Circle.TURN, exits=[Circle.DONE], snapshot_after=10)


@wheel.state(Circle.TURN)
async def turn(data: Turns) -> Circle:
    """Go round until there is a snapshot."""
    data.count += 1
    return Circle.TURN if data.count < 25 else Circle.REST


@wheel.workflow(Circle.REST)
async def rest(data: Turns) -> Circle:
    """Take longer than the run may."""
    await asyncio.sleep(100 * HOUR)
    return Circle.DONE


@outlive.workflow
async def clock_rounds() -> None:
    """Goes on for ever."""
    await asyncio.sleep(NAP)
    outlive.continue_as_new()


async def times_out(place: Place, run: outlive.types.RunHandle[Any]) -> None:
    """Let the rest of the time of a run pass."""
    place.clock.skip(seconds=await deadline_of(place, run) + 1)
    with pytest.raises(RunTimedOutError):
        await in_time(run.result())


async def test_retry_and_fork_have_the_whole_timeout_behind_a_snapshot(place: Place) -> None:
    """A retry and a fork behind a snapshot have the whole timeout, without the time that the run was in line before."""
    async with place.engine(worker=False) as client:
        await client.start(wheel, Turns(), id="r", timeout=2 * HOUR)
        place.clock.skip(seconds=5 * HOUR)
    async with place.engine() as engine:
        run = engine.get("r")
        await waits(run)
        fork = await engine.fork("r")
        await waits(fork)
        assert is_whole(await deadline_of(place, fork), 2 * HOUR)
        await times_out(place, run)
        await run.retry()
        await waits(run)
        assert is_whole(await deadline_of(place, run), 2 * HOUR)


async def test_retry_and_fork_of_a_later_generation_have_the_whole_timeout(place: Place) -> None:
    """All generations share it, and the last one has little left of it when it times out."""
    async with place.engine() as engine:
        run = await engine.start(clock_rounds, id="r", timeout=NAP + 60)
        await waits(run)
        place.clock.skip(seconds=NAP)
        await until(partial(is_there, engine, "r~gen1"))
        await waits(run)
        assert is_whole(await deadline_of(place, run), 60)
        await times_out(place, run)
        fork = await engine.fork("r")
        await waits(fork)
        assert is_whole(await deadline_of(place, fork), NAP + 60)
        await run.retry()
        await waits(run)
        assert is_whole(await deadline_of(place, run), NAP + 60)


# -- A limit for the time in line --------------------------------------------------------------------------------------


async def test_run_that_no_worker_begins_in_time_fails(place: Place) -> None:
    """A run that no worker begins within `begin_within` fails, even if no worker has its code; `why` says so before and
    after, and a retry begins it."""
    async with place.engine(worker=False) as client:
        run = await client.start(clock_nap, id="r", begin_within=timedelta(minutes=5))
        assert "it fails if no worker has begun it by" in await run.why()
        async with place.engine(registry=registry_of()):
            place.clock.skip(seconds=301)
            with pytest.raises(RunFailedError, match="no worker had begun it by") as failed:
                await in_time(run.result())
        assert isinstance(failed.value.__cause__, NotBegunError)
        assert "failed: outlive.errors.NotBegunError" in await run.why()
        assert [run.id for run in await client.list(error="NotBegunError")] == ["r"]
        assert not world.calls
        await run.retry()
    async with place.engine() as engine:
        assert is_whole(await left_of(place, engine.get("r")))


async def test_worker_that_comes_too_late_does_not_begin_it(place: Place) -> None:
    """No line of its code runs, and the run that waits for its end hears of it."""
    async with place.engine(worker=False) as client:
        await client.start(clock_nap, id="late", begin_within=60)
        await client.start(clock_nap, id="soon", begin_within=3 * HOUR)
        place.clock.skip(seconds=2 * HOUR)
    async with place.engine() as engine:
        with pytest.raises(RunFailedError, match="no worker had begun it by"):
            await in_time(engine.get("late").result())
        assert is_whole(await left_of(place, engine.get("soon")))
        assert world.calls == ["begun"]
        assert (await engine.get("soon").info()).begin_by is None


async def test_time_to_begin_counts_from_when_it_is_due(place: Place) -> None:
    """A delay is not part of it."""
    async with place.engine(worker=False) as client:
        run = await client.start(clock_nap, id="r", delay=HOUR, begin_within=60)
        info = await run.info()
        assert info.begin_by == info.wake_at + timedelta(seconds=60) if info.wake_at else False
        with pytest.raises(InvalidArgumentError, match="begin_within"):
            await client.start(clock_nap, begin_within=0)


async def test_run_that_a_worker_begins_at_once_has_no_limit_left(engine: outlive.Engine) -> None:
    """The limit is for the time in line only."""
    run = await engine.start(clock_nap, begin_within=60)
    await waits(run)
    assert (await run.info()).begin_by is None
