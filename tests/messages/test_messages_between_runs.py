"""Runs that talk to runs: signals and cancels from a workflow, durable and once, and the engine of a step."""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

import outlive
from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.runtime.steps.process_child import JobStep
from outlive.errors import ConfigurationError, UnserialisableError
from outlive.errors.program import NotInRunError
from outlive.events import SignalReceived, StepSucceeded
from outlive.testing import TestEngine, crash_everywhere, replay
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.support import Place, events_of, in_time, registry_of, stage, until, waits

pytestmark = pytest.mark.any_store


@dataclass(frozen=True)
class Paid:
    cents: int


@outlive.workflow(signals={"paid": Paid})
async def talked_to(count: int) -> list[int]:
    """Waits for payments."""
    return [(await outlive.wait_for_signal("paid", Paid)).cents for _ in range(count)]


@outlive.workflow
async def talker(run_id: str, cents: list[int], key: str | None = None) -> str:
    """Sends payments, and says what it hears."""
    try:
        for amount in cents:
            await outlive.signal(run_id, "paid", Paid(amount), key=key)
    except outlive.errors.OutliveError as error:
        return f"{type(error).__name__}: {error}"
    return "sent"


@outlive.workflow
async def stopper(run_id: str) -> str:
    """Cancels another run, and says what it hears."""
    try:
        await outlive.cancel(run_id, reason="out of stock")
    except outlive.errors.OutliveError as error:
        return f"{type(error).__name__}: {error}"
    return "asked"


async def test_a_workflow_signals_another_run(engine: outlive.Engine) -> None:
    """Typed, in order, and in the journal of both."""
    other = await engine.start(talked_to, 3, id="talked-1")
    run = await engine.start(talker, "talked-1", [1, 2, 3])

    assert "sent" == await in_time(run.result())
    assert [1, 2, 3] == await in_time(other.result())
    assert ["outlive.signal", "outlive.signal#2", "outlive.signal#3"] == [
        event.call for event in await events_of(run, StepSucceeded)
    ]


