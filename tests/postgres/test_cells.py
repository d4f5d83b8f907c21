"""Cells on a server: one transaction for many changes, one session for all of them, and wires that are cut."""

from __future__ import annotations

import asyncio

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive_conformance.servers.proxy import Proxy
from outlive_conformance.suite.builders import begin
from outlive_conformance.suite.cells import add
from tests.postgres.conftest import Opener
from tests.postgres.support import connected, in_time, is_waiting_for_lock, through, until

LOCK = "SELECT data FROM place.cells WHERE name = $1 FOR UPDATE"
BEGIN, LOCKING, PUTTING, COMMIT = 1, 2, 3, 4
"""The requests of a change."""


@pytest.fixture
async def far(proxy: Proxy, postgres_url: str, open_store: Opener) -> PostgresStore:
    """A store at the other end of a wire that can be cut, whose statements are prepared."""
    far = await open_store(through(proxy, postgres_url))
    assert [1, 2] == [await far.change_cell("counter", add) for _ in range(2)]
    return far


@pytest.mark.parametrize("request_number", [BEGIN, LOCKING, PUTTING], ids=["begin", "lock", "put"])
async def test_a_change_that_is_cut_before_its_commit_has_not_happened(
    proxy: Proxy, far: PostgresStore, request_number: int
) -> None:
    """A change of a cell whose line is cut before the commit has not happened, its error says so, and it can be made
    again."""
    proxy.cut_request(request_number)

    with pytest.raises(StoreUnavailableError) as caught:
        await in_time(far.change_cell("counter", add))

    assert not isinstance(caught.value, CommitUnknownError)
    assert await in_time(far.change_cell("counter", add)) == 3


@pytest.mark.parametrize(("before", "next_number"), [(True, 3), (False, 4)], ids=["before it arrives", "after it"])
async def test_a_change_whose_commit_is_cut_is_unknown(
    proxy: Proxy, far: PostgresStore, next_number: int, *, before: bool
) -> None:
    """It happened or not, and the store does not pretend to know."""
    proxy.cut_request(COMMIT, before=before)

    with pytest.raises(CommitUnknownError):
        await in_time(far.change_cell("counter", add))

    assert await in_time(far.change_cell("counter", add)) == next_number


async def test_every_caller_learns_of_the_cut(proxy: Proxy, far: PostgresStore) -> None:
    """Those in the transaction that was cut, and no others."""
    proxy.cut_request(LOCKING)
    asked = [asyncio.ensure_future(far.change_cell("counter", add)) for _ in range(3)]

    answers = await in_time(asyncio.gather(*asked, return_exceptions=True))

    assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
    assert await in_time(far.change_cell("counter", add)) == 3


async def test_changes_that_wait_for_a_cell_do_not_keep_others_from_reading(
    store: PostgresStore, postgres_url: str
) -> None:
    """A hundred changes that wait for a locked cell need one session, and reads go on."""
    await begin(store)
    await store.change_cell("counter", add)
    async with connected(postgres_url) as blocker, connected(postgres_url) as looker:
        async with blocker.transaction():
            await blocker.fetchval(LOCK, "counter")
            changes = []
            for _ in range(100):
                changes.append(asyncio.ensure_future(store.change_cell("counter", add)))
                await asyncio.sleep(0)
            await until(lambda: is_waiting_for_lock(looker))

            assert await in_time(store.find_run("run-1")) is not None
            assert not any(change.done() for change in changes)

        assert await in_time(asyncio.gather(*changes)) == list(range(2, 102))


async def test_change_that_was_given_up_in_line_never_happens(store: PostgresStore, postgres_url: str) -> None:
    """A change that the server has already got goes on without its caller. The change behind it had no connection yet,
    and never happens."""
    await store.change_cell("counter", add)
    async with connected(postgres_url) as blocker, connected(postgres_url) as looker, blocker.transaction():
        await blocker.fetchval(LOCK, "counter")
        first = asyncio.ensure_future(store.change_cell("counter", add))
        await until(lambda: is_waiting_for_lock(looker))
        behind = asyncio.ensure_future(store.change_cell("counter", add))
        await asyncio.sleep(0)
        first.cancel()
        behind.cancel()
        await asyncio.wait([first, behind])

    assert await in_time(store.change_cell("counter", add)) == 3


async def test_a_change_that_makes_a_cell_has_no_other_one_locked(store: PostgresStore, postgres_url: str) -> None:
    """A change that makes a cell has no other cell locked, so two sessions do not wait in a circle."""
    await store.change_cell("b", add)
    async with connected(postgres_url) as maker, connected(postgres_url) as looker:
        async with maker.transaction():
            await maker.execute("INSERT INTO place.cells (name) VALUES ('a')")
            changes = [asyncio.ensure_future(store.change_cell(name, add)) for name in ("b", "a", "b")]
            await until(lambda: is_waiting_for_lock(looker))

            assert await in_time(maker.fetchval(LOCK, "b")) in {b"1", b"2"}
            assert not changes[1].done()

        assert await in_time(asyncio.gather(*changes)) == [2, 1, 3]


async def test_changes_that_come_at_the_same_moment_are_one_transaction(
    store: PostgresStore, postgres_url: str
) -> None:
    """The first has one for itself; the others, who came meanwhile, share the second."""
    await store.change_cell("counter", add)
    version = "SELECT xmin::text::bigint FROM place.cells WHERE name = 'counter'"
    seen = set()

    async with connected(postgres_url) as looker:
        before = await looker.fetchval(version)
        changes = [asyncio.ensure_future(store.change_cell("counter", add)) for _ in range(200)]
        while not all(change.done() for change in changes):
            await asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED, timeout=0.01)
            seen.add(await looker.fetchval(version))

    assert await store.change_cell("counter", add) == 202
    assert len(seen - {before}) <= 2


async def test_a_cell_that_stays_as_it_is_is_not_written(store: PostgresStore, postgres_url: str) -> None:
    """Asking a closed breaker costs no new version of a row."""
    await store.change_cell("quiet", lambda data, now_at: (b"same", None))
    version = "SELECT xmin::text FROM place.cells WHERE name = 'quiet'"
    async with connected(postgres_url) as looker:
        before = await looker.fetchval(version)

        await store.change_cell("quiet", lambda data, now_at: (b"same", None))

        # A lock leaves xmin alone; a new version of the row has another one.
        assert await looker.fetchval(version) == before
