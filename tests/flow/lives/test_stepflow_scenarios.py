"""Stepflow's crash tests and its gaps, with flows: what it wants to show, and what it does not have."""

from __future__ import annotations

import asyncio

import pytest

from outlive import flow
from outlive.errors import RunCancelledError, RunFailedError
from outlive.events import AttemptFailed, RunCreated, StepSucceeded
from outlive.limits import Limits
from tests.engine.inside import crash, trees_of
from tests.engine.support import Place, events_of, in_time, stage, until, waits
from tests.flow import shop

CHAIN = flow.parse("""
name: stepflow-chain
steps:
  step1: { use: note, with: { what: step1 } }
  step2: { use: hold, with: { name: step2 }, after: [step1] }
  step3: { use: note, with: { what: "${{ steps.step1 }} ${{ steps.step2 }} step3" } }
output: "${{ steps.step3 }}"
""")
FAN = flow.parse("""
name: stepflow-fan
steps:
  a: { use: note, with: { what: a } }
  b: { use: hold, with: { name: b } }
  c: { use: hold, with: { name: c } }
  all: { use: note, with: { what: "${{ steps.a + steps.b + steps.c }}" } }
output: "${{ steps.all }}"
""")
OUTER = flow.parse("""
name: stepflow-outer
steps:
  done: { use: stepflow-inner, with: { name: done } }
  open: { use: stepflow-held, with: { name: inner }, after: [done] }
output: "${{ steps.done + ' ' + steps.open }}"
""")
INNER = flow.parse("""
name: stepflow-inner
input: { name: string }
steps: { say: { use: note, with: { what: "${{ input.name }}" } } }
output: "${{ steps.say }}"
""")
HELD = flow.parse("""
name: stepflow-held
input: { name: string }
steps:
  before: { use: note, with: { what: before } }
  inside: { use: hold, with: { name: "${{ input.name }}" }, after: [before] }
output: "${{ steps.inside }}"
""")
BUDGET = flow.parse("""
name: stepflow-budget
steps:
  one: { use: shop.say, with: { what: it }, retry: { attempts: 3, first: 1h, cap: 1h } }
""")
CALLED = flow.parse("""
name: stepflow-called
concurrency: 1
vars: { region: { type: string, default: south } }
steps:
  one: { use: hold, with: { name: first } }
  two: { use: note, with: { what: second } }
output: "${{ [steps.one, steps.two, vars.region][2] }}"
""")
CALLER = flow.parse("""
name: stepflow-caller
steps:
  north: { use: flow, with: { name: stepflow-called, vars: { region: north } } }
  south: { use: flow, with: { name: stepflow-called }, after: [north] }
output: ["${{ steps.north }}", "${{ steps.south }}"]
""")
LEASE = 5
WAITS = flow.parse("""
name: stepflow-waits
steps:
  nap: { use: sleep, with: { seconds: 30d } }
  paid: { use: wait_for_signal, with: { name: paid }, after: [nap] }
  boss: { use: approval, with: { title: Go? } }
output: ["${{ steps.paid }}", "${{ steps.boss.by }}"]
""")


async def test_a_crash_in_a_chain_repeats_the_step_in_flight_and_no_other(place: Place) -> None:
    """The interrupted step runs again, and the step before it does not. [SF-X1 SF-U8 SF-U15 FB-R1]"""
    first = await place.engine().__aenter__()
    await first.start(CHAIN, id="run-1")
    await stage.gate("step2").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("step2").reached()
        stage.gate("step2").open()
        assert await in_time(second.get("run-1").result()) == "step1 step2 step3"
    assert [stage.count(name) for name in ("step1", "step2", "step1 step2 step3")] == [1, 2, 1]


async def test_a_crash_in_a_fan_out_keeps_the_branches_that_had_returned(place: Place) -> None:
    """A branch of a fan-out that had returned before the crash does not run again, and the step that needs all branches
    runs once. [SF-X2 SF-U29 FB-R11]"""
    first = await place.engine().__aenter__()
    run = await first.start(FAN, id="run-1")
    await stage.gate("c").reached()
    await stage.gate("b").reached()
    stage.gate("b").open()

    async def has_two() -> bool:
        return len(await events_of(run, StepSucceeded)) == 2

    await until(has_two)
    await crash(first)
    async with place.engine() as second:
        await stage.gate("c").reached()
        stage.gate("c").open()
        assert await in_time(second.get("run-1").result()) == "abc"
    assert [stage.count(name) for name in ("a", "b", "c", "abc")] == [1, 1, 2, 1]


async def test_a_crash_in_a_sub_flow_goes_on_in_the_same_child(place: Place) -> None:
    """A crash in a sub-flow goes on in the same child, and a sub-flow that had ended does not run again.
    [SF-X6 SF-X8 SF-U17 SF-U18 SF-U25 SF-U27]"""
    first = await place.engine().__aenter__()
    await first.start(OUTER, id="run-1")
    await stage.gate("inner").reached()
    await crash(first)

    async with place.engine() as second:
        await stage.gate("inner").reached()
        stage.gate("inner").open()
        run = second.get("run-1")
        assert await in_time(run.result()) == "done inner"
        assert [event.run for event in await events_of(run, RunCreated)] == [0, 1, 2]
    assert [stage.count(name) for name in ("done", "before", "inner")] == [1, 1, 2]


