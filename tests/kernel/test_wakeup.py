"""What a reader waits for: each wait ends with a ring of its own, or with its own time."""

from __future__ import annotations

import asyncio

import pytest

from outlive._kernel.client.followers import Bell

TURNS = 50


async def is_done_within_turns(waiting: asyncio.Task[None]) -> bool:
    """Whether a task ends within some turns of the event loop."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
    return waiting.done()


@pytest.mark.parametrize("rings", [1, 0])
async def test_wait_after_an_ended_wait_waits_again(rings: int) -> None:
    """A loop around `wait` that does not clear the bell would otherwise never give way to the event loop again."""
    bell = Bell()
    for _ in range(rings):
        bell.ring()
    await asyncio.wait_for(bell.wait(3600 if rings else 0), 10)

    second = asyncio.create_task(bell.wait(3600))
    is_done = await is_done_within_turns(second)

    second.cancel()
    assert not is_done


async def test_ring_between_two_waits_ends_the_second() -> None:
    """A ring that comes while nothing waits ends the next wait at once."""
    bell = Bell()
    bell.ring()

    await asyncio.wait_for(bell.wait(3600), 10)
