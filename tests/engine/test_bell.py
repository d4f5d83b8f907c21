"""A bell: a sleeper wakes up when it rings or when its time is over, and no ring is lost."""

from __future__ import annotations

import asyncio

from outlive._runtime.wakeup import Wakeup
from tests.engine.support import in_time, turns_of_the_loop


def sleeps(bell: Wakeup) -> bool:
    """Whether a caller does now."""
    return bell.has_sleeper


async def test_ring_wakes_the_sleeper() -> None:
    """At once, and only this once."""
    bell = Wakeup()
    assert not sleeps(bell)
    sleeping = asyncio.ensure_future(bell.sleep(None))
    await turns_of_the_loop(2)
    assert sleeps(bell)
    bell.ring()
    bell.ring()
    assert not sleeps(bell)
    await in_time(sleeping)
    again = asyncio.ensure_future(bell.sleep(None))
    await turns_of_the_loop(3)
    assert not again.done()
    again.cancel()
    await asyncio.wait([again])
    assert not sleeps(bell)


async def test_ring_without_a_sleeper_is_kept_for_the_next_one() -> None:
    """For one of them, who does not sleep at all."""
    bell = Wakeup()
    bell.ring()
    await in_time(bell.sleep(None))
    sleeping = asyncio.ensure_future(bell.sleep(1_000))
    await turns_of_the_loop(3)
    assert not sleeping.done()
    bell.ring()
    await in_time(sleeping)


async def test_sleep_ends_when_its_time_is_over() -> None:
    """A sleep of no time is none, and takes no turn of the loop; a ring of before is spent all the same."""
    bell = Wakeup()
    await in_time(bell.sleep(0.001))
    loop = asyncio.get_running_loop()
    turned: list[bool] = []
    loop.call_soon(turned.append, True)
    await bell.sleep(0)
    assert [] == turned
    bell.ring()
    await bell.sleep(0)
    sleeping = asyncio.ensure_future(bell.sleep(1_000))
    await turns_of_the_loop(3)
    assert not sleeping.done()
    bell.ring()
    await in_time(sleeping)


async def test_sleeper_that_is_woken_leaves_no_alarm() -> None:
    """The alarm of a sleep that a ring has ended does not end the next one."""
    bell = Wakeup()
    first = asyncio.ensure_future(bell.sleep(0.01))
    await turns_of_the_loop(2)
    bell.ring()
    await in_time(first)
    second = asyncio.ensure_future(bell.sleep(1_000))
    await asyncio.sleep(0.02)
    assert not second.done()
    bell.ring()
    await in_time(second)
