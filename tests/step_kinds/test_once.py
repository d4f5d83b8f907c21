"""Steps that are called once: whatever happens, never a second time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError
from outlive.events import AttemptFailed, StepFailed, StepIntended, StepSucceeded
from outlive.limits import Limits
from tests.engine.dying import deaths
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import crash, fence, journal_of
from tests.engine.support import Place, events_of, hold, in_time, note, stage, turns_of_the_loop, until, waits

pytestmark = pytest.mark.any_store


@outlive.step(once=True)
async def send_once(text: str) -> str:
    stage.call(text)
    await stage.gate(text).pass_through()
    return f"sent {text}"


@outlive.step(once=True)
def send_on_thread(text: str) -> str:
    stage.call(text)
    stage.gate(text).pass_on_thread()
    return f"sent {text}"


@outlive.step(once=True, retry=Retry(attempts=3, first=60, jitter=0))
async def refused_at_first() -> str:
    attempt = outlive.current_step().attempt
    stage.call(attempt)
    if attempt < 3:
        raise ConnectionError(f"refused {attempt}")
    return f"sent at attempt {attempt}"


refused_at_once = refused_at_first.options(retry=Retry(attempts=3, first=0, jitter=0))


@outlive.step(once=True, retry=Retry(attempts=5, first=0, jitter=0), timeout=0.03)
async def send_slowly() -> None:
    stage.call("began")
    await asyncio.Event().wait()


@outlive.workflow
async def sending_once(text: str) -> str:
    try:
        return await send_once(text)
    except outlive.errors.StepInterruptedError as error:
        stage.values["key"] = error.idempotency_key
        return f"{error.step}: {error.reason}; {await note('asked')}"


@outlive.workflow
async def sending_once_on_thread(text: str) -> str:
    try:
        return await send_on_thread(text)
    except outlive.errors.StepInterruptedError:
        return "interrupted"


@outlive.workflow
async def sending_with_retry() -> str:
    return await refused_at_first()


@outlive.workflow
async def sending_again_at_once() -> str:
    try:
        return await refused_at_once()
    except outlive.errors.StepInterruptedError:
        return "interrupted"


@outlive.workflow
async def sending_in_time() -> str:
    try:
        await send_slowly()
    except outlive.errors.StepInterruptedError as error:
        return f"{error.reason}; {type(error.__cause__).__name__}"
    return "went on"


@outlive.workflow
async def changing_its_mind_once() -> str:
    sent = asyncio.create_task(send_once("never"))
    await asyncio.sleep(0)
    sent.cancel()
    await asyncio.wait([sent])
    return await note("went on")


@outlive.workflow
async def giving_up_once() -> str:
    try:
        async with asyncio.timeout(0.02):
            await send_once("late")
    except TimeoutError:
        return await note("gave up")
    return "went on"


@outlive.workflow
async def sending_many() -> list[str]:
    answers = await asyncio.gather(*(send_once(text) for text in "abc"), return_exceptions=True)
    return [answer if isinstance(answer, str) else type(answer).__name__ for answer in answers]


@outlive.workflow
async def sending_the_first_that_answers() -> str:
    tasks = [asyncio.create_task(send_once(text)) for text in "ab"]
    _, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        task.cancel()
    await asyncio.wait(tasks)
    return await note("went on")


@outlive.workflow
async def asking_after_an_interruption() -> str:
    try:
        return await send_once("a")
    except outlive.errors.StepInterruptedError:
        return str(await outlive.wait_for_signal("answer"))


async def test_a_run_that_waits_after_an_interruption_leaves_memory(place: Place) -> None:
    """No attempt of it runs any more."""
    engine = place.engine()
    async with engine:
        await engine.start(asking_after_an_interruption, id="run-1")
        await stage.gate("a").reached()
        await crash(engine)

    async with place.engine() as engine:
        run = engine.get("run-1")
        await waits(run)
        await run.signal("answer", "sent")
        assert "sent" == await in_time(run.result())


async def test_once_step_returns_like_any_other(engine: outlive.Engine) -> None:
    """Its intent stands in the journal before its result."""
    stage.gate("a").open()
    run = await engine.start(sending_once, "a", id="run-1")

    assert "sent a" == await in_time(run.result())
    kinds = [type(event) for event in await journal_of(run) if isinstance(event, StepIntended | StepSucceeded)]
    assert [StepIntended, StepSucceeded] == kinds


async def test_nothing_is_called_before_the_intent_is_durable(place: Place) -> None:
    """While the store is busy with the intent, the step waits."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].gates["commit"] = asyncio.Event()
        starting = asyncio.create_task(engine.start(sending_once, "a", id="run-1"))
        await in_time(stores[0].waiting["commit"].wait())
        assert [] == stage.calls

        stores[0].gates.pop("commit").set()
        await stage.gate("a").reached()
        stage.gate("a").open()
        assert "sent a" == await in_time((await starting).result())


