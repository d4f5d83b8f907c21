"""Signals: early ones are kept, first in first out; none is lost, none is given twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outlive import start, wait_for_signal
from outlive._kernel.replay.feeding import feed
from outlive._kernel.replay.frame import Received
from outlive.events import MessageSetAside, RunClaimed, RunParked, RunResumed
from outlive.types import Workflow
from tests.replay.define import START_AT, Code, created, plain, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import assert_replays, fed

SEEDS = [None, *range(10)]


@step()
async def work(n: int) -> int:
    """Something to wait for."""
    return n


@workflow()
async def takes_three() -> list[Any]:
    """Three signals of one name, with work in between."""
    got = []
    for n in range(3):
        await work(n)
        got.append(await wait_for_signal("go"))
    return got


@pytest.mark.parametrize("seed", SEEDS)
def test_signals_of_one_name_come_in_the_order_in_which_they_were_sent(seed: int | None) -> None:
    """Early or late, whenever they arrive between the steps."""
    life = live(takes_three, seed=seed, messages=[signal("go", n) for n in range(3)], crash_at=range(100))

    assert life.result == [0, 1, 2]
    assert_replays(life)


def test_signals_that_came_before_anybody_asked_are_kept() -> None:
    """All three arrive before the first step has ended."""
    life = live(takes_three, inject={1: [signal("go", n) for n in "abc"], 2: [signal("noise")]})

    assert life.result == ["a", "b", "c"]


def test_a_signal_of_another_name_wakes_no_wait() -> None:
    """The run still waits, and says for what."""
    life = live(takes_three, messages=[signal("come", 1)])

    assert life.status == "waiting"
    assert [wait.name for wait in life.books[-1].waits] == ["go"]


@workflow()
async def many_waiters() -> list[Any]:
    """Three tasks wait for one name."""

    async def waiter(name: str) -> str:
        return f"{name}{await wait_for_signal('go')}"

    return await asyncio.gather(*(waiter(name) for name in "abc"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_oldest_waiter_gets_the_next_signal(seed: int | None) -> None:
    """The branch that has waited longest gets the next signal."""
    life = live(many_waiters, seed=seed, messages=[signal("go", n) for n in (1, 2, 3)], crash_at=range(100))

    assert life.result == ["a1", "b2", "c3"]
    assert_replays(life)


@workflow()
async def gives_up() -> list[Any]:
    """The first of two waiters gives up; the second stays."""
    impatient = asyncio.create_task(wait_for_signal("go"))
    patient = asyncio.create_task(wait_for_signal("go"))
    await asyncio.sleep(1)
    impatient.cancel()
    return [await patient, await wait_for_signal("go")]


def test_a_waiter_that_gave_up_takes_no_signal() -> None:
    """Its place in the row is free when the signal comes."""
    life = live(gives_up, inject={2: [signal("go", 1), signal("go", 2)]})

    assert life.result == [1, 2]
    assert_replays(life)


def test_a_waiter_cancelled_with_the_signal_in_its_hands_gives_it_to_the_next() -> None:
    """Between taking a signal and running on it a task may be cancelled; the signal is older than all that follow."""
    code = Code(gives_up)
    with fed(code, [created(gives_up)]) as execution:
        frame = execution.frames[0]
        frame.receive_signal(plain("first"), "go", "1")
        impatient = frame.tasks[1]
        impatient.cancel()
        execution.loop.drain()

        assert [wait.name for wait in execution.waits()] == ["@timer"], "the patient one has it now"

        frame.receive_signal(plain("second"), "go", "2")
        assert frame.buffered_signal("go") == (plain("second"), "2")


def test_a_signal_handed_back_without_another_waiter_is_first_in_the_row() -> None:
    """It goes before what came after it."""
    code = Code(takes_three)
    with fed(code, [created(takes_three)]) as execution:
        frame = execution.frames[0]
        frame.receive_signal(plain("second"), "go", "2")
        frame.put_back_signal(Received(plain("first"), "1"), "go")

        first, second = Received(plain("first"), "1"), Received(plain("second"), "2")
        assert [frame.buffered_signal("go"), frame.buffered_signal("go")] == [first, second]


# -- Races ----------------------------------------------------------------------------------------------------


@workflow()
async def signal_against_timer() -> str:
    """Whatever comes first wins, and a step hears who."""
    try:
        async with asyncio.timeout(10):
            await wait_for_signal("go")
            winner = "signal"
    except TimeoutError:
        winner = "timer"
    await work(len(winner))
    return winner


def test_a_race_between_signal_and_timer_replays_as_it_happened() -> None:
    """Over many orders both win sometimes, and each journal replays with its own winner."""
    winners = set()
    for seed in range(30):
        life = live(signal_against_timer, seed=seed, messages=[signal("go")], crash_at=range(100))
        assert_replays(life)
        winners.add(life.result)

    assert winners == {"signal", "timer"}


@workflow()
async def step_against_step() -> list[int]:
    """Two steps race twice; the order of completion is part of the result."""
    order = []
    for turn in range(2):
        tasks = {asyncio.create_task(work(10 * turn + n)) for n in range(3)}
        while tasks:
            done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            order += [task.result() for task in done]
    return order


def test_the_order_of_completion_is_the_order_of_the_journal() -> None:
    """Steps that end in another order give another result, and each of them replays."""
    results = set()
    for seed in range(30):
        life = live(step_against_step, seed=seed, crash_at=range(100))
        assert_replays(life)
        results.add(tuple(life.result))

    assert len(results) > 10


@workflow()
async def timers_of_one_instant() -> list[str]:
    """Timers that are due at the same time, made in an order of their own."""
    seen: list[str] = []

    async def sleeper(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append(name)

    async with asyncio.TaskGroup() as group:
        for name in "cab":
            group.create_task(sleeper(name, 5))
        group.create_task(sleeper("early", 4))
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_timers_of_one_instant_fire_in_the_order_in_which_they_were_made(seed: int | None) -> None:
    """Not by name, not by chance. [TS-R29]"""
    life = live(timers_of_one_instant, seed=seed, crash_at=range(100))

    assert life.result == ["early", "c", "a", "b"]
    assert_replays(life)


# -- Children and types ---------------------------------------------------------------------------------------


@workflow()
async def listening_child() -> str:
    """A child with a signal of the same name as its parent's."""
    return f"child {await wait_for_signal('go')}"


