"""Sagas in the core: what is undone, in which order, and what a roll-back waits for. Every life replays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from outlive import Retry, saga, start, wait_for_signal
from outlive._kernel.replay.rollback import SETTLE_SECONDS
from outlive.errors.step import SagaClosedError
from outlive.events import StepSucceeded
from tests.replay.define import SECOND, START_AT, Code, cancel, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays

SEEDS = [None, *range(6)]
STOP = ValueError("stop")


@step()
async def release(name: str) -> None:
    """Take a booking back."""


@step(undo=release)
async def book(name: str) -> str:
    """Something that can be undone."""
    return name


@step()
async def work(name: str) -> str:
    """Something that cannot."""
    return name


@step(retry=Retry(attempts=1))
async def fail(name: str = "") -> None:
    """Something that goes wrong."""
    raise STOP


def undone(life: Life) -> list[str]:
    """What was undone, in order."""
    return [name for kind, name in ledger(life) if kind == "release"]


def booked(life: Life) -> list[str]:
    """What was booked, in order of completion."""
    return [name for kind, name in ledger(life) if kind == "book"]


def ledger(life: Life) -> list[tuple[str, str]]:
    """Every booking and every release that the journal knows, by the arguments it was asked with."""
    asked = {(each[1], each[2]): (str(each[3]), each[4]) for each in life.all_asked if each[0] == "step"}
    done = [asked[event.run, event.call] for event in life.journal if isinstance(event, StepSucceeded)]
    return [(name, arguments.decode()[2:-2]) for name, arguments in done if isinstance(arguments, bytes)]


def lived(life: Life) -> Life:
    """A life that replays from every prefix and has nothing left to do."""
    assert life.park is None
    assert_replays(life)
    assert life.books[-1].outstanding == ()
    return life


@workflow()
async def sequence() -> None:
    """One after the other, then trouble."""
    async with saga():
        await book("a")
        await work("x")
        await book("b")
        await fail()


def test_a_failed_saga_is_undone_newest_first() -> None:
    """Each completed step once, in reverse; the workflow fails with its own error."""
    life = lived(live(sequence))

    assert undone(life) == ["b", "a"]
    assert life.failure == "ValueError: stop"


@pytest.mark.parametrize("crash_at", range(1, 9))
def test_a_worker_that_dies_in_a_roll_back_is_replaced(crash_at: int) -> None:
    """Before every single event."""
    life = lived(live(sequence, crash_at=[crash_at]))

    assert undone(life) == ["b", "a"]
    assert life.steps_run.count("1/release") == 1


@workflow()
async def fine(then: str) -> str:
    """Nothing goes wrong inside."""
    async with saga():
        async with saga():
            await book("inner")
        await book("outer")
        if then == "fail":
            await fail()
    with suppress(ValueError):
        await fail()
    return "done"


def test_a_saga_that_is_left_normally_undoes_nothing() -> None:
    """A saga that ended normally undoes nothing, even if something fails afterwards."""
    life = lived(live(fine, "end"))

    assert (life.result, undone(life)) == ("done", [])


def test_a_nested_saga_hands_its_undos_to_the_outer_one() -> None:
    """A nested saga hands its undos to the outer one, which undoes both when it fails."""
    assert undone(lived(live(fine, "fail"))) == ["outer", "inner"]


@workflow()
async def inner_fails() -> str:
    """The inner saga fails and the outer one lives with it."""
    async with saga():
        await book("outer")
        with suppress(ValueError):
            async with saga():
                await book("inner")
                await fail()
        await book("later")
    return "done"


def test_only_the_saga_that_failed_is_undone() -> None:
    """The one around it keeps what it has."""
    life = lived(live(inner_fails))

    assert (life.result, undone(life)) == ("done", ["inner"])


@workflow()
async def gathered() -> None:
    """A branch fails while others are under way."""
    async with saga():
        await book("first")
        await asyncio.gather(fail(), book("a"), book("b"), slow("c"))


async def slow(name: str) -> None:
    """A branch that would go on booking."""
    for number in range(5):
        await asyncio.sleep(1)
        await book(f"{name}{number}")


@workflow()
async def grouped() -> None:
    """The same in a group."""
    async with saga():
        await book("first")
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(book(name))
            group.create_task(slow("c"))
            group.create_task(fail())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("of", [gathered, grouped])
def test_parallel_branches_are_undone_in_the_order_of_the_journal(of: Any, seed: int | None) -> None:
    """Steps in flight are waited for, not cancelled; the other branches book nothing more."""
    life = lived(live(of, seed=seed))

    assert life.status == "failed"
    assert {"first", "a", "b"} <= set(booked(life))
    assert undone(life) == booked(life)[::-1]
    assert not [asked for asked in life.all_asked if asked[0] == "cancel step" and "book" in str(asked)]


@workflow()
async def child(name: str, then: str = "") -> str:
    """A run without a saga of its own."""
    await book(f"{name}1")
    await asyncio.gather(book(f"{name}2"), asyncio.sleep(1))
    if then == "fail":
        await fail()
    return await book(f"{name}3")


@workflow()
async def parent(kind: str) -> None:
    """Books in children, finished and not."""
    async with saga():
        await child("a")
        if kind == "child fails":
            await child("b", "fail")
        if kind == "left alone":
            await start(child, "b")
            await book("c")
        await fail()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["plain", "child fails", "left alone"])
def test_children_book_in_the_saga_of_their_parent(kind: str, seed: int | None) -> None:
    """They are undone by the parent, also if they have ended long since; one that still runs is stopped first."""
    life = lived(live(parent, kind, code=Code(parent, child), seed=seed))

    assert undone(life) == booked(life)[::-1]
    assert life.status == "failed"
    assert not [name for name in life.steps_run if "release" in name and ":" in name], "undone in a child"


@pytest.mark.parametrize("at", range(1, 11))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_cancelled_run_is_undone(at: int, seed: int | None) -> None:
    """Wherever the cancel comes: everything or nothing."""
    life = lived(live(parent, "plain", code=Code(parent, child), seed=seed, inject={at: [cancel(), cancel("again")]}))

    assert life.status == "cancelled"
    assert undone(life) == booked(life)[::-1]


@pytest.mark.parametrize("at", range(2, 12))
def test_a_cancelled_child_is_undone_by_its_parent(at: int) -> None:
    """The step that it had in flight too."""
    life = lived(live(parent, "plain", code=Code(parent, child), inject={at: [cancel(run=1)]}))

    assert life.status == "failed"
    assert undone(life) == booked(life)[::-1]


@workflow(timeout=5)
async def late() -> None:
    """Runs out of time in a saga."""
    async with saga():
        await book("a")
        await asyncio.sleep(100)


PATIENT = Retry(attempts=4, first=10, factor=1)


@step(retry=PATIENT)
async def release_slowly(name: str) -> None:
    """Needs time."""


def test_the_deadline_of_a_run_rolls_back() -> None:
    """A run that times out in a saga rolls back, and has timed out."""
    life = lived(live(late, timeout=5))

    assert (life.status, undone(life)) == ("timedout", ["a"])


@workflow(timeout=25)
async def undone_slowly() -> None:
    """Each undo takes half a minute."""
    async with asyncio.timeout(15), saga() as block:
        block.add(release_slowly, "a")
        block.add(release_slowly, "b")
        await fail()


@pytest.mark.parametrize("at", [None, 4, 5, 6])
def test_nothing_stops_a_roll_back(at: int | None) -> None:
    """Not the deadline of the run, not a timeout around it, not a cancel, not a second one."""
    inject = {} if at is None else {at: [cancel(), cancel("again")]}
    outcomes = {"release_slowly": [OSError("no"), OSError("no"), OSError("no"), None]}
    life = lived(live(undone_slowly, outcomes=outcomes, timeout=25, inject=inject))

    asked = [arguments.decode() for name, arguments in successes(life) if name == "release_slowly"]
    assert asked == ['["b"]', '["a"]']
    assert life.status == ("timedout" if at is None else "cancelled")


def successes(life: Life) -> list[tuple[str, bytes]]:
    """Name and arguments of the steps that succeeded."""
    asked = {(each[1], each[2]): (each[3], each[4]) for each in life.all_asked if each[0] == "step"}
    return [asked[event.run, event.call] for event in life.journal if isinstance(event, StepSucceeded)]  # type: ignore[misc]


@workflow()
async def cancelled_late() -> str:
    """A workflow that would go on after its saga failed."""
    with suppress(ValueError):
        async with saga():
            await book("a")
            await fail()
    await work("went on")
    return "done"


def test_a_cancel_during_a_roll_back_is_not_lost() -> None:
    """The workflow is cancelled as soon as the roll-back is complete."""
    life = lived(live(cancelled_late, inject={3: [cancel()]}))

    assert (life.status, undone(life)) == ("cancelled", ["a"])
    assert "work" not in life.calls


@workflow()
async def gives_up(then: str) -> str:
    """Stops waiting for a step, and goes on."""
    async with saga():
        await book("a")
        with suppress(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.gather(book_slowly("b"), asyncio.sleep(20))
        if then == "fail":
            await fail()
        await book("c")
    return "done"


@step(undo=release, retry=PATIENT)
async def book_slowly(name: str) -> str:
    """Succeeds at the second attempt, ten seconds later."""
    return name


def test_a_step_that_was_given_up_is_undone_though_the_saga_succeeds() -> None:
    """The workflow has not seen its result; the block waits for it."""
    outcomes = {"book_slowly": [OSError("no"), "b"]}
    life = lived(live(gives_up, "go on", outcomes=outcomes))

    assert (life.result, undone(life), booked(life)) == ("done", ["b"], ["a", "c"])


def test_a_step_that_was_given_up_is_waited_for_when_the_saga_fails() -> None:
    """Its effect may happen: it is undone with the others."""
    life = lived(live(gives_up, "fail", outcomes={"book_slowly": [OSError("no"), "b"]}))

    assert undone(life) == ["b", "a"]


def test_a_step_that_was_given_up_and_fails_has_nothing_to_undo() -> None:
    """Its saga waits until that is known."""
    life = lived(live(gives_up, "fail", outcomes={"book_slowly": [OSError("no")] * 4}))

    assert undone(life) == ["a"]


@workflow()
async def stubborn(how: str) -> None:
    """A task inside swallows its cancellation."""

    async def sibling() -> None:
        async with saga():
            await book("nested")
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1_000)
            if how == "books":
                with pytest.raises(SagaClosedError):
                    await book("never")
            await work("clean-up")
            if how == "waits":
                await wait_for_signal("never")

    async with saga():
        await book("a")
        task = asyncio.create_task(sibling())
        await asyncio.sleep(1)
        assert not task.done()
        await fail()


@pytest.mark.parametrize("how", ["books", "ends", "waits"])
def test_a_task_that_swallows_its_cancellation_books_nothing_more(how: str) -> None:
    """It may clean up; if it does not end, what it has booked is undone without it."""
    life = lived(live(stubborn, how))

    assert life.status == "failed"
    assert booked(life) == ["a", "nested"]
    assert undone(life) == ["nested", "a"]
    waited = (life.journal[-1].at - START_AT) / SECOND
    assert waited == (1 + SETTLE_SECONDS if how == "waits" else 1)


@workflow()
async def in_background() -> str:
    """The saga is in a task that the workflow does not wait for."""

    async def background() -> None:
        async with saga():
            await book("a")
            await wait_for_signal("never")

    task = asyncio.create_task(background())
    await wait_for_signal("go")
    return f"left {task.done()}"


def test_the_end_of_a_workflow_waits_for_a_roll_back() -> None:
    """A saga that a workflow leaves behind in a task is cancelled and undone before the run ends."""
    life = lived(live(in_background, messages=[signal("go")]))

    assert (life.result, undone(life)) == ("left False", ["a"])


@workflow()
async def left_running() -> str:
    """A task goes on after its saga was left."""
    async with saga():
        task = asyncio.create_task(slow("a"))
        await asyncio.sleep(2.5)
    await asyncio.sleep(1)
    task.cancel()
    return "done"


def test_a_saga_that_was_left_answers_for_nothing() -> None:
    """A task of it that goes on books for no saga, and its step is cancelled as any other."""
    life = lived(live(left_running, seed=3))

    assert (life.result, undone(life)) == ("done", [])


@workflow()
async def named_itself() -> None:
    """Undos of the workflow's own."""
    async with saga() as block:
        block.add(release, "made up")
        await book("a")
        block.add(release, name="by keyword")
        await fail()
    block.add(release, "late")


