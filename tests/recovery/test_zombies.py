"""A worker that has lost a tree without knowing writes nothing more, however much it has to say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.events import RunClaimed, StepSucceeded
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.inside import committer_of, go_silent, journal_of, queued_in, transactions_in, worker_of
from tests.engine.ledger import entries, ledger_credit_slowly, open_ledger
from tests.engine.support import Place, hold, in_time, stage, until, waits


@outlive.workflow
async def holding_three() -> list[str]:
    return list(await asyncio.gather(hold("a"), hold("b"), hold("c")))


@pytest.mark.parametrize("batched", [False, True], ids=["one after the other", "in one batch"])
async def test_nothing_is_appended_behind_the_claim_of_another(place: Place, *, batched: bool) -> None:
    """The first of its changes is refused; the second one would fit behind the claim that took its place."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as first:
        committer = committer_of(first)
        run = await first.start(holding_three, id="run-1")
        for name in "abc":
            await stage.gate(name).reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        other: asyncio.Task[Any] | None = None
        if batched:
            # Something of another run keeps the committer busy while two changes of this one come together.
            other = asyncio.create_task(first.start(holding_three, id="run-2"))
            await in_time(stores[0].waiting["commit"].wait())
        for number, name in enumerate("ab", start=batched):
            stage.gate(name).open()

            async def is_queued(wanted: int = number) -> bool:
                return queued_in(committer) >= wanted and stores[0].waiting["commit"].is_set()

            await until(is_queued)

        await go_silent(stores[0], worker_of(first).id)
        async with place.engine(wrap=faulty(stores)) as second:
            stores[1].gates["commit"] = asyncio.Event()

            async def is_claimed() -> bool:
                return isinstance((await journal_of(second, run.id))[-1], RunClaimed)

            await until(is_claimed)
            del stores[0].gates["commit"]
            blocked.set()
            assert await committer.drain(outage_seconds_max=1)
            appended = [event for event in await journal_of(second, run.id) if isinstance(event, StepSucceeded)]
            stores[1].gates.pop("commit").set()
            stage.gate("c").open()
            assert [] == appended
            assert ["a", "b", "c"] == await in_time(second.get(run.id).result())
            if other is not None:
                await in_time(other)


@outlive.workflow
async def holding_beside_a_credit() -> list[str]:
    await open_ledger()
    await hold("ready")
    return list(await asyncio.gather(hold("a"), ledger_credit_slowly("ann"), hold("b")))


async def test_no_transaction_is_committed_behind_the_claim_of_another(place: Place) -> None:
    """A worker that was overtaken does not commit a transaction behind a change that is still on its way."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as first:
        committer = committer_of(first)
        run = await first.start(holding_beside_a_credit, id="run-1")
        await stage.gate("ready").reached()
        # No worker can claim it on SQLite while the transaction is open, so it begins after that.
        unbegun = stores[0].gates["begin"] = asyncio.Event()
        stage.gate("ready").open()
        for name in "ab":
            await stage.gate(name).reached()
        blocked = stores[0].gates["commit"] = asyncio.Event()
        stage.gate("a").open()
        await in_time(stores[0].waiting["commit"].wait())

        await go_silent(stores[0], worker_of(first).id)
        async with place.engine(wrap=faulty(stores)) as second:
            stores[1].gates |= {"commit": asyncio.Event(), "begin": asyncio.Event()}

            async def is_claimed() -> bool:
                return isinstance((await journal_of(second, run.id))[-1], RunClaimed)

            await until(is_claimed)
            before = len(await journal_of(second, run.id))
            unbegun.set()
            stage.gate("ann").open()

            async def is_over() -> bool:
                return stores[0].calls["end"] == 2 and not transactions_in(committer)

            await until(is_over)
            after = len(await journal_of(second, run.id))
            for event in (stores[1].gates.pop("commit"), stores[1].gates.pop("begin"), blocked):
                event.set()
            stores[0].gates.clear()
            stage.gate("b").open()
            assert before == after
            assert ["a", "credited ann", "b"] == await in_time(second.get(run.id).result())
    assert [("ann", 1)] == await entries(place)


@outlive.workflow
async def holding_when_told() -> str:
    await outlive.wait_for_signal("go", int)
    return await hold("a")


async def test_a_claim_without_an_answer_is_not_taken_up_behind_that_of_another(place: Place) -> None:
    """The run was ours when the rows were read, and another worker's when the journal was."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores), grace_seconds=0) as first:
        run = await first.start(holding_when_told, id="run-1")
        await waits(run)
        claiming = stores[0].gates["claim_runs"] = asyncio.Event()
        stores[0].waiting["claim_runs"].clear()
        await in_time(stores[0].waiting["claim_runs"].wait())
        await run.signal("go", 1)
        stores[0].after["claim_runs"].append(unknown())
        reading = stores[0].gates["read_journals"] = asyncio.Event()
        del stores[0].gates["claim_runs"]
        claiming.set()
        await in_time(stores[0].waiting["read_journals"].wait())

        await go_silent(stores[0], worker_of(first).id)
        async with place.engine() as second:
            await stage.gate("a").reached()
            looked = stores[0].calls["claim_runs"]
            del stores[0].gates["read_journals"]
            reading.set()

            async def has_looked() -> bool:
                return stores[0].calls["claim_runs"] > looked + 2

            await until(has_looked)
            calls = list(stage.calls)
            stage.gate("a").open()
            assert "a" == await in_time(second.get(run.id).result())
    assert ["a"] == calls
