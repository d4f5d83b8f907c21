"""Libraries that are written for anyio work in a workflow: its task groups, scopes and streams are durable."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from outlive.types import Workflow
from tests.replay.define import Code, cancel, step, workflow
from tests.replay.driver import live
from tests.replay.life import assert_replays


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@step()
async def fail(why: str) -> int:
    """Work that fails for good."""
    raise ValueError(why)


@workflow()
async def inner(n: int) -> int:
    """A child."""
    return await double(n)


@workflow()
async def task_group() -> list[int]:
    """Branches of a group, which know what they return."""
    results = dict.fromkeys(range(5), 0)

    async def branch(n: int) -> None:
        results[n] = await double(n) + await inner(n)

    async with anyio.create_task_group() as group:
        for n in results:
            group.start_soon(branch, n)
    return list(results.values())


@workflow()
async def group_that_fails() -> list[str]:
    """One branch fails; the other one is cancelled and cleans up durably in a shielded scope."""
    seen: list[str] = []

    async def branch(n: int) -> None:
        try:
            await anyio.sleep(100)
        finally:
            with anyio.CancelScope(shield=True):
                seen.append(f"cleaned up {await double(n)}")

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(branch, 1)
            group.start_soon(fail, "boom")
    except* ValueError as caught:
        seen += [str(error) for error in caught.exceptions]
    return sorted(seen)


@workflow()
async def group_that_starts() -> list[int]:
    """A branch that says when it is ready, and a group that is cancelled."""
    seen: list[int] = []

    async def serve(n: int, *, task_status: TaskStatus[int] = anyio.TASK_STATUS_IGNORED) -> None:
        task_status.started(await double(n))
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        seen.append(await group.start(serve, 4))
        seen.append(await double(5))
        group.cancel_scope.cancel()
    return seen


@workflow()
async def timeouts() -> list[Any]:
    """Too late and in time, as a scope and as an error, one in another."""
    seen: list[Any] = []
    with anyio.move_on_after(5) as scope:
        await anyio.sleep(100)
    seen.append(scope.cancelled_caught)
    with anyio.move_on_after(500) as scope:
        seen.append(await double(1))
    seen.append(scope.cancelled_caught)
    with suppress(TimeoutError):
        with anyio.fail_after(50), anyio.move_on_after(500):
            await anyio.sleep(100)
        seen.append("in time")
    with anyio.move_on_at(anyio.current_time() + 1), anyio.CancelScope(deadline=math.inf):
        await anyio.sleep_until(anyio.current_time() + 2)
        seen.append("in time")
    return [*seen, await double(2)]


@workflow()
async def synchronisation() -> list[Any]:
    """Events, locks, semaphores, limiters and conditions."""
    event, lock, condition = anyio.Event(), anyio.Lock(), anyio.Condition()
    limiter, semaphore = anyio.CapacityLimiter(2), anyio.Semaphore(1)
    seen: list[Any] = []

    async def waits(n: int) -> None:
        await event.wait()
        async with lock, limiter, semaphore:
            seen.append(await double(n))
        async with condition:
            condition.notify_all()

    async with anyio.create_task_group() as group:
        for n in range(3):
            group.start_soon(waits, n)
        await double(9)
        event.set()
        async with condition:
            while len(seen) < 3:
                await condition.wait()
    return seen


@workflow()
async def streams() -> list[int]:
    """A producer and two consumers with a stream between them."""
    send, receive = anyio.create_memory_object_stream[int](1)
    seen: list[int] = []

    async def produce() -> None:
        async with send:
            for n in range(6):
                await send.send(await double(n))

    async def consume(stream: Any) -> None:
        async with stream:
            async for n in stream:
                seen.append(await double(n))  # noqa: PERF401

    async with anyio.create_task_group() as group:
        group.start_soon(produce)
        group.start_soon(consume, receive.clone())
        group.start_soon(consume, receive)
    return sorted(seen)


CASES: list[tuple[Workflow[..., Any], Any]] = [
    (task_group, [0, 4, 8, 12, 16]),
    (group_that_fails, ["boom", "cleaned up 2"]),
    (group_that_starts, [8, 10]),
    (timeouts, [True, 2, False, 4]),
    (synchronisation, [0, 2, 4]),
    (streams, [0, 4, 8, 12, 16, 20]),
]


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("of", "result"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_anyio_in_a_workflow_is_durable(of: Workflow[..., Any], result: Any, seed: int | None) -> None:
    """It comes to its result, with a crash before every event, and replays from every prefix of its journal."""
    life = live(of, code=Code(of, inner), seed=seed, crash_at=range(1000))

    assert life.status == "succeeded", life.park or life.failure
    assert life.result == result
    assert_replays(life)


@workflow()
async def cancelled_in_group() -> None:
    """Waits in a group until it is cancelled."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever)
        await double(1)
        await anyio.sleep_forever()


def test_a_native_cancel_passes_through_a_group() -> None:
    """A run that is cancelled in a task group of anyio ends as cancelled."""
    life = live(cancelled_in_group, messages=[cancel("enough")])

    assert life.status == "cancelled", life.park
