"""The plan of an episode: everything that is drawn from the seed before the first instant, as data.

A plan can also be written by hand, or kept: the museum (`tests/simulation/museum`) holds plans that once found a bug.
They stay what they are when the drawing changes. What is not in the plan (how long each request travels, which of them
a rate hits) is drawn from the seed while it is played.
"""

from __future__ import annotations

import random
from typing import get_args

import msgspec

from outlive._features.schedules.schedule import Overlap
from proof.simulation.machines.legs import MACHINES, write_machines
from proof.simulation.program import Case, Pausing, write_cases
from proof.simulation.queues import KEYS, QUEUES, SLOTS

FAULT_SECONDS = 25.0
ATTEMPTS_MAX = 4
"""A run that kills more workers than this, one after the other, is quarantined."""
KINDS = ("kill", "kill", "pause", "stop", "outage", "clog", "jump", "store jump", "late keeper")
FUSE_MAX = 60
DELETES_PER_SECOND = 2
"""How many runs a worker with rules of retention deletes in a second at most."""
WORKFLOWS = ("simulated.play", "simulated.rare", *MACHINES)


class Rates(msgspec.Struct, omit_defaults=True):
    """How likely each fault is for one request to the store, and how long requests travel."""

    refused: float = 0.0
    unanswered: float = 0.0
    lost: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 0.0
    base_seconds: float = 0.001


class FixedTrip(msgspec.Struct, omit_defaults=True):
    """What becomes of one request, whatever the rates say."""

    process: str
    """As in the trace: `w0.1` is the first life of the first worker."""
    verb: str
    number: int
    """Which request of this verb by this process, from 1."""
    fate: str = "answered"
    """See `Fate`."""
    there_seconds: float | None = None
    back_seconds: float | None = None
    late_seconds: float = 0.0


class Strike(msgspec.Struct, omit_defaults=True):
    """Something that happens to a worker, or to the store."""

    at: float
    kind: str
    worker: int = 0
    seconds: float = 0.0
    """How long a pause or an outage lasts, or how wrong a clock or a keeper is."""
    fuse: int = 0
    """After how many more callbacks a killed process dies."""


class WholePause(msgspec.Struct, omit_defaults=True):
    """A person who pauses a workflow, or everything, and resumes it some seconds later."""

    at: float
    seconds: float
    workflow: str = ""
    """Empty for everything."""


class Scheduled(msgspec.Struct, omit_defaults=True):
    """A schedule, which a user makes."""

    name: str
    overlap: Overlap
    at: float
    """When it is made."""
    seconds: float
    """Between two ticks."""
    until_seconds: float
    """When it is over, by the clock of the store."""
    millis: int
    """How long its runs take."""


class Purging(msgspec.Struct, omit_defaults=True):
    """A person who deletes runs that have ended."""

    prefix: str
    """Of their ids."""
    at: float
    kept_seconds: float
    """How long ago they must have ended, by the clock of the store."""


class Keeping(msgspec.Struct, omit_defaults=True):
    """A rule of retention that every worker has, and the starts of the runs that it is for."""

    starts: list[float]
    kept_seconds: float
    """How long they stay when they have ended."""
    grace_seconds: float
    """How long a blob stays that no row names."""
    jumped_seconds: float = 0.0
    """How far the clock of the store is set forward, in all: so much earlier a rule may come."""


class Plan(msgspec.Struct, omit_defaults=True):
    """One episode."""

    seed: int
    workers: int = 2
    lease_seconds: float = 4.0
    poll_seconds: float = 0.5
    overlaps: bool = False
    """Whether committers work on answers while the next batch is written, as they do with a server."""
    sees_dead: bool = False
    """Whether workers see that a neighbour has died, as those of one machine do."""
    false_alarms: float = 0.0
    """How likely a look at the neighbours takes a living one for dead."""
    is_named: bool = False
    """Whether a worker that comes back is known by its name."""
    rings: bool = True
    """Whether the store tells workers that something may be due, as PostgreSQL does."""
    replayed_rows: int = 0
    """How many events of a journal are read at once, and then each is a slice; 0 for replays in one go."""
    limits: dict[str, int] = {}
    rates: Rates = msgspec.field(default_factory=Rates)
    cases: list[Case] = []
    pauses: list[WholePause] = []
    schedules: list[Scheduled] = []
    purges: list[Purging] = []
    keeping: Keeping | None = None
    strikes: list[Strike] = []
    fixed: list[FixedTrip] = []
    fault_seconds: float = FAULT_SECONDS
    what: str = ""
    """What it found, for the museum."""


