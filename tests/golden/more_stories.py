"""More golden stories: approvals, sagas, generations, patches, what is called once. Never change one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import outlive
from outlive.errors import RunFailedError
from outlive.testing import TestEngine
from tests.golden.stories import refuse, reserve


@outlive.step(name="golden.text", once=True)
async def text(to: str) -> str:
    """May be sent once only."""
    return f"sent to {to}"


@outlive.step(name="golden.release")
async def release(hold: str) -> None:
    """Undo `book`."""


@outlive.step(name="golden.book", undo=release)
async def book(what: str) -> str:
    """Can be undone."""
    return f"booked {what}"


@outlive.workflow(name="golden.errand")
async def errand() -> None:
    """A tree of its own that waits until it is cancelled."""
    await outlive.wait_for_signal("never")


@outlive.workflow(name="golden.refund")
async def refund(cents: int) -> list[object]:
    """People decide: late, and not at all."""
    outlive.publish(stage="asking", cents=cents)
    is_new = outlive.patched("golden-change")
    answer = await outlive.wait_for_approval(
        "refund",
        title="Refund?",
        assignees=["finance"],
        escalate_after=timedelta(hours=1),
        escalate_to=["head of finance"],
    )
    try:
        async with asyncio.timeout(60):
            await outlive.wait_for_approval("gift")
    except TimeoutError:
        outlive.publish(stage="no gift")
    child = await outlive.start(errand, detached=True, id="golden-errand")
    child.cancel()
    return [answer.by, answer.approved, is_new, await text("ann")]


@outlive.workflow(name="golden.trip")
async def trip() -> None:
    """Rolled back."""
    async with outlive.saga():
        await book("train")
        await book("hotel")
        await refuse()


@outlive.workflow(name="golden.counter")
async def counter(left: int) -> str:
    """Goes on as a new generation."""
    seen = await reserve(f"number {left}")
    if left:
        outlive.continue_as_new(left - 1)
    return seen


@dataclass(frozen=True)
class Sum:
    """A form that a schema cannot describe in full."""

    cents: int

    def __post_init__(self) -> None:
        if self.cents % 2:
            raise ValueError("it is odd")


@outlive.workflow(name="golden.claim")
async def claim() -> list[int]:
    """Takes a number and a form."""
    number = await outlive.wait_for_signal("number", int)
    answer = await outlive.wait_for_approval("sum", form=Sum)
    assert answer.form is not None
    return [number, answer.form.cents]


async def tell_refund(url: str) -> str:
    """Escalated, then approved."""
    async with TestEngine(url) as engine:
        run = await engine.start(refund, 4200, id="golden-refund")
        await engine.skip(hours=2)
        await engine.approvals.approve(run.id, "refund", by="ann", comment="of course")
        await run.result()
        return await engine.export(run.id)


async def tell_trip(url: str) -> str:
    """Undone, newest first."""
    async with TestEngine(url) as engine:
        run = await engine.start(trip, id="golden-trip")
        with suppress(RunFailedError):
            await run.result()
        return await engine.export(run.id)


async def tell_generation(url: str) -> str:
    """The first of two generations."""
    async with TestEngine(url) as engine:
        run = await engine.start(counter, 1, id="golden-counter")
        await run.result()
        return await engine.export("golden-counter~gen1")


async def tell_claim(url: str) -> str:
    """A signal and a decision that the code cannot read, each followed by one that it can."""
    async with TestEngine(url) as engine:
        run = await engine.start(claim, id="golden-claim")
        await engine.signal(run.id, "number", "seven")
        await engine.signal(run.id, "number", 7)
        await engine.skip(hours=1)
        await engine.approvals.approve(run.id, "sum", by="ann", form={"cents": 5})
        await engine.skip(hours=1)
        await engine.approvals.approve(run.id, "sum", by="ann", form={"cents": 6})
        await run.result()
        return await engine.export(run.id)


MORE_STORIES: dict[str, Callable[[str], Awaitable[str]]] = {
    "refund": tell_refund,
    "trip": tell_trip,
    "generation": tell_generation,
    "claim": tell_claim,
}
