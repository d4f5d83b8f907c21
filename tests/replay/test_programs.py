"""Random programs, random order, random crashes: replay is a function (I9), identities are unique and stable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from outlive._kernel.journal.event import AnyEvent
from outlive.events import TimerFired
from tests.replay.define import cancel, signal
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays
from tests.replay.programs import CODE, PROGRAMS, Failed, Program, Unpredictable, interpret, is_calm, predict

SEEDS = st.integers(0, 2**32)
MESSAGES = st.lists(
    st.one_of(
        st.builds(signal, st.sampled_from(["x", "y"]), st.integers(0, 9), run=st.sampled_from([0, 0, 0, 1, 2])),
        st.builds(cancel, st.just("by chance"), run=st.sampled_from([0, 1, 2])),
    ),
    max_size=4,
)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUICK
@given(program=PROGRAMS, seed=SEEDS, messages=MESSAGES, crashes=st.sets(st.integers(1, 40), max_size=6))
@example(program=["race", ["step", 0], ["step", 0]], seed=0, messages=[], crashes={1, 2, 3})
@example(program=["group", ["fail", 0], ["sleep", 5], ["sleep", 5]], seed=0, messages=[], crashes={2, 3})
@example(program=["left_child", ["sleep", 0]], seed=0, messages=[], crashes=set())
def test_every_journal_replays_from_every_prefix(
    program: Program, seed: int, messages: list[AnyEvent], crashes: set[int]
) -> None:
    """Live, crashed and replayed, a run asks for the same things, has the same left to do, and ends in the same way."""
    life = live(interpret, program, code=CODE, seed=seed, messages=messages, crash_at=crashes)

    assert life.status in ("succeeded", "failed", "cancelled"), life.park
    assert life.books[-1].outstanding == ()
    assert life.books[-1].waits == ()
    assert_replays(life)
    assert_identities_are_unique(life)


def assert_identities_are_unique(life: Life) -> None:
    """No call has the name of another one, no timer that of another one, and every step is answered once."""
    asked = [command[:3] for command in life.all_asked if command[0] != "step" or command[6] == 1]
    calls = [each for each in asked if each[0] in ("step", "child", "end")]
    assert len(calls) == len(set(calls))
    timers = [(event.run, event.call) for event in life.journal if isinstance(event, TimerFired)]
    assert len(timers) == len(set(timers))


@QUICK
@given(program=PROGRAMS, seed=st.none() | SEEDS)
def test_the_result_is_that_of_plain_python(program: Program, seed: int | None) -> None:
    """Where the order of things cannot matter, the result is what the same program gives without an engine."""
    try:
        expected: Any = predict(program)
    except Unpredictable:
        return
    except Failed:
        expected = Failed

    life = live(interpret, program, code=CODE, seed=seed)

    assert (Failed if life.status == "failed" else life.result) == expected


@QUICK
@given(program=PROGRAMS.filter(is_calm), seeds=st.tuples(SEEDS, SEEDS))
def test_identities_do_not_depend_on_the_order_of_completion(program: Program, seeds: tuple[int, int]) -> None:
    """Two workers that are fast and slow at other places ask for the same calls with the same arguments."""
    one, other = (live(interpret, program, code=CODE, seed=seed) for seed in seeds)

    assert one.result == other.result
    assert identities(one) == identities(other)


def identities(life: Life) -> set[str]:
    """Calls by their place in the tree of runs: the numbers of children depend on who was faster."""
    places: dict[object, str] = {0: ""}
    found = set()
    for command in life.all_asked:
        place = f"{places.get(command[1])}:{command[2]}"
        if command[0] == "child":
            places[command[3]] = place
        if command[0] in ("step", "child"):
            found.add(place)
    return found


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=PROGRAMS, seed=SEEDS, messages=MESSAGES, crashes=st.sets(st.integers(1, 60), max_size=10))
def test_a_great_many_journals_replay(program: Program, seed: int, messages: list[AnyEvent], crashes: set[int]) -> None:
    """The first of these tests, for a night."""
    life = live(interpret, program, code=CODE, seed=seed, messages=messages, crash_at=crashes)

    assert life.status in ("succeeded", "failed", "cancelled"), life.park
    assert life.books[-1].outstanding == ()
    assert_replays(life)
    assert_identities_are_unique(life)
