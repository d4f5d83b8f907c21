"""What happens to a fleet, and how often: a deck of strikes, shuffled by the seed.

Chance alone would leave a rare fault out of a short trial, and a trial in which it did not happen proves nothing about
it. So the strikes are dealt: each kind at least once, the others in proportion to the kills, in a random order.
"""

from __future__ import annotations

import random

SHARES = {
    "client": 0.08,
    "all": 0.02,
    "freeze": 0.12,
    "clean": 0.12,
    "full": 0.04,
}
"""Strikes for each kill. `all` kills every worker, `freeze` stops one for longer than its lease, `clean` is SIGTERM,
`full` is the disk."""
LINE_SHARES = {"cut": 0.2, "deaf": 0.04}
"""Only where there is a line to the store: cut after a COMMIT, or silent for longer than a lease."""
KILLS_OF_ONE = 1.4
"""A worker that was killed is often killed again while it starts."""


def deal(kills: int, *, workers: int, has_line: bool, can_fill: bool, seed: int) -> list[str]:
    """The strikes of a trial in their order; `one` kills a worker, `outage` comes once."""
    shares = SHARES | (LINE_SHARES if has_line else {})
    if not can_fill:
        del shares["full"]
    deck = [kind for kind, share in shares.items() for _ in range(max(1, round(share * kills)))]
    certain = deck.count("client") + workers * deck.count("all")
    deck += ["one"] * max(1, round((kills - certain) / KILLS_OF_ONE))
    chance = random.Random(f"deck/{seed}")
    chance.shuffle(deck)
    # Not at the very end: something must be left to happen after it.
    deck.insert(chance.randint(len(deck) // 3, len(deck) * 2 // 3), "outage")
    return deck
