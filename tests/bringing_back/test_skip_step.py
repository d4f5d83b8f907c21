"""`engine.skip_step`: a parked run goes on without the step that it cannot get past."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

import outlive
import outlive.flow
from outlive._kernel.runtime.tree.live import LiveTree
from outlive.errors import RunNotFoundError, StepSkippedError, UnserialisableError
from outlive.errors.run import RunNotParkedError
from outlive.events import StepFailed, StepSucceeded
from outlive.limits import Limits
from tests.engine.inside import claimer_of, crash, journal_of
from tests.engine.support import Place, events_of, hold, in_time, note, parks, stage, until

pytestmark = pytest.mark.any_store

LIMITS = Limits(attempts_max=1)


@dataclass
class Receipt:
    cents: int
    at: datetime


@outlive.step
async def poison(name: str) -> str:
    stage.call(name)
    await stage.gate(name).pass_through()
    return name


@outlive.step
async def buy() -> Receipt:
    stage.call("buy")
    await stage.gate("buy").pass_through()
    return Receipt(0, datetime.now(UTC))


@outlive.step(once=True)
async def poison_once(name: str) -> str:
    stage.call(name)
    await stage.gate(name).pass_through()
    return name


@outlive.workflow
async def skipping(name: str) -> list[str]:
    return [await note("before"), await poison(name), await note("after")]


@outlive.workflow
async def catching() -> str:
    try:
        return await poison("bad")
    except StepSkippedError as error:
        return f"did without {error.step}"


@outlive.workflow
async def buying() -> Receipt:
    return await buy()


@outlive.workflow
async def skipping_many() -> list[str]:
    return list(await asyncio.gather(poison("bad"), hold("good")))


@outlive.workflow
async def skipping_first() -> str:
    tasks = {asyncio.create_task(poison("bad")), asyncio.create_task(hold("good"))}
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await outlive.wait_for_signal("go")
    return done.pop().result()


@outlive.workflow
async def skipping_once() -> str:
    try:
        first = await poison_once("bad")
    except outlive.errors.StepInterruptedError:
        first = "interrupted"
    return first + await hold("next")


@outlive.workflow
async def skipping_in_child() -> list[str]:
    return await skipping("bad")


async def quarantined(place: Place, workflow: Any, *args: Any, gates: tuple[str, ...] = ("bad",)) -> outlive.Engine:
    """An engine with run-1, which two workers were lost over: it is parked with its steps in flight."""
    engine = await place.engine(limits=LIMITS).__aenter__()
    await engine.start(workflow, *args, id="run-1")
    for _ in range(2):
        for gate in gates:
            await stage.gate(gate).reached()
        await crash(engine)
        engine = await place.engine(limits=LIMITS).__aenter__()
    assert "quarantined" in await parks(engine.get("run-1"))
    stage.calls.clear()
    return engine


async def test_a_step_is_skipped_with_a_result(place: Place) -> None:
    """The workflow goes on as if the step had returned it; it is not called, and the journal says who said so."""
    engine = await quarantined(place, skipping, "bad")

    await engine.skip_step("run-1", result="given")

    assert ["before", "given", "after"] == await in_time(engine.get("run-1").result())
    assert ["after"] == stage.calls
    results = await events_of(engine.get("run-1"), StepSucceeded)
    assert [False, True, False] == [event.skipped for event in results]
    assert 1 == engine.counters.steps_skipped
    await engine.__aexit__(None, None, None)


async def test_a_step_is_skipped_without_a_result(place: Place) -> None:
    """The workflow gets the error, and may do something else."""
    engine = await quarantined(place, catching)

    await engine.skip_step("run-1")

    assert "did without poison" == await in_time(engine.get("run-1").result())
    (failed,) = await events_of(engine.get("run-1"), StepFailed)
    assert "StepSkippedError" in failed.failure.type
    await engine.__aexit__(None, None, None)


async def test_a_workflow_that_does_not_expect_a_skipped_step_fails(place: Place) -> None:
    """A workflow that does not catch the error of a skipped step fails with it."""
    engine = await quarantined(place, skipping, "bad")

    await engine.get("run-1").skip_step()

    with pytest.raises(outlive.errors.RunFailedError, match="step poison was skipped by a person") as failed:
        await in_time(engine.get("run-1").result())
    assert isinstance(failed.value.__cause__, StepSkippedError | outlive.errors.StepFailedError)
    await engine.__aexit__(None, None, None)


async def test_a_result_is_of_the_type_of_its_step(place: Place) -> None:
    """Given as its own class, it comes to the workflow as that."""
    engine = await quarantined(place, buying, gates=("buy",))
    receipt = Receipt(1200, datetime(2026, 1, 2, tzinfo=UTC))

    await engine.skip_step("run-1", result=receipt)

    assert receipt == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


async def test_a_result_that_does_not_fit_is_refused(place: Place) -> None:
    """The run is parked again, with what is wrong in the reason; nothing is called, and a better one is taken."""
    engine = await quarantined(place, buying, gates=("buy",))

    await engine.skip_step("run-1", result="twelve")

    async def is_refused() -> bool:
        return "nothing was skipped" in (await engine.get("run-1").info()).reason

    await until(is_refused)
    assert "the result given for step buy" in (await engine.get("run-1").info()).reason
    assert [] == stage.calls
    await engine.skip_step("run-1", result={"cents": 5, "at": "2026-01-02T00:00:00Z"})
    assert 5 == (await in_time(engine.get("run-1").result())).cents
    await engine.__aexit__(None, None, None)


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_skip_that_goes_wrong_half_way_leaves_nothing_of_itself(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is parked again with the reason, as if nothing had been skipped; and it can be tried again."""
    follow_all, failures = LiveTree.follow_all, [RuntimeError("a bug")]

    def follow_or_fail(live: LiveTree, commands: Any) -> None:
        if failures:
            raise failures.pop()
        follow_all(live, commands)

    engine = await quarantined(place, skipping, "bad")
    before = len(await journal_of(engine, "run-1"))
    monkeypatch.setattr(LiveTree, "follow_all", follow_or_fail)
    await engine.skip_step("run-1", result="given")

    async def is_parked_again() -> bool:
        return (await engine.get("run-1").info()).reason == "it could not be replayed: RuntimeError: a bug"

    await until(is_parked_again)
    assert before + 2 == len(await journal_of(engine, "run-1"))  # It was claimed and parked.
    assert [] == await events_of(engine.get("run-1"), StepFailed)
    await engine.skip_step("run-1", result="given")
    assert ["before", "given", "after"] == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


