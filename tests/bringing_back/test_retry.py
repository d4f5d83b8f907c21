"""`retry`: a run that has failed, timed out or was cancelled goes on at what failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import pytest

import outlive
from outlive.errors import RunCancelledError, RunFailedError, RunFinishedError, RunNotFoundError, RunTimedOutError
from outlive.errors.run import RunNotRetriableError
from outlive.events import RunRetried, StepSucceeded
from outlive.testing import TestEngine, crash_everywhere, replay
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.testing.fsck import check_store
from tests.engine.inside import journal_of, store_of


class World:
    """What the steps find and leave."""

    is_repaired = False
    calls: list[str]
    keys: list[str]


world = World()


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing has happened, and nothing works."""
    world.is_repaired, world.calls, world.keys = False, [], []


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine whose store is sound in the end."""
    async with TestEngine() as engine:
        yield engine
        assert await check_store(store_of(engine)) == []


@outlive.step
async def back_reserve(what: str) -> str:
    """Always works."""
    world.calls.append(f"reserve {what}")
    return f"hold of {what}"


@outlive.step(retry=outlive.Retry(attempts=3, first=60))
async def back_charge(what: str) -> str:
    """Works when it is repaired."""
    me = outlive.current_step()
    world.calls.append(f"charge {what} {me.attempt}")
    world.keys.append(me.idempotency_key)
    if not world.is_repaired:
        raise ConnectionError(f"no answer for {what}")
    return f"receipt of {what}"


@outlive.step
async def back_ship(what: str) -> str:
    """Works when it is repaired, and is not tried twice."""
    world.calls.append(f"ship {what}")
    if not world.is_repaired:
        raise ValueError("no truck")
    return f"parcel of {what}"


async def fail(run: outlive.types.RunHandle[Any]) -> None:
    """Wait until a run has failed."""
    with pytest.raises(RunFailedError):
        await run.result()


# -- What goes on ------------------------------------------------------------------------------------------------------


@outlive.workflow
async def back_order(what: str) -> list[str]:
    """A step that works, one that does not, and what must be cleaned up."""
    hold = await back_reserve(what)
    try:
        return [hold, await back_charge(what)]
    finally:
        await back_reserve(f"the desk after {what}")


async def test_failed_run_goes_on_at_the_step_that_failed(engine: TestEngine, tmp_path: Path) -> None:
    """Completed steps stay; the failed one has all its attempts again, with the same idempotency key. [FE-R12]"""
    run = await engine.start(back_order, "o", id="o-1", tags={"team": "a"})
    await fail(run)
    world.is_repaired = True

    await engine.retry("o-1", reason="the bank is back")

    assert await run.result() == ["hold of o", "receipt of o"]
    assert world.calls[:4] == ["reserve o", "charge o 1", "charge o 2", "charge o 3"]
    assert world.calls[4:] == ["reserve the desk after o", "charge o 1", "reserve the desk after o"]
    assert len(set(world.keys)) == 1
    info = await run.info()
    assert (info.id, info.error, info.tags) == ("o-1", None, {"team": "a"})
    (retried,) = [event for event in await journal_of(run) if isinstance(event, RunRetried)]
    assert retried.reason == "the bank is back"
    path = tmp_path / "o-1.jsonl"
    await run.export(path)
    assert replay(path, workflows=[back_order]) == [path]


async def test_run_that_fails_again_is_retried_again(engine: TestEngine) -> None:
    """Each time from where it was."""
    run = await engine.start(back_order, "o")
    await fail(run)
    for _ in range(2):
        await run.retry()
        await fail(run)
    world.is_repaired = True
    await run.retry()

    assert await run.result() == ["hold of o", "receipt of o"]
    assert world.calls.count("reserve o") == 1


async def test_client_that_waits_gets_the_new_result(engine: TestEngine) -> None:
    """One that has got the failure may ask again."""
    run = await engine.start(back_order, "o")
    await fail(run)
    world.is_repaired = True
    await run.retry()
    results = await asyncio.gather(*(engine.get(run.id).result() for _ in range(3)))
    assert results == [["hold of o", "receipt of o"]] * 3


@outlive.workflow
async def back_careful(what: str) -> list[str]:
    """Falls back once, then fails for another reason."""
    try:
        paid = await back_charge(what)
    except ConnectionError:
        paid = await back_reserve("cash")
    return [paid, await back_ship(what)]


async def test_failure_that_was_caught_stays(engine: TestEngine) -> None:
    """The workflow has gone another way because of it, and what it completed there stays."""
    run = await engine.start(back_careful, "o")
    await fail(run)
    world.is_repaired = True
    await run.retry()

    assert await run.result() == ["hold of cash", "parcel of o"]
    assert world.calls[3:] == ["reserve cash", "ship o", "ship o"]


@outlive.workflow
async def back_stoic(what: str) -> list[str]:
    """Does nothing about the first failure, and fails because of the second."""
    with suppress(ConnectionError):
        await back_charge(what)
    return [await back_ship(what)]


async def test_failure_that_was_caught_stays_also_if_nothing_was_completed_behind_it(engine: TestEngine) -> None:
    """The step that failed next is why the run ended: only that one is called again."""
    run = await engine.start(back_stoic, "o")
    await fail(run)
    world.is_repaired = True
    await run.retry()

    assert await run.result() == ["parcel of o"]
    assert world.calls[3:] == ["ship o", "ship o"]


@outlive.workflow
async def back_both() -> list[str]:
    """One of two fails, while the other takes its time."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in (back_slow("a"), back_late("b"), back_slow("c"))]
    return [task.result() for task in tasks]


