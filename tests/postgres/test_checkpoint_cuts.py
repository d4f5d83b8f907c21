"""The line to the server is cut while a checkpoint is appended, before and after the server has done it."""

from __future__ import annotations

import asyncio

import pytest

import outlive
from outlive.checkpoints import Checkpoint
from outlive.errors import CommitUnknownError
from outlive.errors.store import DuplicateCheckpointError
from outlive_conformance.servers.proxy import Proxy
from tests.postgres.support import connected, in_time, is_waiting_for_lock, through, until

REQUESTS_MAX = 30
"""No append needs as many."""


@pytest.mark.parametrize("before", [True, False], ids=["before it arrives", "after it was done"])
async def test_a_cut_at_any_request_is_not_heard_of(postgres_url: str, proxy: Proxy, *, before: bool) -> None:
    """The store asks again over another line; the row is there once, and it is not a duplicate of itself."""
    async with outlive.checkpoints.open_store(through(proxy, postgres_url)) as store:
        for number in range(1, REQUESTS_MAX):
            cuts = proxy.cuts
            proxy.cut_request(number, before=before)
            await in_time(store.append(f"run-{number}", Checkpoint(1, "S", output=b"x" * 100_000)))
            assert len(await in_time(store.load_run(f"run-{number}"))) == 1
            with pytest.raises(DuplicateCheckpointError):
                await in_time(store.append(f"run-{number}", Checkpoint(1, "S", output=b"x" * 100_000)))
            if proxy.cuts == cuts:
                break
        proxy.cut_request(None)

    assert proxy.cuts > 1, "the proxy cut nothing"


async def test_a_server_that_is_gone_in_the_middle_leaves_a_doubt_that_can_be_cleared(
    postgres_url: str, proxy: Proxy
) -> None:
    """Cut off after it was done, and no server there to be asked again: appending it once more finds it."""
    row = Checkpoint(1, "S", output=b"receipt")
    async with outlive.checkpoints.open_store(through(proxy, postgres_url)) as store:
        await store.load_run("run-1")  # Connected, and what is sent next is prepared.
        await store.append("run-0", row)
        proxy.cut_request(1)
        proxy.is_down = True  # For new lines only.
        with pytest.raises(CommitUnknownError):
            await in_time(store.append("run-1", row))
        proxy.come_back()

        await in_time(store.append("run-1", row))

        assert await store.load_run("run-1") == [row]
        with pytest.raises(DuplicateCheckpointError):
            await store.append("run-1", row)


async def test_a_clear_waits_for_an_append_whose_caller_has_given_up(postgres_url: str) -> None:
    """It came before, and is not to write its row when everything was cleared."""
    insert = "INSERT INTO place.checkpoints (run_id, sequence, crc, format, body) VALUES ('run-1', 1, 1, 1, '')"
    async with outlive.checkpoints.open_store(postgres_url) as store, connected(postgres_url) as other:
        async with connected(postgres_url) as looker:
            blocker = other.transaction()
            await blocker.start()
            await other.execute(insert)
            appending = asyncio.ensure_future(store.append("run-1", Checkpoint(1, "S")))
            await until(lambda: is_waiting_for_lock(looker))
            appending.cancel()
            await asyncio.wait([appending])
            clearing = asyncio.ensure_future(store.clear("run-1"))
            await store.load_run("run-2")  # The clear has had its time.
            await store.load_run("run-2")
            await blocker.rollback()
            await in_time(clearing)

        await store.append("run-1", Checkpoint(1, "T"))
        assert await store.load_run("run-1") == [Checkpoint(1, "T")]
