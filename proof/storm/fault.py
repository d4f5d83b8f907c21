"""What happens to a fleet, and how often: a deck of strikes, shuffled by the seed.

Chance alone would leave a rare fault out of a short trial, and a trial in which it did not happen proves nothing about
it. So the strikes are dealt: each kind at least once, the others in proportion to the kills, in a random order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

KILLS_OF_ONE = 1.4
"""A worker that was killed is often killed again while it starts."""


@dataclass(frozen=True)
class Mix:
    """What a command deals out, and how much work must go on meanwhile."""

    name: str
    kills: int
    """Unless given."""
    shares: Mapping[str, float]
    """Strikes for each kill. `all` kills every worker, `freeze` stops one for longer than its lease, `clean` is
    SIGTERM, `full` is the disk."""
    server_share: float
    """Kills of the server for each kill."""
    runs_per_kill_min: float
    """A system that is dead most of the time must not pass for one that loses nothing."""
    line_shares: Mapping[str, float] = field(default_factory=dict)
    """Only where there is a line to the store: cut after a COMMIT, or silent for longer than a lease."""
    has_outage: bool = False
    """Whether the store is away for long, once."""
    programs: str = "proof.storm"
    """Where the programs of its worker and of its client are."""
    thread_step: str = "storm.work_on_thread"
    """The step in which a worker is frozen if possible; empty if there is none."""


KILL = Mix(
    "kill",
    kills=200,
    shares={"client": 0.1, "all": 0.04, "freeze": 0.06},
    server_share=0.1,
    runs_per_kill_min=1.0,
)
CHAOS = Mix(
    "chaos",
    kills=300,
    shares={"client": 0.08, "all": 0.02, "freeze": 0.12, "clean": 0.12, "full": 0.04},
    server_share=0.125,
    # Fewer: there is an outage, and a process takes long to start on a machine with much to do.
    runs_per_kill_min=0.25,
    line_shares={"cut": 0.2, "deaf": 0.04},
    has_outage=True,
)
LIMITS = Mix(
    "limits",
    kills=300,
    shares={"all": 0.02, "freeze": 0.3},
    server_share=0.0,
    runs_per_kill_min=0.5,
    programs="proof.storm.limits",
    thread_step="",
)
MIXES = {mix.name: mix for mix in (KILL, CHAOS, LIMITS)}


def deal(mix: Mix, kills: int, *, workers: int, has_line: bool, can_fill: bool, seed: int) -> list[str]:
    """The strikes of a trial in their order; `one` kills a worker, `outage` comes once."""
    shares = {**mix.shares, **(mix.line_shares if has_line else {})}
    if not can_fill:
        shares.pop("full", None)
    deck = [kind for kind, share in shares.items() for _ in range(max(1, round(share * kills)))]
    certain = deck.count("client") + workers * deck.count("all")
    deck += ["one"] * max(1, round((kills - certain) / KILLS_OF_ONE))
    chance = random.Random(f"deck/{seed}")
    chance.shuffle(deck)
    if mix.has_outage:
        # Not at the very end: something must be left to happen after it.
        deck.insert(chance.randint(len(deck) // 3, len(deck) * 2 // 3), "outage")
    return deck
