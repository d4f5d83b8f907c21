"""`TestEngine(steps={...})` calls fakes in the place of steps, and all else is as with the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import AsyncMock

import pytest

import outlive
from outlive import Retry
from outlive.errors import ArgumentTypeError, DefinitionError, RunFailed
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
def book(tx: outlive.SyncTx, receipt: str) -> str:
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


async def test_what_a_fake_raises_is_tried_again_as_the_step_says() -> None:
    """A mock whose first call fails."""
    fake = AsyncMock(side_effect=[ConnectionError("gone"), "receipt"])
    async with TestEngine(steps=FAKES | {charge: fake}) as engine:
        assert await (await engine.start(sell, "o-1")).result() == "thanks for booked receipt"
    assert fake.await_count == 2


async def test_an_undo_is_faked_by_its_name() -> None:
    """It has no object that a test could give."""
    undone.clear()
    async with TestEngine(steps={charge: FAKES[charge], "fake.charge.undo": undone.append}) as engine:
        with pytest.raises(RunFailed):
            await (await engine.start(fail, "o-1")).result()
    assert undone == ["o-1/42"]


async def test_a_fake_is_inside_the_middleware_of_the_test() -> None:
    """It sees the fake's result, as it would see the step's."""
    seen: list[object] = []

    class Look(outlive.Middleware):
        async def on_step(self, step: outlive.StepContext, call_next: object) -> object:
            seen.append(found := await call_next())  # type: ignore[operator]
            return found

    async with TestEngine(middleware=[Look()], steps=FAKES) as engine:
        await (await engine.start(sell, "o-1")).result()
    assert seen == ["o-1/42", "booked o-1/42", "thanks for booked o-1/42"]


async def test_crash_everywhere_takes_fakes() -> None:
    """They are called at every recovery."""
    report = await crash_everywhere(sell, "o-1", steps=FAKES)
    assert report.result == "thanks for booked o-1/42"


def test_what_is_not_a_step_or_not_a_function_is_refused() -> None:
    """A fake that is never called would leave the real step in its place."""
    with pytest.raises(DefinitionError, match=r"no step is named 'fake\.chrage'"):
        TestEngine(steps={"fake.chrage": print})
    with pytest.raises(ArgumentTypeError, match="give steps or their names"):
        TestEngine(steps={print: print})
    with pytest.raises(ArgumentTypeError, match="steps"):
        TestEngine(steps={charge: "receipt"})  # type: ignore[dict-item]
