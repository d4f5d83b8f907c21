"""How long a worker works whose host ends, and what it still begins.

A function, a job of cron or a container that is stopped at a known time has no next hour. Three instants follow from
how long it may last, on the clock that only goes forward:

    now ............ closes_at ........ stops_at .. the end
    all of its work  begins only steps  releases
                     that surely fit    everything

A step with a timeout fits if its timeout is over before `stops_at`. A step without one has the grace, as when a worker
is asked to stop: it fits before `closes_at`. From then on no run is claimed either, because its next step would most
likely not begin here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from outlive.errors import InvalidArgumentError
from outlive.telemetry import Counters

RELEASE_SECONDS = 1.0
"""How long before its end a worker releases its runs and ends its session."""


class Lifetime:
    """The bounds of one stretch of work.

    Args:
        seconds: how long it may take from now on, with the release at the end; None for no end.
        grace_seconds: how long a step without a timeout may take at the end.
        runs_max: how many runs may be claimed; None for any number.

    Raises:
        InvalidArgumentError: the grace and the release leave nothing of it.
    """

    def __init__(
        self,
        seconds: float | None,
        *,
        grace_seconds: float,
        runs_max: int | None,
        counters: Counters,
        monotonic: Callable[[], float],
    ) -> None:
        if seconds is not None and seconds <= grace_seconds + RELEASE_SECONDS:
            wanted = (
                f"at its end the release takes up to {RELEASE_SECONDS:g} s and before that a step may take "
                f"grace_seconds={grace_seconds:g}, which leaves nothing; give more time, or a shorter grace"
            )
            raise InvalidArgumentError("engine.work", "lifetime", seconds, wanted)
        self._monotonic, self._counters = monotonic, counters
        self._grace_seconds, self._runs_max = grace_seconds, runs_max
        self._began_at = monotonic()
        self.stops_at = math.inf if seconds is None else self._began_at + seconds - RELEASE_SECONDS
        """From then on nothing runs, and everything is released."""
        self.closes_at = self.stops_at - grace_seconds
        """From then on no run is claimed, and no step without a timeout begins."""
        self._claimed = counters.runs_claimed

    @property
    def seconds_left(self) -> float:
        """Until `stops_at`; infinite for a worker without an end, never negative."""
        return max(0.0, self.stops_at - self._monotonic())

    @property
    def seconds_since(self) -> float:
        """For how long it has lasted."""
        return self._monotonic() - self._began_at

    @property
    def grace_left(self) -> float:
        """How long running steps may take to finish if it is to stop now."""
        return min(self._grace_seconds, self.seconds_left)

    @property
    def is_closed(self) -> bool:
        """Whether no more runs are claimed, because the end is near."""
        return self._monotonic() >= self.closes_at

    @property
    def runs_left(self) -> int | None:
        """How many runs may still be claimed; None for no limit."""
        if self.is_closed:
            return 0
        if self._runs_max is None:
            return None
        return max(0, self._runs_max - (self._counters.runs_claimed - self._claimed))

    def fits(self, timeout_seconds: float | None) -> bool:
        """Whether a step with this timeout may begin now."""
        if timeout_seconds is None:
            return not self.is_closed
        return self._monotonic() + timeout_seconds <= self.stops_at

    def lacks(self, call: str, timeout_seconds: float | None, worker: str) -> str:
        """Why a step was not begun, for a person."""
        needed = self._grace_seconds if timeout_seconds is None else timeout_seconds
        kind = "up to its grace of" if timeout_seconds is None else "up to its timeout of"
        return (
            f"step {call} takes {kind} {needed:g} s, and worker {worker} had {self.seconds_left:.3g} s left; "
            f"a worker with more time goes on"
        )
