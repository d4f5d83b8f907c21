"""Opening, closing and opening again: what is written stays for the next process."""

from __future__ import annotations

import asyncio

from outlive._kernel.store.contract import ItemResult, Outcome, Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    begin,
    blob,
    claim,
    get_run,
    hire,
    message,
    new_tree,
    read_events,
    read_names,
    see_everything,
    send,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory


class MigrationsConformance(Facet):
    """`open`, `close` and `now`."""

    async def test_store_tells_the_time_of_its_clock(self, store: Store, clock: ManualClock) -> None:
        """All that a store judges by time, it judges by this clock."""
        assert store.now() == clock.now()
        clock.advance(seconds=1.5)
        assert store.now() == clock.now()

    async def test_opening_twice_changes_nothing(self, store: Store) -> None:
        """A second `open` in turn finds everything up to date, and the store works on."""
        tree = await begin(store)
        before = await see_everything(store, tree)

        await store.open()

        assert await see_everything(store, tree) == before
        await tree.step()

    async def test_store_can_be_opened_without_writing(self, store: Store) -> None:
        """A store with the schema of this release is read as it is, and works."""
        tree = await begin(store)
        before = await see_everything(store, tree)
        await store.close()

        await store.open(migrate=False)

        assert await see_everything(store, tree) == before
        await tree.step()

    async def test_closing_twice_is_fine(self, factory: StoreFactory) -> None:
        """The second time there is nothing to do."""
        store = await factory.open()

        await store.close()
        await store.close()

    async def test_reopened_store_has_everything(self, factory: StoreFactory) -> None:
        """Journal, rows, inbox, items and blobs are there after closing and opening again."""
        store = await factory.open()
        tree = await begin(store, tags={"team": "a"})
        await tree.spawn(1)
        await tree.step(items=[ItemResult(run=0, index=0, result=value(1))], blobs=[blob(b"\x00kept\xff")])
        await send(store, message(store, "run-1", key="k", payload=value("early")))
        before = await see_everything(store, tree)
        await store.close()

        reopened = await factory.open()

        assert await see_everything(reopened, tree) == before
        assert await reopened.get_blobs([blob(b"\x00kept\xff").id]) == {blob(b"\x00kept\xff").id: b"\x00kept\xff"}
        await reopened.close()

    async def test_reopened_store_goes_on(self, factory: StoreFactory) -> None:
        """Seqs, handles, keys and message ids continue where they were."""
        store = await factory.open()
        tree = await begin(store)
        await send(store, message(store, "run-1", "first", key="k"))
        await store.close()
        reopened = await factory.open()
        successor = tree.twin(reopened)

        await successor.step()
        second = await begin(reopened, "run-2")
        await send(reopened, message(reopened, "run-1", "again", key="k"), message(reopened, "run-1", "second"))

        assert second.journal != tree.journal
        assert len(await read_events(successor)) == 2
        assert await read_names(reopened, successor) == ["first", "second"]
        await reopened.close()

    async def test_run_may_be_claimed_after_reopening(self, factory: StoreFactory, clock: ManualClock) -> None:
        """A timer that ran out while no worker was there is due, and so is a run that was never claimed."""
        store = await factory.open()
        await (await begin(store, "sleeper")).suspend(wake_at=clock.now() + 60_000_000)
        await begin(store, "new")
        await store.close()
        clock.advance(seconds=3_600)

        reopened = await factory.open()
        await hire(reopened, "worker-a")

        assert await claim(reopened, "worker-a") == ["new", "sleeper"]
        await reopened.close()

    async def test_closed_store_leaves_the_others_open(self, factory: StoreFactory, store: Store) -> None:
        """One worker that stops does not stop another one."""
        passing = await factory.open()
        tree = await begin(passing)
        await passing.close()

        await tree.twin(store).step()

        assert len(await store.read_journal(tree.journal)) == 2

    async def test_write_is_seen_by_every_store_when_it_returns(self, store: Store, other: Store) -> None:
        """A commit, a claim and a delivery are durable, not on their way."""
        tree = await begin(store)
        assert await get_run(other, "run-1") == await get_run(store, "run-1")

        await send(store, message(store, "run-1"))
        assert await read_names(other, tree) == ["go"]

        await hire(store, "worker-a")
        await claim(store, "worker-a")
        assert (await get_run(other, "run-1")).owner == "worker-a"
        assert await other.read_journal(tree.journal) == await store.read_journal(tree.journal)

    async def test_many_may_open_at_once(self, factory: StoreFactory) -> None:
        """The schema is made once, and everybody waits for it. [FE-P17]"""
        stores = await asyncio.gather(*(factory.open() for _ in range(8)))

        await begin(stores[0])

        assert [await store.find_run("run-1") is not None for store in stores] == [True] * 8
        await asyncio.gather(*(store.close() for store in stores))

    async def test_closing_lets_a_verb_under_way_end(self, factory: StoreFactory) -> None:
        """A commit that was asked for before the close is answered, and its answer is true."""
        store = await factory.open()
        tree = await begin(store)
        changes = [tree.change(stepped(store)), *(new_tree(store, f"new-{number}") for number in range(50))]

        outcomes, _ = await asyncio.gather(store.commit(changes), store.close())

        reopened = await factory.open()
        assert {outcome for outcome, _ in outcomes} == {Outcome.COMMITTED}
        assert len(await reopened.read_journal(tree.journal)) == 2
        assert await reopened.find_run("new-49") is not None
        await reopened.close()
