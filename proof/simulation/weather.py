"""What goes wrong between the processes and the store: lost answers, requests that arrive late or never, slow disks."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass

from proof.simulation.plan import FixedTrip, Rates
from proof.simulation.world import World

LATE_SECONDS_MAX = 8.0
"""How long after its sender has got "outcome unknown" a write may still arrive."""


class Fate(enum.Enum):
    """What becomes of one request to the store."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """Nothing happened, and the sender gets an error that says so."""
    UNANSWERED = "done, not answered"
    LOST = "lost, not answered"
    LATE = "not answered, done later"


@dataclass(frozen=True, slots=True)
class Trip:
    """One request: how long it travels, and what becomes of it."""

    fate: Fate
    there_seconds: float
    back_seconds: float
    late_seconds: float = 0.0
    """How much later a request arrives that was given up."""


class Weather:
    """The network and the disk of the store."""

    def __init__(self, world: World, rates: Rates, fixed: list[FixedTrip]) -> None:
        self._random = world.new_random("weather")
        self._rates = rates
        self._fixed = {(it.process, it.verb, it.number): it for it in fixed}
        self._numbers: Counter[tuple[str, str]] = Counter()
        self.is_down = False
        self.is_healed = False

    def heal(self) -> None:
        """From now on everything works."""
        self._rates = Rates()
        self._fixed.clear()
        self.is_down, self.is_healed = False, True

    def trip(self, process: str, verb: str, *, is_write: bool) -> Trip:
        """What becomes of the next request of a process."""
        fate = self.fate(is_write=is_write)
        late = self._random.random() ** 2 * LATE_SECONDS_MAX if fate is Fate.LATE else 0.0
        trip = Trip(fate, self._travel_seconds(), self._travel_seconds(), late)
        if not self._fixed:
            return trip
        self._numbers[process, verb] += 1
        fixed = self._fixed.get((process, verb, self._numbers[process, verb]))
        if fixed is None:
            return trip
        there = trip.there_seconds if fixed.there_seconds is None else fixed.there_seconds
        back = trip.back_seconds if fixed.back_seconds is None else fixed.back_seconds
        return Trip(Fate(fixed.fate), there, back, fixed.late_seconds)

    def _travel_seconds(self) -> float:
        """How long one way takes, with the time that the store's disk takes."""
        chance, rates = self._random, self._rates
        seconds = rates.base_seconds * (0.5 + chance.random())
        if rates.slow and chance.random() < rates.slow:
            seconds += chance.random() * rates.slow_seconds
        return seconds

    def fate(self, *, is_write: bool) -> Fate:
        """What becomes of a request by the rates."""
        rates, dice = self._rates, self._random.random()
        kinds = [(rates.refused, Fate.REFUSED)]
        if is_write:
            kinds += [(rates.unanswered, Fate.UNANSWERED), (rates.lost, Fate.LOST), (rates.late, Fate.LATE)]
        for rate, fate in kinds:
            if dice < rate:
                return fate
            dice -= rate
        return Fate.ANSWERED