async def test_attempts_that_were_counted_before_a_crash_are_counted_after_it(place: Place) -> None:
    """Stepflow's budget is that of a process. [SF-U9]"""
    shop.clear()
    shop.FAILURES["it"] = [ConnectionError("away")] * 9
    first = await place.engine().__aenter__()
    run = await first.start(BUDGET, id="run-1")

    async def has_failed() -> bool:
        return len(await events_of(run, AttemptFailed)) == 1

    await until(has_failed)
    await crash(first)
    async with place.engine() as second:
        place.clock.skip(seconds=4_000)

        async def is_over() -> bool:
            place.clock.skip(seconds=4_000)
            return (await second.get("run-1").info()).has_ended

        await until(is_over)
        with pytest.raises(RunFailedError, match="away"):
            await second.get("run-1").result()
    assert shop.CALLS == ["it"] * 3


@pytest.mark.any_store
async def test_a_cancel_reaches_the_step_that_runs(place: Place) -> None:
    """Stepflow only writes that the run is cancelled, and goes on."""
    async with place.engine() as engine:
        run = await engine.start(CHAIN, id="run-1")
        await stage.gate("step2").reached()
        await engine.cancel("run-1", reason="enough")

        with pytest.raises(RunCancelledError):
            await in_time(run.result())
    assert stage.calls == ["step1", "step2", "step2 cancelled"]


async def test_a_worker_that_lost_its_lease_stops_its_steps_and_writes_nothing(place: Place) -> None:
    """Stepflow only logs that a heartbeat failed: the owner of before keeps executing and writing the journal."""
    async with place.engine(lease_seconds=LEASE) as zombie:
        run = await zombie.start(FAN, id="run-1")
        await stage.gate("b").reached()
        await stage.gate("c").reached()
        place.clock.skip(seconds=2 * LEASE)
        async with place.engine(lease_seconds=LEASE) as successor:

            async def is_taken_over() -> bool:
                return stage.count("b") == stage.count("c") == 2

            async def has_heard() -> bool:
                return "c cancelled" in stage.calls

            await until(is_taken_over)
            stage.gate("b").open()
            await until(has_heard)
            stage.gate("c").open()
            assert await in_time(successor.get("run-1").result()) == "abc"
            written = [event.call for event in await events_of(run, StepSucceeded)]

    assert sorted(written) == ["a", "all", "b", "c"]


async def test_a_step_that_kills_its_workers_is_stopped(place: Place) -> None:
    """Stepflow takes it up again without end."""
    engine = await place.engine(limits=Limits(attempts_max=2)).__aenter__()
    await engine.start(CHAIN, id="run-1")
    for _ in range(3):
        await stage.gate("step2").reached()
        await crash(engine)
        stage.clear()
        engine = await place.engine(limits=Limits(attempts_max=2)).__aenter__()
    run = engine.get("run-1")

    async def is_parked() -> bool:
        return await run.status() == "parked"

    await until(is_parked)
    assert "quarantined: 3 workers were interrupted" in await run.why()
    await engine.__aexit__(None, None, None)


@pytest.mark.any_store
async def test_a_sub_flow_has_variables_and_a_concurrency_of_its_own(place: Place) -> None:
    """In Stepflow both are still to be done."""
    async with place.engine() as engine:
        run = await engine.start(CALLER)
        await stage.gate("first").reached()
        assert stage.calls == ["first"]
        stage.gate("first").open()
        assert await in_time(run.result()) == ["north", "south"]


@pytest.mark.any_store
async def test_the_same_start_twice_is_one_run(place: Place) -> None:
    """Stepflow has no key for it."""
    async with place.engine() as engine:
        runs = await asyncio.gather(*(engine.start(CHAIN, id="run-1") for _ in range(3)))
        await stage.gate("step2").reached()
        stage.gate("step2").open()

        assert {await in_time(run.result()) for run in runs} == {"step1 step2 step3"}
    assert stage.count("step1") == 1


@pytest.mark.any_store
async def test_a_paused_flow_begins_nothing_until_it_is_resumed(place: Place) -> None:
    """Stepflow has the status, and no way to it."""
    async with place.engine() as engine:
        run = await engine.start(CHAIN, id="run-1")
        await stage.gate("step2").reached()
        await engine.pause("run-1")

        async def is_held() -> bool:
            """Only a worker that has heard of it begins nothing more."""
            return any(live.hold is not None for live in trees_of(engine))

        await until(is_held)
        stage.gate("step2").open()

        async def is_paused() -> bool:
            return (await run.info()).status == "parked"

        await until(is_paused)
        assert stage.calls == ["step1", "step2"]
        await engine.resume("run-1")
        assert await in_time(run.result()) == "step1 step2 step3"


@pytest.mark.any_store
async def test_a_flow_waits_durably_for_the_world(place: Place) -> None:
    """Timers, signals and approvals outlive the process; Stepflow has none of the three."""
    first = await place.engine().__aenter__()
    await waits(await first.start(WAITS, id="run-1"))
    await crash(first)
    async with place.engine() as second:
        place.clock.skip(seconds=31 * 24 * 3600)
        await second.signal("run-1", "paid", 5)
        await second.approvals.approve("run-1", "boss", by="ann")
        assert await in_time(second.get("run-1").result()) == [5, "ann"]