def draw(seed: int) -> Plan:
    """The plan of a seed.

    Most seeds have only some kinds of faults, at rates of their own: faults that never come alone hide one another.
    """
    chance = random.Random(f"plan of outlive simulation {seed}")
    lease = chance.choice((2.0, 4.0))
    workers = chance.choice((1, 2, 3, 3))
    plan = Plan(
        seed=seed,
        workers=workers,
        lease_seconds=lease,
        poll_seconds=chance.choice((0.5, 1.0)),
        overlaps=chance.random() < 0.5,
        rings=chance.random() < 0.7,
        limits=_limits(chance),
        rates=Rates(
            refused=chance.choice((0.0, 0.0, 0.02, 0.1)),
            unanswered=chance.choice((0.0, 0.0, 0.02, 0.1)),
            lost=chance.choice((0.0, 0.0, 0.02, 0.08)),
            late=chance.choice((0.0, 0.0, 0.0, 0.04)),
            slow=chance.choice((0.0, 0.0, 0.05, 0.2)),
            slow_seconds=chance.choice((0.1, 0.5, 3.0)),
            base_seconds=chance.choice((0.0002, 0.002, 0.01)),
        ),
        cases=_waiting(seed, _cases(seed, write_cases(chance, count=chance.randint(1, 6), seconds=FAULT_SECONDS))),
        strikes=[*_strikes(chance, workers=workers, lease=lease), *_kills(seed, workers=workers)],
        sees_dead=chance.random() < 0.4,
        false_alarms=chance.choice((0.0, 0.0, 0.0, 0.03)),
        is_named=chance.random() < 0.4,
        pauses=_pauses(seed),
        schedules=_schedules(seed),
    )
    plan.replayed_rows = _replayed_rows(seed)
    plan.purges = _purges(seed, plan)
    plan.keeping = _keeping(seed, plan)
    if plan.keeping is not None:
        plan.limits |= {"payload_inline_bytes_max": 100, "deletes_per_second_max": DELETES_PER_SECOND}
    return plan


def _replayed_rows(seed: int) -> int:
    """In one seed of three every replay is a long one."""
    chance = random.Random(f"replays of outlive simulation {seed}")
    return chance.choice((1, 3, 8)) if chance.random() < 1 / 3 else 0


def _keeping(seed: int, plan: Plan) -> Keeping | None:
    """In one seed of ten workers delete runs that ended some time ago, and the blobs of these.

    That time is longer than a user may have to ask before a start is acknowledged, because who starts a run again that
    was deleted starts another one; and blobs stay for longer than a request may be under way.
    """
    chance = random.Random(f"retention of outlive simulation {seed}")
    if chance.random() > 0.1:
        return None
    jumped = sum(strike.seconds for strike in plan.strikes if strike.kind == "store jump" and strike.seconds > 0)
    starts = sorted(chance.random() * 8 for _ in range(chance.choice((15, 30))))
    return Keeping(starts, FAULT_SECONDS + 10 + jumped, 30 + jumped, jumped)


def _purges(seed: int, plan: Plan) -> list[Purging]:
    """Most runs of schedules, and most that others have started detached, are deleted soon after their end."""
    chance = random.Random(f"purges of outlive simulation {seed}")
    prefixes = [f"{it.name}@" for it in plan.schedules]
    prefixes += [run_id for case in plan.cases if not case.machine for run_id in case.detached]
    chosen = [prefix for prefix in prefixes if chance.random() < 0.7]
    return [
        Purging(prefix, chance.random() * FAULT_SECONDS, chance.choice((0.0, 1.0, 3.0)))
        for prefix in chosen
        for _ in range(chance.choice((1, 3, 6)))
    ]


def _schedules(seed: int) -> list[Scheduled]:
    """In one seed of six there are schedules, of which some tick faster than their runs end."""
    chance = random.Random(f"schedules of outlive simulation {seed}")
    if chance.random() > 1 / 6:
        return []
    return [
        Scheduled(
            f"s{number}",
            chance.choice(get_args(Overlap)),
            at=chance.random() * 5,
            seconds=chance.choice((1.0, 2.0, 5.0)),
            until_seconds=10 + chance.random() * 12,
            millis=chance.choice((10, 1500, 4000)),
        )
        for number in range(chance.choice((1, 1, 2)))
    ]