async def back_late(what: str) -> str:
    """Fails while the others sleep."""
    await asyncio.sleep(30)
    return await back_ship(what)


@outlive.workflow
async def back_slow(what: str) -> str:
    """A child with two steps."""
    first = await back_reserve(what)
    await asyncio.sleep(60)
    return f"{first}, {await back_reserve(f'{what} again')}"


async def test_children_beside_the_failed_one_go_on_after_a_retry(engine: TestEngine) -> None:
    """A retry brings back the children that were cancelled because of the failure, with their completed steps and
    timers."""
    run = await engine.start(back_both)
    await fail(run)
    world.is_repaired = True
    assert sorted(world.calls) == ["reserve a", "reserve c", "ship b"]
    await run.retry()

    assert await run.result() == ["hold of a, hold of a again", "parcel of b", "hold of c, hold of c again"]
    assert sorted(world.calls) == ["reserve a", "reserve a again", "reserve c", "reserve c again", "ship b", "ship b"]
    assert {each.status for each in await engine.list()} == {"succeeded"}


@outlive.workflow
async def back_all(count: int) -> list[str]:
    """Every failure is looked at only in the end."""
    results = await asyncio.gather(*(back_ship(str(number)) for number in range(count)), return_exceptions=True)
    if errors := [error for error in results if isinstance(error, ValueError)]:
        raise ExceptionGroup("some failed", errors)
    return [str(result) for result in results]


async def test_all_that_failed_is_called_again(engine: TestEngine) -> None:
    """One retry is enough for three."""
    run = await engine.start(back_all, 3)
    await fail(run)
    world.is_repaired = True
    await run.retry()
    assert await run.result() == ["parcel of 0", "parcel of 1", "parcel of 2"]
    assert len(world.calls) == 6


@outlive.workflow
async def back_parent() -> str:
    """The failure lies in a child of a child."""
    await back_reserve("all")
    return await back_middle()


@outlive.workflow
async def back_middle() -> str:
    """Passes the failure on as its own."""
    try:
        return (await back_order("deep"))[1]
    except ConnectionError as error:
        raise RuntimeError("the middle gave up") from error


async def test_failure_in_a_child(engine: TestEngine) -> None:
    """The whole tree goes on, by the id of any of its runs."""
    run = await engine.start(back_parent, id="p")
    await fail(run)
    world.is_repaired = True
    await engine.retry("p~2")

    assert await run.result() == "receipt of deep"
    assert [call for call in world.calls if "desk" not in call] == [
        "reserve all",
        "reserve deep",
        *(f"charge deep {attempt}" for attempt in (1, 2, 3, 1)),
    ]
    assert await engine.get("p~1").result() == "receipt of deep"


# -- Cancelled and timed out -------------------------------------------------------------------------------------------


@outlive.workflow
async def back_patient(seconds: float) -> str:
    """Waits, and cleans up."""
    await back_reserve("first")
    try:
        await asyncio.sleep(seconds)
        return await outlive.wait_for_signal("go", str)
    finally:
        await back_reserve("cleaning")


