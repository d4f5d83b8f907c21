"""Bursts of messages give way: what runs in the same process goes on between them, and no message is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive._kernel.client.turns import CALLS_PER_TURN_MAX, SENDS_MAX
from outlive._kernel.runtime.session import inboxes
from outlive._kernel.runtime.tree.live import EVENTS_AT_ONCE
from outlive._kernel.store.contract import Store
from outlive.errors import CommitUnknownError, EngineClosedError, StoreUnavailableError
from outlive.errors.run import InboxFullError
from tests.engine.faults import FaultyStore, faulty
from tests.engine.inside import trees_of
from tests.engine.loop_time import LoopTime
from tests.engine.support import Place, in_time, parks, turns_of_the_loop, until, waits

pytestmark = pytest.mark.any_store

MANY = 1_000
SECONDS = 600


@outlive.workflow(name="burst.taking")
async def taking(count: int) -> list[int]:
    """Takes so many signals."""
    return [await outlive.wait_for_signal("number", int) for _ in range(count)]


class Measuring(FaultyStore):
    """A store that notes how many events each change has, and the messages that it takes from the inbox."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.rows: list[int] = []
        self.consumed: list[int] = []

    async def _do(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "commit":
            self.rows += [len(change.rows) for change in args[0]]
            self.consumed += [len(change.consumed) for change in args[0]]
        return await super()._do(name, *args, **kwargs)


async def test_signals_give_way_to_what_runs(place: Place) -> None:
    """A hundred are with the store at a time, however many callers there are."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, wrap=faulty(stores)) as engine:
        run = await engine.start(taking, MANY)
        gate = stores[0].gates["deliver"] = asyncio.Event()
        signals = [asyncio.create_task(run.signal("number", number)) for number in range(MANY)]
        await in_time(stores[0].waiting["deliver"].wait())
        await turns_of_the_loop(100)
        assert stores[0].calls["deliver"] == SENDS_MAX
        gate.set()
        await in_time(asyncio.gather(*signals))

        assert stores[0].calls["deliver"] == MANY
    async with place.engine() as engine:
        assert sorted(await in_time(engine.get(run.id).result())) == [*range(MANY)]


async def test_signals_of_a_burst_arrive_in_the_order_of_their_calls(place: Place) -> None:
    """None overtakes another one on the way to a store that has one writer, whatever the first of them had to read."""
    async with place.engine() as engine:
        run = await engine.start(taking, MANY)
        await asyncio.gather(*(run.signal("number", number) for number in range(MANY)))
        result = await in_time(run.result())

        # A server has many sessions, and no order between two calls that run at the same time.
        assert (sorted(result) if place.server_url else result) == [*range(MANY)]


async def test_signals_are_prepared_in_turns(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred are encoded in one turn of the event loop."""
    made: list[float] = []
    now = place.clock.now

    def noted() -> int:
        made.append(0)
        return now()

    async with place.engine(worker=False) as engine:
        run = await engine.start(taking, MANY)
        monkeypatch.setattr(place.clock, "now", noted)
        signals = [asyncio.create_task(run.signal("number", number)) for number in range(MANY)]
        in_each_turn = []
        while not all(signal.done() for signal in signals):
            before = len(made)
            await asyncio.sleep(0)
            in_each_turn.append(len(made) - before)
        await asyncio.gather(*signals)

    # Each signal asks for the time; so does the store for a message, which has a hundred of them.
    assert max(in_each_turn) <= 2 * CALLS_PER_TURN_MAX + SENDS_MAX


async def test_callers_behind_others_learn_of_a_silent_store_with_them(place: Place, loop_time: LoopTime) -> None:
    """The store had none of their messages, and their errors say so; none of them arrives later."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, store_seconds=SECONDS, wrap=faulty(stores)) as engine:
        run = await engine.start(taking, MANY)
        gate = stores[0].gates["deliver"] = asyncio.Event()
        signals = [asyncio.create_task(run.signal("number", number)) for number in range(SENDS_MAX + 20)]
        await in_time(stores[0].waiting["deliver"].wait())
        await turns_of_the_loop(100)
        signals[-1].cancel()
        loop_time.skip(seconds=SECONDS)
        await in_time(asyncio.wait(signals))
        errors = [None if signal.cancelled() else signal.exception() for signal in signals]
        gate.set()

        assert [type(error) for error in errors[:SENDS_MAX]] == [CommitUnknownError] * SENDS_MAX
        assert {str(error) for error in errors[SENDS_MAX:-1]} == {str(errors[-2])}
        assert type(errors[-2]) is StoreUnavailableError
        assert "has not answered for 600 s; the message was not sent" in str(errors[-2])
        assert stores[0].calls["deliver"] == SENDS_MAX
        await in_time(run.signal("number", 7))


async def test_signals_that_wait_for_others_raise_when_the_engine_stops(place: Place) -> None:
    """A caller behind others is refused, and waits for nothing."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False, wrap=faulty(stores)) as engine:
        run = await engine.start(taking, MANY)
        gate = stores[0].gates["deliver"] = asyncio.Event()
        signals = [asyncio.create_task(run.signal("number", number)) for number in range(2 * SENDS_MAX)]
        await in_time(stores[0].waiting["deliver"].wait())
        await turns_of_the_loop(100)
    await in_time(asyncio.wait(signals[SENDS_MAX:]))
    gate.set()
    await in_time(asyncio.wait(signals))

    assert {type(signal.exception()) for signal in signals[SENDS_MAX:]} == {EngineClosedError}


async def test_run_takes_many_messages_in_several_changes(place: Place) -> None:
    """The store writes changes of other runs between them."""
    async with place.engine(worker=False) as engine:
        run = await engine.start(taking, MANY)
        await asyncio.gather(*(run.signal("number", number) for number in range(MANY)))
    stores: list[Measuring] = []

    def wrap(inner: Store) -> Any:
        stores.append(Measuring(inner))
        return stores[-1]

    async with place.engine(wrap=wrap) as engine:
        assert sorted(await in_time(engine.get(run.id).result())) == [*range(MANY)]
        assert engine.counters.signals_taken == MANY
    assert sum(stores[0].consumed) == MANY
    assert max(stores[0].rows) <= 2 * EVENTS_AT_ONCE


async def test_workflow_that_is_paused_between_messages_takes_the_others_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages that a run has not taken stay in its inbox."""
    monkeypatch.setattr(inboxes, "EVENTS_AT_ONCE", 1)
    async with place.engine() as engine:
        run = await engine.start(taking, 50)
        await waits(run)
        await asyncio.gather(*(run.signal("number", number) for number in range(50)))

        async def has_unread() -> bool:
            return any(tree.unread for tree in trees_of(engine))

        await until(has_unread)
        await engine.pause(workflow="burst.taking")

        async def rests() -> bool:
            return not trees_of(engine)

        await until(rests)
        assert await run.status() != "succeeded"
        await engine.resume(workflow="burst.taking")
        assert sorted(await in_time(run.result())) == [*range(50)]


async def test_run_that_is_paused_behind_many_messages_takes_none(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause is seen in the whole inbox."""
    monkeypatch.setattr(inboxes, "EVENTS_AT_ONCE", 1)
    async with place.engine(worker=False) as engine:
        run = await engine.start(taking, 10)
        for number in range(10):
            await run.signal("number", number)
        await run.pause()
    async with place.engine() as engine:
        await parks(engine.get(run.id))
        assert engine.counters.signals_taken == 0
        await engine.resume(run.id)
        assert await in_time(engine.get(run.id).result()) == [*range(10)]


@pytest.mark.every_store
async def test_messages_that_come_together_fill_an_inbox_exactly(place: Place) -> None:
    """However many are judged in one transaction."""
    async with place.engine(worker=False, limits=outlive.limits.Limits(inbox_messages_max=30)) as engine:
        runs = [await engine.start(taking, 1) for _ in range(2)]
        sent = [asyncio.create_task(runs[number % 2].signal("number", number)) for number in range(90)]
        await in_time(asyncio.wait(sent))
        refused = [signal for signal in sent if isinstance(signal.exception(), InboxFullError)]
        assert len(refused) == 30
        assert sum(signal.exception() is None for signal in sent) == 60
        # Requests of people find room all the same.
        await in_time(asyncio.gather(*(run.pause() for run in runs)))