async def test_a_signal_that_may_have_arrived_is_sent_again_and_comes_once(place: Place) -> None:
    """The store is away, or does not answer: the message has the key of its call."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        other = await engine.start(talked_to, 2, id="talked-1")
        await waits(other)
        stores[0].before["deliver"].append(unavailable())
        stores[0].after["deliver"] += [unknown(), unavailable()]
        run = await engine.start(talker, "talked-1", [5, 6])
        assert "sent" == await in_time(run.result())
        assert [5, 6] == await in_time(other.result())
        assert 2 == len(await events_of(other, SignalReceived))


async def test_a_signal_with_a_key_comes_once_from_whichever_run(engine: outlive.Engine) -> None:
    """Two runs that signal a third with one key deliver one signal."""
    other = await engine.start(talked_to, 1, id="talked-1")
    runs = [await engine.start(talker, "talked-1", [7, 8], "evt-1") for _ in range(2)]

    assert ["sent", "sent"] == [await in_time(run.result()) for run in runs]
    assert [7] == await in_time(other.result())


async def test_outcome_of_a_signal_is_the_same_in_every_replay(tmp_path: Path) -> None:
    """A signal to an unknown or ended run raises an error of its own, and a replay raises it again."""
    async with TestEngine() as engine:
        await (await engine.start(talked_to, 0, id="talked-0")).result()
        unknown_run = await engine.start(talker, "missing", [1])
        ended = await engine.start(talker, "talked-0", [1])
        assert "RunNotFoundError: no run has id 'missing'" in await unknown_run.result()
        assert "RunFinishedError: run 'talked-0' has ended (succeeded)" in await ended.result()
        for number, run in enumerate((unknown_run, ended)):
            await run.export(tmp_path / f"{number}.jsonl")
    assert 2 == len(replay(tmp_path / "*.jsonl", workflows=[talker]))


@outlive.workflow
async def mumbler(kind: str) -> str:
    """Sends what cannot be sent."""
    payload: Any = {"wrong type": "five cents", "no stored form": object()}[kind]
    try:
        await outlive.signal("talked-1", "paid", payload)
    except (outlive.errors.OutliveError, UnserialisableError) as error:
        return f"{type(error).__name__}: {error}"
    return "sent"


@pytest.mark.parametrize(
    ("kind", "heard"),
    [("wrong type", "SignalTypeError: signal 'paid' of workflow talked_to"), ("no stored form", "UnserialisableError")],
)
async def test_a_payload_that_cannot_be_sent_is_refused_in_the_workflow(kind: str, heard: str) -> None:
    """Nothing reaches the other run."""
    async with TestEngine() as engine:
        other = await engine.start(talked_to, 1, id="talked-1")
        assert heard in await (await engine.start(mumbler, kind)).result()
        assert [] == await events_of(other, SignalReceived)


async def test_a_workflow_cancels_another_run(engine: outlive.Engine) -> None:
    """Once it is asked, the other run stops as if a client had asked."""
    other = await engine.start(talked_to, 1, id="talked-1")
    await waits(other)

    assert "asked" == await in_time((await engine.start(stopper, "talked-1")).result())
    with pytest.raises(outlive.errors.RunCancelledError, match="out of stock"):
        await in_time(other.result())
    assert "asked" == await in_time((await engine.start(stopper, "talked-1")).result())


@pytest.mark.parametrize(("run_id", "heard"), [("missing", "RunNotFoundError"), ("talked-0", "RunFinishedError")])
async def test_cancelling_what_cannot_be_cancelled_is_an_error_in_the_workflow(run_id: str, heard: str) -> None:
    """The run is unknown, or has ended otherwise."""
    async with TestEngine() as engine:
        await (await engine.start(talked_to, 0, id="talked-0")).result()
        assert heard in await (await engine.start(stopper, run_id)).result()


@outlive.workflow
async def conversation() -> list[int]:
    """Starts a run, tells it something, and stops another one."""
    other = await outlive.start(talked_to, 2, detached=True, id="talked-1")
    third = await outlive.start(talked_to, 1, detached=True, id="talked-2")
    await asyncio.gather(outlive.signal(other.id, "paid", Paid(1)), outlive.signal(other.id, "paid", Paid(2)))
    await outlive.cancel(third.id)
    return sorted(await other.result())


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_talking_survives_a_crash_at_every_commit(points: int) -> None:
    """No signal is lost, and none comes twice."""
    await crash_everywhere(conversation, max_points=points)


async def test_outside_a_workflow_talking_says_where_it_belongs() -> None:
    """In a step there is the engine."""
    with pytest.raises(NotInRunError, match=r"outlive\.signal\(\) was called outside a workflow"):
        await outlive.signal("run-1", "paid")
    with pytest.raises(NotInRunError, match=r"outlive\.current_engine\(\) was called outside a step"):
        outlive.current_engine()
    async with TestEngine() as engine:
        assert "outlive.current_engine()" in await (await engine.start(asks_in_a_step)).result()


@outlive.step
async def talk_in_a_step() -> str:
    """Uses the verb of a workflow."""
    try:
        await outlive.cancel("run-1")
    except NotInRunError as error:
        return str(error)
    return "sent"


@outlive.workflow
async def asks_in_a_step() -> str:
    """Calls it."""
    return await talk_in_a_step()


@outlive.step
async def look_around() -> int:
    """Counts the runs of its store."""
    return len(await outlive.current_engine().list())


@outlive.step
def look_around_on_a_thread() -> str:
    """The same without `await`."""
    return str(outlive.current_engine().sync.get(outlive.current_step().run_id).status())


@outlive.workflow
async def lookouts() -> list[Any]:
    """Each kind of step."""
    return [await look_around(), await look_around_on_a_thread()]


async def test_a_step_has_the_engine_that_runs_it(engine: outlive.Engine) -> None:
    """A sync step uses its `sync`."""
    assert [1, "running"] == await in_time((await engine.start(lookouts)).result())


def test_a_step_in_a_process_has_no_engine() -> None:
    """`current_engine` in a step with a process of its own raises ConfigurationError that names `process=True`."""
    context = contextvars.Context()
    context.run(CURRENT_STEP.set, JobStep(cast(Any, None), cast(Any, None)))
    with pytest.raises(ConfigurationError, match="process=True"):
        context.run(outlive.current_engine)


@outlive.step
async def start_late() -> str:
    """Uses the engine while that stops."""
    await stage.gate("late").pass_through()
    return str(await outlive.current_engine().get("lateness-1").status())


@outlive.workflow
async def lateness() -> str:
    """One step."""
    return await start_late()


async def test_a_step_that_finishes_while_the_engine_stops_has_its_verbs(place: Place) -> None:
    """Its grace is for finishing, and it cannot finish without them."""
    engine = await place.engine(grace_seconds=20).__aenter__()
    await engine.start(lateness, id="lateness-1")
    await stage.gate("late").reached()
    stopping = asyncio.create_task(engine.__aexit__(None, None, None))

    async def is_stopping() -> bool:
        return engine.loop is None

    await until(is_stopping)
    stage.gate("late").open()
    await in_time(stopping)
    async with place.engine() as engine:
        assert "running" == await in_time(engine.get("lateness-1").result())


# -- Waiting for other runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Receipt:
    total: int


class Broke(Exception):
    """Its workflow names it."""


@outlive.workflow(raises=(Broke,))
async def awaited_by_others(kind: str) -> Receipt:
    """Ends when it is signalled, in some way."""
    word = await outlive.wait_for_signal("end", str)
    if word == "breaks":
        raise Broke("no money")
    if word == "fails":
        raise LookupError("no such thing")
    if kind == "continues":
        outlive.continue_as_new("last")
    return Receipt(len(word))


@outlive.workflow
async def waiter(run_id: str) -> Any:
    """Waits for another run, and says what it heard."""
    try:
        receipt = await outlive.get(run_id).result()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return receipt.total


@outlive.workflow
async def typed_waiter(run_id: str) -> str:
    """The same with a type of its own."""
    return repr(await outlive.get(run_id, Receipt).result())


async def test_a_workflow_waits_for_a_run_that_another_program_started(engine: outlive.Engine) -> None:
    """Its result has the type of its workflow, and the wait says what it is for."""
    other = await engine.start(awaited_by_others, "", id="other-1")
    runs = [await engine.start(waiter, "other-1") for _ in range(2)]
    for run in runs:
        await waits(run)
    assert "it waits for run other-1" == await runs[0].why()
    await other.signal("end", "twelve chars")

    assert [12, 12] == [await in_time(run.result()) for run in runs]
    late = await engine.start(typed_waiter, "other-1")
    assert "Receipt(total=12)" == await in_time(late.result())


@pytest.mark.every_store
async def test_the_end_is_heard_by_a_run_that_is_not_in_memory(place: Place) -> None:
    """Another process ends the awaited run while no worker has the waiting run."""
    async with place.engine() as first:
        await first.start(awaited_by_others, "continues", id="other-1")
        await waits(await first.start(typed_waiter, "other-1", id="waits-1"))
    async with place.engine(registry=registry_of(awaited_by_others)) as second:
        await second.signal("other-1", "end", "one")
        await second.signal("other-1", "end", "seven")
        assert Receipt(5) == await in_time(second.get("other-1").result())
        assert await second.get("waits-1").status() == "waiting"
    async with place.engine(registry=registry_of(typed_waiter)) as third:
        assert "Receipt(total=5)" == await in_time(third.get("waits-1").result())


@pytest.mark.parametrize(
    ("word", "heard"),
    [("breaks", "Broke: no money"), ("fails", "LookupError: no such thing"), ("", "RunCancelledError: run other-1")],
)
async def test_an_end_without_a_result_raises_in_the_run_that_waits(word: str, heard: str) -> None:
    """Its own exception where that is known, and `RunCancelledError`."""
    async with TestEngine() as engine:
        other = await engine.start(awaited_by_others, "", id="other-1")
        run = await engine.start(waiter, "other-1")
        await (other.signal("end", word) if word else other.cancel())
        assert heard in await run.result()


@outlive.workflow
async def has_a_child() -> None:
    """Its child waits for ever."""
    await awaited_by_others("")


@outlive.workflow
async def waits_for_its_parent() -> Any:
    """A child that waits for its root."""
    return await waiter(outlive.current_run().id)


@pytest.mark.parametrize(
    ("run_id", "heard"),
    [
        ("missing", "RunNotFoundError: no run has id 'missing'"),
        ("parent-1~1", "ChildRunError: run 'parent-1~1' is a child"),
        ("self", "SelfWaitError: run 'self' would wait for itself"),
        ("long~gen1", "RunContinuedError: run 'long~gen1' went on"),
    ],
)
async def test_wait_for_a_run_that_cannot_be_waited_for_raises_at_once(run_id: str, heard: str) -> None:
    """A wait for a missing run, a child or the run itself raises at once."""
    async with TestEngine() as engine:
        await engine.start(has_a_child, id="parent-1")
        await engine.start(awaited_by_others, "continues", id="long")
        await engine.signal("long", "end", "once")
        run = await engine.start(waiter, run_id, id="self")
        assert heard in await run.result()


async def test_a_child_cannot_wait_for_its_root() -> None:
    """It would wait for itself."""
    async with TestEngine() as engine:
        run = await engine.start(waits_for_its_parent, id="root-1")
        assert "SelfWaitError: run 'root-1~1' would wait for 'root-1', the root" in await run.result()


@outlive.workflow
async def impatient_waiter(run_id: str) -> list[Any]:
    """Gives up twice, and hears the end the third time."""
    heard: list[Any] = []
    other = outlive.get(run_id, Receipt)
    for _ in range(3):
        try:
            async with asyncio.timeout(60):
                heard.append((await other.result()).total)
        except TimeoutError:
            heard.append("not yet")
            if len(heard) == 2:
                await other.signal("end", "four")
    return heard


async def test_a_timeout_around_the_wait_is_durable() -> None:
    """A wait for another run that timed out can be made again, and a later run of the same code gets the result each
    time."""
    async with TestEngine() as engine:
        await engine.start(awaited_by_others, "", id="other-1")
        run = await engine.start(impatient_waiter, "other-1")
        assert ["not yet", "not yet", 4] == await run.result()
        again = await engine.start(impatient_waiter, "other-1")
        assert [4, 4, 4] == await again.result()


async def test_the_end_of_a_parked_run_that_is_cancelled_is_heard() -> None:
    """No worker ends it: the client does."""
    async with TestEngine() as engine:
        other = await engine.start(stuck_for_ever, id="other-1")
        run = await engine.start(waiter, "other-1")
        await engine.settle()
        assert "it waits for run other-1, which is parked" in await run.why()
        await other.cancel()
        assert "RunCancelledError: run other-1 was cancelled" == await run.result()


@outlive.workflow
async def stuck_for_ever() -> None:
    """Is parked."""
    await asyncio.Event().wait()


@outlive.workflow
async def attaches(run_id: str) -> Any:
    """Starts a run under an id that may be taken."""
    child = await outlive.start(awaited_by_others, "", detached=True, id=run_id)
    try:
        return (await child.result()).total
    except outlive.errors.OutliveError as error:
        return f"{type(error).__name__}: {error}"


async def test_a_start_under_the_id_of_a_run_that_moves_attaches_to_it() -> None:
    """If that is a run of the same workflow, whichever program started it."""
    async with TestEngine() as engine:
        await engine.start(awaited_by_others, "", id="other-1")
        await engine.start(stuck_for_ever, id="another-1")
        run = await engine.start(attaches, "other-1")
        refused = await engine.start(attaches, "another-1")
        assert "RunExistsError: run 'another-1' exists already" in await refused.result()
        await engine.signal("other-1", "end", "abc")
        assert 3 == await run.result()


async def test_a_run_that_begins_by_starting_another_one_waits_for_it(place: Place) -> None:
    """A worker claims it, and asks for the end of the other one only when that exists."""
    async with place.engine(worker=False) as client:
        await client.start(attaches, "other-1", id="attaches-1")
    async with place.engine() as engine:
        run = engine.get("attaches-1")
        await waits(run)
        await engine.signal("other-1", "end", "abc")
        assert 3 == await in_time(run.result())


async def let_it_end(engine: outlive.Engine, run_id: str) -> None:
    """The other program."""
    await engine.start(awaited_by_others, "", id="other-1")
    await engine.signal("other-1", "end", "word", key="once")


@outlive.workflow
async def waits_for_two() -> list[Any]:
    """One that it has started, and one that it has not."""
    while True:
        try:
            async with asyncio.timeout(3600):
                first = await outlive.get("other-1", Receipt).result()
        except outlive.errors.RunNotFoundError:
            await asyncio.sleep(1)
            continue
        second = await outlive.start(awaited_by_others, "", detached=True, id="other-2")
        await outlive.signal(second.id, "end", "second")
        return [first.total, (await outlive.get(second.id).result()).total, (await second.result()).total]


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_waiting_for_others_survives_a_crash_at_every_commit(points: int) -> None:
    """No end is lost, and none is heard as another one."""
    await crash_everywhere(waits_for_two, drive=let_it_end, max_points=points)


async def test_a_run_that_is_brought_back_waits_again() -> None:
    """The end that made it fail is taken back, and it hears of the next one."""
    async with TestEngine() as engine:
        other = await engine.start(awaited_by_others, "", id="other-1")
        run = await engine.start(typed_waiter, "other-1")
        await other.signal("end", "breaks")
        with pytest.raises(outlive.errors.RunFailedError):
            await run.result()
        await engine.start(awaited_by_others, "", id="other-1", on_conflict="replace")
        await engine.retry(run.id)
        await engine.settle()
        assert "it waits for run other-1" == await run.why()
        await engine.signal("other-1", "end", "works")
        assert "Receipt(total=5)" == await run.result()