@workflow()
async def listening_parent() -> list[str]:
    """A parent that listens too."""
    child = await start(listening_child)
    return [f"parent {await wait_for_signal('go')}", await child.result()]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_signal_belongs_to_one_run_of_the_tree(seed: int | None) -> None:
    """Parent and child each get the signal that was sent to them."""
    code = Code(listening_parent, listening_child)
    messages = {2: [signal("go", "for 1", run=1), signal("go", "for 0")]}
    life = live(listening_parent, code=code, seed=seed, inject=messages, crash_at=range(100))

    assert life.result == ["parent for 0", "child for 1"]
    assert_replays(life)


def test_a_signal_for_a_run_that_has_ended_is_ignored() -> None:
    """The child is gone; no other run is disturbed."""
    code = Code(listening_parent, listening_child)
    inject = {2: [signal("go", 1, run=1)], 4: [signal("go", 2, run=1), signal("go", 3)]}
    life = live(listening_parent, code=code, inject=inject)

    assert life.result == ["parent 3", "child 1"]


@workflow(name="typed")
async def typed() -> int:
    """Waits for a whole number, while other work goes on."""
    other = asyncio.create_task(work(1))
    number = await wait_for_signal("number", int)
    return number + await other


@workflow(name="typed")
async def typed_loosely() -> int:
    """The same workflow, deployed with a wider type."""
    other = asyncio.create_task(work(1))
    text: int | str = await wait_for_signal("number", int | str)  # type: ignore[arg-type]
    return int(text) + await other


@pytest.mark.parametrize("at", [1, 2])
def test_a_signal_that_the_code_cannot_read_is_set_aside_and_the_wait_goes_on(at: int) -> None:
    """The journal says which, and why; the next one of that name is taken, and every replay does the same."""
    life = live(typed, inject={at: [signal("number", "12"), signal("number", 12)]}, crash_at=range(100))

    assert life.result == 13
    (fact,) = [event for event in life.journal if isinstance(event, MessageSetAside)]
    assert (fact.name, fact.message) == ("number", str(at))
    assert fact.reason == "it cannot be read as int: Expected `int`, got `str`"
    assert_replays(life)


def test_a_run_whose_only_signal_was_set_aside_waits_and_says_so() -> None:
    """It is neither parked nor failed."""
    life = live(typed, inject={1: [signal("number", n) for n in "abc"]})

    assert life.status == "waiting"
    (wait,) = life.books[-1].waits
    assert (wait.name, wait.detail) == (
        "number",
        "3 messages were set aside: it cannot be read as int: Expected `int`, got `str`",
    )


def test_a_message_that_was_set_aside_stays_so_for_code_that_can_read_it() -> None:
    """The journal is the only truth: what has happened behind it happened because it was not read."""
    life = live(typed, inject={2: [signal("number", "12"), signal("number", 7)]})

    with fed(Code(typed_loosely), life.journal[:-1]) as execution:
        assert [command.result for command in execution.outstanding()] == [b"8"]  # type: ignore[union-attr]


def test_code_that_cannot_read_what_older_code_has_read_is_parked() -> None:
    """A run is parked when its code cannot read a signal that older code has read and acted on."""
    life = live(typed_loosely, inject={1: [signal("number", "12")]})

    with fed(Code(typed), life.journal[:-1]) as execution:
        assert execution.is_parked
    assert "signal 'number' cannot be read as int" in (live(typed, journal=life.journal[:-1]).park or "")


def test_code_that_cannot_read_what_older_code_has_just_read_is_parked_too() -> None:
    """The worker was lost while steps ran that older code had called because of the signal: nothing of that is in the
    journal, and to set the signal aside would call others in their place."""
    life = live(typed_loosely, inject={2: [signal("number", "12")]})
    journal = [*life.journal[:3], RunClaimed(at=START_AT, worker="another", epoch=2, interrupted=True)]

    assert "signal 'number' cannot be read as int" in (live(typed, code=Code(typed), journal=journal).park or "")


@pytest.mark.parametrize(("of", "status"), [(typed_loosely, "succeeded"), (typed, "waiting")])
def test_a_run_that_an_earlier_release_has_parked_at_a_signal_goes_on(of: Workflow[[], int], status: str) -> None:
    """Earlier releases parked a run at a signal that its code could not read, and it could not get past it."""
    life = live(typed_loosely, inject={2: [signal("number", "12")]})
    journal = [*life.journal[:3], RunParked(at=START_AT, reason="?"), RunResumed(at=START_AT)]

    assert live(of, code=Code(of), journal=journal).status == status


def test_nothing_is_asked_after_the_run_was_parked() -> None:
    """Neither in the same event by other tasks, nor by later events."""
    journal = live(typed_loosely, inject={1: [signal("number", "12")]}).journal[:-1]

    with fed(Code(typed), journal) as execution:
        assert execution.is_parked
        assert execution.outstanding() == []
        assert feed(execution, signal("number", 5)) == []
        assert execution.events == len(journal) + 1
