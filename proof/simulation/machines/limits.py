"""Shared limits and breakers, watched from outside: whom the store let through, and who called.

The store sees every question to a cell and its answer. A call that is given room is counted, and counted rooms must
fit into the tiers by the arithmetic here, which is not that of the engine: so many in each window, so many in any
period, so many in any stretch of time. An attempt that begins uses up a room, or a permit, that was given to its own
process, and does not begin before the instant of its room. So there are never more calls than rooms; how long a
process stands still between its room and its call is not in the hands of any limit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from typing import Any

import msgspec

from outlive._kernel.model.breaker import Breaker, BreakerState, Permit, Phase
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import FixedWindow, RateLimit, Room, SlidingWindow, TokenBucket
from proof.simulation.loop import SimulatedLoop
from proof.simulation.world import World

WINDOW = FixedWindow(limit=3, seconds=4)
PERIOD = SlidingWindow(limit=4, seconds=4)
BUCKET = TokenBucket(rate=1.5, burst=2)
LIMIT = RateLimit("simulated", WINDOW, PERIOD, BUCKET, shared=True)
IMPATIENT = RateLimit("simulated", WINDOW, PERIOD, BUCKET, shared=True, when_full="fail")
"""The same limit, for those who do not wait."""
BREAKER = Breaker("simulated", failures=2, reset=3, shared=True)
LIMIT_CELL = f"limit/{LIMIT.name}"
BREAKER_CELL = f"breaker/{BREAKER.name}"


class LimitAudit:
    """What the cells of one store let through."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rooms: list[int] = []
        """The instants of all rooms, in their order."""
        self._open: defaultdict[tuple[SimulatedLoop, str], list[int]] = defaultdict(list)
        """The rooms and permits of a process that no attempt has used."""
        self._opened_at = 0

    def changed(self, loop: SimulatedLoop | None, name: str, data: bytes | None, answer: Any) -> None:
        """A process has asked a cell, which holds these bytes now; None if the answer never reaches it. A cell that was
        removed holds none."""
        given, now_at = answer if isinstance(answer, tuple) else (None, 0)
        if isinstance(given, Room):
            self._check_room(given.at)
            self._give(loop, name, given.at)
            if given.at > now_at:
                self._world.sometimes["waited a moment for a limit"] += 1
        elif isinstance(given, Permit):
            self._check_permit(given, now_at)
            self._give(loop, name, now_at)
        if name == BREAKER_CELL and data is not None:
            self._look(msgspec.json.decode(data, type=BreakerState))

    def _give(self, loop: SimulatedLoop | None, name: str, at: int) -> None:
        if loop is not None:
            insort(self._open[loop, name], at)

    def _check_room(self, at: int) -> None:
        insort(self._rooms, at)
        window_at = at - at % round(WINDOW.seconds * MICROSECONDS)
        within = bisect_left(self._rooms, window_at + round(WINDOW.seconds * MICROSECONDS)) - bisect_left(
            self._rooms, window_at
        )
        if within > WINDOW.limit:
            self._world.complain(f"{within} calls were let through into a window of {WINDOW.label}")
        width = round(PERIOD.seconds * MICROSECONDS)
        for first_at in self._rooms[bisect_right(self._rooms, at - width) : bisect_right(self._rooms, at)]:
            within = bisect_left(self._rooms, first_at + width) - bisect_left(self._rooms, first_at)
            if within > PERIOD.limit:
                self._world.complain(f"{within} calls were let through within a period: {PERIOD.label}")
        place = bisect_left(self._rooms, at)
        for first in range(max(0, place - 20), place + 1):
            for last in range(place, min(place + 20, len(self._rooms))):
                seconds = (self._rooms[last] - self._rooms[first]) / MICROSECONDS
                if last - first + 1 > BUCKET.burst + BUCKET.rate * seconds + 1e-6:
                    self._world.complain(f"{last - first + 1} calls were let through in {seconds} s: {BUCKET.label}")
                    return

    def _check_permit(self, permit: Permit, now_at: int) -> None:
        if self._opened_at and now_at < self._opened_at + round(BREAKER.reset * MICROSECONDS) and not self._has_jumped:
            self._world.complain(f"an open breaker gave permit {permit}")
        if permit.is_trial:
            self._world.sometimes["trial of a breaker"] += 1

    def _look(self, state: BreakerState) -> None:
        if state.phase is not Phase.OPEN:
            self._opened_at = 0
        elif not self._opened_at:
            self._opened_at = state.until_at - round(BREAKER.reset * MICROSECONDS)
            self._world.sometimes["breaker opened"] += 1

    def begin(self, loop: SimulatedLoop, name: str, what: str) -> None:
        """A process calls what stands behind a cell."""
        rooms = self._open[loop, name]
        if not rooms:
            self._world.complain(f"{loop.name} called {what}, and {name} had not let it through")
        elif rooms.pop(0) > self._world.now() and not self._has_jumped:
            self._world.complain(f"{loop.name} called {what} before its turn")

    @property
    def _has_jumped(self) -> bool:
        """Whether the clock of the store was set: then it is not known which instant came first."""
        return bool(self._world.skew_seconds)