@pytest.mark.parametrize("workflow", [sending_once, sending_once_on_thread])
async def test_interrupted_once_step_is_not_called_again(
    place: Place, workflow: outlive.types.Workflow[..., str]
) -> None:
    """After a crash in the middle of the call the workflow gets an error, and goes on with what it decides."""
    engine = await place.engine().__aenter__()
    run = await engine.start(workflow, "a", id="run-1")
    await stage.gate("a").reached()
    await crash(engine)

    async with place.engine() as engine:
        result = await in_time(engine.get(run.id).result())
    assert result in ("send_once: its worker was interrupted; asked", "interrupted")
    assert stage.values.get("key", "run-1:send_once:").startswith("run-1:send_once:")
    assert 1 == stage.count("a")


async def test_lost_lease_interrupts_what_was_begun(engine: outlive.Engine) -> None:
    """The new session of the same process does not call it again either."""
    run = await engine.start(sending_once, "a", id="run-1")
    await stage.gate("a").reached()
    fence(engine)

    assert "send_once: its worker was interrupted; asked" == await in_time(run.result())
    assert 1 == stage.count("a")


async def test_clean_stop_interrupts_what_it_had_to_cancel(place: Place) -> None:
    """The call was under way: it cannot be known."""
    async with place.engine() as engine:
        await engine.start(sending_once, "a", id="run-1")
        await stage.gate("a").reached()

    async with place.engine() as engine:
        assert "send_once: its worker was interrupted; asked" == await in_time(engine.get("run-1").result())
    assert 1 == stage.count("a")


async def test_clean_stop_takes_back_intents_of_calls_that_were_not_made(place: Place) -> None:
    """A step that waited for its turn when the engine stopped is called by the next one."""
    async with place.engine(limits=Limits(steps_running_max=1)) as engine:
        run = await engine.start(sending_many, id="run-1")
        await stage.gate("a").reached()
        assert 3 == len(await events_of(run, StepIntended))

    for text in "abc":
        stage.gate(text).open()
    async with place.engine() as engine:
        assert ["StepInterruptedError", "sent b", "sent c"] == await in_time(engine.get("run-1").result())
        intents = await events_of(engine.get("run-1"), StepIntended)
    assert [1, 1, 1, 0, 0, 1, 1] == [intent.attempt for intent in intents]
    assert ["a", "b", "c"] == sorted(stage.calls)


async def test_second_of_two_interrupted_calls_is_given_up(place: Place) -> None:
    """A run that raced two calls when its process died gets the interruption of the first and gives the other one
    up."""
    engine = await place.engine().__aenter__()
    await engine.start(sending_the_first_that_answers, id="run-1")
    await stage.gate("a").reached()
    await stage.gate("b").reached()
    await crash(engine)

    async with place.engine() as engine:
        run = engine.get("run-1")
        assert "went on" == await in_time(run.result())
        assert 1 == len(await events_of(run, StepFailed))
    assert ["a", "b"] == sorted(text for text in stage.calls if text in ("a", "b"))


async def test_raised_exception_is_an_outcome_and_is_retried(place: Place) -> None:
    """Each attempt has an intent of its own, written when its back-off is over; a crash in between changes nothing."""
    engine = await place.engine().__aenter__()
    run = await engine.start(sending_with_retry, id="run-1")
    await waits(run)
    assert [1] == [intent.attempt for intent in await events_of(run, StepIntended)]
    await crash(engine)

    async with place.engine() as engine:
        run = engine.get("run-1")
        place.clock.skip(seconds=61)

        async def has_failed_twice() -> bool:
            return 2 == len(await events_of(run, AttemptFailed))

        await until(has_failed_twice)
        place.clock.skip(seconds=121)
        assert "sent at attempt 3" == await in_time(run.result())
        assert [1, 2, 3] == [intent.attempt for intent in await events_of(run, StepIntended)]
    assert [1, 2, 3] == stage.calls