@outlive.workflow
async def skipping_a_dozen() -> list[str]:
    return list(await asyncio.gather(*(poison(f"bad {number}") for number in range(12))))


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_reason_lists_the_first_of_many_steps_in_flight(place: Place) -> None:
    """The refusal to skip one of a dozen steps in flight lists the first ten and counts the others."""
    engine = await quarantined(place, skipping_a_dozen, gates=tuple(f"bad {number}" for number in range(12)))
    await engine.skip_step("run-1", result="given")

    async def is_refused() -> bool:
        return "10/poison and 2 more); name the call of one" in (await engine.get("run-1").info()).reason

    await until(is_refused)
    await engine.__aexit__(None, None, None)


async def test_a_skip_must_name_one_of_several_steps_in_flight(place: Place) -> None:
    """A skip without a name is refused when several steps are in flight; the named one is skipped, and the others run
    again."""
    engine = await quarantined(place, skipping_many, gates=("bad", "good"))

    await engine.skip_step("run-1", result="given")

    async def is_refused() -> bool:
        return "several steps are in flight (1/poison, 2/hold)" in (await engine.get("run-1").info()).reason

    await until(is_refused)
    stage.gate("good").open()
    await engine.skip_step("run-1", "1/poison", result="given")
    assert ["given", "good"] == await in_time(engine.get("run-1").result())
    assert ["good"] == stage.calls
    await engine.__aexit__(None, None, None)


async def test_a_step_that_is_not_in_flight_is_not_skipped(place: Place) -> None:
    """The reason names what is."""
    engine = await quarantined(place, skipping, "bad")

    await engine.skip_step("run-1", "note", result="given")

    async def is_refused() -> bool:
        return "step note is not in flight here (in flight: poison)" in (await engine.get("run-1").info()).reason

    await until(is_refused)
    await engine.cancel("run-1")
    assert await engine.get("run-1").status() == "cancelled"
    await engine.__aexit__(None, None, None)


FOUND = outlive.flow.parse("""
name: skipping_found
vars: { skip_token: { secret: true } }
steps:
  find: { use: poison, with: { name: bad } }
  charge: { use: http, with: { url: "${{ steps.find }}/x", bearer: "${{ vars.skip_token }}" } }
output: "${{ steps.charge.status }}"
""")


async def test_a_step_that_decides_where_a_secret_goes_is_given_no_result(place: Place) -> None:
    """A person who may skip steps could have the secret sent to a server of that person. [S30]"""
    engine = await quarantined(place, FOUND)

    await engine.skip_step("run-1", "find", result="https://thief.example")

    async def is_refused() -> bool:
        return "step find takes no result: it decides where a secret goes" in (await engine.get("run-1").info()).reason

    await until(is_refused)
    await engine.skip_step("run-1", "find")
    with pytest.raises(outlive.errors.RunFailedError, match="was skipped by a person"):
        await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


async def test_steps_that_are_taken_back_because_of_a_skip_leave_nothing_behind(place: Place) -> None:
    """The workflow cancels the other step when it has the first: the run is suspended, and has no owner."""
    engine = await quarantined(place, skipping_first, gates=("bad", "good"))

    await engine.skip_step("run-1", "1/poison", result="given")

    async def is_suspended() -> bool:
        return await engine.get("run-1").status() == "waiting"

    await until(is_suspended)
    assert [] == stage.calls
    await engine.signal("run-1", "go")
    assert "given" == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