async def test_cancelled_run_goes_on_and_can_be_cancelled_again(engine: TestEngine) -> None:
    """The cancel is taken back with what followed from it; the signal that came before is still there."""
    run = await engine.start(back_patient, 10)
    await run.signal("go", "now", key="k")
    await run.cancel(reason="a mistake")
    with pytest.raises(RunCancelledError):
        await run.result()
    await run.retry()
    await run.cancel(reason="no mistake")
    with pytest.raises(RunCancelledError, match="no mistake"):
        await run.result()
    await run.retry()
    await run.signal("go", "again", key="k")

    assert await run.result() == "now"
    assert world.calls.count("reserve first") == 1


@outlive.workflow
async def back_over_a_patient() -> str:
    """Fails with its child."""
    return await back_patient(10)


async def test_cancelled_child_goes_on_and_can_be_cancelled_again(engine: TestEngine) -> None:
    """Who cancels the child once more, after a retry of its tree, is heard."""
    run = await engine.start(back_over_a_patient, id="p")
    for reason in ("a mistake", "no mistake"):
        await engine.settle()
        await engine.cancel("p~1", reason=reason)
        with pytest.raises(RunFailedError, match=reason):
            await run.result()
        await run.retry()
    await engine.signal("p~1", "go", "now")

    assert "now" == await run.result()


async def test_run_that_was_cancelled_before_it_began(engine: TestEngine) -> None:
    """It begins."""
    run = await engine.start(back_patient, 0)
    await run.cancel()
    with suppress(RunCancelledError):
        await run.result()
    await run.retry()
    await run.signal("go", "at last")
    assert await run.result() == "at last"


async def test_timed_out_run_has_its_time_again(engine: TestEngine) -> None:
    """A retried run has a fresh timeout, and a sleep that was half over has its other half ahead because the clock of
    the run stood still."""
    run = await engine.start(back_patient, 100, timeout=60)
    with pytest.raises(RunTimedOutError):
        await run.result()
    await engine.skip(timedelta(hours=1))
    begun_at = engine.now()
    await run.retry()
    await run.signal("go", "in time")

    assert await run.result() == "in time"
    assert 40 <= (engine.now() - begun_at).total_seconds() < 41


# -- What an end closes is open again ----------------------------------------------------------------------------------


@outlive.workflow
async def back_asking() -> str:
    """Asks people beside a step that fails."""
    asked = asyncio.ensure_future(outlive.wait_for_approval("pay", assignees=["ann"]))
    shipped = await back_ship("parcel")
    return f"{shipped}, {(await asked).by}"


@outlive.workflow
async def back_asking_in_group() -> str:
    """The same, and the failure cancels the wait."""
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(outlive.wait_for_approval("pay", assignees=["ann"], deadline=timedelta(hours=1)))
        shipped = group.create_task(back_ship("parcel"))
    return f"{shipped.result()}, {asked.result().by}"


@outlive.workflow
async def back_asking_parent() -> str:
    """A child asks, and its parent fails."""
    asked = asyncio.ensure_future(outlive.wait_for_approval("pay", assignees=["ann"]))
    child = asyncio.ensure_future(back_asking())
    try:
        return await child
    finally:
        asked.cancel()


@pytest.mark.parametrize("asking", [back_asking, back_asking_in_group])
async def test_approval_that_a_failure_closed_is_open_again(engine: TestEngine, asking: Any) -> None:
    """Its people find it again, and their decision is taken."""
    run = await engine.start(asking, id="r")
    await fail(run)
    assert [entry.status for entry in await run.approvals()] == ["closed"]
    await engine.skip(timedelta(hours=2))
    world.is_repaired = True
    await run.retry()

    (entry,) = await engine.approvals.list(assignee="ann")
    assert (entry.run_id, entry.status, entry.closed_at, entry.reason) == ("r", "pending", None, "")
    assert await engine.approvals.approve("r", "pay", by="ann")
    assert await run.result() == "parcel of parcel, ann"


