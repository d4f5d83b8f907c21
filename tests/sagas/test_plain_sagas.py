"""A saga outside of runs, as tests of a program call it: it waits for what works in it, and undoes all of it."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from tests.engine.support import stage, turns_of_the_loop


@outlive.step
async def give_back_thing(thing: str) -> None:
    await stage.gate("give back").pass_through()
    stage.call(f"gave back {thing}")


@outlive.step(undo=give_back_thing)
async def take_thing(thing: str) -> str:
    return thing


async def test_roll_back_goes_on_when_its_caller_is_cancelled() -> None:
    """The caller is cancelled when everything is undone."""

    async def block() -> None:
        async with outlive.saga():
            await take_thing("a")
            raise ValueError("no")

    calling = asyncio.create_task(block())
    await turns_of_the_loop(10)
    for _ in range(2):
        calling.cancel()
        await turns_of_the_loop(5)
    assert not calling.done()

    stage.gate("give back").open()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert stage.count("gave back a") == 1


async def test_tasks_of_a_saga_have_ended_before_anything_is_undone() -> None:
    """A task that still takes things would leave some of them behind."""
    stage.gate("give back").open()
    ended: list[int] = []
    staying: list[asyncio.Task[None]] = []

    async def take_and_stay() -> None:
        await take_thing("b")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await turns_of_the_loop(5)
            ended.append(stage.count("gave back a") + stage.count("gave back b"))

    async def block() -> None:
        async with outlive.saga():
            staying.append(asyncio.create_task(take_and_stay()))
            await take_thing("a")
            await turns_of_the_loop(5)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await block()

    assert staying[0].cancelled()
    assert ended == [0]
    assert (stage.count("gave back a"), stage.count("gave back b")) == (1, 1)
