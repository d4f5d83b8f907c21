"""The simulator over many seeds: no violation, everything interesting happened, and what is broken is found."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from outlive._kernel.store import streams
from proof.simulation import Report, draw, many, simulate, simulate_many
from proof.simulation.machines.switches import MACHINE_SWITCHES
from proof.simulation.plan import FixedTrip, Plan, Strike, from_json, to_json
from proof.simulation.program import Case
from proof.simulation.replacing import replaced
from proof.simulation.sometimes import WANTED
from proof.simulation.switches import SWITCHES, without
from proof.simulation.weather import Fate

ROOT = Path(__file__).parents[2]
SEEDS = 70
TOGETHER = 10
"""Seeds of one test: a test has a minute of real time, and a machine may be busy."""
STARTS = range(0, SEEDS, TOGETHER)
MANY_SEEDS = 1_000
MISSED_WITHIN = 100
"""Seeds in which a protection that is switched off must be missed."""
FIRST = {
    "ask": 5,
    "blobs": 18,
    "fence": 13,
    "fork": 3,
    "need": 45,
    "rate": 13,
    "revision": 4,
    "share": 117,
    "slots": 3,
    "turns": 7,
    "weight": 77,
}
"""The seed to begin with: it found the defect when this was written. The first hundred may not, or only late."""
BY_PLAN = {"epoch"}


class Played(NamedTuple):
    """What some seeds found."""

    report: Report
    with_marks: set[int]
    """Seeds in which an append to a stream was found to be there; the others are the same without marks."""


@cache
def played(first: int) -> Played:
    """The next seeds from this one on, played once for all tests that ask."""
    seeds: list[int] = []
    with_marks: set[int] = set()

    def noting_draw(seed: int) -> Plan:
        seeds.append(seed)
        return draw(seed)

    def noting_is_there(*looked_for: Any) -> bool:
        found = is_there(*looked_for)
        if found:
            with_marks.add(seeds[-1])
        return found

    is_there = streams.is_there
    with replaced(many, "draw", noting_draw), replaced(streams, "is_there", noting_is_there):
        return Played(simulate_many(first, TOGETHER), with_marks)


@pytest.fixture(scope="module")
def long_report() -> Report:
    """What many more found."""
    return simulate_many(SEEDS, MANY_SEEDS, jobs=2)


@pytest.mark.parametrize("first", STARTS)
def test_no_seed_violates_anything(first: int) -> None:
    """Whatever goes wrong: nothing unsafe happens while it lasts, and everything ends well after it."""
    _check(played(first).report, TOGETHER)


def test_most_of_what_is_interesting_happened() -> None:
    """Seeds in which nothing goes wrong prove nothing."""
    report = Report()
    for first in STARTS:
        report.add(played(first).report)

    assert len(report.missing) < len(WANTED) // 10, report.missing


@pytest.mark.slow
def test_none_of_many_seeds_violates_anything(long_report: Report) -> None:
    """None that was not played above."""
    _check(long_report, MANY_SEEDS)


@pytest.mark.slow
def test_everything_interesting_happened(long_report: Report) -> None:
    """Nothing that we want to see is out of reach."""
    assert [] == long_report.missing


@pytest.mark.parametrize("switch", [name for name in SWITCHES if name not in {*MACHINE_SWITCHES, *BY_PLAN, "mark"}])
def test_a_protection_that_is_switched_off_is_missed(switch: str) -> None:
    """Within few seeds; those of machines, in `test_machines`, within even fewer."""
    report = simulate_many(FIRST.get(switch, 0), MISSED_WITHIN, without=switch, failures_max=1)

    assert report.failures


def test_former_owner_that_appends_to_a_stream_is_missed() -> None:
    """An append that was given up arrives when another worker has the run. Seeds hardly ever have that."""
    late = FixedTrip("w0.1", "append_streams", 2, fate=Fate.LATE.value, late_seconds=5.0)
    plan = Plan(
        seed=0,
        workers=2,
        lease_seconds=2.0,
        fault_seconds=14.0,
        cases=[Case(id="r0", program=[["stream", "s", "r0.1", 0, 6, 3000, 0]], start_seconds=0.5, streams=["s"])],
        strikes=[Strike(at=2.0, kind="kill", worker=0)],
        fixed=[late],
    )

    story = simulate(plan)
    assert ([], 1) == (story.violations, story.sometimes["append to a stream refused"])
    with without("epoch"):
        (violation,) = simulate(plan).violations
    assert "zombie: w0.1 appended to stream s in epoch 1" in violation


def test_marks_of_appends_that_are_switched_off_are_missed() -> None:
    """In one of the same seeds; most of them meet no append that is repeated."""
    seeds = (seed for first in STARTS for seed in sorted(played(first).with_marks))
    found = (simulate_many(seed, 1, without="mark", failures_max=1).failures for seed in seeds)

    assert any(found)


@pytest.mark.parametrize("seed", [7, 8], ids=["functions", "machines"])
def test_a_seed_is_the_same_story_every_time(seed: int) -> None:
    """Nothing but the seed decides what happens."""
    assert simulate(seed).trace == simulate(seed).trace


def test_a_seed_is_the_same_story_in_every_process() -> None:
    """Not even the order of sets, which differs between processes. One of the seeds has machines."""
    expected = {_told(hash_seed, seeds=(11, 14)) for hash_seed in ("1", "2")}

    assert 1 == len(expected)


def test_a_plan_can_be_kept() -> None:
    """A plan is all that a museum needs to play it again."""
    plan = draw(4)

    assert simulate(plan).trace == simulate(from_json(to_json(plan))).trace


def test_a_failing_seed_tells_the_command_that_plays_it_again() -> None:
    """One line to copy, and the story that it tells."""
    ended = _run("--seeds", "4", "--without", "doubt")

    assert 1 == ended.returncode
    (command,) = [line for line in ended.stdout.splitlines() if line.startswith("The whole story:")]
    again = _run(*command.split()[-4:])
    assert 1 == again.returncode
    violations = [line for line in ended.stdout.splitlines() if line.startswith("VIOLATION")]
    assert violations == [line for line in again.stdout.splitlines() if line.startswith("VIOLATION")]


def _check(report: Report, seeds: int) -> None:
    expected = [f"python -m proof.simulation --seed {it.seed}: {it.violations}" for it in report.failures]
    assert [] == expected
    assert seeds == report.seeds


def _told(hash_seed: str, *, seeds: tuple[int, ...]) -> str:
    code = f"from proof.simulation import simulate; [print(*simulate(seed).trace, sep='\\n') for seed in {seeds}]"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert (0, "") == (ended.returncode, ended.stderr)
    return ended.stdout


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proof.simulation", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)
