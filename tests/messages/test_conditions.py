"""`outlive.wait_condition`, and asks from one workflow to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

import outlive
from outlive.errors import ArgumentTypeError, AskFailedError, RunFailedError
from outlive.errors.program import NotInRunError
from outlive.testing import TestEngine, crash_everywhere

pytestmark = pytest.mark.any_store


@dataclass
class Total:
    """What a cart answers."""

    count: int


@outlive.workflow
async def vote(wanted: int) -> list[str]:
    """Ends when enough votes have come."""
    votes: list[str] = []

    async def collect() -> None:
        while True:
            votes.append(await outlive.wait_for_signal("vote", str))

    collecting = asyncio.create_task(collect())
    await outlive.wait_condition(lambda: len(votes) >= wanted)
    collecting.cancel()
    return votes


@outlive.workflow
async def vote_in_time(wanted: int) -> str:
    """Gives up after an hour."""
    seen: list[str] = []

    async def collect() -> None:
        while True:
            seen.append(await outlive.wait_for_signal("vote", str))

    collecting = asyncio.create_task(collect())
    try:
        async with asyncio.timeout(3_600):
            await outlive.wait_condition(lambda: len(seen) >= wanted)
    except TimeoutError:
        return f"{len(seen)} of {wanted}"
    finally:
        collecting.cancel()
    return "all"


@outlive.workflow
async def broken_condition() -> str:
    """Its condition raises once a signal has come."""
    seen: list[str] = []

    async def collect() -> None:
        seen.append(await outlive.wait_for_signal("vote", str))

    collecting = asyncio.create_task(collect())

    def holds() -> bool:
        if seen:
            raise ValueError("one vote too many")
        return False

    try:
        await outlive.wait_condition(holds)
    finally:
        collecting.cancel()
    return "never"


@outlive.workflow
async def basket(limit: int) -> int:
    """Counts what is added, and refuses what is too much."""
    count = 0
    async for ask in outlive.asks("add", int):
        if ask.body > limit:
            ask.fail(ValueError("too many"))
            continue
        count += ask.body
        ask.reply(Total(count))
        if count >= limit:
            break
    return count


@outlive.workflow
async def shopper(cart: str) -> tuple[int, int]:
    """Adds to the basket of another run, twice."""
    first = await outlive.ask(cart, "add", 2, reply=Total)
    second = await outlive.get(cart).ask("add", 3, reply=Total)
    return first.count, second.count


@outlive.workflow
async def greedy(cart: str) -> int:
    """Adds too much."""
    total: Total = await outlive.ask(cart, "add", 99, reply=Total)
    return total.count


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """A running engine."""
    async with TestEngine() as engine:
        yield engine


async def test_a_workflow_waits_until_its_state_is_as_it_wants(engine: TestEngine) -> None:
    """Whichever task of it has changed the state."""
    run = await engine.start(vote, 2, id="vote-1")
    await engine.signal(run.id, "vote", "ann")
    assert await run.status() == "waiting"

    await engine.signal(run.id, "vote", "bob")

    assert await run.result() == ["ann", "bob"]


async def test_a_condition_that_holds_already_does_not_wait(engine: TestEngine) -> None:
    """`wait_condition` returns at once if its condition holds already."""
    assert await (await engine.start(vote, 0)).result() == []


async def test_a_wait_for_a_condition_can_time_out(engine: TestEngine) -> None:
    """Like every other wait."""
    run = await engine.start(vote_in_time, 2)
    await engine.signal(run.id, "vote", "ann")

    assert await run.result() == "1 of 2"


async def test_the_error_of_a_condition_is_raised_where_it_is_waited_for(engine: TestEngine) -> None:
    """It is code of the workflow."""
    run = await engine.start(broken_condition)
    await engine.signal(run.id, "vote", "ann")

    with pytest.raises(RunFailedError, match="one vote too many"):
        await run.result()


async def test_a_wait_for_a_condition_survives_a_crash_at_every_commit() -> None:
    """A replay comes to the same state, and the condition holds at the same event."""
    signals = [("vote", "ann"), ("vote", "bob")]

    await crash_everywhere(vote, 2, signals=signals)


async def test_a_coroutine_function_is_refused_as_a_condition() -> None:
    """A coroutine function is refused as a condition, and so is a condition outside a workflow."""

    async def later() -> bool:
        return True

    with pytest.raises(NotInRunError, match="wait_condition"):
        await outlive.wait_condition(lambda: True)
    async with TestEngine(_registry=None) as engine:
        with pytest.raises(RunFailedError) as caught:
            await (await engine.start(wrong_condition)).result()
    assert isinstance(caught.value.__cause__, ArgumentTypeError) or "plain function" in str(caught.value)
    assert await later()


@outlive.workflow
async def wrong_condition() -> None:
    """Gives a coroutine function."""

    async def later() -> bool:
        return True

    await outlive.wait_condition(later)


async def test_a_workflow_asks_another_run_and_gets_the_type_that_it_wants(engine: TestEngine) -> None:
    """Each ask has one answer."""
    cart = await engine.start(basket, 5, id="cart-1")

    assert await (await engine.start(shopper, cart.id)).result() == (2, 5)
    assert await cart.result() == 5


async def test_the_answer_of_another_run_may_be_an_error(engine: TestEngine) -> None:
    """The workflow that has asked gets it as `engine.ask` does."""
    cart = await engine.start(basket, 5, id="cart-2")

    with pytest.raises(RunFailedError) as caught:
        await (await engine.start(greedy, cart.id)).result()

    assert AskFailedError.__name__ in str(caught.value)
    assert "too many" in str(caught.value)
