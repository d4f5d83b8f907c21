"""Time, chance and order for everything that is simulated: one thread, one seed, and the same story every time.

The world knows loops (one for each simulated process) and plain events (a request arrives at the store, a process is
killed). It lets one loop after the other take its turn, in an order drawn from the seed, until no loop has anything to
do at this instant. Then the time jumps to the next thing that is due.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from outlive._kernel.model.instant import MICROSECONDS
from outlive.testing.clock import EPOCH
from proof.simulation.loop import SimulatedLoop
from proof.simulation.signals import Interruption

TURNS_MAX = 400_000
"""Turns of loops in one episode: one that needs more will never end."""


class World:
    """The time, the order of things, and the record of what happened."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(f"outlive simulation {seed}")
        self.seconds = 0.0
        self.skew_seconds = 0.0
        """How much the store's clock, and with it every other, was set forward so far."""
        self.sometimes: Counter[str] = Counter()
        """How often each interesting situation happened."""
        self.trace: list[tuple[float, str, str, tuple[Any, ...]]] = []
        """What happened: when, where, and a text with what goes into it."""
        self.violations: list[str] = []
        self.interruption = Interruption()
        self.turns = 0
        self.killed: Callable[[SimulatedLoop], None] = lambda loop: None
        """Called with the loop of a process that has died of its fuse."""
        self._active: list[SimulatedLoop] = []
        self._heap: list[tuple[float, int, SimulatedLoop | None, Any]] = []
        self._order = 0

    def new_random(self, what: str) -> random.Random:
        """Chance for one part of the world, which the others do not disturb."""
        return random.Random(f"{what} of outlive simulation {self.seed}")

    # -- The record ------------------------------------------------------------------------------------------

    def note(self, where: str, text: str, *values: Any) -> None:
        """Remember what happened, for people."""
        self.trace.append((self.seconds, where, text, values))

    def complain(self, what: str) -> None:
        """Something went wrong that must not go wrong, whatever the faults."""
        self.note("!!!!", "%s", what)
        self.violations.append(f"at {self.seconds:.6f} s: {what}")

    # -- Time ------------------------------------------------------------------------------------------------

    def now(self) -> int:
        """The true time, in microseconds since 1970 UTC: that of the store."""
        return EPOCH + round((self.seconds + self.skew_seconds) * MICROSECONDS)

    def after(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Let something happen later."""
        self._push(self.seconds + seconds, None, partial(call, *args) if args else call)

    def call_loop_at(self, when: float, loop: SimulatedLoop, handle: asyncio.TimerHandle) -> None:
        """See `Timekeeper`."""
        self._push(max(when, self.seconds), loop, handle)

    def _push(self, when: float, loop: SimulatedLoop | None, what: Any) -> None:
        self._order += 1
        heapq.heappush(self._heap, (when, self._order, loop, what))

    def has_ready(self, loop: SimulatedLoop) -> None:
        """See `Timekeeper`."""
        if not loop.is_active and not loop.is_paused:
            loop.is_active = True
            self._active.append(loop)

    def resumed(self, loop: SimulatedLoop) -> None:
        """A paused loop takes its turns again."""
        if loop.ready:
            self.has_ready(loop)

    # -- The motor -------------------------------------------------------------------------------------------

    def run_until(self, seconds: float, is_done: Callable[[], bool] | None = None) -> bool:
        """Let everything happen until an instant, or until it is done; False if neither came: it ran in circles."""
        while not self.violations:
            self.interruption.check()
            if self._active:
                if not self._take_turn():
                    return False
                continue
            if is_done is not None and is_done():
                return True
            if not self._heap or self._heap[0][0] > seconds:
                self.seconds = seconds
                return True
            self._let_happen()
        return True

    def _take_turn(self) -> bool:
        active = self._active
        place = self.random.randrange(len(active)) if len(active) > 1 else 0
        loop = active[place]
        self.turns += 1
        if self.turns > TURNS_MAX:
            self.complain(f"{loop.name} runs in circles: {TURNS_MAX} turns")
            return False
        if not loop.is_dead and not loop.is_paused and not loop.run_turn():
            self.killed(loop)
        if not loop.ready or loop.is_dead or loop.is_paused:
            loop.is_active = False
            del active[place]
        return True

    def _let_happen(self) -> None:
        """The next thing of which the time has come."""
        when, _, loop, what = heapq.heappop(self._heap)
        self.seconds = max(self.seconds, when)
        if loop is None:
            what()
        elif what.cancelled():
            pass
        else:
            # A paused loop finds it when it goes on; a dead one keeps it for ever.
            loop.make_ready(what)