def test_a_workflow_can_add_undos_of_its_own() -> None:
    """They take their place in the order."""
    life = lived(live(named_itself))

    asked = [arguments.decode() for name, arguments in successes(life) if name == "release"]
    assert asked == ['{"a":[],"k":{"name":"by keyword"}}', '["a"]', '["made up"]']


@workflow()
async def added_late() -> None:
    """Adds to a saga that is over."""
    async with saga() as block:
        pass
    block.add(release, "late")


def test_nothing_can_be_added_to_a_saga_that_was_left() -> None:
    """A booking that came so late would never be undone."""
    assert "SagaClosedError" in lived(live(added_late)).failure


@workflow()
async def not_durable() -> None:
    """Asks for what no journal can replay."""
    async with saga():
        await book("a")
        await asyncio.to_thread(print)


def test_a_run_that_must_be_parked_is_not_rolled_back() -> None:
    """Code that is repaired can still finish it."""
    life = live(not_durable)

    assert life.status == "parked"
    assert "do this in a step" in (life.park or "")
    assert undone(life) == []


@step()
async def release_other(number: int) -> None:
    """Does not take what the step returns."""


@workflow()
async def undone_wrongly() -> None:
    """The undo cannot take the result."""
    async with saga():
        await book("a")
        await book.options(undo=release_other)("b")  # type: ignore[arg-type]
        await book("c")
        await fail()


