"""Runs that are started in the transaction of a user's own: there if and only if the user commits."""

from __future__ import annotations

from contextlib import suppress

import pytest

from outlive._store.contract import Outcome, Store
from outlive.errors import ConfigurationError
from outlive.testing.conformance.builders import begin, blob, claim, created, get_run, hire, new_tree
from outlive.testing.conformance.facet import Facet
from outlive.testing.conformance.factory import StoreFactory


class ChangedItsMind(Exception):
    """A user who rolls back."""


class JoinsConformance(Facet):
    """`join`, or a clear answer that there is no such thing; the factory knows which."""

    async def test_joined_tree_exists_when_the_user_commits(self, factory: StoreFactory, store: Store) -> None:
        """Not before; then it is whole, and due. A store that has nothing to share says so. [OL-J1]"""
        change = new_tree(store, "run-1")
        change.blobs = [blob(b"with it")]
        if factory.shared_transaction is None:
            await refuses(store)
            return
        await hire(store, "worker-1")

        async with factory.shared_transaction() as connection:
            assert await store.join(connection, change) is Outcome.COMMITTED
            assert await store.find_run("run-1") is None

        run = await get_run(store, "run-1")
        assert [row[0] for row in await store.read_journal(run.journal)] == [0]
        assert await store.get_blobs([blob(b"with it").id]) == {blob(b"with it").id: b"with it"}
        assert await claim(store, "worker-1") == ["run-1"]

    async def test_joined_tree_is_gone_when_the_user_rolls_back(self, factory: StoreFactory, store: Store) -> None:
        """And its id is free. [OL-J2]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        with suppress(ChangedItsMind):
            async with factory.shared_transaction() as connection:
                await store.join(connection, new_tree(store, "run-1"))
                raise ChangedItsMind

        assert await store.find_run("run-1") is None
        await begin(store)

    async def test_joined_tree_with_a_taken_id_conflicts(self, factory: StoreFactory, store: Store) -> None:
        """The run that has it stays, and the user's transaction goes on. [OL-J3]"""
        if factory.shared_transaction is None:
            await refuses(store)
            return
        tree = await begin(store, version=1)
        async with factory.shared_transaction() as connection:
            assert await store.join(connection, new_tree(store, "run-1", version=2)) is Outcome.CONFLICT
            assert await store.join(connection, new_tree(store, "run-2", version=2)) is Outcome.COMMITTED

        found = await store.find_runs(["run-1", "run-2"])
        assert {run_id: run.version for run_id, run in found.items()} == {"run-1": 1, "run-2": 2}
        await tree.write(created(store, run=1, call="child"))

    async def test_id_of_a_joined_tree_holds_who_wants_it(self, factory: StoreFactory, store: Store) -> None:
        """And nobody else, until the user's transaction is over. A store that holds nothing finds all free. [OL-J5]"""
        wanted, other = new_tree(store, "run-1"), new_tree(store, "run-2")
        if factory.shared_transaction is None:
            assert await store.find_free([wanted, other]) == [0, 1]
            return
        async with factory.shared_transaction() as connection:
            await store.join(connection, new_tree(store, "run-1"))
            outcomes = [outcome for outcome, _ in await store.commit([wanted, other])]
            assert outcomes == [Outcome.HELD, Outcome.COMMITTED]
            assert await store.find_free([wanted, other]) == [1]

        assert await store.find_free([wanted]) == [0]
        ((outcome, _),) = await store.commit([wanted])
        assert outcome is Outcome.CONFLICT

    async def test_join_of_something_else_is_refused(self, store: Store) -> None:
        """What is no connection that the store knows is a mistake in the program, and nothing happens. [OL-J4]"""
        await refuses(store)


async def refuses(store: Store) -> None:
    """The answer is an error that says what to do, and no run."""
    with pytest.raises(ConfigurationError):
        await store.join(object(), new_tree(store, "run-1"))
    assert await store.find_run("run-1") is None
