"""Machines that are cancelled in a state of each kind: the handler that runs is cancelled, finished states are undone,
nothing follows.

Splits, streams and resources stand in `test_cancel_wide`, and what else may happen to a cancel in `test_cancel`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import outlive
from outlive.events import CancelRequested, StateLeft, StepSucceeded
from outlive.machine import More, Pending
from tests.engine.support import Place, events_of, hold, stage, until, until_calls, waits
from tests.machine.cancelling import Data, S, are_told, cancel, has, is_cancelled, machine, work

# -- A state, and routers beside it ------------------------------------------------------------------------------------

plain = machine("plain")


@plain.state(S.WORK)
async def plain_work(data: Data) -> S:
    """Interrupted."""
    await work("WORK")
    return S.AFTER


careful = machine("careful")


def take_back(data: Data) -> None:
    """The undo of WORK, with the data as it left it."""
    stage.call(f"undo {data.seen[-1]}")


@careful.state(S.WORK, undo=take_back)
async def careful_work(data: Data) -> S:
    """Has an undo: it is not interrupted, because its effect may happen."""
    await work("WORK")
    data.seen.append("WORK")
    return S.AFTER


async def test_a_cancel_in_a_state_tells_its_handler_and_undoes_those_before(engine: outlive.Engine) -> None:
    """The handler that was interrupted has left no row. [CA-C1]"""
    run = await engine.start(plain, Data())
    await stage.gate("WORK").reached()
    await cancel(run)

    await until_calls("BOOK", "WORK", "WORK cancelled", "undo BOOK")
    assert ["cancel.plain.BOOK"] == [event.call for event in await events_of(run, StepSucceeded)][:1]


async def test_a_cancel_in_a_state_with_an_undo_waits_for_it_and_undoes_it(engine: outlive.Engine) -> None:
    """Its effect may happen, so it is not interrupted; nothing follows it, not even a router. [CA-C1 CA-C6]"""
    run = await engine.start(careful, Data())
    await stage.gate("WORK").reached()
    await run.cancel(reason="enough")
    await until(has(run, CancelRequested, 1))
    stage.gate("WORK").open()

    await is_cancelled(run)
    assert stage.calls == ["BOOK", "WORK", "undo WORK", "undo BOOK"]


routed = machine("routed")


@routed.state(S.WORK)
async def routed_work(data: Data) -> S:
    """Swallows its cancellation and goes to a router."""
    try:
        await work("WORK")
    except asyncio.CancelledError:
        stage.call("swallowed")
    return S.CHOOSE


async def test_no_router_leads_a_cancelled_machine_on(engine: outlive.Engine) -> None:
    """A handler that swallows the cancel changes nothing: routers before and behind it are not asked. [CA-C6]"""
    run = await engine.start(routed, Data())
    await stage.gate("WORK").reached()
    await cancel(run)

    assert [1, 1] == [stage.count("WORK"), stage.count("undo BOOK")]


# -- Workflow states and timers ----------------------------------------------------------------------------------------

waiting = machine("waiting")


@waiting.workflow(S.WORK)
async def waiting_work(data: Data) -> S:
    """A wait, with something to clean up."""
    try:
        await outlive.wait_for_signal("never")
    finally:
        await hold("clean-up")
    return S.AFTER


calling = machine("calling")


@calling.workflow(S.WORK)
async def calling_work(data: Data) -> S:
    """A step of the code on the loop."""
    await hold("step")
    return S.AFTER


resting = machine("resting")
resting.timer(S.WORK, 3600, then=S.AFTER)


async def test_a_cancel_wakes_a_workflow_state_that_waits(engine: outlive.Engine) -> None:
    """Its `finally` blocks run with their steps, before anything is undone. [CA-C7]"""
    stage.gate("clean-up").open()
    run = await engine.start(waiting, Data())
    await waits(run)
    await cancel(run)

    assert stage.calls == ["BOOK", "clean-up", "undo BOOK"]
    assert [] == await events_of(run, StateLeft)


async def test_a_cancel_reaches_the_step_of_a_workflow_state(engine: outlive.Engine) -> None:
    """A cancel reaches the step under way in a workflow state, and the earlier state is undone. [CA-C7]"""
    run = await engine.start(calling, Data())
    await stage.gate("step").reached()
    await cancel(run)

    await until_calls("BOOK", "step", "step cancelled", "undo BOOK")


async def test_a_cancel_ends_a_timer(place: Place) -> None:
    """It does not wait until the time is over, and it does not come back when it is. [CA-C8]"""
    async with place.engine() as engine:
        run = await engine.start(resting, Data())
        await waits(run)
        await cancel(run)
        place.clock.skip(seconds=3601)

        await is_cancelled(run)
    assert stage.calls == ["BOOK", "undo BOOK"]


# -- Polls, batches, cursors -------------------------------------------------------------------------------------------

asking = machine("asking")


@asking.poll(S.WORK)
async def asking_work(data: Data) -> Pending | S:
    """Pauses after the first poll, and hangs in the second."""
    data.seen.append("poll")
    if len(data.seen) > 1:
        await work("poll")
    return Pending(3600)


async def test_a_cancel_ends_the_pause_of_a_poll(engine: outlive.Engine) -> None:
    """There is no further poll. [CA-C9]"""
    run = await engine.start(asking, Data())
    await waits(run)
    await cancel(run)

    assert stage.calls == ["BOOK", "undo BOOK"]


async def test_a_cancel_reaches_a_poll_that_hangs(place: Place) -> None:
    """A poll that runs is cancelled, as every step. [CA-C10]"""
    async with place.engine() as engine:
        run = await engine.start(asking, Data())
        await waits(run)
        place.clock.skip(seconds=3601)
        await stage.gate("poll").reached()
        await cancel(run)

        await until_calls("BOOK", "poll", "poll cancelled", "undo BOOK")


batch = machine("batch")


async def load(data: Data) -> list[int]:
    """The items."""
    return [0, 1, 2, 3]


async def process(item: int) -> int:
    """The first is quick, the others hang."""
    if item:
        await work(f"item {item}")
    return item


async def finish(data: Data, results: list[Any]) -> S:
    """Not reached."""
    stage.call("finish")
    return S.AFTER


batch.batch(S.WORK, load=load, process=process, finish=finish, concurrency=2)


async def test_a_cancel_reaches_every_item_of_a_batch_that_is_under_way(engine: outlive.Engine) -> None:
    """Items that were under way are cancelled, no other item begins, and `finish` is not called. [CA-C11]"""
    run = await engine.start(batch, Data())
    await stage.gate("item 1").reached()
    await stage.gate("item 2").reached()
    await cancel(run)

    assert [0, 0] == [stage.count("item 3"), stage.count("finish")]
    await until(are_told("item 1", "item 2"))


stepped = machine("stepped")


@stepped.stepped(S.WORK)
async def stepped_work(data: Data, cursor: int | None) -> More[int] | S:
    """Two steps, and one that hangs."""
    here = cursor or 0
    data.seen.append(here)
    if here == 2:
        await work("cursor 2")
    return More(here + 1)


async def test_a_cancel_in_a_stepped_state_keeps_its_cursors(engine: outlive.Engine) -> None:
    """A cancel in a stepped state stops the step under way, and the cursors in the journal stay. [CA-C12]"""
    run = await engine.start(stepped, Data())
    await stage.gate("cursor 2").reached()
    await cancel(run)

    await until_calls("BOOK", "cursor 2", "cursor 2 cancelled", "undo BOOK")
    cursors = [event.call for event in await events_of(run, StepSucceeded) if ".WORK" in event.call]
    assert len(cursors) == 2
