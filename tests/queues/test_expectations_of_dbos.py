"""What DBOS's tests of queues and debouncers expect, shown with Outlive's own verbs.

Each docstring ends with the rows of `docs/internals/scenarios.md` that it shows; there stand the names of DBOS's tests,
and the reason for each test that Outlive does not pass.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive import Queue
from outlive.errors import RunCancelledError, RunExistsError, RunTimedOutError
from outlive.limits import Debounce, FixedWindow, Limits
from outlive.testing import Survivor, TestEngine, crash_everywhere
from outlive.types import RunHandle
from tests.engine.inside import crash
from tests.engine.support import Place, in_time, parks, registry_of, stage, turns_of_the_loop, until, waits

pytestmark = pytest.mark.any_store

free = Queue("dbos free")
one = Queue("dbos one", concurrency=1)
three = Queue("dbos three", concurrency=3)
waves = Queue("dbos waves", rate=FixedWindow(5, 60))
ranks = Queue("dbos ranks", concurrency=1, priorities=True)
each = Queue("dbos each", per_key=1)


@dataclass
class Inner:
    """A part of a value."""

    text: str
    number: int


@dataclass
class Outer:
    """A value with a part."""

    inner: Inner


@outlive.step
async def dbos_note(text: str) -> str:
    stage.call(text)
    return text


@outlive.step
async def dbos_at_gate(text: str) -> str:
    stage.call(text)
    await stage.gate().pass_through()
    return text


@outlive.workflow
async def dbos_echo(text: str) -> str:
    return await dbos_note(text)


@outlive.workflow
async def dbos_other(text: str) -> str:
    return text


@outlive.workflow(name="dbos_echo-b")
async def dbos_echo_b(text: str) -> str:
    return await dbos_note(text)


@outlive.workflow
async def dbos_hold(text: str) -> str:
    await dbos_note(text)
    await outlive.wait_for_signal("go")
    return text


@outlive.workflow
async def dbos_gated(text: str) -> str:
    return await dbos_at_gate(text)


@outlive.workflow(queue=three)
async def dbos_held_child(text: str) -> str:
    await outlive.wait_for_signal("go")
    return await dbos_note(text)


@outlive.workflow(queue=three)
async def dbos_child(text: str) -> str:
    return await dbos_note(text)


@outlive.workflow
async def dbos_parent(count: int) -> list[str]:
    children = [await outlive.start(dbos_child, f"{number}", detached=True) for number in range(count)]
    return [await child.result() for child in children]


@outlive.workflow
async def dbos_held_parent(count: int) -> list[str]:
    children = [
        await outlive.start(dbos_held_child, f"{number}", detached=True, id=f"held-{number}") for number in range(count)
    ]
    ends = [asyncio.create_task(child.result()) for child in children]
    return [await end for end in asyncio.as_completed(ends)]


@outlive.workflow
async def dbos_twice_parent(text: str) -> list[str]:
    same = [await outlive.start(dbos_child, f"{text} {n}", detached=True, id="the-same") for n in range(2)]
    return [await child.result() for child in same]


@outlive.workflow(queue=free)
async def dbos_mirror(value: Outer) -> Outer:
    await outlive.wait_for_signal("go")
    return value


@outlive.workflow
async def dbos_loose_end(text: str) -> str:
    end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def resolve() -> None:
        await outlive.wait_for_signal("go")
        end.set_result(text)

    resolving = asyncio.create_task(resolve())
    result = await end
    await resolving
    return result


async def ends(*runs: RunHandle[Any]) -> list[Any]:
    """What these runs return."""
    return [await in_time(run.result()) for run in runs]


async def go(engine: outlive.Engine, *runs: RunHandle[Any]) -> None:
    """Let runs that wait for it go on."""
    for run in runs:
        await engine.signal(run.id, "go")


async def statuses(*runs: RunHandle[Any]) -> list[str]:
    """Where these runs are in their lives."""
    return [await run.status() for run in runs]


# -- Starting and ending --------------------------------------------------------------------------------------------


async def test_the_same_id_in_a_queue_is_the_same_run() -> None:
    """It runs once, with the first arguments; another queue does not move it, and another workflow is refused.
    [DB-Q1 DB-Q19 DB-Q34]"""
    async with TestEngine() as engine:
        runs = [await engine.start(dbos_echo, "first", queue=free, id="one")]
        assert await ends(*runs) == ["first"]
        runs.append(await engine.start(dbos_echo, "second", queue=free, id="one"))
        runs.append(await engine.start(dbos_echo, "third", queue=one, id="one"))
        assert await ends(*runs) == ["first"] * 3
        assert (await runs[2].info()).queue == free.name
        with pytest.raises(RunExistsError, match="dbos_echo"):
            await engine.start(dbos_other, "x", queue=free, id="one")

    assert stage.calls == ["first"]


async def test_run_waits_for_a_worker_of_its_queue(place: Place) -> None:
    """However long that is. [DB-Q3]"""
    async with place.engine(queues=[free, "by name"]) as engine:
        here = [await engine.start(dbos_echo, "a", queue=free), await engine.start(dbos_echo, "b", queue="by name")]
        there = await engine.start(dbos_echo, "c", queue=one, id="there")
        assert await ends(*here) == ["a", "b"]
        assert await there.status() == "pending"
    async with place.engine(queues=[one]) as engine:
        assert await in_time(engine.get("there").result()) == "c"


async def test_started_by_its_name_with_all_options_of_a_queue() -> None:
    """They are those of every start. [DB-Q42]"""
    async with TestEngine() as engine:
        run = await engine.start(
            "dbos_echo", ["x"], id="named", queue=each, key="me", delay=60, timeout=300, headers={"user": "alice"}
        )
        info = await run.info()
        assert (info.id, info.queue, info.queue_key, info.status) == ("named", each.name, "me", "pending")
        assert await run.result() == "x"


async def test_values_of_types_go_through_a_queue() -> None:
    """A dataclass goes through a queue and comes back as itself, even if the worker dies on the way. [DB-Q35]"""
    value = Outer(Inner("one", 2))
    async with TestEngine() as engine:
        run = await engine.start(dbos_mirror, value)
        await go(engine, run)
        assert await run.result() == value
    await crash_everywhere(dbos_mirror, value, signals=[("go", None)], max_points=2)


async def test_run_in_a_queue_survives_the_garbage_collector() -> None:
    """A run waits for something that only its own frames know. [DB-Q41]"""
    async with TestEngine() as engine:
        run = await engine.start(dbos_loose_end, "alive", queue=free)
        await engine.settle()
        gc.collect()
        await go(engine, run)
        assert await run.result() == "alive"


# -- How many at once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [{"concurrency": 1}, {"concurrency": 1, "rate": FixedWindow(10, 1)}, {"per_worker": 1}],
    ids=["concurrency", "concurrency and rate", "per worker"],
)
async def test_a_queue_with_a_limit_of_one_runs_one_at_a_time(limits: dict[str, Any], place: Place) -> None:
    """A run in a queue with a limit of one begins when the run before it has ended. [DB-Q10 DB-Q11 DB-Q17]"""
    queue = Queue("dbos at a time", **limits)
    async with place.engine() as engine:
        first = await engine.start(dbos_gated, "first", queue=queue)
        second = await engine.start(dbos_echo, "second", queue=queue)
        await stage.gate().reached()
        await turns_of_the_loop(50)
        assert stage.calls == ["first"]
        assert await second.status() == "pending"
        stage.gate().open()
        assert await ends(first, second) == ["first", "second"]
        info = await engine.queues.stats(queue)

    assert (int(info.in_line), int(info.running)) == (0, 0)


async def test_concurrency_that_is_raised_lets_more_begin() -> None:
    """At once, and not only new ones. [DB-Q9]"""
    async with TestEngine() as engine:
        runs = [await engine.start(dbos_hold, f"{number}", queue=one) for number in range(3)]
        await engine.settle()
        assert stage.calls == ["0"]
        await engine.queues.set(one, concurrency=3)
        await engine.settle()
        assert stage.calls == ["0", "1", "2"]
        await go(engine, *runs)
        await ends(*runs)


async def test_limits_of_a_worker_and_of_all_hold_together(place: Place) -> None:
    """Two workers with two slots each, three in all: they have two and one. [DB-Q18]"""
    queue = Queue("dbos both", concurrency=3, per_worker=2)
    async with place.engine() as engine, place.engine() as other:
        runs = [await engine.start(dbos_gated, f"{number}", queue=queue) for number in range(5)]
        for _ in range(3):
            await stage.gate().reached()
        await turns_of_the_loop(50)
        info = await engine.queues.stats(queue)
        assert (int(info.running), int(info.in_line), len(stage.calls)) == (3, 2, 3)
        assert sorted(worker.counters.runs_claimed for worker in (engine, other)) == [1, 2]
        stage.gate().open()
        assert await ends(*runs) == ["0", "1", "2", "3", "4"]


async def test_queues_do_not_wait_for_each_other() -> None:
    """One is full, and the other goes on in its waves. [DB-Q13 DB-Q15]"""
    async with TestEngine() as engine:
        holder = await engine.start(dbos_hold, "holder", queue=one)
        behind = await engine.start(dbos_echo, "behind", queue=one)
        runs = [await engine.start(dbos_echo, f"{number}", queue=waves) for number in range(12)]
        seen = []
        for _ in range(3):
            await engine.settle()
            seen.append(len(stage.calls) - 1)
            await engine.skip(seconds=60)
        assert seen == [5, 10, 12]
        assert await statuses(*runs) == ["succeeded"] * 12
        assert await behind.status() == "pending"
        await go(engine, holder)
        assert await ends(holder, behind) == ["holder", "behind"]


async def test_workers_share_the_rate_of_a_queue(place: Place) -> None:
    """None of them spends it again. [DB-Q14]"""
    queue = Queue("dbos rate", rate=FixedWindow(3, 1_000_000))
    async with place.engine() as engine, place.engine() as other:
        runs = [await starter.start(dbos_echo, f"{n}", queue=queue) for n in range(3) for starter in (engine, other)]

        async def is_spent() -> bool:
            return len(stage.calls) >= 3

        await until(is_spent)
        await turns_of_the_loop(50)
        assert len(stage.calls) == 3
        place.clock.skip(seconds=1_000_000)
        assert len(await ends(*runs)) == 6


async def test_killed_worker_leaves_its_slots_to_its_runs(place: Place) -> None:
    """The next worker goes on with them, and the run behind them stays in line. [DB-Q21]"""
    queue = Queue("dbos two", concurrency=2)
    first = place.engine()
    await first.__aenter__()
    for name in ("a", "b"):
        await in_time(waits(await first.start(dbos_hold, name, queue=queue, id=name)))
    await first.start(dbos_echo, "c", queue=queue, id="c")
    await crash(first)
    async with place.engine() as second:
        a, b, c = [second.get(name) for name in "abc"]
        assert await c.status() == "pending"
        await go(second, a, b)
        assert await ends(a, b, c) == ["a", "b", "c"]
    assert stage.calls == ["a", "b", "c"]


# -- Queued by a run ------------------------------------------------------------------------------------------------


async def test_run_puts_others_into_a_queue_and_waits_for_them() -> None:
    """Three have a slot and the fourth waits; they are taken as they end. [DB-Q12 DB-Q37]"""
    async with TestEngine() as engine:
        parent = await engine.start(dbos_held_parent, 4)
        await engine.settle()
        assert await statuses(*(engine.get(f"held-{number}") for number in range(4))) == [
            "waiting",
            "waiting",
            "waiting",
            "pending",
        ]
        for number in (2, 3, 1, 0):
            await engine.signal(f"held-{number}", "go")
            await engine.settle()
        assert await parent.result() == ["2", "3", "1", "0"]


async def test_crash_of_a_run_that_has_queued_others() -> None:
    """Each of them is started once. [DB-Q16 DB-Q20 DB-Q44]"""

    async def once(survivor: Survivor) -> None:
        assert await survivor.engine.count(workflow="dbos_child") == 2

    await crash_everywhere(dbos_parent, 2, check=once, max_points=5)


# -- Deduplication --------------------------------------------------------------------------------------------------


async def test_one_open_run_of_an_id() -> None:
    """A second start is refused or gets the run, as it wants; after the end there is a new one. [DB-Q29]"""
    async with TestEngine() as engine:
        first = await engine.start(dbos_hold, "first", queue=free, id="report")
        late = await engine.start(dbos_echo, "late", queue=free, id="late", delay=60)
        for workflow, run_id in ((dbos_hold, "report"), (dbos_echo, "late")):
            with pytest.raises(RunExistsError, match=run_id):
                await engine.start(workflow, "refused", queue=free, id=run_id, on_conflict="reject")
        same = await engine.start(dbos_hold, "same", queue=free, id="report", on_conflict="attach_open")
        other = await engine.start(dbos_echo, "other", queue=free, id="other", on_conflict="attach_open")
        await go(engine, first)
        assert await ends(first, same, other, late) == ["first", "first", "other", "late"]
        again = await engine.start(dbos_hold, "again", queue=free, id="report", on_conflict="attach_open")
        await go(engine, again)
        assert await again.result() == "again"


async def test_run_that_starts_the_same_id_twice_gets_one_run() -> None:
    """A run that starts one id twice gets one run, even if it is killed in between. [DB-Q30]"""

    def once(survivor: Survivor) -> None:
        assert survivor.result == ["x 0", "x 0"]

    await crash_everywhere(dbos_twice_parent, "x", check=once, max_points=3)


# -- Order ----------------------------------------------------------------------------------------------------------


async def test_runs_of_one_priority_come_in_the_order_of_their_starts() -> None:
    """Higher ones first; a run without one has 0. [DB-Q31]"""
    async with TestEngine() as engine:
        holder = await engine.start(dbos_hold, "holder", queue=ranks)
        await engine.settle()
        for text, priority in (("a", None), ("b", 1), ("c", 5), ("d", 1), ("e", None), ("f", -2)):
            await engine.start(dbos_echo, text, queue=ranks, priority=priority)
        await go(engine, holder)
        await engine.settle()

    assert stage.calls == ["holder", *"cbdaef"]


async def test_version_that_a_worker_has_not_holds_no_one_up(place: Place) -> None:
    """Neither in its queue nor in its key: it waits for a worker that has it. [DB-Q33 DB-P13]"""
    queue = Queue("dbos versions", concurrency=1, per_worker=1, per_key=1)
    async with place.engine(queues=["none"]) as client:
        first = await client.start(dbos_other, "first", queue=queue, key="k")
        second = await client.start(dbos_echo, "second", queue=queue, key="k")
        async with place.engine(registry=registry_of(dbos_echo)):
            assert await in_time(second.result()) == "second"
            assert await first.status() == "pending"
        async with place.engine(registry=registry_of(dbos_other)):
            assert await in_time(first.result()) == "first"


# -- Cancels and deadlines ------------------------------------------------------------------------------------------


async def test_cancelled_run_gives_its_slot_to_the_next(place: Place) -> None:
    """It stays cancelled. [DB-Q22]"""
    async with place.engine() as engine:
        holder = await engine.start(dbos_hold, "holder", queue=one)
        await in_time(waits(holder))
        behind = await engine.start(dbos_echo, "behind", queue=one)
        await holder.cancel()
        assert await in_time(behind.result()) == "behind"
        with pytest.raises(RunCancelledError):
            await in_time(holder.result())
        assert await holder.status() == "cancelled"


async def test_run_that_kills_its_workers_makes_room_for_the_next(place: Place) -> None:
    """It is parked after so many of them, and gives its slot back. [DB-Q27]"""
    limits = Limits(attempts_max=1)
    engine = await place.engine(limits=limits).__aenter__()
    await engine.start(dbos_gated, "poison", queue=one, id="poison")
    await engine.start(dbos_echo, "next", queue=one, id="next")
    for _ in range(2):
        await stage.gate().reached()
        await crash(engine)
        engine = await place.engine(limits=limits).__aenter__()

    assert await ends(engine.get("next")) == ["next"]
    assert "quarantined: 2 workers were interrupted" in await parks(engine.get("poison"))
    await engine.__aexit__(None, None, None)


async def test_deadlines_free_the_slots_of_their_runs() -> None:
    """Runs that hang end at their deadlines, and the run behind them has its turn. [DB-Q23]"""
    async with TestEngine() as engine:
        stuck = [await engine.start(dbos_hold, f"{n}", queue=one, timeout=10) for n in range(3)]
        behind = await engine.start(dbos_echo, "behind", queue=one, timeout=100)
        for run in stuck:
            with pytest.raises(RunTimedOutError):
                await run.result()
        assert await behind.result() == "behind"


async def test_deadline_survives_the_worker(place: Place) -> None:
    """It stays the same instant. [DB-Q25]"""
    first = place.engine()
    await first.__aenter__()
    run = await first.start(dbos_hold, "a", queue=one, timeout=60, id="a")
    await in_time(waits(run))
    before = (await run.info()).timeout_at
    await crash(first)
    place.clock.skip(seconds=61)
    async with place.engine() as second:
        with pytest.raises(RunTimedOutError):
            await in_time(second.get("a").result())
        assert (await second.get("a").info()).timeout_at == before


# -- Delays ---------------------------------------------------------------------------------------------------------


async def test_delayed_run_is_there_and_begins_when_it_is_due() -> None:
    """A delayed run is found among the pending runs, in the list and in the queue. [DB-Q38]"""
    async with TestEngine() as engine:
        begun = engine.now()
        run = await engine.start(dbos_echo, "late", queue=free, delay=60)
        assert [found.id for found in await engine.list(queue=free.name, status="pending")] == [run.id]
        assert (await engine.queues.stats(free)).later == 1
        assert await run.result() == "late"
        assert engine.now() == begun + timedelta(seconds=60)


# -- Keys -----------------------------------------------------------------------------------------------------------


async def test_key_that_is_blocked_blocks_no_other() -> None:
    """Within a key runs come one at a time, in the order of their starts. [DB-P1 DB-P8]"""
    async with TestEngine() as engine:
        head = await engine.start(dbos_hold, "head", queue=each, key="a")
        behind = [await engine.start(dbos_echo, text, queue=each, key="a") for text in ("a1", "a2")]
        other = await engine.start(dbos_echo, "b1", queue=each, key="b")
        assert await other.result() == "b1"
        assert await statuses(*behind) == ["pending"] * 2
        assert [(await run.info()).queue_key for run in (head, *behind)] == ["a"] * 3
        await go(engine, head)
        assert await ends(head, *behind) == ["head", "a1", "a2"]

    assert [text for text in stage.calls if text != "b1"] == ["head", "a1", "a2"]


async def test_small_keys_are_served_between_the_large_ones() -> None:
    """A key with much to do does not keep the others waiting. [DB-P2]"""
    queue = Queue("dbos shared", concurrency=2, per_key=1)
    async with TestEngine() as engine:
        await engine.queues.pause(queue)
        for key, count in (("busy 1", 10), ("busy 2", 10), ("small 1", 1), ("small 2", 1)):
            for _ in range(count):
                await engine.start(dbos_echo, key, queue=queue, key=key)
        await engine.queues.resume(queue)
        await engine.finish(skips_max=5)

    assert len(stage.calls) == 22
    assert {"small 1", "small 2"} < set(stage.calls[:6])


@pytest.mark.parametrize("limits", [{"per_key": 1, "per_worker": 3}, {"per_key": 2, "concurrency": 3}], ids=str)
async def test_limits_of_a_key_and_of_the_queue_hold_together(limits: dict[str, Any], place: Place) -> None:
    """The queue is full, and no key has more than its share. [DB-P5]"""
    queue = Queue("dbos scopes", **limits)
    async with place.engine() as engine:
        runs = [await engine.start(dbos_gated, key, queue=queue, key=key) for key in "abcd" for _ in range(3)]
        for _ in range(3):
            await stage.gate().reached()
        await turns_of_the_loop(50)
        counted = Counter(stage.calls)
        assert counted.total() == 3
        assert max(counted.values()) <= limits["per_key"]
        stage.gate().open()
        assert len(await ends(*runs)) == 12


async def test_limit_of_the_queue_holds_for_workers_with_other_keys(place: Place) -> None:
    """They share one slot. [DB-P6 DB-P11]"""
    queue = Queue("dbos alone", concurrency=1, per_key=1)
    async with place.engine() as engine, place.engine():
        runs = [await engine.start(dbos_hold, key, queue=queue, key=key) for key in "ab"]
        for done in (1, 2):

            async def is_next(done: int = done) -> bool:
                return len(stage.calls) == done and (await engine.queues.stats(queue)).running == 1

            await until(is_next)
            await go(engine, engine.get((await engine.queues.stats(queue)).holders[0].id))
        assert sorted(await ends(*runs)) == ["a", "b"]


async def test_rate_and_limit_of_a_key_hold_together() -> None:
    """Both keys have their turn in one window, and the next ones in the next. [DB-P12]"""
    queue = Queue("dbos routed", rate=FixedWindow(2, 60), per_key=1)
    async with TestEngine() as engine:
        await engine.queues.pause(queue)
        for key in "ab":
            for _ in range(2):
                await engine.start(dbos_echo, key, queue=queue, key=key)
        await engine.queues.resume(queue)
        await engine.settle()
        assert sorted(stage.calls) == ["a", "b"]
        await engine.skip(seconds=60)

    assert sorted(stage.calls) == ["a", "a", "b", "b"]


# -- Debounce -------------------------------------------------------------------------------------------------------


async def test_shorter_span_makes_a_burst_begin_earlier() -> None:
    """The last start says when. [DB-D2]"""
    async with TestEngine() as engine:
        begun = engine.now()
        first = await engine.start(dbos_echo, "long", debounce=Debounce("key", 1_000_000))
        second = await engine.start(dbos_echo, "short", debounce=Debounce("key", 1))
        assert first.id == second.id
        assert await first.result() == "short"
        assert engine.now() == begun + timedelta(seconds=1)


async def test_cancelled_burst_is_followed_by_another() -> None:
    """Its key is free. [DB-D6]"""
    async with TestEngine() as engine:
        first = await engine.start(dbos_echo, "first", debounce=Debounce("key", 1_000_000))
        await first.cancel()
        second = await engine.start(dbos_echo, "second", debounce=Debounce("key", 1))
        assert first.id != second.id
        assert await second.result() == "second"
        assert await first.status() == "cancelled"


async def test_begun_burst_is_followed_by_another() -> None:
    """Before it ends, and in its queue. [DB-D4 DB-D5]"""
    how = Debounce("key", 5)
    async with TestEngine() as engine:
        first = await engine.start(dbos_hold, "first", queue=free, debounce=how, timeout=300)
        await engine.skip(seconds=6)
        assert await first.status() == "waiting"
        second = await engine.start(dbos_hold, "second", queue=free.name, debounce=how)
        assert first.id != second.id
        await engine.skip(seconds=6)
        await go(engine, first, second)
        assert await ends(first, second) == ["first", "second"]
        infos = [await run.info() for run in (first, second)]
        assert [info.queue for info in infos] == [free.name] * 2
        assert infos[0].timeout_at == infos[0].created_at + timedelta(seconds=305)


async def test_names_and_keys_do_not_run_into_each_other() -> None:
    """Debounce keys of two workflows stay apart even if name and key together spell the same letters. [DB-D12]"""
    async with TestEngine() as engine:
        first = await engine.start(dbos_echo, "first", debounce=Debounce("b-k", 60))
        second = await engine.start(dbos_echo_b, "second", debounce=Debounce("k", 1))
        same = await engine.start(dbos_echo, "same", debounce=Debounce("b-k", 60))
        assert first.id == same.id != second.id
        assert await ends(first, second) == ["same", "second"]
