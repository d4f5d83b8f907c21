"""Runs and messages that are asked for in the transaction of a user's own: there if and only if the user commits."""

from __future__ import annotations

from contextlib import suppress

import pytest

from outlive._kernel.model import RunFilter
from outlive._kernel.store.contract import Delivery, Outcome, Store
from outlive.errors import ConfigurationError
from outlive_conformance.suite.builders import begin, blob, claim, created, get_run, hire, message, new_tree, send
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory


class ChangedItsMind(Exception):
    """A user who rolls back."""


class RequestsConformance(Facet):
    """`request_start` and `request_message`, or a clear answer that there is no such thing; the factory knows which."""

    async def test_requested_tree_exists_when_the_user_commits(self, factory: StoreFactory, store: Store) -> None:
        """Not before; then it is whole, and due. A store that has nothing to share says so. [OL-J1]"""
        change = new_tree(store, "run-1")
        change.blobs = [blob(b"with it")]
        if factory.shared_transaction is None:
            await refuses(store)
            return
        await hire(store, "worker-1")

        async with factory.shared_transaction() as connection:
            assert await store.request_start(connection, change) is Outcome.COMMITTED
            assert await store.find_run("run-1") is None

        run = await get_run(store, "run-1")
        assert [row[0] for row in await store.read_journal(run.journal)] == [0]
        assert await store.get_blobs([blob(b"with it").id]) == {blob(b"with it").id: b"with it"}
        assert await claim(store, "worker-1") == ["run-1"]

    async def test_requested_tree_is_gone_when_the_user_rolls_back(self, factory: StoreFactory, store: Store) -> None:
        """A requested tree is gone when the user rolls back, and its id is free. [OL-J2]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        with suppress(ChangedItsMind):
            async with factory.shared_transaction() as connection:
                await store.request_start(connection, new_tree(store, "run-1"))
                raise ChangedItsMind

        assert await store.find_run("run-1") is None
        await begin(store)

    async def test_requested_tree_with_a_taken_id_conflicts(self, factory: StoreFactory, store: Store) -> None:
        """The run that has it stays, and the user's transaction goes on. [OL-J3]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        tree = await begin(store, version=1)
        async with factory.shared_transaction() as connection:
            assert await store.request_start(connection, new_tree(store, "run-1", version=2)) is Outcome.CONFLICT
            assert await store.request_start(connection, new_tree(store, "run-2", version=2)) is Outcome.COMMITTED

        found = await store.find_runs(["run-1", "run-2"])
        assert {run_id: run.version for run_id, run in found.items()} == {"run-1": 1, "run-2": 2}
        await tree.write(created(store, run=1, call="child"))

    async def test_request_is_in_the_way_of_no_other(self, factory: StoreFactory, store: Store) -> None:
        """While the user's transaction is open another start may take the id; then the request is dropped. [OL-J5]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        async with factory.shared_transaction() as connection:
            assert await store.request_start(connection, new_tree(store, "run-1", version=2)) is Outcome.COMMITTED
            await begin(store, "run-1", version=1)

        assert (await get_run(store, "run-1")).version == 1
        assert [run.id for run in await store.list_runs(RunFilter())] == ["run-1"]

    async def test_requested_tree_is_there_for_every_verb(self, factory: StoreFactory, store: Store) -> None:
        """Each of them is the first that looks after the user's commit. [OL-J6]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        await hire(store, "worker-1")
        ids = ["found", "listed", "claimed", "taken", "sent-to", "started-with", "sent-to-by-a-run"]

        async def request(run_id: str) -> None:
            async with factory.shared_transaction() as connection:  # type: ignore[misc]
                assert await store.request_start(connection, new_tree(store, run_id)) is Outcome.COMMITTED

        await request("found")
        assert (await store.find_runs(["found", "nowhere"])).keys() == {"found"}
        await request("listed")
        assert "listed" in {run.id for run in await store.list_runs(RunFilter())}
        await request("claimed")
        assert "claimed" in await claim(store, "worker-1")
        await request("taken")
        ((outcome, _),) = await store.commit([new_tree(store, "taken")])
        assert outcome is Outcome.CONFLICT
        await request("sent-to")
        assert await send(store, message(store, "sent-to")) == [Delivery.ACCEPTED]
        await request("started-with")
        again = new_tree(store, "started-with", version=2)
        (delivery,) = await store.deliver([message(store, "started-with")], starts=[again], inbox_messages_max=5)
        assert delivery is Delivery.ACCEPTED
        sender = await begin(store, "sender")
        await request("sent-to-by-a-run")
        await sender.step(messages=[message(store, "sent-to-by-a-run")])

        runs = await store.find_runs(ids)
        assert {run_id: run.version for run_id, run in runs.items()} == dict.fromkeys(ids, 1)
        inbox = await store.read_inbox([runs[run_id].journal for run_id in ids])
        assert len(inbox) == 3

    async def test_requested_message_is_delivered_after_the_commit(self, factory: StoreFactory, store: Store) -> None:
        """In order, to a run that is there and to one that it starts; nothing before, and a key counts once. [OL-J7]"""
        if factory.shared_transaction is None:
            await refuses_message(store)
            return
        await hire(store, "worker-1")
        tree = await begin(store, "run-1")
        async with factory.shared_transaction() as connection:
            for name in ("first", "second", "second"):
                it = message(store, "run-1", name=name, key=name)
                assert await store.request_message(connection, it) is Delivery.ACCEPTED
            it, start = message(store, "run-2", name="third"), new_tree(store, "run-2")
            assert await store.request_message(connection, it, start=start) is Delivery.ACCEPTED
            assert not await store.read_inbox([tree.journal])

        await claim(store, "worker-1")
        started = await get_run(store, "run-2")
        inbox = await store.read_inbox([tree.journal, started.journal])
        assert [each.name for each in inbox[tree.journal]] == ["first", "second"]
        assert [each.name for each in inbox[started.journal]] == ["third"]

    async def test_requested_message_is_gone_when_the_user_rolls_back(
        self, factory: StoreFactory, store: Store
    ) -> None:
        """A requested message is gone when the user rolls back, and so is the run that it would have started.
        [OL-J8]"""
        if factory.shared_transaction is None:
            await refuses_message(store)
            return
        await hire(store, "worker-1")
        tree = await begin(store, "run-1")
        with suppress(ChangedItsMind):
            async with factory.shared_transaction() as connection:
                await store.request_message(connection, message(store, "run-1"))
                await store.request_message(connection, message(store, "run-2"), start=new_tree(store, "run-2"))
                raise ChangedItsMind

        await claim(store, "worker-1")
        assert await store.find_run("run-2") is None
        assert not await store.read_inbox([tree.journal])

    async def test_message_is_requested_for_a_run_that_can_get_it(self, factory: StoreFactory, store: Store) -> None:
        """One that was requested in the same transaction can; one that has ended or is nowhere cannot. [OL-J9]"""
        if factory.shared_transaction is None:
            await refuses_message(store)
            return
        await hire(store, "worker-1")
        await (await begin(store, "ended")).succeed()
        async with factory.shared_transaction() as connection:
            assert await store.request_message(connection, message(store, "nowhere")) is Delivery.UNKNOWN_RUN
            assert await store.request_message(connection, message(store, "ended")) is Delivery.FINISHED
            assert await store.request_start(connection, new_tree(store, "run-1")) is Outcome.COMMITTED
            assert await store.request_message(connection, message(store, "run-1")) is Delivery.ACCEPTED

        await claim(store, "worker-1")
        run = await get_run(store, "run-1")
        assert len((await store.read_inbox([run.journal]))[run.journal]) == 1

    async def test_request_of_something_else_is_refused(self, store: Store) -> None:
        """An object that is not a connection known to the store is a mistake in the program, and nothing happens.
        [OL-J4]"""
        await refuses(store)


async def refuses_message(store: Store) -> None:
    """The answer is an error that says what to do, and no message."""
    tree = await begin(store, "run-1")
    with pytest.raises(ConfigurationError, match="PostgreSQL"):
        await store.request_message(object(), message(store, "run-1"))
    assert not await store.read_inbox([tree.journal])


async def refuses(store: Store) -> None:
    """The answer is an error that says what to do, and no run."""
    with pytest.raises(ConfigurationError):
        await store.request_start(object(), new_tree(store, "run-1"))
    assert await store.find_run("run-1") is None