def _pauses(seed: int) -> list[WholePause]:
    """In one seed of eight people pause whole workflows, and everything."""
    chance = random.Random(f"pauses of outlive simulation {seed}")
    if chance.random() > 0.125:
        return []
    return [
        WholePause(chance.random() * FAULT_SECONDS, _pause_seconds(chance), chance.choice((*WORKFLOWS, "")))
        for _ in range(chance.choice((1, 1, 2, 3)))
    ]


def _pause_seconds(chance: random.Random) -> float:
    return chance.choice((0.1, 1.0, 3.0, 8.0))


def _waiting(seed: int, cases: list[Case]) -> list[Case]:
    """In every third seed most runs are in one queue, or in two; and some runs are paused."""
    chance = random.Random(f"queues of outlive simulation {seed}")
    queues = chance.sample(list(QUEUES), chance.choice((1, 1, 2))) if chance.random() < 0.35 else []
    for case in cases:
        if queues and not case.machine and not case.is_rare and chance.random() < 0.8:
            case.queue, case.key = chance.choice(queues), chance.choice(KEYS)
            if case.queue == "simulated.heavy":
                case.slots = chance.choice(SLOTS)
            case.start_seconds *= chance.choice((0.1, 0.5))
    return _paused(seed, cases)


def _paused(seed: int, cases: list[Case]) -> list[Case]:
    """Every fourth run is paused, some of them twice."""
    chance = random.Random(f"paused runs of outlive simulation {seed}")
    for case in cases:
        if chance.random() < 0.25:
            times = [chance.random() ** 2 * FAULT_SECONDS * 0.6 for _ in range(chance.choice((1, 1, 2)))]
            case.pauses = [Pausing(time, _pause_seconds(chance)) for time in sorted(times)]
    return cases


def _cases(seed: int, cases: list[Case]) -> list[Case]:
    """Every other seed has machines, in place of most of its other runs."""
    chance = random.Random(f"machines of outlive simulation {seed}")
    if seed % 2:
        return cases
    machines = write_machines(chance, count=chance.choice((1, 2, 2, 3)), seconds=FAULT_SECONDS)
    return [*cases[: chance.choice((0, 0, 1))], *machines]


def _limits(chance: random.Random) -> dict[str, int]:
    """Now and then a worker with little room, a small cache, small batches, and blobs for everything."""
    return {
        "runs_active_max": chance.choice((2, 1000, 1000)),
        "runs_cached_max": chance.choice((1, 2, 1000)),
        "steps_running_max": chance.choice((2, 1000, 1000)),
        "claim_batch_max": chance.choice((1, 2, 500)),
        "commit_batch_max": chance.choice((1, 3, 2000)),
        "payload_inline_bytes_max": chance.choice((100, 32 * 1024)),
    }


def _kills(seed: int, *, workers: int) -> list[Strike]:
    """A machine can be killed in more places than a few strikes find."""
    chance = random.Random(f"kills of outlive simulation {seed}")
    count = 0 if seed % 2 else chance.choice((0, 2, 4))
    return [
        Strike(
            at=chance.random() * FAULT_SECONDS * 0.7,
            kind="kill",
            worker=chance.randrange(workers),
            fuse=chance.randrange(FUSE_MAX),
        )
        for _ in range(count)
    ]


def _strikes(chance: random.Random, *, workers: int, lease: float) -> list[Strike]:
    menu = chance.sample(KINDS, chance.randint(1, 4))
    strikes = []
    for _ in range(chance.randint(1, 7)):
        kind = chance.choice(menu)
        seconds = {
            "pause": chance.choice((0.5, lease * 0.9, lease * 1.3, lease * 3)),
            "outage": chance.choice((0.5, 2.0, lease * 1.5, lease * 2.5)),
            "clog": chance.choice((0.5, lease * 0.9, lease * 1.5, lease * 3)),
            "store jump": chance.choice((-3.0, 0.5, lease * 1.2, 20.0)),
            "jump": chance.uniform(-0.8, 0.8),
            "late keeper": chance.choice((0.2, 0.6, 1.1)) * lease,
        }.get(kind, 0.0)
        strikes.append(
            Strike(
                at=chance.random() * FAULT_SECONDS,
                kind=kind,
                worker=chance.randrange(workers),
                seconds=seconds,
                # At once, or after the next few callbacks: most of what matters happens within one instant.
                fuse=chance.randrange(FUSE_MAX),
            )
        )
    return strikes


def to_json(plan: Plan) -> str:
    """For the museum, and for people."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2).decode() + "\n"


def from_json(text: str) -> Plan:
    """From the museum."""
    return msgspec.json.decode(text, type=Plan)
