"""A worker is lost for good: another one goes on with its runs.

Lost in two ways: its process is killed, which its neighbours see at once though its lease is an hour long; or it
stands still, which no worker can tell from a machine that is gone, so that its lease has to run out.
"""

from __future__ import annotations

import pytest

from outlive.events import RunClaimed, RunReleased, RunSucceeded, StepSucceeded
from tests.engine.inside import journal_of
from tests.engine.support import in_time
from tests.fleet.world import World

WAYS = ("killed", "frozen")


@pytest.mark.parametrize("way", WAYS)
async def test_sequence_of_a_lost_worker_goes_on(world: World, way: str) -> None:
    """Only what was in flight is executed again, by the other worker. [SF-X3 AK-X1 FE-P7]"""
    world.hold("second")
    first = await world.worker("a", "--begin", "fleet_sequence:run-1")
    await world.reached("second")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("second")
    world.open("second")
    assert ["first", "second", "third"] == await world.result()
    assert {"first": 1, "second": 2, "third": 1} == world.count()
    assert [("a", 1), ("b", 2)] == [(call.worker, call.epoch) for call in world.of("second")]
    assert [("b", 1)] == [(call.worker, call.attempt) for call in world.of("third")]


@pytest.mark.parametrize("way", WAYS)
async def test_branches_of_a_lost_worker_go_on(world: World, way: str) -> None:
    """A branch that had returned is not executed again, and what they lead to is done once. [SF-X4 AK-X1]"""
    world.hold("left", "right")
    first = await world.worker("a", "--begin", "fleet_branches:run-1")
    await world.reached("left")
    (await world.reached("right")).go_on()
    await world.succeeded("right")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("left")
    world.open("left")
    assert ["left", "middle", "right", "total"] == await world.result()
    assert ["a"] == [call.worker for call in world.of("right")]
    assert ["a", "b"] == [call.worker for call in world.of("left")]
    assert [("b", 1)] == [(call.worker, call.attempt) for call in world.of("total")]


@pytest.mark.parametrize("way", WAYS)
async def test_child_run_of_a_lost_worker_goes_on(world: World, way: str) -> None:
    """The tree is taken over as a whole: parent and child go on where they were. [SF-X7 SF-U11]"""
    world.hold("inner second")
    first = await world.worker("a", "--begin", "fleet_outer:run-1")
    await world.reached("inner second")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("inner second")
    world.open("inner second")
    assert ["before", "inner first", "inner second", "after"] == await world.result()
    assert {"inner first": 1, "inner second": 2} == world.count("run-1~1")
    assert {"before": 1, "after": 1} == world.count()
    assert [2] == [claim.epoch for claim in await world.claims()]


async def test_worker_that_comes_back_from_a_standstill_writes_nothing(world: World) -> None:
    """Its run was taken over meanwhile and waits in a later step. What it has to say is refused, it starts no step of
    that run any more, and it works on in a new session. [AK-X4]"""
    world.hold("second", "third")
    first = await world.worker("a", "--lease-seconds", "8", "--begin", "fleet_sequence:run-1")
    zombie = await world.reached("second")
    second = await world.worker("b")
    await world.freeze(first, "a")
    (await world.reached("second")).go_on()
    await world.reached("third")

    async with world.client() as client:
        before = await journal_of(client, "run-1")
        zombie.go_on()
        first.thaw()
        await world.stop(second)
        # The one that stood still is the only one left: it takes the run back, and by a claim like anybody else.
        visit = await world.reached("third")
        assert visit.call.worker == "a"
        assert visit.call.epoch > 2
        world.open("third")
        assert ["first", "second", "third"] == await in_time(client.get("run-1").result())
        after = (await journal_of(client, "run-1"))[len(before) :]
    # Nothing of what it had to say: only that the other one let go, the claim, and what came of that.
    said = [type(event) for event in after if not isinstance(event, RunClaimed)]
    assert [RunReleased, StepSucceeded, RunSucceeded] == said
    assert {"first": 1, "second": 2, "third": 2} == world.count()
    assert ["a", "b"] == [call.worker for call in world.of("second")]
    await world.stop(first)
