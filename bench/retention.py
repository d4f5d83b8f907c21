"""What it costs to delete a million ended runs while others run, and whether the file stops growing.

`python -m bench.retention --runs 1000000 --stores sqlite,postgresql` writes so many ended runs by SQL, three events
each. Then W2 (runs of ten steps) is measured in turns: for a few seconds in an engine without retention, for a few
seconds in one that deletes those runs meanwhile. The figure is the ratio of the two. What is left is then deleted while
a few more runs go on, and the size of the file, its free pages and the dead rows of the server are printed as they
change.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median

import apsw
import asyncpg

import outlive
from bench.database import fresh, postgres
from bench.meter import STEPS_PER_RUN
from bench.outlive_side import ten_steps
from outlive.types import WorkerOptions

FIRST_AT = 1_700_000_000_000_000
EVENTS = 3
LANES = 100
TARGET = 0.85
"""Of its rate, that W2 must keep."""
BODY = '{"t":"StepSucceeded","call":"charge","result":{"v":{"receipt":"r-' + "0" * 60 + '"}},"at":1700000000000000}'

_RUNS = f"""
(key, id, journal, number, root_id, workflow, version, nonce, created_at, status, owner, epoch, attempts, updated_at,
finished_at, reason, result)
{{series}} SELECT n, 'order-' || n, n, 0, 'order-' || n, 'order', 1, 0, {FIRST_AT} + n, 'succeeded', '', 1, 0,
{FIRST_AT} + n, {FIRST_AT} + n, '', '{{{{"v":1}}}}' FROM n
"""


async def fill(url: str, runs: int) -> None:
    """Write ended runs, a slice at a time."""
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:"))
        connection.execute("PRAGMA synchronous = OFF")
        for first in range(1, runs + 1, 50_000):
            last = min(runs, first + 49_999)
            series = f"WITH RECURSIVE n (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n WHERE n < {last})"
            connection.execute("INSERT INTO outlive_runs " + _RUNS.format(series=series))
            connection.execute(
                f"INSERT INTO outlive_events (journal, seq, format, crc, is_last, body) {series} "
                f"SELECT n, seq.value, 1, 0, seq.value = {EVENTS - 1}, CAST(? AS BLOB) "
                f"FROM n, json_each('{list(range(EVENTS))}') AS seq",
                (BODY,),
            )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
        return
    server = await asyncpg.connect(url)
    for first in range(1, runs + 1, 50_000):
        last = min(runs, first + 49_999)
        series = f"WITH n (n) AS (SELECT * FROM generate_series({first}::bigint, {last}::bigint))"
        await server.execute("INSERT INTO outlive.runs " + _RUNS.format(series=series))
        await server.execute(
            f"INSERT INTO outlive.events (journal, seq, format, crc, is_last, body) {series} "
            f"SELECT n, seq, 1, 0, seq = {EVENTS - 1}, convert_to('{BODY}', 'UTF8') "
            f"FROM n, generate_series(0, {EVENTS - 1}) AS seq"
        )
    await server.execute(f"SELECT setval('outlive.runs_key_seq', {runs + 1})")
    await server.execute("VACUUM ANALYZE outlive.runs")
    await server.execute("VACUUM ANALYZE outlive.events")
    await server.execute("CHECKPOINT")
    await server.close()


async def w2(engine: outlive.Engine, seconds: float, *, lanes: int = LANES) -> float:
    """Steps in a second, of runs of ten steps."""
    ends_at, done = time.monotonic() + seconds, 0

    async def lane() -> None:
        nonlocal done
        while time.monotonic() < ends_at:
            await (await engine.start(ten_steps)).result()
            done += 1

    began_at = time.monotonic()
    await asyncio.gather(*[lane() for _ in range(lanes)])
    return done * STEPS_PER_RUN / (time.monotonic() - began_at)


def engine_for(url: str, *, deletes: bool, rate: int | None = None) -> outlive.Engine:
    """An engine with retention or without."""
    keep = [outlive.retention.Keep("order", succeeded=timedelta(hours=1))] if deletes else []
    limits = outlive.limits.Limits() if rate is None else outlive.limits.Limits(deletes_per_second_max=rate)
    return outlive.Engine(url, retention=keep, limits=limits, worker=WorkerOptions(tune=False))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


async def room_of(url: str) -> str:
    """How large the store is, and how much of it is free or dead."""
    if url.startswith("sqlite:"):
        path = url.removeprefix("sqlite:")
        connection = apsw.Connection(path)
        ((free, pages, size),) = connection.execute(
            "SELECT * FROM pragma_freelist_count(), pragma_page_count(), pragma_page_size()"
        )
        connection.close()
        wal = size_of(Path(path + "-wal"))
        return f"file {pages * size / 2**20:,.0f} MB, free {free * size / 2**20:,.0f} MB, WAL {wal / 2**20:,.0f} MB"
    server = await asyncpg.connect(url)
    rows = await server.fetch(
        "SELECT relname, n_live_tup, n_dead_tup, autovacuum_count, pg_total_relation_size(relid) AS size "
        "FROM pg_stat_user_tables WHERE schemaname = 'outlive' AND relname IN ('runs', 'events') ORDER BY relname"
    )
    await server.close()
    return "; ".join(
        f"{row['relname']}: {row['size'] / 2**20:,.0f} MB, {row['n_live_tup']:,} live, {row['n_dead_tup']:,} dead, "
        f"{row['autovacuum_count']} autovacuums"
        for row in rows
    )


async def measure(url: str, *, runs: int, rounds: int, seconds: float, rate: int | None) -> bool:
    """Print what it costs; whether W2 keeps enough of its rate."""
    async with engine_for(url, deletes=False):
        """The schema."""
    began_at = time.monotonic()
    await fill(url, runs)
    print(f"{runs:,} runs written in {time.monotonic() - began_at:.0f} s: {await room_of(url)}", flush=True)
    ratios: list[float] = []
    deleted = 0
    for turn in range(rounds):
        rates, speed = [], 0.0
        for deletes in (False, True):
            async with engine_for(url, deletes=deletes, rate=rate) as engine:
                await w2(engine, 0.5)
                before = engine.counters.runs_deleted
                rates.append(await w2(engine, seconds))
                speed = (engine.counters.runs_deleted - before) / seconds
            deleted += engine.counters.runs_deleted
        ratios.append(rates[1] / rates[0])
        print(
            f"round {turn + 1}: W2 {rates[0]:,.0f} steps/s without, {rates[1]:,.0f} with {speed:,.0f} deletes/s: "
            f"{ratios[-1]:.2f}",
            flush=True,
        )
    print(f"W2 keeps {median(ratios):.0%} of its rate (at least {TARGET:.0%} is wanted)", flush=True)
    began_at = time.monotonic()
    async with engine_for(url, deletes=True, rate=rate) as engine:
        told_at = 0.0
        while deleted + engine.counters.runs_deleted < runs:
            await w2(engine, 1.0, lanes=1)
            if time.monotonic() - told_at > 30:
                told_at = time.monotonic()
                gone = deleted + engine.counters.runs_deleted
                print(f"{gone:,} deleted after {told_at - began_at:.0f} s: {await room_of(url)}", flush=True)
        print(f"all deleted after {time.monotonic() - began_at:.0f} s: {await room_of(url)}", flush=True)
        await asyncio.sleep(10)
        print(f"10 s later: {await room_of(url)}", flush=True)
    return median(ratios) >= TARGET


async def run(arguments: argparse.Namespace) -> bool:
    """Measure every store that is wanted."""
    is_met = True
    options = {name: getattr(arguments, name) for name in ("runs", "rounds", "seconds", "rate")}
    stores = arguments.stores.split(",")
    with postgres(arguments.postgres_url, is_needed="postgresql" in stores) as server:
        for store in stores:
            print(store, flush=True)
            with fresh(store, directory=arguments.dir, postgres_url=server) as url:
                is_met &= await measure(url, **options)
    return is_met


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description="Deleting runs while others run.")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rate", type=int, help="runs deleted in a second; as an engine does it unless given")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    sys.exit(0 if asyncio.run(run(parser.parse_args())) else 1)


if __name__ == "__main__":
    main()
