"""The database is away for a while, under load: no run fails because of it, and no worker burns the time."""

from __future__ import annotations

import asyncio
import time

import pytest

import outlive
from outlive.testing.fsck import check_store
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from proof.storm.places import opened
from tests.postgres.support import PATIENCE_SECONDS, through

OPEN = 20
CPU_SHARE_MAX = 0.10
"""Near zero: what polling for the database's return may take of one core."""
BACK_SECONDS_MAX = 5.0


@outlive.step(name="outage.work")
async def work(number: int) -> int:
    await asyncio.sleep(0.01)
    return number


@outlive.workflow(name="outage.load")
async def load(steps: int) -> int:
    total = 0
    for number in range(steps):
        total += await work(number)
    return total


@pytest.mark.parametrize(
    ("seconds", "how"),
    [
        pytest.param(2.0, "down", id="2 s refused"),
        pytest.param(60.0, "down", id="60 s refused", marks=pytest.mark.slow),
        pytest.param(60.0, "deaf", id="60 s without an answer", marks=pytest.mark.slow),
    ],
)
async def test_an_outage_of_the_database_fails_no_run(
    postgres_server: PostgresServer, postgres_database: str, proxy: Proxy, seconds: float, how: str
) -> None:
    """Everything goes on within 5 s of its return. A short one is not measured: a busy machine takes its part."""
    url = postgres_server.store_url(postgres_database, schema=f"outage_{how}_{seconds:.0f}")
    is_long = seconds > PATIENCE_SECONDS
    steps, within = (200, BACK_SECONDS_MAX) if is_long else (60, PATIENCE_SECONDS)
    async with outlive.Engine(through(proxy, url)) as engine:
        runs = [await engine.start(load, steps, id=f"load-{number}") for number in range(OPEN)]
        await asyncio.sleep(0.3)
        proxy.go_down() if how == "down" else proxy.go_deaf()
        await asyncio.sleep(min(seconds, 10.0) / 4)  # What was under way when it happened comes to rest.
        cpu, began = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds * 3 / 4)
        cpu_share = (time.process_time() - cpu) / (time.monotonic() - began)
        rows = engine.counters.rows
        proxy.come_back()
        back = time.monotonic()
        while engine.counters.rows < rows + OPEN:
            await asyncio.sleep(0.01)
            assert time.monotonic() < back + within, "it did not go on in time"
        async with asyncio.timeout(120):
            results = await asyncio.gather(*(run.result() for run in runs))

    assert results == [sum(range(steps))] * OPEN
    assert cpu_share < CPU_SHARE_MAX or not is_long
    async with opened(url) as store:
        assert await check_store(store) == []
