"""The server's clock, as seen from here."""

from __future__ import annotations

from typing import Any

import pytest

from outlive._kernel.store.postgres.time import StoreTime

SECOND = 1_000_000


class FarServer:
    """A server whose answers take their time, and whose clock goes its own way."""

    def __init__(self, *, round_trip: int) -> None:
        self.now = 0
        self.offset = 0
        self.round_trip = round_trip
        self.asked = 0

    async def fetch(self, name: str) -> list[tuple[int]]:
        """Its clock, read half way."""
        assert name == "read_clock"
        self.asked += 1
        self.now += self.round_trip
        return [(self.now - self.round_trip // 2 + self.offset,)]


@pytest.mark.parametrize("round_trip", [1_000, 400_000])
async def test_clock_that_jumps_is_noticed(round_trip: int) -> None:
    """A jump of the server's clock is noticed over a slow line as over a fast one, with no more requests."""
    server: Any = FarServer(round_trip=round_trip)
    time = StoreTime(lambda: server.now, is_given=False)
    await time.measure(server)
    assert time.now() == server.now

    server.offset = 3600 * SECOND
    for _ in range(30):
        server.now += SECOND
        await time.measure(server)

    assert time.now() == server.now + 3600 * SECOND
    assert server.asked <= 4


async def test_answer_that_was_late_for_once_says_nothing() -> None:
    """Half of the delay would be taken for a difference of the clocks."""
    server: Any = FarServer(round_trip=1_000)
    time = StoreTime(lambda: server.now, is_given=False)
    await time.measure(server)

    server.now += 60 * SECOND
    server.round_trip, server.offset = 10 * SECOND, 5 * SECOND
    await time.measure(server)

    assert time.now() == server.now


@pytest.mark.parametrize(("times", "counts"), [(2, True), (2.1, False)])
async def test_answer_over_a_slow_line_may_take_twice_as_long_as_before(times: float, *, counts: bool) -> None:
    """A line that becomes slower is believed step by step, one that is late for once is not."""
    server: Any = FarServer(round_trip=400_000)
    time = StoreTime(lambda: server.now, is_given=False)
    await time.measure(server)

    server.now += 60 * SECOND
    server.round_trip, server.offset = round(400_000 * times), 5 * SECOND
    await time.measure(server)

    assert time.now() == server.now + (5 * SECOND if counts else 0)
