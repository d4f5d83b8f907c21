"""The process that does the work dies, and not only the worker that asked for it.

Where others have workers that pull tasks, Outlive has steps in processes of their own, and other workers.
"""

from __future__ import annotations

import pytest

import outlive
from tests.engine.support import in_time
from tests.fleet.world import World


async def test_step_whose_process_dies_is_tried_again(world: World) -> None:
    """That is a failed attempt, noticed at once; nothing else of the run is executed again. [SF-X9]"""
    world.hold("second")
    await world.worker("a", "--begin", "fleet_with_a_process:run-1")
    (await world.reached("second")).die()
    again = await world.reached("second")
    again.go_on()

    assert ["first", "second", "third"] == await world.result()
    assert [(1, 1), (2, 1)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert {"first": 1, "second": 2, "third": 1} == world.count()
    assert [1] == [call.attempt for call in world.of("third")]


async def test_step_whose_process_always_dies_fails_its_run(world: World) -> None:
    """After the last attempt of its budget: the run has failed and says of what, and does not hang. [SF-X10]"""
    world.hold("second")
    await world.worker("a", "--begin", "fleet_with_a_process:run-1")
    for _ in range(3):
        (await world.reached("second")).die()

    async with world.client() as client:
        run = client.get("run-1")
        with pytest.raises(outlive.errors.RunFailedError, match="ProcessDiedError"):
            await in_time(run.result())
        assert await run.status() == "failed"
    assert [1, 2, 3] == [call.attempt for call in world.of("second")]
    assert {"first": 1, "second": 3} == world.count()


async def test_worker_and_step_process_that_both_die_are_both_replaced(world: World) -> None:
    """The attempt that the dead process has cost is not forgotten with the worker. [SF-X11 SF-U9]"""
    world.hold("second")
    worker = await world.worker("a", "--alone", "--begin", "fleet_with_a_process:run-1")
    (await world.reached("second")).die()
    await world.reached("second")
    worker.kill()

    world.open("second")
    await world.worker("a", "--alone")
    assert ["first", "second", "third"] == await world.result()
    assert [(1, 1), (2, 1), (2, 2)] == [(call.attempt, call.epoch) for call in world.of("second")]
    assert {"first": 1, "second": 3, "third": 1} == world.count()
    assert [1] == [call.attempt for call in world.of("third")]


async def test_work_that_ends_elsewhere_while_its_starter_is_dead_is_not_done_again(world: World) -> None:
    """A run that another worker does ends while the worker of its starter is dead: its outcome waits for the starter,
    which takes it when its worker is back. [SF-X12 FE-P11]
    """
    world.hold("work")
    starter = await world.worker(
        "a", "--alone", "--only", "fleet_with_work_elsewhere", "--begin", "fleet_with_work_elsewhere:run-1"
    )
    other = await world.worker("b", "--only", "fleet_elsewhere")
    work = await world.reached("work")
    starter.kill()
    work.go_on()
    assert "work" == await world.result("work")
    await world.stop(other)

    await world.worker("a", "--alone", "--only", "fleet_with_work_elsewhere")
    assert ["first", "work", "third"] == await world.result()
    assert {"first": 1, "third": 1} == world.count()
    assert [("b", 1, 1)] == [(call.worker, call.attempt, call.epoch) for call in world.of("work", "work")]
