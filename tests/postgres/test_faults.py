"""What the server's refusals mean: who tries again, on which connection, and what a person is told."""

from __future__ import annotations

import secrets

import pytest

from outlive._store.contract import Outcome
from outlive._store.postgres import PostgresStore
from outlive._store.postgres.connection import Session
from outlive.errors import StoreError, StoreUnavailableError
from outlive.testing.conformance.builders import begin, new_tree, stepped


async def writer_session(store: PostgresStore) -> Session:
    """The connection that commits; it is free again at once."""
    assert store._writer is not None
    session = await store._writer.take()
    store._writer.give(session)
    return session


async def test_server_that_became_a_replica_is_left(store: PostgresStore) -> None:
    """It never takes a write again on this connection, however often one tries; the address may lead elsewhere now."""
    tree = await begin(store)
    session = await writer_session(store)
    await session.run("SET default_transaction_read_only = on")

    with pytest.raises(StoreUnavailableError, match="replica"):
        await store.commit([tree.change(stepped(store))])

    assert await tree.try_write(stepped(store)) is Outcome.COMMITTED
    assert not session.is_open


async def test_what_no_server_can_hold_is_not_taken_for_an_outage(store: PostgresStore) -> None:
    """Whoever waits for a server to come back would wait for ever, and everybody's commits behind it."""
    with pytest.raises(StoreError, match="exceeds") as caught:
        await store.commit([new_tree(store, "run-1", workflow=secrets.token_hex(3_000))])

    assert not isinstance(caught.value, StoreUnavailableError)
    assert await store.find_run("run-1") is None