def test_an_undo_that_cannot_be_asked_for_parks_the_run() -> None:
    """With what was undone and what is left."""
    life = live(undone_wrongly)

    assert life.status == "parked"
    assert (life.park or "").startswith("undo failed: release_other of book#2: ")
    assert "undone: book#3\n" in (life.park or "")
    assert "left:   book#2, book\n" in (life.park or "")


@workflow()
async def undone_in_background() -> str:
    """The workflow ends in the middle of a roll-back that it does not wait for."""

    async def background() -> None:
        async with saga() as block:
            block.add(release_slowly, "a")
            block.add(release_slowly, "b")
            await fail()

    task = asyncio.create_task(background())
    await asyncio.sleep(15)
    return f"left {task.done()}"


def test_the_end_of_a_workflow_does_not_stop_a_roll_back_under_way() -> None:
    """It is cancelled like all that is left behind, and goes on all the same."""
    life = lived(live(undone_in_background, outcomes={"release_slowly": [OSError("no"), None]}))

    assert life.result == "left False"
    assert [name for name, _ in successes(life)] == ["release_slowly"] * 2
    assert [each[0] for each in life.asked[-2]] == ["end"], "the run ends when the last undo is done"


@workflow()
async def patient_child() -> None:
    """A run that would go on for a long time."""
    await book("a")
    await asyncio.sleep(1_000)


