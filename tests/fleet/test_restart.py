"""A worker is killed with -9 and started again under its name: it goes on with its own runs at once.

Its lease is an hour long and, on a server, no worker can see that its process has died: only its name brings them back.
"""

from __future__ import annotations

from tests.fleet.world import World


async def test_killed_worker_goes_on_with_its_sequence(world: World) -> None:
    """A killed worker that starts again repeats the step in flight in a new epoch, and no step before it.

    An interruption is not a failure, so it costs no attempt. [SF-X1 SF-U8 SF-U15 FE-P16]
    """
    world.hold("second")
    worker = await world.worker("a", "--alone", "--begin", "fleet_sequence:run-1")
    await world.reached("second")
    worker.kill()

    await world.worker("a", "--alone")
    await world.reached("second")
    world.open("second")
    assert ["first", "second", "third"] == await world.result()
    assert {"first": 1, "second": 2, "third": 1} == world.count()
    assert [(1, 1), (1, 2)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert [(1, 2)] == [(call.attempt, call.epoch) for call in world.of("third")]
    assert [(True, 2)] == [(claim.interrupted, claim.epoch) for claim in await world.claims()]


async def test_killed_worker_goes_on_with_its_branches(world: World) -> None:
    """A branch that had returned is not executed again, the others are, and what they lead to is done once. [SF-X2]"""
    world.hold("left", "right", "total")
    worker = await world.worker("a", "--alone", "--begin", "fleet_branches:run-1")
    await world.reached("left")
    (await world.reached("right")).go_on()
    await world.succeeded("right")
    worker.kill()

    world.open("left", "total")
    await world.worker("a", "--alone")
    assert ["left", "middle", "right", "total"] == await world.result()
    assert 1 == world.count()["right"] == world.count()["total"]
    assert 2 == world.count()["left"]
    assert [1] == [call.attempt for call in world.of("total")]


async def test_child_run_in_flight_is_resumed(world: World) -> None:
    """It is the same child run: what it had done is not done again, and there is no second child.
    [SF-X6 SF-U18 FE-S12]
    """
    world.hold("inner second")
    worker = await world.worker("a", "--alone", "--begin", "fleet_outer:run-1")
    await world.reached("inner second")
    worker.kill()

    world.open("inner second")
    await world.worker("a", "--alone")
    assert ["before", "inner first", "inner second", "after"] == await world.result()
    assert {"inner first": 1, "inner second": 2} == world.count("run-1~1")
    assert {"run-1", "run-1~1"} == {call.run for call in world.calls}
    assert {"before": 1, "after": 1} == world.count()


async def test_child_run_that_had_ended_is_not_run_again(world: World) -> None:
    """Its parent is killed in the step after it. [SF-X8 SF-U17]"""
    world.hold("after")
    worker = await world.worker("a", "--alone", "--begin", "fleet_outer:run-1")
    await world.reached("after")
    worker.kill()

    world.open("after")
    await world.worker("a", "--alone")
    assert ["before", "inner first", "inner second", "after"] == await world.result()
    assert {"inner first": 1, "inner second": 1} == world.count("run-1~1")
    assert {"before": 1, "after": 2} == world.count()


async def test_two_workers_that_are_killed_both_go_on(world: World) -> None:
    """Each had a run. Both are started again: both runs end, each was taken over once, and neither did the work of the
    other. [SF-X5]"""
    world.hold("second")
    killed = [await world.worker(name, "--alone", "--begin", f"fleet_sequence:run-{name}") for name in "ab"]
    for _ in killed:
        await world.reached("second")
    for worker in killed:
        worker.kill()

    world.open("second")
    for name in "ab":
        await world.worker(name, "--alone")
    for name in "ab":
        assert ["first", "second", "third"] == await world.result(f"run-{name}")
        assert {"first": 1, "second": 2, "third": 1} == world.count(f"run-{name}")
        assert [2] == [claim.epoch for claim in await world.claims(f"run-{name}")]
