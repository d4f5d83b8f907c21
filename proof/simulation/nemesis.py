"""What happens to the processes: they are killed, stopped, paused past their lease, and given a wrong clock.

All of it is in the plan. At the end everything is healed, and then there is no excuse.
"""

from __future__ import annotations

from collections.abc import Callable

from proof.simulation.plan import Strike
from proof.simulation.process import Parts, Process


class Nemesis:
    """Does the faults of a plan."""

    def __init__(self, parts: Parts, workers: list[Process], replace: Callable[[Process], None]) -> None:
        self._parts = parts
        self._world = parts.world
        self._workers = workers
        self._replace = replace
        self._random = parts.world.new_random("nemesis")
        self.is_healed = False

    def expect(self, strikes: list[Strike]) -> None:
        """Do all this at its time."""
        for strike in strikes:
            self._world.after(strike.at, self._strike, strike)

    def _strike(self, strike: Strike) -> None:
        if self.is_healed:
            return
        seconds = strike.seconds
        if strike.kind == "outage":
            self._begin_outage(seconds)
            return
        if strike.kind == "store jump":
            self._world.skew_seconds += seconds
            self._world.note("store", "its clock, and all others, are set by %.3f s", seconds)
            self._world.sometimes["clock of the store jumped"] += 1
            return
        victim = self._workers[strike.worker]
        if not victim.is_alive:
            return
        match strike.kind:
            case "kill":
                victim.loop.fuse = strike.fuse
            case "pause":
                self._pause(victim, seconds)
            case "clog":
                victim.loop.clogged_until = self._world.seconds + seconds
                self._world.note(victim.name, "cannot reach the store for %.3f s", seconds)
                if seconds > self._parts.lease_seconds:
                    self._world.sometimes["cut off longer than its lease"] += 1
            case "stop":
                victim.stop(lambda: self._replace(victim))
            case "jump":
                victim.clock.skew_seconds = seconds
                self._world.note(victim.name, "its clock is off by %.3f s", seconds)
                self._world.sometimes["clock jumped"] += 1
            case "late keeper":
                victim.clock.lateness = lambda: self._random.random() * seconds
                self._world.note(victim.name, "its keeper is late by up to %.3f s", seconds)
                self._world.sometimes["keeper late"] += 1
            case _:
                raise AssertionError(f"no such strike: {strike}")

    def _begin_outage(self, seconds: float) -> None:
        weather = self._parts.weather
        weather.is_down = True
        self._world.note("store", "is down for %.3f s", seconds)
        if seconds > self._parts.lease_seconds:
            self._world.sometimes["store down longer than a lease"] += 1
        self._world.after(seconds, self._end_outage)

    def _end_outage(self) -> None:
        self._parts.weather.is_down = False
        self._world.note("store", "is back")

    def _pause(self, victim: Process, seconds: float) -> None:
        if victim.loop.is_paused:
            return
        victim.pause()
        if seconds > self._parts.lease_seconds:
            self._world.sometimes["paused longer than its lease"] += 1
        self._world.after(seconds, victim.go_on)

    def heal(self) -> None:
        """Everything works from now on."""
        self.is_healed = True
        self._world.note("store", "all faults end here")
        for worker in self._workers:
            worker.go_on()
            worker.loop.fuse = None
            worker.loop.clogged_until = 0.0
            worker.clock.skew_seconds = 0.0
            worker.clock.lateness = lambda: 0.001
