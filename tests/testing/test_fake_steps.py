"""`TestEngine(steps={...})` calls fakes in the place of steps, and all else is as with the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any
from unittest.mock import AsyncMock

import pytest

import outlive
from outlive import Retry, flow
from outlive.errors import ArgumentTypeError, DefinitionError, RunFailedError
from outlive.testing import TestEngine, crash_everywhere

undone: list[str] = []


def give_back(receipt: str) -> None:
    """The real undo, which no test here may reach."""
    raise AssertionError(receipt)


@outlive.step(name="fake.charge", retry=Retry(attempts=3), undo=give_back)
async def charge(order: str, *, cents: int) -> str:
    """The real thing, which no test here may reach."""
    raise AssertionError(order)


@outlive.step(name="fake.book", transaction=True)
def book(tx: outlive.types.SyncTx, receipt: str) -> str:
    """A step that gets more than the workflow gives to it."""
    raise AssertionError(receipt)


@outlive.step(name="fake.thank")
async def thank(receipt: str) -> str:
    """A step that stays."""
    return f"thanks for {receipt}"


@outlive.workflow(name="fake.sell")
async def sell(order: str) -> str:
    """Charge, book and thank."""
    return await thank(await book(await charge(order, cents=42)))


@outlive.workflow(name="fake.fail")
async def fail(order: str) -> None:
    """Charge, and then fail."""
    async with outlive.saga():
        await charge(order, cents=42)
        raise ValueError("no")


FAKES: dict[Any, Callable[..., Any]] = {
    charge: lambda order, cents: f"{order}/{cents}",
    book: lambda receipt: f"booked {receipt}",
}


async def test_a_fake_gets_what_the_workflow_gave_and_other_steps_stay() -> None:
    """Neither the transaction nor anything else comes before the arguments."""
    async with TestEngine(steps=FAKES) as engine:
        assert await (await engine.start(sell, "o-1")).result() == "thanks for booked o-1/42"


async def test_an_error_of_a_fake_is_tried_again_as_the_step_says() -> None:
    """A fake step whose first call raises is called again as the real step says."""
    fake = AsyncMock(side_effect=[ConnectionError("gone"), "receipt"])
    async with TestEngine(steps=FAKES | {charge: fake}) as engine:
        assert await (await engine.start(sell, "o-1")).result() == "thanks for booked receipt"
    assert fake.await_count == 2


async def test_an_undo_is_faked_by_its_name() -> None:
    """It has no object that a test could give."""
    undone.clear()
    async with TestEngine(steps={charge: FAKES[charge], "fake.charge.undo": undone.append}) as engine:
        with pytest.raises(RunFailedError):
            await (await engine.start(fail, "o-1")).result()
    assert undone == ["o-1/42"]


async def test_a_fake_is_inside_the_middleware_of_the_test() -> None:
    """It sees the fake's result, as it would see the step's."""
    seen: list[object] = []

    class Look(outlive.middleware.Middleware):
        async def on_step(self, step: outlive.types.StepContext, call_next: object) -> object:
            seen.append(found := await call_next())  # type: ignore[operator]
            return found

    async with TestEngine(middleware=[Look()], steps=FAKES) as engine:
        await (await engine.start(sell, "o-1")).result()
    assert seen == ["o-1/42", "booked o-1/42", "thanks for booked o-1/42"]


async def test_crash_everywhere_takes_fakes() -> None:
    """They are called at every recovery."""
    report = await crash_everywhere(sell, "o-1", steps=FAKES)
    assert report.result == "thanks for booked o-1/42"


# -- Whatever calls the step ---------------------------------------------------------------------------------------


@outlive.step(name="fake.crunch", process=True)
def crunch(order: str) -> str:
    """A step that has a process of its own."""
    raise AssertionError(order)


@dataclass
class Thumb:
    """What a remote step gives."""

    width: int


resize = outlive.remote_step(
    "fake.resize", input=str, output=Thumb, queue="gpu", retry=Retry(attempts=2, first=1), raises=(ConnectionError,)
)


@outlive.workflow(name="fake.publish")
async def publish(url: str) -> int:
    """Has a remote step done."""
    return (await resize(url)).width


@outlive.workflow(name="fake.parent")
async def parent(order: str) -> list[str]:
    """Calls a step in a child, on a thread and in a process."""
    return [await sell(order), await book("a receipt"), await crunch(order)]


class Place(Enum):
    """The states of a machine."""

    PAY = "pay"
    PAID = "paid"


@dataclass
class Basket:
    """What the machine knows."""

    order: str
    receipt: str = ""


buying = outlive.Machine("fake.buying", Place, data=Basket, start=Place.PAY, exits={Place.PAID})


@buying.workflow(Place.PAY)
async def pay(data: Basket) -> Place:
    """Calls a step."""
    data.receipt = await charge(data.order, cents=7)
    return Place.PAID


async def test_steps_of_children_and_those_on_threads_and_in_processes_are_faked() -> None:
    """The fake runs here, whatever the kind of its step."""
    fakes = FAKES | {crunch: lambda order: f"crunched {order}"}
    async with TestEngine(steps=fakes) as engine:
        run = await engine.start(parent, "o-1")
        assert await run.result() == ["thanks for booked o-1/42", "booked a receipt", "crunched o-1"]


async def test_steps_of_a_flow_are_faked() -> None:
    """By the step that `use` names."""
    document = flow.parse(
        """
        name: fake.flow
        steps:
          charge: { use: fake.charge, with: { order: o-1, cents: 9 } }
        output: "${{ steps.charge }}"
        """
    )
    async with TestEngine(steps=FAKES) as engine:
        assert await (await engine.start(document, {})).result() == "o-1/9"


async def test_steps_that_a_machine_calls_are_faked() -> None:
    """In a state that is workflow code."""
    async with TestEngine(steps=FAKES) as engine:
        ended = await (await engine.start(buying, Basket("o-1"))).result()
    assert ended.data == Basket("o-1", "o-1/7")


async def test_remote_step_is_faked_and_tried_again_as_it_says() -> None:
    """Its worker would be another program; the fake takes its tasks, and time skips between the attempts."""
    fake = AsyncMock(side_effect=[ConnectionError("no GPU"), Thumb(80)])
    async with TestEngine(steps={resize: fake}) as engine:
        assert await (await engine.start(publish, "https://example.org/a.png")).result() == 80
    assert [call.args for call in fake.await_args_list] == [("https://example.org/a.png",)] * 2


async def test_output_of_a_faked_remote_step_is_checked_as_that_of_a_worker() -> None:
    """A fake that gives what no worker may give would prove nothing."""
    async with TestEngine(steps={resize: lambda url: {"width": "wide"}}) as engine:
        with pytest.raises(RunFailedError, match="output of type Thumb"):
            await (await engine.start(publish, "a.png")).result()


async def test_remote_step_without_a_fake_waits_for_its_worker() -> None:
    """Fakes of others change nothing for it."""
    async with TestEngine(steps=FAKES, patience_seconds=0.05) as engine:
        run = await engine.start(publish, "a.png")
        await engine.settle()
        task = await engine.tasks.claim("gpu", ["fake.resize"])
        assert task is not None
        await engine.tasks.complete(task.id, task.lease, {"width": 3})
        assert await run.result() == 3


def test_a_fake_for_no_step_or_that_is_not_a_function_is_refused() -> None:
    """A fake for a step that does not exist, or that is not a function, is refused."""
    with pytest.raises(DefinitionError, match=r"no step is named 'fake\.chrage'"):
        TestEngine(steps={"fake.chrage": print})
    with pytest.raises(ArgumentTypeError, match="give steps or their names"):
        TestEngine(steps={print: print})
    with pytest.raises(ArgumentTypeError, match="steps"):
        TestEngine(steps={charge: "receipt"})  # type: ignore[dict-item]