async def test_approval_of_a_child_is_open_again(engine: TestEngine) -> None:
    """With its child, which goes on too."""
    run = await engine.start(back_asking_parent, id="r")
    await fail(run)
    world.is_repaired = True
    await run.retry()
    assert {entry.run_id for entry in await engine.approvals.list(assignee="ann", roots_only=False)} == {"r", "r~1"}
    await engine.approvals.approve("r~1", "pay", by="ann")
    assert await run.result() == "parcel of parcel, ann"
    assert not await engine.approvals.list()


async def test_approval_that_was_decided_before_the_failure_stays_decided(engine: TestEngine) -> None:
    """The run that goes on has the decision."""
    run = await engine.start(back_asking, id="r")
    await engine.approvals.approve("r", "pay", by="bob")
    await fail(run)
    world.is_repaired = True
    await run.retry()
    assert not await engine.approvals.list()
    assert await run.result() == "parcel of parcel, bob"


@outlive.workflow
async def back_asking_after_a_failure() -> str:
    """Asks a person what to do about a step that has failed, and fails if the answer is no."""
    try:
        return await back_ship("parcel")
    except ValueError as error:
        if (await outlive.wait_for_approval("post")).approved:
            return "sent by post"
        raise RuntimeError("not sent") from error


async def test_question_that_is_asked_again_after_a_retry_has_another_decision(engine: TestEngine) -> None:
    """The decision was taken back with the question; nothing of it stands in the way of the next one."""
    run = await engine.start(back_asking_after_a_failure, id="r")
    await engine.settle()
    assert (await engine.approvals.reject("r", "post", by="ann")).is_first
    await fail(run)

    await run.retry()
    await engine.settle()
    assert (await engine.approvals.approve("r", "post", by="bob")).is_first
    assert await run.result() == "sent by post"


async def test_fork_of_a_retried_run_asks_what_its_origin_asks(engine: TestEngine) -> None:
    """Each request has a decision of its own."""
    run = await engine.start(back_asking, id="r")
    await fail(run)
    world.is_repaired = True
    await run.retry()
    await outlive_waits(run)
    await engine.fork("r", id="f")
    assert [entry.run_id for entry in await engine.approvals.list()] == ["f", "r"]
    for run_id in ("f", "r"):
        await engine.approvals.approve(run_id, "pay", by=run_id)
        assert await engine.get(run_id).result() == f"parcel of parcel, {run_id}"


@outlive.workflow
async def back_promising() -> str:
    """Waits for a program, and for one that asks, beside a step that fails."""
    made = outlive.promise(str)
    outlive.publish(promise=made.id)
    shipped = await back_ship("parcel")
    async for question in outlive.asks("more", str):
        question.reply(f"{shipped} and {question.body}")
        break
    return await made


async def test_promises_and_asks_that_a_failure_closed_are_open_again(engine: TestEngine) -> None:
    """The promise has the same id, and the ask the same key."""
    run = await engine.start(back_promising, id="r")
    with pytest.raises(RunFinishedError):
        await run.ask("more", "paper", key="k")
    await fail(run)
    promise = (await run.published())["promise"]
    with pytest.raises(RunFinishedError):
        await engine.promises.resolve(promise, "too early")
    world.is_repaired = True
    await run.retry()
    assert await engine.promises.resolve(promise, "kept")
    assert await run.ask("more", "paper", key="k") == "parcel of parcel and paper"
    assert await run.result() == "kept"


async def test_run_that_was_cancelled_before_a_worker_had_it_begins(tmp_path: Path) -> None:
    """Nothing asked its code to stop: its end is all that is taken back."""
    url = f"sqlite:{tmp_path}/runs.db"
    async with TestEngine(url, worker=False) as client:
        run = await client.start(back_order, "book", id="r")
        await run.cancel(reason="a mistake")
        assert await run.status() == "cancelled"
        await run.retry()
        assert await run.status() == "pending"
        assert await check_store(store_of(client)) == []
    world.is_repaired = True
    async with TestEngine(url) as engine:
        await engine.get("r").result()
    assert world.calls[0] == "reserve book"


# -- What cannot go on -------------------------------------------------------------------------------------------------


@outlive.step
async def back_release(hold: str) -> None:
    """Undo."""
    world.calls.append(f"release {hold}")


@outlive.workflow
async def back_trip(room: str) -> str:
    """A saga that fails, with something to undo or nothing."""
    async with outlive.saga():
        if room:
            await back_reserve.options(undo=back_release)(room)
        return await back_ship("guest")


