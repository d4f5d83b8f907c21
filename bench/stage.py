"""What steps and runs do besides returning: leave time stamps, wait to be killed, be counted.

A measured process has one stage. The bodies of both systems call it in the same places, so what a step costs
besides its system is the same for both, and a few tens of nanoseconds.
"""

from __future__ import annotations

import asyncio
import time


async def until_killed() -> None:
    """Wait for the SIGKILL that ends a `prepare` process."""
    await asyncio.Event().wait()


class Stage:
    """The counters of one measured process."""

    def __init__(self) -> None:
        self.stamps: list[float] = []
        self.killed_at = 0
        """The step that never returns, by its place among the stamps; 0 for none."""
        self.has_gate = False
        self.at_gate = 0
        self.ended = 0
        self.last_ended_at = 0.0
        """When the last awaited run reached its end, on the wall clock."""
        self._wanted = 0
        self._arrived = asyncio.Event()

    def expect(self, count: int) -> None:
        """From now on wait for so many arrivals, at the gate or at the end."""
        self._wanted = count
        self._arrived.clear()

    async def wait_for_arrival(self) -> None:
        """Wait until as many as expected have arrived."""
        await self._arrived.wait()

    async def pass_stamp(self) -> None:
        """Note that a step of a long run has begun."""
        self.stamps.append(time.perf_counter())
        if len(self.stamps) == self.killed_at:
            self._arrived.set()
            await until_killed()

    async def pass_gate(self) -> None:
        """Be held, if this is the process that will be killed."""
        if self.has_gate:
            self.at_gate += 1
            if self.at_gate == self._wanted:
                self._arrived.set()
            await until_killed()

    def reach_end(self) -> None:
        """Note that the body of a run has nothing left to wait for."""
        self.ended += 1
        if self.ended == self._wanted:
            # Not time.time(): inside a run an engine may put its own clock there.
            self.last_ended_at = time.clock_gettime(time.CLOCK_REALTIME)
            self._arrived.set()


STAGE = Stage()
