"""How far a machine has come, which is its data, and what its handlers do to the world."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field
from typing import Any

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.runtime.tree.attempt import Attempt
from proof.simulation.clock import running_loop
from proof.simulation.ledger import Ledger
from proof.simulation.machines.legs import Leg


class Bumped(Exception):
    """What the handlers raise on purpose."""


class S(enum.Enum):
    """One for each kind of leg, a router, and two exits."""

    ROUTE = "route"
    WORK = "work"
    TIMER = "timer"
    BOOK = "book"
    LOOP = "loop"
    SPLIT = "split"
    ANY = "any"
    QUORUM = "quorum"
    PART = "part"
    ONCE = "once"
    POISON = "poison"
    SLOW = "slow"
    TRIP = "trip"
    POLL = "poll"
    STEPPED = "stepped"
    BATCH = "batch"
    ASK = "ask"
    LIMITED = "limited"
    FRAGILE = "fragile"
    DONE = "done"
    LOST = "lost"


@dataclass
class Trip:
    """How far a run has come."""

    legs: list[list[Any]]
    at: int = 0
    turn: int = 0
    """How often it went round in this leg."""
    log: list[Any] = field(default_factory=list)
    """What each leg gave."""
    owes: list[Any] = field(default_factory=list)
    """What the last state that can be undone did, and how often its undo fails."""

    @property
    def leg(self) -> Leg:
        """Where it is."""
        return self.legs[self.at]

    @property
    def here(self) -> S:
        """The state of its leg."""
        kind, what = self.leg[0], self.leg[1]
        return S[what if kind == "end" else kind.upper()]

    def go_on(self, gave: Any) -> S:
        """To the next leg, every other time by way of the router."""
        self.log.append(gave)
        self.at += 1
        self.turn = 0
        return S.ROUTE if self.at % 2 else self.here

    def turned(self, turns: int) -> bool:
        """Whether it has gone round often enough."""
        self.turn += 1
        return self.turn >= turns


async def act(name: str, millis: int, *, fails: int = 0, is_held: bool = False, is_undo: bool = False) -> None:
    """Do something to the world, half-way through the time that it takes."""
    attempt, loop = CURRENT_STEP.get(), running_loop()
    assert isinstance(attempt, Attempt)
    ledger = loop.ledger
    assert isinstance(ledger, Ledger)
    ledger.begin(loop, attempt)
    ledger.effects.begin(attempt, name, is_undo=is_undo)
    try:
        await asyncio.sleep(millis / 2000)
        if attempt.command.attempt <= fails:
            raise Bumped(f"attempt {attempt.command.attempt} at {name}")
        if is_held:
            ledger.effects.do(attempt, name)
        if is_undo:
            ledger.effects.undo(attempt, name)
        await asyncio.sleep(millis / 2000)
    except BaseException:
        ledger.stop(loop, attempt)
        raise
    ledger.end(loop, attempt)


def pay(cell: str, name: str) -> None:
    """Call something that stands behind a limit or a breaker."""
    loop = running_loop()
    assert isinstance(loop.ledger, Ledger)
    loop.ledger.limits.begin(loop, cell, name)
