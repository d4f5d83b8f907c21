"""Marks of changes: a run takes the new way if it is the first one there, and the old way if it has been there before.

Old code lives up to every point of its life; new code takes over, and its worker dies before every event that follows.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from outlive import patched, wait_for_signal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.replay.command import Park
from outlive._kernel.replay.feeding import feed
from outlive.errors import DefinitionError
from outlive.events import PatchTaken, RunClaimed, RunParked, RunReleased, RunResumed, RunSuspended
from outlive.types import Workflow
from tests.replay.define import START_AT, Code, signal, step, workflow
from tests.replay.driver import live
from tests.replay.life import Life, assert_replays, fed

Pair = tuple[Workflow[..., Any], Workflow[..., Any], int]
"""Old code, new code, and how many times the new way is taken in a run that takes it."""


@step()
async def work(n: int) -> int:
    """What old and new code do."""
    return n


@step()
async def extra(n: int) -> int:
    """What only new code does."""
    return n


@workflow(name="sequence")
async def old_sequence() -> list[int]:
    """Two steps."""
    return [await work(1), await work(2)]


@workflow(name="sequence")
async def new_sequence() -> list[int]:
    """Another one between the two."""
    done = [await work(1)]
    if patched("between"):
        done.append(await extra(1))
    return [*done, await work(2)]


@workflow(name="loop")
async def old_loop() -> list[int]:
    """Three rounds."""
    return [await work(n) for n in range(3)]


@workflow(name="loop")
async def new_loop() -> list[int]:
    """Each round has one more step, or none has."""
    done = []
    for n in range(3):
        done.append(await work(n))
        if patched("each-round"):
            done.append(await extra(n))
    return done


async def old_branch(n: int) -> list[int]:
    """One of several at once."""
    return [await work(n), await work(n + 10)]


async def new_branch(n: int) -> list[int]:
    """The same, and one more step."""
    done = [await work(n)]
    if patched("branch"):
        done.append(await extra(n))
    return [*done, await work(n + 10)]


@workflow(name="branches")
async def old_branches() -> Any:
    """Three at once."""
    return await asyncio.gather(*(old_branch(n) for n in range(3)))


@workflow(name="branches")
async def new_branches() -> Any:
    """All three change, or none does."""
    return await asyncio.gather(*(new_branch(n) for n in range(3)))


@workflow(name="replaced")
async def old_replaced() -> Any:
    """A timer and a signal."""
    await asyncio.sleep(5)
    return await wait_for_signal("go")


@workflow(name="replaced")
async def new_replaced() -> Any:
    """A step in place of the timer."""
    if patched("no-timer"):
        await extra(0)
    else:
        await asyncio.sleep(5)
    return await wait_for_signal("go")


PAIRS: list[Pair] = [
    (old_sequence, new_sequence, 1),
    (old_loop, new_loop, 3),
    (old_branches, new_branches, 3),
    (old_replaced, new_replaced, 1),
]
SEEDS = [None, *range(5)]


def go_on(new: Workflow[..., Any], journal: list[AnyEvent], seed: int | None, **options: Any) -> Life:
    """New code takes a journal over, and its worker dies before every event."""
    messages = [signal("go", 1)] if "replaced" in new.name else []
    sent = sum(type(event).__name__ == "SignalReceived" for event in journal)
    return live(new, journal=journal, messages=messages[sent:], seed=seed, crash_at=range(1000), **options)


def extras(life: Life) -> int:
    """How many times the new way was taken."""
    return sum("extra" in call for call in life.steps_run)


def claim() -> RunClaimed:
    """A worker takes a tree over."""
    return RunClaimed(at=START_AT, worker="w2", epoch=2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("old", "new", "full"), PAIRS, ids=lambda each: getattr(each, "name", None))
def test_new_code_goes_on_from_every_point_of_an_old_life(
    old: Workflow[..., Any], new: Workflow[..., Any], full: int, seed: int | None
) -> None:
    """All or nothing, whatever the point; nothing is parked."""
    life = live(old, seed=seed, messages=[signal("go", 1)] if "replaced" in old.name else [])
    seen = set()
    for length in range(1, len(life.journal)):
        after = go_on(new, life.journal[:length], seed)
        assert after.status == "succeeded", after.park
        assert extras(after) in (0, full)
        assert len([event for event in after.journal if isinstance(event, PatchTaken)]) == (extras(after) > 0)
        seen.add(extras(after))
    assert seen == {0, full}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("old", "new", "full"), PAIRS, ids=lambda each: getattr(each, "name", None))
def test_a_run_that_begins_with_the_new_code_takes_the_new_way(
    old: Workflow[..., Any], new: Workflow[..., Any], full: int, seed: int | None
) -> None:
    """A run that begins with the new code takes the new way, and replays so from every point."""
    life = live(new, seed=seed, messages=[signal("go", 1)] if "replaced" in new.name else [])

    assert life.status == "succeeded"
    assert extras(life) == full
    assert_replays(life)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mark_is_journaled_once_for_a_run(seed: int | None) -> None:
    """However many times and in however many branches it is asked."""
    life = live(new_branches, seed=seed)

    assert [event.call for event in life.journal if isinstance(event, PatchTaken)] == ["@patch/branch"]


def test_the_point_itself_decides() -> None:
    """Old code that had come to the mark and no further has not been past it."""
    life = live(old_sequence)
    kinds = [type(event).__name__ for event in life.journal]
    assert kinds == ["RunCreated", "StepSucceeded", "StepSucceeded", "RunSucceeded"]

    assert extras(go_on(new_sequence, life.journal[:1], None)) == 1
    assert extras(go_on(new_sequence, life.journal[:2], None)) == 1
    assert extras(go_on(new_sequence, life.journal[:3], None)) == 0


@pytest.mark.parametrize(
    "tail",
    [
        [claim()],
        [RunReleased(at=START_AT), claim()],
        [RunParked(at=START_AT, reason="look"), RunResumed(at=START_AT), claim()],
        [claim(), claim(), RunParked(at=START_AT, reason="look"), claim()],
    ],
    ids=lambda tail: " ".join(type(event).__name__ for event in tail),
)
def test_claims_do_not_count_as_having_been_there(tail: list[AnyEvent]) -> None:
    """A run that was only created, claimed, released or parked takes the new way."""
    life = live(old_sequence)

    assert extras(go_on(new_sequence, [*life.journal[:1], *tail], None)) == 1
    assert extras(go_on(new_sequence, [*life.journal[:2], *tail], None)) == 1


def test_a_run_that_rested_past_the_mark_takes_the_old_way() -> None:
    """The old code was waiting beyond it, though nothing had happened there yet."""
    created = live(old_replaced, messages=[signal("go")]).journal[0]
    rested = [created, RunSuspended(at=START_AT, waits=(), wake_at=START_AT + 5), claim()]

    life = go_on(new_replaced, rested, None)

    assert extras(life) == 0
    assert "TimerFired" in life.kinds


@workflow(name="child")
async def old_child(n: int) -> list[int]:
    """A child of the old code."""
    return [await work(n)]


@workflow(name="child")
async def new_child(n: int) -> list[int]:
    """A child that knows of the change."""
    first = await extra(n) if patched("child") else 0
    return [first, await work(n)]


@workflow(name="parent")
async def old_parent() -> Any:
    """One child after the other."""
    return [await old_child(n) for n in range(3)]


@workflow(name="parent")
async def new_parent() -> Any:
    """The same with the new children."""
    return [await new_child(n) for n in range(3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_run_of_a_tree_decides_for_itself(seed: int | None) -> None:
    """Children that begin after the change take the new way in a tree that began before it."""
    life = live(old_parent, code=Code(old_parent, old_child), seed=seed)
    first_ended = life.kinds.index("RunSucceeded") + 1

    after = go_on(new_parent, life.journal[:first_ended], seed, code=Code(new_parent, new_child))

    assert after.status == "succeeded", after.park
    assert [event.run for event in after.journal if isinstance(event, PatchTaken)] == [2, 3]
    assert extras(after) == 2


@workflow(name="loop")
async def settled_loop() -> list[int]:
    """The old way and the mark are gone; only the new way is left."""
    done = []
    for n in range(3):
        done += [await work(n), await extra(n)]
    return done


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mark_may_go_when_no_run_of_the_old_way_is_left(seed: int | None) -> None:
    """Runs that took the new way replay without it."""
    life = live(new_loop, seed=seed)
    for length in range(1, len(life.journal)):
        after = live(settled_loop, journal=life.journal[:length], seed=seed, crash_at=range(1000))
        assert after.status == "succeeded", after.park


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("old", "new", "full"), PAIRS, ids=lambda each: getattr(each, "name", None))
def test_old_code_knows_from_every_point_that_it_lacks_the_change(
    old: Workflow[..., Any], new: Workflow[..., Any], full: int, seed: int | None
) -> None:
    """Old code parks a run of the new way with the missing change, from the mark on and from every later point."""
    life = live(new, seed=seed, messages=[signal("go", 1)] if "replaced" in new.name else [])
    at = life.kinds.index("PatchTaken")
    name = str(life.journal[at].call).removeprefix("@patch/")  # type: ignore[union-attr]

    for length in range(at + 1, len(life.journal) + 1):
        with fed(Code(old), life.journal[:at]) as execution:
            parks = [
                command
                for event in life.journal[at:length]
                for command in feed(execution, event)
                if isinstance(command, Park)
            ]
            assert [park.lacks for park in parks] == [name]


def test_a_contradiction_before_the_mark_lacks_nothing() -> None:
    """A run is left to newer code only where the journal has a change that this code has not asked for."""
    life = live(new_sequence)
    with fed(Code(renamed(new_replaced, "sequence")), []) as execution:
        parks = [command for event in life.journal for command in feed(execution, event) if isinstance(command, Park)]

    assert [park.lacks for park in parks] == [""]


def renamed(of: Workflow[..., Any], name: str) -> Workflow[..., Any]:
    """The same code under the name of another workflow."""
    return Workflow(msgspec.structs.replace(of.spec, name=name), {})


def test_a_mark_that_was_asked_for_and_not_written_is_asked_for_again() -> None:
    """The run was parked in between: what is outstanding after the replay has it."""
    life = live(new_sequence)
    at = life.kinds.index("PatchTaken")

    after = go_on(new_sequence, [*life.journal[:at], RunParked(at=START_AT, reason="look"), claim()], None)

    assert after.result == [1, 1, 2]
    assert after.kinds.count("PatchTaken") == 1


def test_outside_a_run_the_new_way_is_taken() -> None:
    """A workflow that is called as a plain function is the newest there is."""
    assert patched("anything")


def test_a_mark_needs_a_name_that_journals_can_use() -> None:
    """It becomes part of an identity."""
    with pytest.raises(DefinitionError, match="use letters, digits"):
        patched("two words")