async def test_retry_of_a_run_with_a_rolled_back_saga_is_refused(engine: TestEngine) -> None:
    """A run whose saga was rolled back cannot be retried, and the refusal leaves its journal as it was."""
    run = await engine.start(back_trip, "room")
    await fail(run)
    world.is_repaired = True
    before = await journal_of(run)
    with pytest.raises(RunNotRetriableError, match=r"saga was rolled back \(1/back_release\).*start a new run"):
        await run.retry()
    assert await journal_of(run) == before


async def test_saga_with_nothing_to_undo_goes_on(engine: TestEngine) -> None:
    """Its journal is all there."""
    run = await engine.start(back_trip, "")
    await fail(run)
    world.is_repaired = True
    await run.retry()
    assert await run.result() == "parcel of guest"


@outlive.workflow
async def back_buggy() -> str:
    """Raises by itself after a step, unless its code was repaired."""
    hold = await back_reserve("it")
    if world.is_repaired:
        return hold
    raise KeyError("x")


async def test_workflow_that_raised_by_itself_needs_other_code(engine: TestEngine) -> None:
    """With the same code it would raise again; with repaired code it goes on behind its last step."""
    run = await engine.start(back_buggy)
    await fail(run)
    with pytest.raises(RunNotRetriableError, match=r"its workflow raised KeyError: 'x'.*change the code"):
        await run.retry()
    world.is_repaired = True
    await run.retry()
    assert await run.result() == "hold of it"
    assert world.calls == ["reserve it"]


async def test_retry_of_a_run_that_did_not_fail_is_refused(engine: TestEngine) -> None:
    """A retry of an open, succeeded, replaced or unknown run is refused with the reason."""
    run = await engine.start(back_patient, 0, id="r")
    await outlive_waits(run)
    with pytest.raises(RunNotRetriableError, match="it is waiting; only a run that has failed"):
        await run.retry()
    await run.signal("go", "now")
    await run.result()
    with pytest.raises(RunNotRetriableError, match="it is succeeded"):
        await run.retry()
    with pytest.raises(RunNotFoundError):
        await engine.retry("none")
    await engine.start(back_order, "o", id="r", on_conflict="replace")
    await fail(engine.get("r"))
    await engine.start(back_order, "o", id="r", on_conflict="replace")
    with pytest.raises(RunNotRetriableError, match="a later run has its id, 'r'"):
        await engine.retry("r~old2")
    batch = await engine.start_batch(back_ship, ["x"], tolerate=outlive.limits.Tolerance(failures=0))
    await fail(engine.get(batch.id))
    with pytest.raises(RunNotRetriableError, match="it is a batch"):
        await engine.retry(batch.id)


async def outlive_waits(run: outlive.types.RunHandle[Any]) -> None:
    """Return when a run waits."""
    while await run.status() != "waiting":  # noqa: ASYNC110
        await asyncio.sleep(0)


# -- Kinds of steps, and other trees -----------------------------------------------------------------------------------


@outlive.step(once=True)
async def back_send(what: str) -> str:
    """Called once, and fails."""
    world.calls.append(f"send {what}")
    if not world.is_repaired:
        raise ValueError("no line")
    return what


@outlive.workflow
async def back_sender() -> str:
    """Sends."""
    return await back_send("sms")


async def test_step_that_is_called_once_is_called_again_for_a_person(engine: TestEngine) -> None:
    """Its failure is known, and the person has decided."""
    run = await engine.start(back_sender)
    await fail(run)
    world.is_repaired = True
    await run.retry()
    assert await run.result() == "sms"
    assert world.calls == ["send sms", "send sms"]


@outlive.workflow
async def back_starter() -> str:
    """Waits for a tree of its own."""
    started = await outlive.start(back_trip, "", detached=True, id="trip")
    return await started.result()


async def test_starter_gets_the_second_end(engine: TestEngine) -> None:
    """Both have failed; the started run is retried first, and the starter waits for it again."""
    run = await engine.start(back_starter)
    await fail(run)
    world.is_repaired = True
    await engine.retry("trip")
    await run.retry()
    assert await run.result() == "parcel of guest"


