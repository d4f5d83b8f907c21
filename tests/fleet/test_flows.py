"""Workers with flows are killed with -9: nothing that had ended runs again, and what was in flight is not skipped.

What `test_restart` and `test_failover` show with functions, with documents.
"""

from __future__ import annotations

import pytest

import outlive
from tests.engine.support import in_time
from tests.fleet.world import World

CHAIN = ["first", "second", "third"]
MAIN = ["before", ["inner first", "inner second"], "after"]
WAYS = ("killed", "frozen")


@pytest.fixture(autouse=True)
def _flows(world: World) -> None:
    """The workers of this fleet have flows."""
    world.program = "tests.fleet.flow_program"


async def test_killed_worker_goes_on_with_its_chain(world: World) -> None:
    """The step in flight is executed again in a new epoch, without the cost of an attempt, and no other one is.
    [SF-X1 SF-U8 SF-U15 FB-R1]"""
    world.hold("second")
    worker = await world.worker("a", "--alone", "--begin", "fleet-chain:run-1")
    await world.reached("second")
    worker.kill()

    await world.worker("a", "--alone")
    await world.reached("second")
    world.open("second")
    assert CHAIN == await world.result()
    assert {"first": 1, "second": 2, "third": 1} == world.count()
    assert [(1, 1), (1, 2)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert [(1, 2)] == [(call.attempt, call.epoch) for call in world.of("third")]
    assert [(True, 2)] == [(claim.interrupted, claim.epoch) for claim in await world.claims()]


@pytest.mark.slow
@pytest.mark.parametrize("held", CHAIN)
async def test_the_step_in_which_a_worker_was_killed_is_not_skipped(world: World, held: str) -> None:
    """Flowbot's defect 1: it writes the index before the step, and goes on behind it. The steps of this flow are in no
    order but that of the document. [FB-R1]"""
    world.hold(held)
    worker = await world.worker("a", "--alone", "--begin", "fleet-line:run-1")
    await world.reached(held)
    worker.kill()

    world.open(held)
    await world.worker("a", "--alone")
    assert CHAIN == await world.result()
    where = CHAIN.index(held)
    assert [*CHAIN[: where + 1], *CHAIN[where:]] == [call.step for call in world.calls]


@pytest.mark.slow
async def test_killed_worker_goes_on_with_its_fan_out(world: World) -> None:
    """A branch that had returned is not executed again, the other one is, and what they lead to is done once.
    [SF-X2 FB-R11]"""
    world.hold("left", "right")
    worker = await world.worker("a", "--alone", "--begin", "fleet-fan:run-1")
    await world.reached("left")
    (await world.reached("right")).go_on()
    await world.succeeded("right")
    await world.succeeded("middle")
    worker.kill()

    world.open("left")
    await world.worker("a", "--alone")
    assert ["left", "middle", "right", "total"] == await world.result()
    assert {"left": 2, "middle": 1, "right": 1, "total": 1} == world.count()
    assert [(1, 2)] == [(call.attempt, call.epoch) for call in world.of("total")]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_chain_of_a_lost_worker_goes_on(world: World, way: str) -> None:
    """Only what was in flight is executed again, by the other worker. [SF-X3]"""
    world.hold("second")
    first = await world.worker("a", "--begin", "fleet-chain:run-1")
    await world.reached("second")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("second")
    world.open("second")
    assert CHAIN == await world.result()
    assert [("first", "a"), ("second", "a"), ("second", "b"), ("third", "b")] == [
        (call.step, call.worker) for call in world.calls
    ]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_fan_out_of_a_lost_worker_goes_on(world: World, way: str) -> None:
    """A branch that had returned is not executed again, and what they lead to is done once. [SF-X4]"""
    world.hold("left", "right")
    first = await world.worker("a", "--begin", "fleet-fan:run-1")
    await world.reached("left")
    (await world.reached("right")).go_on()
    await world.succeeded("right")
    await world.succeeded("middle")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("left")
    world.open("left")
    assert ["left", "middle", "right", "total"] == await world.result()
    assert {"left": 2, "middle": 1, "right": 1, "total": 1} == world.count()
    assert ["a", "b"] == [call.worker for call in world.of("left")]
    assert [("b", 1)] == [(call.worker, call.attempt) for call in world.of("total")]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_sub_flow_of_a_lost_worker_goes_on(world: World, way: str) -> None:
    """The other worker goes on with the same child, and with its parent. [SF-X7]"""
    world.hold("inner second")
    first = await world.worker("a", "--begin", "fleet-main:run-1")
    await world.reached("inner second")
    await world.worker("b")
    await world.lose(first, "a", way=way)

    await world.reached("inner second")
    world.open("inner second")
    assert MAIN == await world.result()
    assert {"inner first": 1, "inner second": 2} == world.count("run-1~1")
    assert {"before": 1, "after": 1} == world.count()


@pytest.mark.slow
async def test_sub_flow_in_flight_is_resumed(world: World) -> None:
    """It is the same child: what it had done is not done again, and there is no second one. [SF-X6 SF-U18]"""
    world.hold("inner second")
    worker = await world.worker("a", "--alone", "--begin", "fleet-main:run-1")
    await world.reached("inner second")
    worker.kill()

    world.open("inner second")
    await world.worker("a", "--alone")
    assert MAIN == await world.result()
    assert {"inner first": 1, "inner second": 2} == world.count("run-1~1")
    assert {"run-1", "run-1~1"} == {call.run for call in world.calls}
    assert {"before": 1, "after": 1} == world.count()


@pytest.mark.slow
async def test_sub_flow_that_had_ended_is_not_run_again(world: World) -> None:
    """Its parent is killed in the step after it. [SF-X8 SF-U17]"""
    world.hold("after")
    worker = await world.worker("a", "--alone", "--begin", "fleet-main:run-1")
    await world.reached("after")
    worker.kill()

    world.open("after")
    await world.worker("a", "--alone")
    assert MAIN == await world.result()
    assert {"inner first": 1, "inner second": 1} == world.count("run-1~1")
    assert {"before": 1, "after": 2} == world.count()


@pytest.mark.slow
async def test_two_workers_with_flows_that_are_killed_both_go_on(world: World) -> None:
    """Each had a run: both runs end, each was taken over once, and what had ended is not done again. [SF-X5]"""
    world.hold("second")
    killed = [await world.worker(name, "--alone", "--begin", f"fleet-chain:run-{name}") for name in "ab"]
    for _ in killed:
        await world.reached("second")
    for worker in killed:
        worker.kill()

    world.open("second")
    for name in "ab":
        await world.worker(name, "--alone")
    for name in "ab":
        assert CHAIN == await world.result(f"run-{name}")
        assert {"first": 1, "second": 2, "third": 1} == world.count(f"run-{name}")
        assert [2] == [claim.epoch for claim in await world.claims(f"run-{name}")]


@pytest.mark.slow
async def test_step_of_a_flow_whose_process_dies_is_tried_again(world: World) -> None:
    """A step of a flow whose process dies is tried again as the document says, and no other step runs again. [SF-X9]"""
    world.hold("second")
    await world.worker("a", "--begin", "fleet-with-a-process:run-1")
    (await world.reached("second")).die()
    (await world.reached("second")).go_on()

    assert CHAIN == await world.result()
    assert [(1, 1), (2, 1)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert {"first": 1, "second": 2, "third": 1} == world.count()


@pytest.mark.slow
async def test_step_of_a_flow_whose_process_always_dies_fails_its_run(world: World) -> None:
    """After the last attempt: the run has failed and says of what, and does not hang. [SF-X10]"""
    world.hold("second")
    await world.worker("a", "--begin", "fleet-with-a-process:run-1")
    for _ in range(3):
        (await world.reached("second")).die()

    async with world.client() as client:
        with pytest.raises(outlive.errors.RunFailedError, match="ProcessDiedError"):
            await in_time(client.get("run-1").result())
    assert [1, 2, 3] == [call.attempt for call in world.of("second")]
    assert {"first": 1, "second": 3} == world.count()


@pytest.mark.slow
async def test_worker_of_a_flow_and_the_process_of_its_step_may_both_die(world: World) -> None:
    """The attempt that the dead process has cost is not forgotten with the worker. [SF-X11]"""
    world.hold("second")
    worker = await world.worker("a", "--alone", "--begin", "fleet-with-a-process:run-1")
    (await world.reached("second")).die()
    await world.reached("second")
    worker.kill()

    world.open("second")
    await world.worker("a", "--alone")
    assert CHAIN == await world.result()
    assert [(1, 1), (2, 1), (2, 2)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert {"first": 1, "second": 3, "third": 1} == world.count()
    assert [1] == [call.attempt for call in world.of("third")]


@pytest.mark.slow
async def test_step_in_a_queue_that_ends_while_its_flow_is_without_a_worker_is_not_done_again(world: World) -> None:
    """Another worker takes it from its queue. Its outcome waits for the flow, which takes it when its worker is back.
    [SF-X12]"""
    world.hold("second")
    own = ("--alone", "--queues", "default")
    starter = await world.worker("a", *own, "--begin", "fleet-with-a-queue:run-1")
    other = await world.worker("b", "--queues", "work")
    step = await world.reached("second")
    starter.kill()
    step.go_on()
    assert "second" == await world.result(step.call.run)
    await world.stop(other)

    await world.worker("a", *own)
    assert CHAIN == await world.result()
    assert {"first": 1, "third": 1} == world.count()
    assert [("b", 1, 1)] == [(call.worker, call.attempt, call.epoch) for call in world.of("second", step.call.run)]
