"""Arguments are not identity: a run goes on with code that makes the same calls with other arguments.

Old code lives up to every point of its life; then code takes over whose model has one field more and the others in
another order, or that puts the time into what it calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import msgspec
import pytest

from outlive import Retry, publish, saga, start
from outlive._features.machines.kinds import record_left
from outlive._features.machines.wire import NULL, StateResult
from outlive._kernel.replay.command import RunStep
from outlive.events import AttemptFailed, RunPublished, StepFailed
from outlive.types import Workflow
from tests.replay.define import Code, step, workflow
from tests.replay.driver import live
from tests.replay.life import fed


@dataclass
class Order:
    """As it was."""

    sku: str
    count: int


@dataclass
class NewOrder:
    """As it became: reordered, and with a field more."""

    count: int
    sku: str
    gift: bool = False


@step(name="cancel")
async def cancel_old(order: Order) -> None:
    """What undoes a booking."""


@step(name="cancel")
async def cancel_new(order: NewOrder) -> None:
    """What undoes a booking."""


@step(name="book", undo=cancel_old, retry=Retry(attempts=3))
async def book_old(order: Order) -> Order:
    """A step with a model for argument and result."""
    return order


@step(name="book", undo=cancel_new, retry=Retry(attempts=3))
async def book_new(order: NewOrder) -> NewOrder:
    """The same with the new model."""
    return order


@workflow(name="pack")
async def pack_old(order: Order) -> int:
    """A child with a model for its input."""
    return (await book_old(order)).count


@workflow(name="pack")
async def pack_new(order: NewOrder) -> int:
    """The same with the new model."""
    return (await book_new(order)).count


@workflow(name="shop")
async def shop_old(order: Order) -> list[int]:
    """Every kind of call that has arguments."""
    publish(stage="begun", order=order.sku)
    both = await asyncio.gather(book_old(order), book_old(order))
    try:
        async with saga():
            await book_old(order)
            raise LookupError("undo it")
    except LookupError:
        publish(stage="undone", order=order.sku)
    other = await start(pack_old, order, detached=True, id="other")
    return [each.count for each in both] + [await pack_old(order), len(other.id)]


@workflow(name="shop")
async def shop_new(order: NewOrder) -> list[int]:
    """The same with the new model; what it publishes and what it starts have other words."""
    publish(stage="BEGUN", order=order.sku)
    both = await asyncio.gather(book_new(order), book_new(order))
    try:
        async with saga():
            await book_new(order)
            raise LookupError("undo it")
    except LookupError:
        publish(stage="UNDONE", order=order.sku)
    other = await start(pack_new, order, detached=True, id="a-longer-id")
    return [each.count for each in both] + [await pack_new(order), len(other.id)]


OLD, NEW = Code(shop_old, pack_old), Code(shop_new, pack_new)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    "outcomes", [{}, {"2/book": [OSError("away"), Order("x", 2)]}], ids=["at once", "with a retry"]
)
def test_a_field_more_and_another_order_park_no_run(seed: int | None, outcomes: dict[str, Any]) -> None:
    """From every point of an old life the new code goes on to the end, also if its workers die all the time."""
    life = live(shop_old, Order("x", 2), code=OLD, seed=seed, outcomes=outcomes)
    assert life.result == [2, 2, 2, len("other")]

    for length in range(1, len(life.journal)):
        after = live(shop_new, journal=life.journal[:length], code=NEW, seed=seed, crash_at=range(1000))
        assert after.status == "succeeded", after.park
        is_started = any(type(event).__name__ == "DetachedStarted" for event in life.journal[:length])
        assert after.result == [2, 2, 2, len("other" if is_started else "a-longer-id")]


def test_old_code_goes_on_with_the_journal_of_new_code() -> None:
    """Old code, as after a roll-back, goes on from every point of a journal of new code, and leaves out the field that
    it does not know."""
    life = live(shop_new, NewOrder(sku="x", count=2, gift=True), code=NEW)

    for length in range(1, len(life.journal)):
        after = live(shop_old, journal=life.journal[:length], code=OLD)
        assert after.status == "succeeded", after.park


def test_a_retry_is_called_with_the_arguments_of_the_code_that_calls() -> None:
    """The failed attempt counts; the next one is called with what the code gives now."""
    life = live(shop_old, Order("x", 2), code=OLD, outcomes={"1/book": [OSError("away")]})
    at = life.kinds.index("AttemptFailed")

    with fed(NEW, life.journal[: at + 1]) as execution:
        (command,) = [each for each in execution.outstanding() if isinstance(each, RunStep) and each.call == "1/book"]

        assert command.attempt == 2
        assert command.step.signature.decode(command.arguments) == ([NewOrder(2, "x")], {})


def test_each_call_is_one_difference_however_many_events_it_has() -> None:
    """The attempts of a step and its outcome are of one call."""
    outcomes = {"book": [OSError("away"), OSError("away"), OSError("away")]}
    life = live(pack_old, Order("x", 2), code=OLD, outcomes=outcomes)
    assert [type(event) for event in life.journal[1:4]] == [AttemptFailed, AttemptFailed, StepFailed]

    with fed(NEW, life.journal) as execution:
        assert [(found.seq, found.call) for found in execution.differences.values()] == [(1, "book")]


@pytest.fixture
def ticks() -> Iterator[int]:
    """A clock that a careless library reads in the body of a workflow."""
    return count()


def test_an_argument_that_is_another_one_each_time_parks_no_run(ticks: Iterator[int]) -> None:
    """A library that puts the time or an id into its calls: the results in the journal count."""

    @workflow(name="stamped")
    async def stamped() -> int:
        first = await book_old(Order("x", next(ticks)))
        second = await book_old(Order("y", next(ticks)))
        return first.count + second.count

    life = live(stamped)
    for length in range(1, len(life.journal)):
        assert live(stamped, journal=life.journal[:length]).status == "succeeded"

    with fed(Code(stamped), life.journal[:-1]) as execution:
        assert [found.call for found in execution.differences.values()] == ["book", "book#2"]
        assert execution.outstanding()[0].result == str(life.result).encode()  # type: ignore[union-attr]


# -- Facts that a run records by itself ----------------------------------------------------------------------------


def publishes(*stages: str) -> Workflow[..., Any]:
    """Code that publishes these stages around two steps."""

    @workflow(name="publishes")
    async def published() -> None:
        for number, stage in enumerate(stages):
            publish(stage=stage)
            await book_old(Order("x", number))

    return published


@pytest.mark.parametrize("stages", [("a", "a"), ("b", "b"), ("b", "a"), ("a", "c")], ids="".join)
def test_a_publication_that_the_code_changes_parks_no_run(stages: tuple[str, ...]) -> None:
    """A run whose code now publishes other values, or nothing new, is not parked and goes on to its end."""
    life = live(publishes("a", "b"))
    assert sum(isinstance(event, RunPublished) for event in life.journal) == 2

    for length in range(1, len(life.journal)):
        with fed(Code(publishes(*stages)), life.journal[:length]) as execution:
            assert not execution.is_parked
        after = live(publishes(*stages), journal=life.journal[:length], crash_at=range(100))
        assert after.status == "succeeded", after.park


def leaves(to: str, data: bytes) -> Workflow[..., Any]:
    """A machine in one line: it leaves a state for `to`."""

    @workflow(name="leaves")
    async def left() -> None:
        record_left("first", StateResult(to=to, data=msgspec.Raw(data)))
        await book_old(Order("x", 1))

    return left


def test_a_left_state_may_have_other_data_but_no_other_next_state() -> None:
    """A state that was left with other data contradicts nothing, because data is an argument; one that was left for
    another state parks the run."""
    life = live(leaves("second", bytes(NULL)))

    with fed(Code(leaves("second", b'{"gift":false}')), life.journal) as execution:
        assert not execution.is_parked
        assert [found.call for found in execution.differences.values()] == ["@state/first"]
    with fed(Code(leaves("third", bytes(NULL))), life.journal) as execution:
        assert execution.is_parked
