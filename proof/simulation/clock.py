"""The clock of one simulated process: it may be wrong, and jump; and the keeper's thread, which may be late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import Alarm
from proof.simulation.loop import SimulatedLoop
from proof.simulation.world import World

KEEPER = "outlive-keeper"


class SimulatedClock:
    """What a process takes for the time. Its wall clock is off by `skew_seconds`; its monotonic one cannot be set."""

    def __init__(self, world: World, loop: SimulatedLoop) -> None:
        self._world = world
        self._loop = loop
        self._random = world.new_random(loop.name)
        self.skew_seconds = 0.0
        self.lateness: Callable[[], float] = lambda: 0.0
        """How long the keeper's request is under way."""
        self._sent_seconds_ago = 0.0

    def now(self) -> int:
        """See `Clock`."""
        return self._world.now() + round(self.skew_seconds * MICROSECONDS)

    def monotonic(self) -> float:
        """See `Clock`."""
        return self._world.seconds - self._sent_seconds_ago

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        """See `Clock`."""
        return self._loop.call_later(seconds, callback)

    def random(self) -> float:
        """See `Clock`."""
        return self._random.random()

    def nonce(self) -> int:
        """See `Clock`."""
        return self._random.getrandbits(63)

    def new_id(self) -> str:
        """See `Clock`."""
        return f"{self._loop.name}-{self._random.getrandbits(40):010x}"

    def spawn(self, target: Callable[[], None], *, name: str) -> None:
        """See `Clock`: a thread would bring its own time."""
        raise NotImplementedError(f"thread {name}: there are none here; simulate async steps only")

    def pulse(self, beats: Generator[float, None, None], *, name: str) -> Callable[[], None]:
        """See `Clock`: beside the loop, as a thread is, and paused and killed with the process."""
        is_over = False

        def wait() -> None:
            try:
                pause = next(beats)
            except StopIteration:
                return
            self._world.after(pause, send)

        def send() -> None:
            late = self.lateness() if name == KEEPER else 0.0
            self._world.after(late, arrive, late)

        def arrive(late: float) -> None:
            if is_over or self._loop.is_dead:
                return
            if self._loop.is_paused:
                # Looked at again when the process may have gone on; what it sent is older by then.
                self._world.after(0.05, arrive, late + 0.05)
                return
            self._sent_seconds_ago = late
            try:
                wait()
            finally:
                self._sent_seconds_ago = 0.0

        def stop() -> None:
            nonlocal is_over
            is_over = True
            with suppress(ValueError):  # It stops itself, from inside.
                beats.close()

        wait()
        return stop


def running_loop() -> SimulatedLoop:
    """The process that runs now."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulatedLoop)
    return loop
