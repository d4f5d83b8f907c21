"""How long it takes to list and to count runs with each filter, when a thousand and when a million runs have ended.

`python -m bench.finding --runs 1000,100000` prints a line for each filter and a column for each number of runs: the
95th percentile of a page of 50 runs, and of a count that stops at 10,000, in milliseconds. The runs are written by SQL,
in bulk and without journals: nothing that finds runs looks at one. Each figure is the median of a few rounds, because
the machine is rarely alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import apsw
import asyncpg

import outlive
from bench.database import fresh, postgres
from outlive._kernel.model.instant import instant_of

RUNS = (1_000, 10_000, 100_000, 1_000_000)
TIMES = 40
"""How often each is measured in a round, after it was done a few times."""
ROUNDS = 3
WARM_UP = 6
"""PostgreSQL plans a statement for its values a few times before it keeps a plan."""
TARGET_MS = 20
FIRST_AT = 1_700_000_000_000_000
SECOND = 1_000_000

_RUN = f"""
'order-' || n, n, 0, 'order-' || n, 'flow-' || (n % 10), 1, 0, {FIRST_AT} + n * {SECOND},
CASE
    WHEN n % 10000 = 7 THEN 'parked' WHEN n % 1000 IN (3, 4) THEN 'waiting' WHEN n % 12 = 0 THEN 'failed'
    ELSE 'succeeded'
END,
CASE n % 1000
    WHEN 3 THEN '[{{"kind":"signal","name":"paid-' || (n / 1000 % 10) || '"}}]'
    WHEN 4 THEN '[{{"kind":"timer","name":"@timer","until_at":1}}]'
END,
'', 1, 0, {FIRST_AT} + n * {SECOND}, '',
CASE
    WHEN n % 12 = 0 AND n % 10000 <> 7 AND n % 1000 NOT IN (3, 4)
        THEN '{{"type":"shop.errors.Error' || (n / 12 % 20) || '","message":"no"}}'
END,
CASE WHEN n % 10000 = 5
    THEN '{{"tenant":"t' || (n % 100) || '","vip":"yes"}}'
    ELSE '{{"tenant":"t' || (n % 100) || '"}}'