@workflow()
async def parent_of_patient() -> None:
    """Fails while its child waits."""
    async with saga():
        await start(patient_child)
        await asyncio.sleep(1)
        await fail()


def test_a_child_inside_is_stopped_before_the_roll_back() -> None:
    """It need not run to its end."""
    life = lived(live(parent_of_patient, code=Code(parent_of_patient, patient_child)))

    assert undone(life) == ["a"]
    assert (life.journal[-1].at - START_AT) / SECOND == 1
    assert life.kinds[-4:] == ["StepFailed", "RunCancelled", "StepSucceeded", "RunFailed"]


@workflow()
async def slow_child() -> str:
    """A run whose only step takes its time."""
    return await book_slowly("a")


@workflow()
async def parent_of_slow() -> None:
    """Books in its child only."""
    async with saga():
        await slow_child()


def test_a_child_ends_when_the_outcome_of_its_last_step_is_known() -> None:
    """It was cancelled, but what it has in flight may have to be undone."""
    code = Code(parent_of_slow, slow_child)
    life = lived(
        live(parent_of_slow, code=code, outcomes={"book_slowly": [OSError("no"), "a"]}, inject={3: [cancel(run=1)]})
    )

    assert undone(life) == ["a"]
    assert life.kinds[3:] == ["CancelRequested", "StepSucceeded", "RunCancelled", "StepSucceeded", "RunFailed"]


@workflow()
async def in_generator() -> None:
    """A generator that is closed in the middle of its saga."""

    async def rooms() -> AsyncIterator[str]:
        async with saga():
            for name in "ab":
                yield await book(name)

    async with saga():
        generator = rooms()
        await anext(generator)
        await generator.aclose()  # type: ignore[attr-defined]
        await book("c")
        await fail()


def test_a_generator_that_is_closed_hands_its_undos_on() -> None:
    """It may not wait; the saga around it answers for what it has booked."""
    assert undone(lived(live(in_generator))) == ["c", "a"]
