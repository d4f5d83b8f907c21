"""Random programs: what a run does, as data, so that its end is known beforehand (see `oracle`).

A program is a list of orders, and an order is a list: its kind, then what it needs. It is the argument of one workflow
(`proof.simulation.play`) that does what it says. Times are in milliseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import msgspec

Order = list[Any]
Program = list[Order]

DEPTH_MAX = 2
COPIED = frozenset(
    ("work", "sleep", "gather", "race", "child", "once", "map", "timeout", "dice", "progress", "limit", "stream")
)
"""What a fork can do again without the world: it sends no message twice, and asks no person twice."""


class Signal(msgspec.Struct, omit_defaults=True):
    """Something that the world will say to a run, after the one before it was acknowledged."""

    name: str
    payload: int | str
    """A number is what programs wait for; a text is set aside."""
    after_seconds: float
    """How long after the run was started, at the earliest."""
    copies: int = 1


class Question(msgspec.Struct, omit_defaults=True):
    """Something that the world will ask a run."""

    name: str
    number: int
    """An even number is answered; an odd one is refused by a validator."""
    after_seconds: float
    copies: int = 1


class Settling(msgspec.Struct, omit_defaults=True):
    """A program outside that will settle a promise of a run. Several of them may want to."""

    name: str
    value: int
    """What it settles the promise with; no two settlers of a promise have the same."""
    after_seconds: float
    is_failure: bool = False
    """Whether it fails the promise, with an error that says the value."""


class Pausing(msgspec.Struct, omit_defaults=True):
    """A person who pauses a run, and resumes it some seconds later."""

    after_seconds: float
    seconds: float


class Forking(msgspec.Struct, omit_defaults=True):
    """A person who forks a run, whatever it is doing then."""

    id: str
    after_seconds: float


class Case(msgspec.Struct, omit_defaults=True):
    """A run: what it does, and what the world does to it."""

    id: str
    program: Program
    """What it does; the legs of a machine (`machines.legs`) if it is one."""
    machine: str = ""
    """The name of the machine; empty for the workflow that plays programs."""
    start_seconds: float = 0.0
    signals: list[Signal] = []
    approvals: list[str] = []
    asks: list[Question] = []
    settlings: list[Settling] = []
    streams: list[str] = []
    """The streams that it emits to."""
    readers: int = 0
    """How many read each of them."""
    pauses: list[Pausing] = []
    forks: list[Forking] = []
    cancel_seconds: float | None = None
    timeout_seconds: float | None = None
    """Of the run as a whole."""
    is_signalled: bool = False
    """Whether its first signal creates it."""
    waiters: int = 0
    """How many wait for its result."""
    queue: str = ""
    """The queue that it waits in, and its key there."""
    key: str = ""
    slots: int = 1
    """How many slots of the queue it takes."""
    is_rare: bool = False
    """Whether only some of the workers have its workflow."""
    starters: int = 1
    """How many ask for it, with the same id."""
    detached: dict[str, Program] = {}
    """The trees that it starts, by id."""

    @property
    def is_repaired(self) -> bool:
        """Whether it fails until a user has repaired what it needs, and retries it."""
        return any(order[0] == "fragile" for order in each_order(self.program)) and not self.machine


class Writer:
    """Writes the program of one run."""

    def __init__(self, chance: random.Random, case: Case, *, seconds: float) -> None:
        self._chance = chance
        self._case = case
        self._seconds = seconds
        self._numbers = 0
        self._kinds: dict[str, Callable[[int], Order]] = {
            "work": self._work,
            "sleep": self._sleep,
            "gather": self._gather,
            "race": self._race,
            "await": self._await,
            "await_or": self._await_or,
            "child": self._child,
            "detached": self._detached,
            "once": self._once,
            "saga": self._saga,
            "map": self._map,
            "timeout": self._timeout,
            "dice": self._dice,
            "progress": self._progress,
            "approve": self._approve,
            "asked": self._asked,
            "limit": self._limit,
            "promise": self._promise,
            "stream": self._stream,
            "fragile": self._fragile,
        }
        # A few kinds for each run: programs that have everything in them are all alike.
        names = [name for name in self._kinds if name in COPIED or not case.forks]
        self._menu = ["work", *chance.sample(names, chance.randint(2, 6))]
        if "fragile" in self._menu:
            # The end of a run refuses its asks for good, and what a saga has rolled back cannot be retried.
            self._menu = [name for name in self._menu if name not in {"asked", "saga"}]

    def write(self) -> None:
        """The whole program, maybe of several generations."""
        case, chance = self._case, self._chance
        case.program = self._orders(chance.randint(1, 5), 0)
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            # Written backwards: each generation ends with the program of the next.
            case.program = [*self._orders(chance.randint(0, 2), 0), ["continue", case.program]]
        if chance.random() < 0.04 and not case.forks:
            case.program.insert(0, ["poison", self._tag()])

    def _orders(self, count: int, depth: int) -> Program:
        return [self._order(depth) for _ in range(count)]

    def _order(self, depth: int) -> Order:
        kind = self._chance.choice(self._menu)
        if depth >= DEPTH_MAX and kind in {"gather", "child", "detached", "timeout"}:
            kind = "work"
        if depth and kind in {"await", "await_or", "approve", "asked", "promise", "stream"}:
            # Signals and asks are for the root run, one name for one wait.
            kind = "sleep"
        if depth >= DEPTH_MAX and kind == "fragile":
            # The program of a run that is started detached, too, and that one is not retried.
            kind = "work"
        return self._kinds[kind](depth)

    def _tag(self) -> str:
        self._numbers += 1
        return f"{self._case.id}.{self._numbers}"

    def _millis(self, most: int) -> int:
        """Mostly short, now and then long."""
        return int(self._chance.random() ** 3 * most)

    def _work(self, depth: int) -> Order:
        budget = self._chance.choice((1, 2, 3, 5))
        fails = self._chance.choice((0, 0, 0, 1, 2, 9)) if budget > 1 else 0
        return ["work", self._tag(), self._millis(3000), fails, budget, self._chance.choice((0, 50, 500, 2500))]

    def _sleep(self, depth: int) -> Order:
        return ["sleep", self._millis(9000)]

    def _gather(self, depth: int) -> Order:
        return ["gather", [self._orders(self._chance.randint(1, 2), depth + 1) for _ in range(2)]]

    def _race(self, depth: int) -> Order:
        return ["race", self._tag(), self._millis(2000), self._millis(2000)]

    def _await(self, depth: int) -> Order:
        name, count = self._tag(), self._chance.choice((1, 1, 2, 3))
        for payload in range(count):
            if self._chance.random() < 0.15:
                self._expect(name, f"no number {payload}", 0.0)
            self._expect(name, payload, self._chance.random() * self._seconds * 0.7)
        return ["await", name, count]

    def _await_or(self, depth: int) -> Order:
        name, millis = self._tag(), 200 + self._millis(6000)
        if self._chance.random() < 0.8:
            # Often meant to meet the timeout of a wait that begins at once.
            self._expect(name, 7, millis / 1000 + self._chance.choice((-0.15, -0.02, 0.0, 0.02, 3.0)))
        return ["await_or", name, millis]

    def _expect(self, name: str, payload: int | str, after_seconds: float) -> None:
        copies = self._chance.choice((1, 1, 1, 2, 3))
        self._case.signals.append(Signal(name, payload, max(0.0, after_seconds), copies))

    def _asked(self, depth: int) -> Order:
        name, count = self._tag(), self._chance.choice((1, 2, 3))
        numbers = [2 * number for number in range(count)]
        numbers += [2 * self._chance.randint(0, 9) + 1] * self._chance.choice((0, 0, 1))
        for number in numbers:
            after = self._chance.random() * self._seconds * 0.5
            self._case.asks.append(Question(name, number, after, self._chance.choice((1, 1, 2))))
        return ["asked", name, count, self._millis(800)]

    def _promise(self, depth: int) -> Order:
        name, chance = self._tag(), self._chance
        # Without a timeout there is always a settler; with one, often just when the time is over.
        millis = chance.choice((0, 200 + self._millis(6000)))
        for value in range(chance.choice((1, 2, 3)) if millis == 0 else chance.choice((0, 1, 2, 3))):
            after = chance.random() * self._seconds * 0.5
            if millis and chance.random() < 0.7:
                after = millis / 1000 + chance.choice((-0.15, -0.02, 0.0, 0.02))
            self._case.settlings.append(Settling(name, value, max(0.0, after), chance.random() < 0.2))
        return ["promise", name, millis]

    def _stream(self, depth: int) -> Order:
        chance, tag = self._chance, self._tag()
        name = chance.choice((tag, "shared"))
        if name not in self._case.streams:
            self._case.streams.append(name)
        own, count = chance.randint(0, 5), chance.randint(0, 8)
        return ["stream", name, tag, own, count, self._millis(3000), chance.choice((0, 0, 1, 2)) if count else 0]

    def _fragile(self, depth: int) -> Order:
        return ["fragile", self._tag(), self._millis(1000)]

    def _child(self, depth: int) -> Order:
        program = self._orders(self._chance.randint(1, 2), depth + 1)
        # Not by chance: the programs of all seeds stay as they were.
        is_flow = crc32(msgspec.json.encode(program)) % 3 == 0
        return ["child", program, "flow"] if is_flow else ["child", program]

    def _detached(self, depth: int) -> Order:
        run_id = f"{self._tag()}d"
        program = self._orders(self._chance.randint(1, 2), DEPTH_MAX)
        self._case.detached[run_id] = program
        return ["detached", run_id, program, self._chance.random() < 0.7]

    def _once(self, depth: int) -> Order:
        return ["once", self._tag(), self._millis(2000)]

    def _saga(self, depth: int) -> Order:
        return ["saga", self._tag(), self._chance.randint(1, 3), self._millis(800), self._chance.random() < 0.5]

    def _map(self, depth: int) -> Order:
        return ["map", self._tag(), self._chance.randint(1, 5), self._chance.randint(1, 3), self._millis(800)]

    def _timeout(self, depth: int) -> Order:
        return ["timeout", 100 + self._millis(4000), self._orders(1, depth + 1)]

    def _dice(self, depth: int) -> Order:
        return ["dice", self._tag()]

    def _progress(self, depth: int) -> Order:
        return ["progress", self._tag(), self._chance.randint(2, 4), self._millis(1200)]

    def _limit(self, depth: int) -> Order:
        return ["limit", self._tag(), self._millis(2000), 50 + self._millis(2000), self._chance.choice((1, 2))]

    def _approve(self, depth: int) -> Order:
        name = self._tag()
        self._case.approvals.append(name)
        return ["approve", name]


def write_cases(chance: random.Random, *, count: int, seconds: float) -> list[Case]:
    """Some runs, for the workers of one seed, that begin within some seconds."""
    cases = []
    for number in range(count):
        case = Case(f"r{number}", [], start_seconds=chance.random() ** 2 * seconds * 0.8)
        case.starters = chance.choice((1, 1, 1, 2))
        case.is_rare = chance.random() < 0.15
        if chance.random() < 0.12:
            times = sorted(chance.random() * seconds * 0.8 for _ in range(chance.choice((1, 2))))
            case.forks = [Forking(f"{case.id}f{place}", after) for place, after in enumerate(times)]
        Writer(chance, case, seconds=seconds).write()
        if case.streams:
            case.readers = chance.choice((1, 1, 2))
        if case.forks:
            pass  # A fork would be cancelled with it.
        elif chance.random() < 0.2:
            case.cancel_seconds = chance.random() ** 2 * 10
        elif chance.random() < 0.1:
            case.timeout_seconds = 1 + chance.random() * 15
        case.is_signalled = bool(case.signals) and case.timeout_seconds is None and chance.random() < 0.3
        case.waiters = chance.choice((0, 0, 1, 2))
        cases.append(case)
    return cases


def each_order(program: Program) -> Iterator[Order]:
    """All orders of a program, those inside others and of later generations too."""
    for order in program:
        yield order
        match order:
            case ["gather", programs]:
                for inner in programs:
                    yield from each_order(inner)
            case (
                ["child" | "continue", inner] | ["child", inner, _] | ["timeout", _, inner] | ["detached", _, inner, _]
            ):
                yield from each_order(inner)
            case _:
                pass


def generations(program: Program) -> list[Program]:
    """What each generation of a run does, without going on as the next."""
    if program and program[-1][0] == "continue":
        return [program[:-1], *generations(program[-1][1])]
    return [program]