async def test_late_once_step_is_interrupted_and_not_retried(engine: outlive.Engine) -> None:
    """It is not known whether it had its effect, so no policy calls it again."""
    run = await engine.start(sending_in_time)

    assert "did not end within its timeout of 0.03 s; StepTimeoutError" == await in_time(run.result())
    assert ["began"] == stage.calls
    (failed,) = await events_of(run, StepFailed)
    assert "outlive.errors.StepInterruptedError" == failed.failure.type


async def test_options_keep_the_kind(engine: outlive.Engine) -> None:
    """A call with options of its own is called once too."""
    assert send_once.options(timeout=3).spec.kind is send_once.spec.kind is not None


async def test_call_that_is_taken_back_at_once_is_never_made(engine: outlive.Engine) -> None:
    """No intent is written for it."""
    run = await engine.start(changing_its_mind_once)

    assert "went on" == await in_time(run.result())
    assert [] == await events_of(run, StepIntended)
    assert ["went on"] == stage.calls


async def test_cancelled_once_step_is_forgotten(place: Place) -> None:
    """The workflow stopped waiting: there is no code that could be interrupted."""
    async with place.engine() as engine:
        run = await engine.start(giving_up_once)
        assert "gave up" == await in_time(run.result())
    async with place.engine() as engine:
        assert "gave up" == await in_time(engine.get(run.id).result())


@outlive.workflow
async def sending_twice() -> list[str]:
    answers = []
    for text in ("a", "b"):
        try:
            answers.append(await send_once(text))
        except outlive.errors.StepInterruptedError:
            answers.append("interrupted")
    return answers


async def test_crash_at_any_commit_calls_it_at_most_once(place: Place) -> None:
    """The process dies at each commit in turn, before and after it; only a call that was made or begun is lost."""
    results: list[Any] = []
    for text in "ab":
        stage.gate(text).open()
    async for run_id in deaths(place, sending_twice):
        async with place.engine() as engine:
            results.append(await in_time((await engine.start(sending_twice, id=run_id)).result()))
        for text, answer in zip("ab", results[-1], strict=True):
            assert stage.count(text) == 1 or (answer == "interrupted" and stage.count(text) == 0)
        stage.clear()
        for text in "ab":
            stage.gate(text).open()
    assert [["sent a", "sent b"], ["interrupted", "sent b"], ["sent a", "interrupted"]] == [
        list(it) for it in dict.fromkeys(map(tuple, results))
    ]


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_no_retry_is_called_before_its_intent_is_durable(place: Place) -> None:
    """While the store is busy with the intent of the second attempt, that waits."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(sending_with_retry, id="run-1")
        await waits(run)
        stores[0].gates["commit"] = asyncio.Event()
        place.clock.skip(seconds=61)
        await in_time(stores[0].waiting["commit"].wait())
        await turns_of_the_loop(20)
        assert [1] == stage.calls

        stores[0].gates.pop("commit").set()

        async def is_called_again() -> bool:
            return stage.calls == [1, 2]

        await until(is_called_again)


@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_crash_at_any_commit_makes_each_attempt_at_most_once(place: Place) -> None:
    """No attempt of a step is made twice, at whichever commit the process dies, before or after it, also between
    retries."""
    results = []
    async for run_id in deaths(place, sending_again_at_once):
        async with place.engine() as engine:
            results.append(await in_time((await engine.start(sending_again_at_once, id=run_id)).result()))
        assert sorted(set(stage.calls)) == sorted(stage.calls), run_id
        stage.clear()
    assert {"interrupted", "sent at attempt 3"} == set(results)
    assert len(results) > 6  # Three intents and two failures were lost, and kept, in turn.


@pytest.mark.parametrize("kinds", [("once", "process"), ("once", "transaction"), ("process", "transaction")])
def test_kinds_exclude_each_other(kinds: tuple[str, str]) -> None:
    """A step is of one kind."""
    with pytest.raises(DefinitionError, match="exclude each other"):
        outlive.step(**dict.fromkeys(kinds, True))(hold.fn)  # type: ignore[call-overload]
