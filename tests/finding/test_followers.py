"""Followers of runs: when they look again, and when they say that nothing has happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from outlive._kernel.client.followers import Bell, Followers
from outlive._kernel.client.news import NewsReader, Position
from outlive.errors import EngineClosedError, StoreUnavailableError

LOOK_SECONDS, HOUR = 2.0, 3_600.0


class Done(Exception):
    """The test has seen enough."""


class Waits(Bell):
    """Notes for how long it is waited for."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.seconds: list[float] = []
        self._most = most

    async def wait(self, seconds: float) -> None:
        """See `Bell`."""
        self.seconds.append(seconds)
        if len(self.seconds) == self._most:
            raise Done


class OneBell(Followers):
    """Gives every reader the bell of the test."""

    def __init__(self, bell: Bell) -> None:
        super().__init__(lambda _: False)
        self._bell = bell

    @contextmanager
    def following(self, run_id: str) -> Iterator[Bell]:
        """See `Followers`."""
        yield self._bell


class Away:
    """A store that is away."""

    async def info(self, run_id: str) -> Any:
        """See `Access`."""
        raise StoreUnavailableError("the store", "it is away")


async def test_a_follower_waits_between_looks_at_a_store_that_is_away() -> None:
    """It looks again after as long as usual, and does not spin."""
    bell, access, unused = Waits(3), Away(), None
    parts: Any = {"followers": OneBell(bell), "shown": unused, "journals": unused}
    reader = NewsReader(access, **parts)  # type: ignore[arg-type]

    with pytest.raises(Done):
        await anext(reader.news("order-7", Position(), look_seconds=LOOK_SECONDS))

    assert bell.seconds == [LOOK_SECONDS] * 3


def test_a_store_is_asked_once_whether_it_can_ring() -> None:
    """Whatever it says: each reader gets the first answer."""
    for can_ring in (True, False):
        asked: list[bool] = []
        followers = Followers(lambda _, asked=asked, can_ring=can_ring: asked.append(can_ring) or can_ring)  # type: ignore[misc]

        assert [followers.begin(), followers.begin()] == [can_ring, can_ring]
        assert asked == [can_ring]


def test_a_ring_for_a_tree_is_heard_by_the_readers_of_all_its_generations() -> None:
    """Readers of other trees sleep on, and a ring without a tree wakes all of them."""
    followers = Followers(lambda _: False)
    rung: list[str] = []
    with (
        followers.calling("order", lambda: rung.append("order")),
        followers.calling("order~2", lambda: rung.append("order~2")),
        followers.calling("orders", lambda: rung.append("orders")),
    ):
        followers.ring("order~7")
        assert rung == ["order", "order~2"]
        followers.ring("")
        assert rung[2:] == ["order", "order~2", "orders"]

    assert followers.bells == {}


def test_a_reader_that_leaves_does_not_take_the_bell_of_another_one() -> None:
    """Two readers of one tree are rung until each of them has gone."""
    followers = Followers(lambda _: False)
    rung: list[int] = []
    with followers.calling("order", lambda: rung.append(1)):
        with followers.calling("order", lambda: rung.append(2)):
            pass
        followers.ring("order")

    assert rung == [1]


def test_an_engine_that_stops_rings_its_readers_and_takes_no_more() -> None:
    """Each of them looks once more and finds that the engine is closed."""
    followers = Followers(lambda _: False)
    rung: list[int] = []
    followers.check_open()
    with followers.calling("order", lambda: rung.append(1)):
        followers.close()

    assert rung == [1]
    with pytest.raises(EngineClosedError), followers.following("order"):
        raise AssertionError


async def test_a_ring_before_a_look_does_not_end_the_wait_after_it() -> None:
    """The look sees what came before it; what comes later ends one wait, and only one."""
    bell = Bell()
    ends: list[float] = []
    loop = asyncio.get_running_loop()
    bell.ring()
    bell.clear()
    waiting = asyncio.ensure_future(bell.wait(HOUR))
    await asyncio.sleep(0)
    ends.append(waiting.done())
    bell.ring()
    await waiting
    began_at = loop.time()
    await bell.wait(0.001)

    assert ends == [False]
    assert loop.time() - began_at >= 0.001
