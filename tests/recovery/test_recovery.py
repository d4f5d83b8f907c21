"""Recovery: what was done stays done, what was under way is done again, what waited still waits."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import outlive
from outlive._kernel.journal.codec import FORMAT, checksum, salt_of
from outlive._kernel.model import RunStatus
from outlive.events import RunClaimed, RunReleased, StepSucceeded, TimerFired
from outlive.limits import Limits
from tests.engine.inside import crash, journal_of, row_of
from tests.engine.support import DAY, Place, events_of, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.every_store


@outlive.workflow
async def recovering(steps: int, held: str) -> list[str]:
    done = [await note(f"step {number}") for number in range(steps)]
    done.append(await hold(held))
    done += [await note(f"later step {number}") for number in range(steps)]
    return done


@outlive.workflow
async def recovering_in_parallel(names: list[str]) -> list[str]:
    return list(await asyncio.gather(*[hold(name) for name in names]))


@outlive.workflow
async def recovering_waits() -> list[Any]:
    first = await outlive.wait_for_signal("first")
    await asyncio.sleep(DAY)
    return [first, await outlive.wait_for_signal("second")]


@outlive.step
async def crash_here() -> None:
    stage.call("crash")
    await stage.gate("crash").pass_through()


@outlive.workflow
async def recovering_poison() -> str:
    await note("before")
    await crash_here()
    return await note("after")


@outlive.workflow
async def recovering_cached(name: str) -> str:
    before = await note(f"{name} before")
    said = await outlive.wait_for_signal("go", str)
    return f"{before} {said} {await note(f'{name} after')}"


async def test_completed_steps_are_not_run_again(place: Place) -> None:
    """After a crash the interrupted step runs again, the ones before it do not, and the ones after it run once.
    [SF-U8 SF-U15 FB-R1 TS-R1 TS-R2 TS-R3 AK-X3 FE-A1 FE-P4]
    """
    first = await place.engine().__aenter__()
    await first.start(recovering, 3, "held", id="run-1")
    await stage.gate("held").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("held").reached()
        stage.gate("held").open()
        result = await in_time(second.get("run-1").result())
        (claim,) = await events_of(second.get("run-1"), RunClaimed)
        assert claim.interrupted
    assert ["step 0", "step 1", "step 2", "held", "later step 0", "later step 1", "later step 2"] == result
    assert {name: 1 + (name == "held") for name in result} == {name: stage.count(name) for name in result}


async def test_only_interrupted_branches_are_run_again(place: Place) -> None:
    """Parallel steps that ended before the crash keep their results; only the interrupted ones run again.
    [SF-U29 FB-R11]"""
    first = await place.engine().__aenter__()
    run = await first.start(recovering_in_parallel, ["a", "b", "c"], id="run-1")
    for name in "abc":
        await stage.gate(name).reached()
    stage.gate("b").open()

    async def has_ended() -> bool:
        return len(await events_of(run, StepSucceeded)) == 1

    await until(has_ended)
    await crash(first)
    for name in "ac":
        stage.gate(name).open()

    async with place.engine() as second:
        assert ["a", "b", "c"] == await in_time(second.get("run-1").result())
    assert [2, 1, 2] == [stage.count(name) for name in "abc"]


async def test_waits_survive_any_number_of_crashes(place: Place) -> None:
    """A run that waits for a signal, a timer and another signal is killed in each of these waits. [TS-R8]"""

    async def live_on(do: Any) -> None:
        engine = await place.engine().__aenter__()
        await do(engine)
        await crash(engine)

    async def begin(engine: outlive.Engine) -> None:
        await waits(await engine.start(recovering_waits, id="run-1"))

    async def say(engine: outlive.Engine) -> None:
        await engine.signal("run-1", "first", 1)
        await says(engine, "a timer")

    async def sleep(engine: outlive.Engine) -> None:
        place.clock.skip(seconds=DAY)
        await says(engine, "signal 'second'")

    async def says(engine: outlive.Engine, what: str) -> None:
        async def is_so() -> bool:
            return what in await engine.get("run-1").why()

        await until(is_so)

    for do in (begin, say, sleep):
        await live_on(do)
    async with place.engine() as last:
        await last.signal("run-1", "second", 2)
        assert [1, 2] == await in_time(last.get("run-1").result())


async def test_a_crash_between_two_commits_loses_nothing(place: Place) -> None:
    """Whenever an engine dies, the next one goes on: killed after every single event."""
    limits = Limits(attempts_max=1_000)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(recovering, 2, "held", id="run-1")
    lives = 1
    while not (await engine.get("run-1").info()).has_ended:
        seen = len(await journal_of(engine, "run-1"))
        await crash(engine)
        stage.gate("held").open()
        lives += 1
        engine = await place.engine(limits=limits).__aenter__()

        async def has_moved(engine: outlive.Engine = engine, seen: int = seen) -> bool:
            is_over = (await engine.get("run-1").info()).has_ended
            return is_over or len(await journal_of(engine, "run-1")) > seen

        await until(has_moved)
    result = await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)
    assert ["step 0", "step 1", "held", "later step 0", "later step 1"] == result
    assert lives > 1


async def test_a_run_that_kills_its_workers_is_quarantined(place: Place) -> None:
    """After so many interruptions without progress it is parked with the reason, and a person may let it go on.
    [FE-R15]
    """
    limits = Limits(attempts_max=3)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(recovering_poison, id="run-1")
    for _ in range(4):
        await stage.gate("crash").reached()
        await crash(engine)
        engine = await place.engine(limits=limits).__aenter__()

    reason = await parks(engine.get("run-1"))
    assert "quarantined: 4 workers were interrupted" in reason
    assert reason in await engine.get("run-1").why()
    assert 4 == stage.count("crash")

    stage.gate("crash").open()
    await engine.resume("run-1")
    assert "after" == await in_time(engine.get("run-1").result())
    assert 1 == stage.count("before")
    await engine.__aexit__(None, None, None)


async def test_a_run_whose_workers_stop_cleanly_in_its_step_is_quarantined(place: Place) -> None:
    """Whatever ended them: a step can send SIGTERM to its own worker. One that was killed counts with them."""
    limits = Limits(attempts_max=3)
    engine = await place.engine(limits=limits, grace_seconds=0).__aenter__()
    await engine.start(recovering_poison, id="run-1")
    for life in range(4):
        await stage.gate("crash").reached()
        await (crash(engine) if life == 1 else engine.__aexit__(None, None, None))
        engine = await place.engine(limits=limits, grace_seconds=0).__aenter__()

    assert "quarantined: 4 workers were interrupted" in await parks(engine.get("run-1"))
    assert [True] * 3 == [event.interrupted for event in await events_of(engine.get("run-1"), RunReleased)]

    stage.gate("crash").open()
    await engine.resume("run-1")
    assert "after" == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


@outlive.step
async def save_and_wait() -> None:
    me = outlive.current_step()
    me.heartbeat((me.last_progress or 0) + 1)
    await stage.gate("saved").pass_through()


@outlive.workflow
async def recovering_with_progress() -> None:
    await save_and_wait()


async def test_a_step_that_gets_on_in_every_life_is_not_poison(place: Place) -> None:
    """A long step that saves its progress may be cut off by every deployment."""
    limits = Limits(attempts_max=1)
    engine = await place.engine(limits=limits, grace_seconds=0).__aenter__()
    await engine.start(recovering_with_progress, id="run-1")
    for _ in range(3):
        await stage.gate("saved").reached()
        await engine.__aexit__(None, None, None)
        engine = await place.engine(limits=limits, grace_seconds=0).__aenter__()

    stage.gate("saved").open()
    await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


@outlive.workflow
async def recovering_poison_beside_a_timer() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(crash_here())
        for _ in range(10):
            await asyncio.sleep(60)


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_a_timer_beside_it_does_not_save_what_kills_its_workers(place: Place) -> None:
    """Every worker sees a timer fire before it dies; that is not progress of the step that it dies of."""
    limits = Limits(attempts_max=2)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(recovering_poison_beside_a_timer, id="run-1")
    for life in range(3):
        await stage.gate("crash").reached()
        assert life == len(await events_of(engine.get("run-1"), TimerFired))
        await crash(engine)
        place.clock.skip(seconds=61)
        engine = await place.engine(limits=limits).__aenter__()

    assert "quarantined: 3 workers were interrupted" in await parks(engine.get("run-1"))
    assert 3 == stage.count("crash")
    await engine.__aexit__(None, None, None)


async def test_progress_forgives_interruptions(place: Place) -> None:
    """A long run whose workers die often, but not at the same place, is not quarantined."""
    limits = Limits(attempts_max=1)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(recovering_in_turn, 5, id="run-1")
    for number in range(5):
        await stage.gate(f"turn {number}").reached()
        await crash(engine)
        engine = await place.engine(limits=limits).__aenter__()
        await stage.gate(f"turn {number}").reached()
        stage.gate(f"turn {number}").open()

    assert 5 == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


@outlive.workflow
async def recovering_in_turn(turns: int) -> int:
    return len([await hold(f"turn {number}") for number in range(turns)])


async def test_a_suspended_run_needs_no_replay_while_it_is_remembered(place: Place) -> None:
    """Waking a run that is still in memory replays nothing; waking one that was evicted replays it."""
    async with place.engine(limits=Limits(runs_cached_max=1)) as engine:
        first = await engine.start(recovering_cached, "a")
        await waits(first)
        await first.signal("go", "hot")
        assert "a before hot a after" == await in_time(first.result())
        assert 0 == engine.counters.runs_replayed

        evicted, kept = [await engine.start(recovering_cached, name) for name in "bc"]
        for run in (evicted, kept):
            await waits(run)
        await until_evicted(engine, 1)
        await evicted.signal("go", "cold")
        assert "b before cold b after" == await in_time(evicted.result())
        assert 1 == engine.counters.runs_replayed
        await kept.cancel()
        with pytest.raises(outlive.errors.RunCancelledError):
            await in_time(kept.result())


async def until_evicted(engine: outlive.Engine, runs: int) -> None:
    """Return when this many runs have been dropped from memory."""

    async def is_so() -> bool:
        return engine.counters.runs_evicted >= runs

    await until(is_so)


async def test_a_remembered_run_that_another_engine_moved_is_rebuilt(place: Place) -> None:
    """A worker that remembers a run rebuilds it if another worker has moved it meanwhile."""
    async with place.engine(poll_seconds=60) as first:
        run = await first.start(recovering_twice, id="run-1")
        await waits(run)
        async with place.engine() as second:
            await second.signal("run-1", "go", "one")
            await until_signals(second, first, signals=1)
        await first.signal("run-1", "go", "two")

        assert ["one", "two"] == await in_time(run.result())
        assert await run.status() == "succeeded"


async def until_signals(*engines: outlive.Engine, signals: int) -> None:
    """Return when engines have taken this many signals and let go of their runs; a store that notifies wakes them all,
    and any of them may be the one."""

    async def is_so() -> bool:
        run = await row_of(engines[0], "run-1")
        taken = sum(engine.counters.signals_taken for engine in engines)
        return taken >= signals and run.status is RunStatus.WAITING and not run.owner

    await until(is_so)


@outlive.workflow
async def recovering_twice() -> list[str]:
    return [await outlive.wait_for_signal("go", str), await outlive.wait_for_signal("go", str)]


async def test_a_remembered_run_is_rebuilt_if_its_store_has_other_events(tmp_path: Path) -> None:
    """A store that went back may have other values at the same seqs: the journal counts, and not what is in memory."""
    file = tmp_path / "runs.db"
    async with outlive.Engine(f"sqlite:{file}") as engine:
        run = await engine.start(recovering_cached, "a")
        await waits(run)
        info = await row_of(run)
        with closing(apsw.Connection(str(file))) as connection:
            rows = list(connection.execute("SELECT seq, body FROM outlive_events WHERE journal = ?", (info.journal,)))
            for seq, body in rows:
                other = body.replace(b"a before", b"b before").replace(b'"at":', b'"at": ')
                crc = checksum(seq, FORMAT, other, salt_of(info.nonce))
                connection.execute(
                    "UPDATE outlive_events SET body = ?, crc = ? WHERE journal = ? AND seq = ?",
                    (other, crc, info.journal, seq),
                )
        await run.signal("go", "late")

        assert "b before late a after" == await in_time(run.result())
        assert 1 == engine.counters.runs_replayed
