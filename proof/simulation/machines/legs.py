"""What a machine does, as data: a list of legs, and a leg is a list: its kind, its tag, then what it needs.

Times are in milliseconds. `course` says what must come of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from proof.simulation.program import Case, Signal

Leg = list[Any]
Legs = list[Leg]

MACHINES = ("simulated.short", "simulated.middle", "simulated.long", "simulated.endless")
"""By how long their journals may grow; the last one takes no snapshots."""
ATTEMPTS = 3
"""Of a state; who fails as often fails for good."""
UNDO_ATTEMPTS = 2
"""Of an undo; then its run is parked, and an operator lets it go on."""
BRANCHES = ("a", "b", "c")
UNDOABLE_BRANCHES = ("a", "b")


class LegWriter:
    """Writes the legs of one run."""

    def __init__(self, chance: random.Random, case: Case, *, seconds: float) -> None:
        self._chance = chance
        self._case = case
        self._seconds = seconds
        self._numbers = 0
        self._kinds: dict[str, Callable[[], Leg]] = {
            "work": self._work,
            "timer": self._timer,
            "book": self._book,
            "loop": self._loop,
            "split": self._split,
            "poll": self._poll,
            "stepped": self._stepped,
            "batch": self._batch,
            "ask": self._ask,
            "limited": self._limited,
            "fragile": self._fragile,
            "once": self._once,
            "slow": self._slow,
            "trip": self._trip,
        }
        self._menu = ["book", *chance.sample(list(self._kinds), chance.randint(2, 5))]

    def write(self) -> None:
        """All legs, with an exit at their end."""
        chance, case = self._chance, self._case
        case.program = [self._kinds[chance.choice(self._menu)]() for _ in range(chance.randint(2, 6))]
        if chance.random() < 0.35:
            # Something that can be undone before it, and then the end of all retries.
            case.program += [self._book(), self._failing()]
        if chance.random() < 0.03:
            case.program.insert(chance.randint(0, len(case.program)), ["poison", self._tag()])
        case.program.append(["end", chance.choice(("DONE", "LOST"))])

    def _tag(self) -> str:
        self._numbers += 1
        return f"{self._case.id}.{self._numbers}"

    def _millis(self, most: int) -> int:
        """Mostly short, now and then long."""
        return int(self._chance.random() ** 2 * most)

    def _failing(self) -> Leg:
        if self._chance.random() < 0.5:
            return ["work", self._tag(), self._millis(500), ATTEMPTS]
        fails = [False, False, False]
        fails[self._chance.randrange(3)] = True
        return ["split", self._tag(), [self._millis(2000) for _ in BRANCHES], fails]

    def _work(self) -> Leg:
        return ["work", self._tag(), self._millis(2000), self._chance.choice((0, 0, 1, 2))]

    def _timer(self) -> Leg:
        return ["timer", self._tag(), self._millis(300), 0, self._millis(8000)]

    def _book(self) -> Leg:
        turns = self._chance.choice((1, 1, 2, 6))
        undo_fails = self._chance.choice((0, 0, 0, 1, 1, 3))
        return ["book", self._tag(), turns, self._millis(1500), self._chance.choice((0, 0, 1)), undo_fails]

    def _loop(self) -> Leg:
        return ["loop", self._tag(), self._chance.choice((3, 8, 20, 30)), self._millis(300)]

    def _split(self) -> Leg:
        kind = self._chance.choice(("split", "any", "quorum", "part"))
        fails = [kind != "split" and place == self._chance.randrange(6) for place in range(3)]
        if kind == "quorum" and sum(fails) > 1:
            fails = [True, False, False]
        return [kind, self._tag(), [self._millis(2500) for _ in BRANCHES], fails]

    def _once(self) -> Leg:
        return ["once", self._tag(), self._millis(2000)]

    def _slow(self) -> Leg:
        return ["slow", self._tag(), self._millis(1500)]

    def _trip(self) -> Leg:
        """A machine in a machine."""
        tag = self._tag()
        menu = (self._book, self._book, self._split, self._loop, self._timer)
        legs = [self._chance.choice(menu)() for _ in range(self._chance.randint(1, 2))]
        if self._chance.random() < 0.2:
            legs.append(self._failing())
        return ["trip", tag, [*legs, ["end", "DONE"]]]

    def _poll(self) -> Leg:
        return ["poll", self._tag(), self._chance.randint(0, 4), self._millis(3000), self._millis(500)]

    def _stepped(self) -> Leg:
        return ["stepped", self._tag(), self._chance.choice((2, 5, 12)), self._millis(600)]

    def _batch(self) -> Leg:
        count = self._chance.randint(1, 5)
        return ["batch", self._tag(), count, self._millis(800), self._chance.randrange(count * 2)]

    def _ask(self) -> Leg:
        name, count = self._tag(), self._chance.choice((0, 1, 1, 2))
        for payload in range(count):
            if self._chance.random() < 0.15:
                self._case.signals.append(Signal(name, f"no number {payload}", 0.0))
            after = self._chance.random() * self._seconds * 0.5
            self._case.signals.append(Signal(name, payload, after, self._chance.choice((1, 1, 2))))
        return ["ask", name, count, self._millis(1000)]

    def _limited(self) -> Leg:
        return ["limited", self._tag(), self._chance.choice((1, 3, 6)), self._millis(400)]

    def _fragile(self) -> Leg:
        return ["fragile", self._tag(), self._millis(400), self._chance.choice((0, 1, 2))]


def each_leg(legs: Legs) -> Iterator[Leg]:
    """All legs, those of machines inside too."""
    for leg in legs:
        yield leg
        if leg[0] == "trip":
            yield from each_leg(leg[2])


def write_machines(chance: random.Random, *, count: int, seconds: float) -> list[Case]:
    """Some runs of machines, that begin within some seconds."""
    cases = []
    for number in range(count):
        case = Case(f"m{number}", [], start_seconds=chance.random() ** 2 * seconds * 0.6)
        case.machine = chance.choice(MACHINES)
        case.starters = chance.choice((1, 1, 1, 2))
        LegWriter(chance, case, seconds=seconds).write()
        # Also both of them: the cancel wins if it reaches the run.
        if chance.random() < 0.25:
            case.cancel_seconds = chance.random() * 15
        if chance.random() < 0.15:
            case.timeout_seconds = 1 + chance.random() * 15
        case.is_signalled = bool(case.signals) and case.timeout_seconds is None and chance.random() < 0.3
        case.waiters = chance.choice((0, 0, 1))
        cases.append(case)
    return cases
