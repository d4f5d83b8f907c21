"""Strikes are dealt from the seed: each kind at least once, the others in proportion."""

from collections import Counter

from proof.storm.fault import CHAOS, KILL, deal


def dealt(kills: int, seed: int = 1, *, has_line: bool = True, can_fill: bool = True) -> list[str]:
    return deal(CHAOS, kills, workers=3, has_line=has_line, can_fill=can_fill, seed=seed)


def test_a_short_trial_has_every_fault_once() -> None:
    """Chance leaves none of them out, and the long outage comes once, before other things happen."""
    deck = dealt(4)

    assert {*CHAOS.shares, *CHAOS.line_shares, "one", "outage"} == set(deck)
    assert 1 == deck.count("outage")
    assert deck[-1] != "outage"
    assert deck[0] != "outage"


def test_a_long_trial_has_them_in_proportion() -> None:
    """Three hundred kills come with dozens of freezes."""
    counts = Counter(dealt(300))

    assert 36 == counts["freeze"]
    assert 60 == counts["cut"]


def test_a_fault_that_is_not_possible_is_not_dealt() -> None:
    """A storm without a line or a disk of its own deals no cut and no full disk."""
    deck = dealt(50, has_line=False, can_fill=False)

    assert not {"cut", "deaf", "full"} & set(deck)


def test_a_kill_trial_deals_only_kills_and_freezes() -> None:
    """In the same way: each kind at least once."""
    deck = deal(KILL, 4, workers=3, has_line=True, can_fill=True, seed=1)

    assert {"one", "all", "client", "freeze"} == set(deck)


def test_the_seed_decides_the_order() -> None:
    """One seed always deals the same deck of faults, and another seed deals another."""
    assert dealt(50, seed=1) == dealt(50, seed=1)
    assert dealt(50, seed=1) != dealt(50, seed=2)
