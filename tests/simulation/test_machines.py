"""Machines in the simulator: their acts are drawn and can be printed, and forbidden acts are noticed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.limit import Room
from outlive._kernel.runtime.tree.attempt import Attempt
from proof.simulation import draw, simulate, simulate_many
from proof.simulation.loop import SimulatedLoop
from proof.simulation.machines.course import WANTED, course_of, held, is_logged
from proof.simulation.machines.effects import Effects
from proof.simulation.machines.legs import MACHINES, Legs, each_leg
from proof.simulation.machines.limits import LIMIT_CELL, WINDOW, LimitAudit
from proof.simulation.machines.switches import MACHINE_SWITCHES
from proof.simulation.machines.trip import S
from proof.simulation.plan import Plan
from proof.simulation.program import Case, Signal
from proof.simulation.world import World

FEW_SEEDS = 60
FIRST = {"gate": 10, "limit": 10}
"""The seed to begin with: it found the defect when this was written, after ten others."""
EVERYTHING: Legs = [
    ["work", "m.1", 20, 2],
    ["timer", "m.2", 10, 0, 500],
    ["book", "m.3", 3, 10, 1, 1],
    ["loop", "m.4", 30, 5],
    ["split", "m.5", [10, 20, 30], [False, False, False]],
    ["any", "m.6", [10, 20, 30], [False, True, False]],
    ["quorum", "m.7", [10, 20, 3000], [False, False, False]],
    ["part", "m.8", [10, 5000, 30], [False, False, False]],
    ["poll", "m.9", 3, 100, 5],
    ["stepped", "m.10", 12, 5],
    ["batch", "m.11", 4, 10, 2],
    ["ask", "m.12", 2, 10],
    ["limited", "m.13", 4, 10],
    ["fragile", "m.14", 10, 2],
    ["once", "m.15", 10],
    ["slow", "m.16", 900],
    ["trip", "m.17", [["book", "m.18", 2, 10, 0, 0], ["end", "DONE"]]],
    ["poison", "m.19"],
]
"""One leg of each kind."""


def plan_of(machine: str, legs: Legs, **options: Any) -> Plan:
    """One machine, one worker, and nothing that goes wrong."""
    signals = [Signal("m.12", payload, 0.0) for payload in range(2)]
    return Plan(seed=1, workers=1, cases=[Case("m", legs, machine=machine, signals=signals, waiters=1, **options)])


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_goes_every_kind_of_leg(machine: str) -> None:
    """With and without snapshots, to its exit."""
    story = simulate(plan_of(machine, [*EVERYTHING, ["end", "LOST"]]))

    assert [] == story.violations, "\n".join(story.trace)
    assert 1 == story.sometimes["machine succeeded"]
    assert (story.sometimes["snapshot taken"] > 0) == (machine != MACHINES[-1])


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_that_fails_at_its_end_takes_everything_back(machine: str) -> None:
    """A machine that fails at its end takes back its snapshots, branches and children, after an undo that parked it
    first."""
    hopeless: Legs = [["book", "m.20", 1, 10, 0, 3], ["work", "m.21", 10, 3], ["end", "DONE"]]

    story = simulate(plan_of(machine, [*EVERYTHING, *hopeless]))

    assert [] == story.violations, "\n".join(story.trace)
    assert 1 == story.sometimes["machine failed"]
    assert 1 == story.sometimes["machine rolled back"]
    assert story.sometimes["undo failed and parked its machine"]


def test_every_kind_of_leg_is_drawn() -> None:
    """Every kind of leg is drawn, and every state of the machines belongs to one of them."""
    cases = [case for seed in range(400) for case in draw(seed).cases if case.machine]
    kinds = {leg[0] for case in cases for leg in each_leg(case.program)}

    assert {leg[0] for leg in EVERYTHING} | {"end"} == kinds
    assert {state.value for state in S} - {"route", "done", "lost"} == kinds - {"end"}
    assert set(MACHINES) == {case.machine for case in cases}


@pytest.mark.parametrize("switch", MACHINE_SWITCHES)
def test_a_planted_defect_of_machines_is_found_soon(switch: str) -> None:
    """Not only within all the seeds that there are."""
    assert simulate_many(FIRST.get(switch, 0), FEW_SEEDS, without=switch, failures_max=1).failures


# -- The course --------------------------------------------------------------------------------------------------------


def test_the_course_ends_where_a_leg_fails_for_good() -> None:
    """A course ends at the leg that fails for good, and has none of the legs behind it."""
    course = course_of([["book", "m.1", 2, 0, 0, 0], ["work", "m.2", 0, 3], ["loop", "m.3", 3, 0], ["end", "DONE"]])

    assert course.fails
    assert ["BOOK", "ROUTE"] == course.path
    assert [{"m.1/0"}, {"m.1/1"}, {"m.2"}] == [group.names for group in course.groups]


@pytest.mark.parametrize("kind", WANTED)
def test_a_split_must_have_enough_and_nothing_that_failed(kind: str) -> None:
    """A split keeps at least as many branches as its join wants, none twice, and none that failed."""
    legs: Legs = [[kind, "m.1", [0, 0, 0], [kind != "split", False, False]], ["end", "DONE"]]
    good = ["m.1/a", "m.1/b", "m.1/c"] if kind == "split" else ["m.1/b", "m.1/c"]

    assert is_logged(legs, [good])
    assert not is_logged(legs, [good[: WANTED[kind] - 1]])
    assert not is_logged(legs, [[*good, good[0]]])
    assert kind == "split" or not is_logged(legs, [["m.1/a", "m.1/b"]])
    assert set(good) - {"m.1/c"} == held(legs, [good])


# -- Effects and limits ------------------------------------------------------------------------------------------------


def attempt_of(key: str) -> Attempt:
    """An attempt of some step, with this idempotency key."""
    command = SimpleNamespace(run=0, call=key)
    return cast(Attempt, SimpleNamespace(nonce=1, epoch=1, idempotency_key=key, command=command))


def test_an_effect_with_another_key_is_done_twice() -> None:
    """An effect with the same key is done once, one with another key is a violation, and its undo has a key of its
    own."""
    world = World(0)
    effects = Effects(world)
    for key in ("one", "one", "undo"):
        effects.begin(attempt_of(key), "thing", is_undo=key == "undo")
        effects.do(attempt_of(key), "thing")
    assert [] == world.violations

    effects.begin(attempt_of("two"), "thing", is_undo=False)

    assert 1 == len(world.violations)


def test_an_effect_that_was_never_done_cannot_be_undone() -> None:
    """An undo of an effect that was never done is a violation."""
    world = World(0)

    Effects(world).begin(attempt_of("one"), "thing", is_undo=True)

    assert 1 == len(world.violations)


def loop_of(world: World) -> SimulatedLoop:
    """A process that asks."""
    return SimulatedLoop(world, "w0.1")  # type: ignore[abstract]  # It has what asyncio calls.


@pytest.mark.parametrize(
    ("seconds", "is_right"),
    [
        ([0, 0, 1], True),
        ([0, 0, 0.1], False),  # More than the bucket holds.
        ([0, 1, 2, 4], True),
        ([0, 1, 2, 3.9], False),  # More than fit into the window.
        ([3, 3.7, 4, 4.7], True),
        ([1, 2, 3, 4, 4.5], False),  # More than fit into a period, around the edge of a window.
        ([1, 2, 3, 4, 5], True),
    ],
)
def test_rooms_must_fit_into_all_tiers(seconds: list[float], *, is_right: bool) -> None:
    """By an arithmetic of its own, in whatever order they were given."""
    world = World(0)
    audit, loop = LimitAudit(world), loop_of(world)
    began = world.now() - world.now() % round(WINDOW.seconds * MICROSECONDS)

    for each in reversed(seconds):
        audit.changed(loop, LIMIT_CELL, b"{}", (Room(began + round(each * MICROSECONDS)), began))

    assert is_right == (world.violations == [])


def test_a_call_needs_a_room_of_its_own_process_and_its_instant() -> None:
    """Each call needs room that its own process has reserved, and may not begin before the instant of that room."""
    world = World(0)
    audit, mine, other = LimitAudit(world), loop_of(world), loop_of(world)
    for at, whose in ((0, mine), (2 * MICROSECONDS, mine), (6 * MICROSECONDS, None)):
        audit.changed(whose, LIMIT_CELL, b"{}", (Room(world.now() + at), world.now()))

    audit.begin(mine, LIMIT_CELL, "a call")
    assert [] == world.violations
    audit.begin(other, LIMIT_CELL, "a call of another process")
    audit.begin(mine, LIMIT_CELL, "a call before its turn")
    audit.begin(mine, LIMIT_CELL, "a call too many")
    assert 3 == len(world.violations)
