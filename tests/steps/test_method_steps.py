"""Steps that are methods: on an object that the workflow has at hand, and on a resource."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest

import outlive
from outlive import Retry
from outlive.errors import DefinitionError, InvalidArgumentError, RunFailedError, WrongArgumentsError
from outlive.events import StepSucceeded
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.support import events_of, stage


class Till:
    """A client of a payment provider, with steps."""

    def __init__(self, shop: str) -> None:
        self.shop = shop

    @outlive.step
    async def give_back(self, receipt: str) -> None:
        stage.call(f"{self.shop} gives back {receipt}")

    # A type checker compares the undo with the result of the step, and sees an object too many.
    @outlive.step(undo=cast("Callable[[str], None]", give_back), retry=Retry(attempts=2, first=0))
    async def charge(self, cents: int, *, tip: int = 0) -> str:
        if outlive.current_step().attempt == 1:
            raise ConnectionError("busy")
        return f"{self.shop}: {cents + tip}"

    @outlive.step(name="till-total")
    def total(self, receipts: list[str]) -> int:
        return len(receipts)

    @outlive.step(transaction=True)
    async def book(self, tx: outlive.types.Tx, cents: int) -> int:
        return int(await tx.fetchval("SELECT 1")) + cents

    async def plain(self) -> str:
        return self.shop

    def sync(self) -> str:
        return self.shop


north = Till("north")


@outlive.workflow
async def with_method_steps(shop: str) -> list[Any]:
    own = Till(shop)
    return [
        await north.charge(5),
        await own.charge.options(timeout=5)(6, tip=1),
        await Till.charge(own, 7),
        await own.total(["a", "b"]),
        await outlive.map(own.total, [["a"], []]),
    ]


async def test_a_method_is_a_step_on_its_object() -> None:
    """The object is not an argument of the call; the name is that of the class and the method."""
    async with TestEngine() as engine:
        run = await engine.start(with_method_steps, "south")
        assert ["north: 5", "south: 7", "south: 7", 2, [1, 0]] == await run.result()
        calls = [event.call for event in await events_of(run, StepSucceeded)]
    assert ["Till.charge", "Till.charge#2", "Till.charge#3", "till-total"] == calls[:4]


async def test_a_method_step_survives_a_crash_at_every_commit() -> None:
    """A replay has the object again."""
    await crash_everywhere(with_method_steps, "south", max_points=4)


@outlive.workflow
async def undoing_methods(shop: str) -> None:
    async with outlive.saga():
        await Till(shop).charge(9)
        raise LookupError("no stock")


async def test_an_undo_that_is_a_method_has_the_same_object() -> None:
    """An undo that is a method gets the object of the call that it undoes."""
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="no stock"):
            await (await engine.start(undoing_methods, "east")).result()
    assert ["east gives back east: 9"] == stage.calls


async def test_outside_of_a_run_it_is_a_plain_method() -> None:
    """On an object and from the class."""
    on_object, of_class = north.total, Till.total
    returned: list[Any] = [on_object(["a", "b"]), of_class(north, ["a"])]
    assert [2, 1] == returned
    assert "north" == await north.plain()


# -- With a resource ---------------------------------------------------------------------------------------------------


@outlive.resource
async def west_till() -> AsyncIterator[Till]:
    stage.call("set up")
    yield Till("west")
    stage.call("torn down")


charge_west = Till.charge.of(west_till)
total_west = Till.total.of(west_till, name="west-total")
book_west = Till.book.of(west_till)


@outlive.workflow
async def with_resource_methods() -> list[Any]:
    async with outlive.saga():
        return [await charge_west(5, tip=2), await total_west(["a"]), await book_west(41)]


@outlive.workflow
async def undoing_resource_methods() -> None:
    async with outlive.saga():
        await charge_west(9)
        raise LookupError("no stock")


async def test_a_method_is_called_on_a_resource() -> None:
    """Set up once by the worker that runs it; its undo is called on it too."""
    async with TestEngine() as engine:
        run = await engine.start(with_resource_methods)
        assert ["west: 7", 1, 42] == await run.result()
        calls = [event.call for event in await events_of(run, StepSucceeded)]
        assert ["west_till.charge", "west-total", "west_till.book"] == calls
        with pytest.raises(RunFailedError, match="no stock"):
            await (await engine.start(undoing_resource_methods)).result()
    assert ["set up", "west gives back west: 9", "torn down"] == stage.calls


async def test_the_resource_of_a_method_can_be_another_one_in_tests() -> None:
    """A test engine gives a method step another resource, and a batch finds that step by its name."""
    async with TestEngine(resources={west_till: Till("fake")}) as engine:
        batch = await engine.start_batch(charge_west, [1, 2])
        assert ["fake: 1", "fake: 2"] == await batch.results()
    assert [] == stage.calls


# -- Mistakes ----------------------------------------------------------------------------------------------------------


async def test_a_batch_refuses_a_method_without_a_resource() -> None:
    """Another worker could not find the object."""
    async with TestEngine() as engine:
        with pytest.raises(InvalidArgumentError, match=r"Till.charge.of\(resource\)"):
            await engine.start_batch(north.charge, [1])


def test_a_method_step_that_cannot_work_is_refused() -> None:
    """A method as a step with `process=True`, or as the undo of a plain step, is refused where it is defined."""
    with pytest.raises(DefinitionError, match="it is a method, and process=True"):
        outlive.step(process=True)(Till.sync)
    with pytest.raises(DefinitionError, match=r"its undo Till\.give_back is a method"):
        outlive.step(undo=Till.give_back)(fetch_nothing)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="is not a method: let a parameter take"):
        stepless.of(west_till)
    with pytest.raises(InvalidArgumentError, match=r"@outlive\.resource"):
        Till.total.of(north)  # type: ignore[arg-type]


async def fetch_nothing() -> str:
    return ""


@outlive.step
async def stepless() -> str:
    return ""


@outlive.workflow
async def without_an_object() -> str:
    try:
        await Till.charge()  # type: ignore[call-arg]
    except WrongArgumentsError as error:
        return str(error)
    return "went on"


async def test_a_call_without_the_object_is_refused() -> None:
    """In a workflow, with what is missing."""
    async with TestEngine() as engine:
        assert "missing the object" in await (await engine.start(without_an_object)).result()