async def test_asking_twice_skips_one_step(place: Place) -> None:
    """Two people press the same button: the step that comes next is not in flight yet, and is called."""
    engine = await quarantined(place, skipping_twice, gates=("bad",))
    await claimer_of(engine).stop()
    await engine.skip_step("run-1", result="given")
    await engine.skip_step("run-1", result="given again")
    stage.gate("next").open()
    await engine.__aexit__(None, None, None)

    async with place.engine(limits=LIMITS) as other:
        assert "given next" == await in_time(other.get("run-1").result())


@outlive.workflow
async def skipping_twice() -> str:
    return f"{await poison('bad')} {await hold('next')}"


async def test_a_step_that_is_called_once_can_be_given_its_result(place: Place) -> None:
    """Nothing else decides about it first: the workflow gets what the person found out, not that it was interrupted."""
    engine = await place.engine(recovery=outlive.types.Recovery()).__aenter__()
    await engine.start(skipping_once, id="run-1")
    await stage.gate("bad").reached()
    await crash(engine)
    engine = await place.engine(recovery=outlive.types.Recovery(auto_resume=False)).__aenter__()
    await parks(engine.get("run-1"))
    stage.gate("next").open()

    await engine.skip_step("run-1", result="found out ")

    assert "found out next" == await in_time(engine.get("run-1").result())
    assert ["bad", "next"] == stage.calls
    await engine.__aexit__(None, None, None)


async def test_a_step_of_a_child_can_be_skipped(place: Place) -> None:
    """By the id of the child, or of the root if it is the only one in flight."""
    engine = await quarantined(place, skipping_in_child)

    await engine.skip_step("run-1~1", "poison", result="given")

    assert ["before", "given", "after"] == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


async def test_a_request_survives_the_worker_that_took_it(place: Place) -> None:
    """It waits in the inbox until a worker has made it a fact."""
    engine = await quarantined(place, skipping, "bad")
    async with place.engine(worker=False) as client:
        await claimer_of(engine).stop()
        await client.skip_step("run-1", result="given")
    await crash(engine)

    async with place.engine(limits=LIMITS) as other:
        assert ["before", "given", "after"] == await in_time(other.get("run-1").result())


async def test_a_large_result_is_stored_beside_the_request(place: Place) -> None:
    """A large result that is given for a skipped step reaches the workflow whole."""
    engine = await quarantined(place, skipping, "bad")
    large = "x" * 100_000

    await engine.skip_step("run-1", result=large)

    assert ["before", large, "after"] == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


async def test_only_a_parked_run_can_skip(engine: outlive.Engine) -> None:
    """Any other request raises at once."""
    await engine.start(skipping, "bad", id="run-1")
    await stage.gate("bad").reached()

    with pytest.raises(RunNotParkedError, match="is running, not parked"):
        await engine.skip_step("run-1")
    with pytest.raises(RunNotFoundError):
        await engine.skip_step("missing")


async def test_a_result_that_cannot_be_stored_is_refused_at_once(place: Place) -> None:
    """Nothing is sent."""
    engine = await quarantined(place, skipping, "bad")
    with pytest.raises(UnserialisableError):
        await engine.skip_step("run-1", result=object())
    assert await engine.get("run-1").status() == "parked"
    await engine.__aexit__(None, None, None)


async def test_sync_code_can_skip_a_step(place: Place) -> None:
    """The sync engine skips a step and gives its result."""
    engine = await quarantined(place, skipping, "bad")

    await asyncio.to_thread(engine.sync.skip_step, "run-1", result="given")

    assert ["before", "given", "after"] == await in_time(engine.get("run-1").result())
    await engine.__aexit__(None, None, None)


@outlive.step(retry=outlive.Retry(attempts=1))
async def undo_badly(result: str) -> None:
    stage.call(f"undo {result}")
    if result == "second":
        raise ValueError("cannot be undone")


@outlive.step(undo=undo_badly)
async def do(name: str) -> str:
    return name


@outlive.workflow
async def skipping_undo() -> None:
    async with outlive.saga():
        for name in ("first", "second", "third"):
            await do(name)
        raise RuntimeError("no")


async def test_an_undo_that_is_skipped_counts_as_done(engine: outlive.Engine) -> None:
    """The roll-back goes on with the rest, and the run fails for the reason that it had."""
    run = await engine.start(skipping_undo, id="run-1")
    assert "undo failed" in await parks(run)

    await engine.skip_step("run-1")

    with pytest.raises(outlive.errors.RunFailedError, match="RuntimeError: no"):
        await in_time(run.result())
    assert ["undo third", "undo second", "undo first"] == stage.calls