END
"""
_COLUMNS = (
    "id, journal, number, root_id, workflow, version, nonce, created_at, status, waits, owner, epoch, attempts, "
    "updated_at, reason, failure, tags"
)
_TAGS = "SELECT '{name}', {value}, {first} + n * {second}, n FROM n WHERE {which}"


def fills(series: str, prefix: str) -> list[str]:
    """The statements that write runs, given what makes the numbers `n`, and what stands before the names of tables."""
    insert = f"INSERT INTO {prefix}tags (name, value, created_at, run_key) {series} "
    times = {"first": FIRST_AT, "second": SECOND}
    return [
        f"INSERT INTO {prefix}runs (key, {_COLUMNS}) {series} SELECT n, {_RUN} FROM n",
        insert + _TAGS.format(name="tenant", value="'t' || (n % 100)", which="true", **times),
        insert + _TAGS.format(name="vip", value="'yes'", which="n % 10000 = 5", **times),
    ]


async def fill(url: str, first: int, last: int) -> None:
    """Write the runs from `first` to `last`."""
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:"))
        series = f"WITH RECURSIVE n (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM n WHERE n < {last})"
        for statement in fills(series, "outlive_"):
            connection.execute(statement)
        connection.close()
        return
    server = await asyncpg.connect(url)
    for statement in fills(
        f"WITH n (n) AS (SELECT * FROM generate_series({first}::bigint, {last}::bigint))", "outlive."
    ):
        await server.execute(statement)
    for table in ("runs", "tags", "waits"):
        await server.execute(f"VACUUM ANALYZE outlive.{table}")
    # What was just written in bulk goes to the disk now, and not while it is measured.
    await server.execute("CHECKPOINT")
    await server.close()


def questions(runs: int) -> dict[str, dict[str, Any]]:
    """Filters by what they are called."""
    middle = instant_of(FIRST_AT + runs // 2 * SECOND)
    return {
        "all": {},
        "status, common": {"status": "succeeded"},
        "status, rare": {"status": "parked"},
        "several statuses": {"status": ("failed", "parked", "cancelled")},
        "workflow": {"workflow": "flow-3"},
        "workflow and status": {"workflow": "flow-7", "status": "parked"},
        "tag, common": {"tags": {"tenant": "t7"}},
        "tag, rare": {"tags": {"vip": "yes"}},
        "tag, and a rare status": {"tags": {"tenant": "t7"}, "status": "parked"},
        "rare tag, and a status": {"tags": {"vip": "yes"}, "status": "succeeded"},
        "id prefix, common": {"id_prefix": "order-"},
        "id prefix, rare": {"id_prefix": f"order-{runs - 1}"},
        "since": {"since": middle},
        "until": {"until": middle},
        "workflow, since and until": {"workflow": "flow-3", "since": instant_of(FIRST_AT), "until": middle},
        "waiting for": {"waiting_for": "paid-0"},
        "sleeping": {"waiting_for": "@timer"},
        "error": {"error": "Error0"},
        "error, with its module": {"error": "shop.errors.Error0"},
        "oldest first": {"order": "created_at"},
    }


async def p95(ask: Callable[[], Awaitable[Any]]) -> float:
    """The 95th percentile of how long it takes, in milliseconds: the median of a few rounds."""
    for _ in range(WARM_UP):
        await ask()
    return median([await _round(ask) for _ in range(ROUNDS)])


async def _round(ask: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(TIMES):
        start = time.perf_counter()
        await ask()
        took.append(time.perf_counter() - start)
    return sorted(took)[int(TIMES * 0.95)] * 1000


async def measure(url: str, sizes: Sequence[int]) -> dict[str, dict[int, tuple[float, float]]]:
    """Each filter with each number of runs: the time of a page, and of a count."""
    found: dict[str, dict[int, tuple[float, float]]] = {}
    async with outlive.Engine(url, worker=False) as engine:
        filled = 0
        for size in sizes:
            await fill(url, filled + 1, size)
            filled = size
            for name, wanted in questions(size).items():
                counted = {key: value for key, value in wanted.items() if key != "order"}
                page = await p95(partial(engine.list, limit=50, **wanted))
                count = await p95(partial(engine.count, **counted))
                found.setdefault(name, {})[size] = page, count
            print(f"measured {url.partition(':')[0]} with {size:,} runs", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, dict[int, tuple[float, float]]], sizes: Sequence[int]) -> str:
    """For people: milliseconds of a page and of a count."""
    lines = [f"{'p95 in ms: a page / a count':28}" + "".join(f"{size:>18,}" for size in sizes)]
    for name, times in found.items():
        cells = "".join(f"{f'{page:.1f} / {count:.1f}':>18}" for page, count in times.values())
        lines.append(f"{name:28}{cells}")
    slow = [name for name, times in found.items() if max(times[sizes[-1]]) > TARGET_MS]
    lines.append(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    lines.append(f"slower than {TARGET_MS} ms with {sizes[-1]:,} runs: {', '.join(slow) or 'none'}")
    return "\n".join(lines)


def print_curves(stores: Sequence[str], sizes: Sequence[int], *, directory: Path, postgres_url: str | None) -> None:
    """Measure, and print a table for each store."""
    for store in stores:
        with fresh(store, directory=directory, postgres_url=postgres_url) as url:
            found = asyncio.run(measure(url, sizes))
        print(f"{store}: finding runs\n{table(found, sizes)}\n", flush=True)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.finding", description=__doc__)
    parser.add_argument("--runs", default=",".join(map(str, RUNS)), help="numbers of ended runs, rising, by comma")
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--postgres-url")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    stores, sizes = given.stores.split(","), [int(size) for size in given.runs.split(",")]
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}")
    with postgres(given.postgres_url, is_needed="postgresql" in stores) as url:
        print_curves(stores, sizes, directory=given.dir, postgres_url=url)


if __name__ == "__main__":
    main()
