"""The line to the database is cut at every request of a run, before and after the server has done it."""

from __future__ import annotations

import asyncio
from collections import Counter

import asyncpg
import pytest

import outlive
from outlive._kernel.model import RunStatus
from outlive.events import StepSucceeded
from outlive.testing.fsck import check_store
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from proof.storm.places import opened
from tests.engine.inside import journal_of
from tests.postgres.support import in_time, through

REQUESTS_MAX = 60
"""No run of the journey needs as many: a test that never comes to its end does not go on for ever."""

begun: Counter[str] = Counter()


@outlive.step(name="cuts.work")
async def work(number: int) -> int:
    begun[outlive.current_step().idempotency_key] += 1
    return number


@outlive.workflow(name="cuts.part")
async def part(number: int) -> int:
    return await work(number)


@outlive.workflow(name="cuts.journey")
async def journey() -> int:
    total = await work(1)
    total += sum(await asyncio.gather(work(10), work(20), part(30)))
    await asyncio.sleep(0.01)
    total += await outlive.wait_for_signal("more", int)
    return total + await work(100)


@pytest.mark.parametrize("before", [True, False], ids=["before it arrives", "after it was done"])
async def test_a_cut_at_any_request_of_a_run_loses_nothing_and_repeats_nothing(
    postgres_server: PostgresServer, postgres_database: str, proxy: Proxy, *, before: bool
) -> None:
    """The outcome of every commit is resolved rightly, whichever of them it is whose answer never came."""
    schema = "before" if before else "after"
    url = postgres_server.store_url(postgres_database, schema=schema)
    runs = 0
    async with outlive.Engine(through(proxy, url)) as engine:
        for number in range(1, REQUESTS_MAX):
            cuts = proxy.cuts
            proxy.cut_request(number, before=before)
            run = await in_time(engine.start(journey, id=f"journey-{number}"))
            await in_time(engine.signal(run.id, "more", 1000, key="more"))
            assert await in_time(run.result()) == 1161
            runs += 1
            if proxy.cuts == cuts:
                break
        proxy.cut_request(None)
        unknowns = engine.counters.unknowns

    assert runs > 5, "the proxy cut nothing"
    assert before or unknowns, "no commit's outcome was ever in doubt"
    async with opened(url) as store:
        assert await check_store(store) == []
        for number in range(1, runs + 1):
            run_row = await store.find_run(f"journey-{number}")
            assert run_row is not None
            assert run_row.status is RunStatus.SUCCEEDED
    async with outlive.Engine(url, worker=False) as engine:
        for number in range(1, runs + 1):
            done = Counter(
                (event.run, event.call)
                for event in await journal_of(engine, f"journey-{number}")
                if isinstance(event, StepSucceeded)
            )
            assert len(done) == 5
            assert max(done.values()) == 1


async def test_a_commit_can_be_cut_off_from_its_answer(
    postgres_server: PostgresServer, postgres_database: str, proxy: Proxy
) -> None:
    """Requests that commit nothing pass. The commit is done, and its caller gets no answer."""
    url = through(proxy, postgres_server.url(postgres_database))
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE cut_off (number INTEGER)")
    proxy.cut_commit(1)
    await connection.execute("BEGIN")
    await connection.execute("INSERT INTO cut_off VALUES ($1)", 7)
    assert 0 == proxy.cuts
    with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
        await in_time(connection.execute("COMMIT"))

    assert 1 == proxy.cuts
    assert [(7,)] == postgres_server.execute("SELECT number FROM cut_off", database=postgres_database)


@pytest.mark.parametrize("before", [True, False], ids=["before it arrives", "after it was done"])
async def test_a_cut_while_a_client_only_looks_is_not_heard_of(
    postgres_server: PostgresServer, postgres_database: str, proxy: Proxy, *, before: bool
) -> None:
    """The run has ended, so its result is read from the store; the server is there all the time."""
    url = postgres_server.store_url(postgres_database, schema="looks_before" if before else "looks_after")
    async with outlive.Engine(url) as engine:
        run = await engine.start(part, 7, id="ended")
        assert await in_time(run.result()) == 7
    async with outlive.Engine(through(proxy, url), worker=False) as client:
        run = client.get("ended")
        for look in (run.result, run.status, run.history, run.why, client.list):
            proxy.cut_request(1, before=before)
            await in_time(look())

    assert proxy.cuts == 5
