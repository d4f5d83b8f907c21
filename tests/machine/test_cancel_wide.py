"""Machines that are cancelled in a split, in a stream, and while a resource is set up."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import outlive
from outlive.events import StateLeft, StepSucceeded
from outlive.machine import All
from tests.engine.support import events_of, stage, until
from tests.machine.cancelling import Data, S, are_told, cancel, is_cancelled, machine, work

# -- Splits and streams ------------------------------------------------------------------------------------------------


async def left(data: Data) -> None:
    """A branch."""
    await work("left")


async def right(data: Data) -> None:
    """Another one."""
    await work("right")


def take_back_seat(data: Data) -> None:
    """The undo of a branch."""
    stage.call("undo seat")


@outlive.step(undo=take_back_seat)
async def cancel_seat(data: Data) -> Data:
    """A branch with an undo."""
    await work("seat")
    return data


split = machine("split")
split.split(S.WORK, [left, right], join=All(then=S.AFTER))
booking = machine("booking")
booking.split(S.WORK, [left, cancel_seat], join=All(then=S.AFTER))


async def test_a_cancel_in_a_split_cancels_every_branch(engine: outlive.Engine) -> None:
    """A cancel in a split cancels every branch, nothing is joined, and the earlier state is undone. [CA-C4]"""
    run = await engine.start(split, Data())
    await stage.gate("left").reached()
    await stage.gate("right").reached()
    await cancel(run)

    await until(are_told("left", "right"))
    assert [1, []] == [stage.count("undo BOOK"), await events_of(run, StateLeft)]


async def test_a_cancel_in_a_split_waits_for_the_branch_that_can_be_undone(engine: outlive.Engine) -> None:
    """The other branches are cancelled; the finished branch may have had its effect. Cano has no undo of branches.
    [CA-C5]"""
    run = await engine.start(booking, Data())
    await stage.gate("left").reached()
    await stage.gate("seat").reached()
    await run.cancel(reason="enough")
    await until(are_told("left"))
    assert await run.status() == "running"
    stage.gate("seat").open()

    await is_cancelled(run)
    assert stage.calls[-2:] == ["undo seat", "undo BOOK"]
    assert 0 == stage.count("seat cancelled")


streaming = machine("streaming")


async def source(data: Data, cursor: int | None) -> AsyncGenerator[tuple[int, int], None]:
    """Two items, and then a third which does not come."""
    for number in range((cursor or 0) + 1, 3):
        yield number, number
    await work("source")
    yield 3, 3


async def parse(item: int) -> int:
    """As it is."""
    return item


async def flush(data: Data, window: list[int]) -> None:
    """Write it down."""
    stage.call(tuple(window))


streaming.stream(S.WORK, source=source, process=parse, flush=flush, then=S.AFTER, items=5)


async def test_a_cancel_in_a_stream_flushes_what_was_read(engine: outlive.Engine) -> None:
    """The partial window is journaled, then the machine is rolled back. [CA-C13]"""
    run = await engine.start(streaming, Data())
    await stage.gate("source").reached()
    await cancel(run)

    assert stage.calls == ["BOOK", "source", "source cancelled", (1, 2), "undo BOOK"]
    assert 2 == len([event for event in await events_of(run, StepSucceeded) if "undo" not in event.call])


# -- Resources ---------------------------------------------------------------------------------------------------------

pooled = machine("pooled")


async def open_pool() -> str:
    """Hangs."""
    await work("pool")
    return "pool"


pooled.resource("pool", open_pool)


@pooled.state(S.WORK)
async def pooled_work(data: Data, *, pool: str) -> S:
    """Not called before its resource is there."""
    stage.call("WORK")
    return S.AFTER


async def test_a_cancel_during_the_set_up_of_a_resource_does_not_wait_for_it(engine: outlive.Engine) -> None:
    """The handler that wanted it is never called. [CA-C14]"""
    run = await engine.start(pooled, Data())
    await stage.gate("pool").reached()
    await cancel(run)

    assert [0, 1] == [stage.count("WORK"), stage.count("undo BOOK")]