async def test_starter_alone_gets_the_same_end_again(engine: TestEngine) -> None:
    """A starter that is retried without the run that it started fails again, and the started run does nothing more."""
    run = await engine.start(back_starter)
    await fail(run)
    await run.retry()
    await fail(run)
    assert world.calls == ["ship guest"]


class Stage(Enum):
    """Of the machine."""

    RESERVE = "reserve"
    IMPORT = "import"
    DONE = "done"


class Load(msgspec.Struct):
    """What the machine carries."""

    rows: list[int] = []
    hold: str = ""


loading = outlive.Machine("back_loading", Stage, data=Load, start=Stage.RESERVE, exits={Stage.DONE})


@loading.state(Stage.RESERVE)
async def back_take(data: Load) -> Stage:
    """Always works."""
    data.hold = await back_reserve("shelf")
    world.calls.append("take")
    return Stage.IMPORT


@loading.stepped(Stage.IMPORT)
async def back_import(data: Load, cursor: int | None) -> outlive.machine.More[int] | Stage:
    """Fails at the third row until it is repaired."""
    row = 0 if cursor is None else cursor
    world.calls.append(f"row {row}")
    if row == 2 and not world.is_repaired:
        raise ValueError("a bad row")
    data.rows.append(row)
    return outlive.machine.More(row + 1) if row < 3 else Stage.DONE


async def test_machine_fails_is_repaired_and_goes_on(engine: TestEngine) -> None:
    """At the last cursor: what was done before is not done again. [CA-X16 CA-U14]"""
    run = await engine.start(loading, Load())
    await fail(run)
    world.is_repaired = True
    await run.retry()

    result = await run.result()
    assert (result.state, result.data.rows) == (Stage.DONE, [0, 1, 2, 3])
    assert world.calls == ["reserve shelf", "take", "row 0", "row 1", "row 2", "row 2", "row 3"]


# -- Crashes -----------------------------------------------------------------------------------------------------------


@outlive.workflow
async def back_mortal() -> str:
    """Fails behind a signal."""
    await back_reserve("it")
    await outlive.wait_for_signal("go", int)
    return await back_ship("it")


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_retry_survives_every_crash(points: int) -> None:
    """A run goes on once after a retry, at whichever commit the process that retries or the worker is killed."""

    async def bring_back(engine: TestEngine, run_id: str) -> None:
        world.is_repaired = any(isinstance(event, RunRetried) for event in await journal_of(engine, run_id))
        with suppress(RunFinishedError):
            await engine.signal(run_id, "go", 1, key="go")
        with suppress(RunFailedError):
            await engine.get(run_id).result()
        if await engine.get(run_id).status() == "failed":
            world.is_repaired = True
            await engine.retry(run_id)

    await crash_everywhere(back_mortal, drive=bring_back, max_points=points)


@pytest.mark.every_store
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_retry_on_every_store(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """A failed parent is retried on SQLite and on PostgreSQL, does only what is left, and its store is sound."""
    url = f"sqlite:{tmp_path}/runs.db" if store == "sqlite" else request.getfixturevalue("postgres_url")
    async with TestEngine(url) as engine:
        run = await engine.start(back_parent, id="p")
        await fail(run)
        world.is_repaired = True
        await engine.retry("p")
        assert await run.result() == "receipt of deep"
        assert len([event for event in await journal_of(run) if isinstance(event, StepSucceeded)]) == 5
        assert await check_store(store_of(engine)) == []


# -- Middleware ----------------------------------------------------------------------------------------------------


class Announcing(outlive.middleware.Middleware):
    """Calls a step before every workflow."""

    async def on_workflow(self, run: Any, call_next: Any) -> Any:
        """See `outlive.middleware.Middleware`."""
        await back_reserve(f"a place for {run.workflow}")
        return await call_next()


async def test_middleware_is_around_the_code_that_is_asked() -> None:
    """Middleware journals its step once: the retry and a fork of the failed run find it in the journal and do not
    repeat it."""
    async with TestEngine(middleware=[Announcing()]) as engine:
        run = await engine.start(back_trip, "", id="m")
        await fail(run)
        world.is_repaired = True
        await run.retry()
        assert await run.result() == "parcel of guest"
        fork = await engine.fork("m", at="back_ship")
        assert await fork.result() == "parcel of guest"
        assert world.calls == ["reserve a place for back_trip", *["ship guest"] * 3]
