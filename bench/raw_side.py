"""The limit: what the bare driver does when it commits the same rows and nothing else.

No engine can journal faster than its driver commits, so each workload has the commits it cannot do without,
written as a plain loop in one thread: no event loop, no encoding, no replay, no bookkeeping.

* W1, W2: 100 runs in lockstep, one commit of 100 rows to create them and one per step; the end rides with
  the last step. So a run of n steps is n + 1 rows in (n + 1) / 100 commits.
* W3, W5: one row, one commit, again and again. W4: all rows in one commit.
* W5, W6 recovery: a new interpreter opens the file, reads every row and writes the rows that are missing.
* W7: every row is read as due, and one row for each is written, 1,000 to a commit.

The table has the shape of a journal: text key, sequence number, a body of about 100 bytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from bench.meter import (
    BLOCKED_STEP,
    LARGE_BYTES,
    OPEN_RUNS,
    STEPS_PER_RUN,
    Figures,
    Order,
    Stopwatch,
    bytes_written,
    growth_figures,
    latency_figures,
)

BODY = b"x" * 100
BATCH_ROWS = 1000
WAL_COMMITS = 2000

Row = tuple[str, int, bytes]


class Driver(Protocol):
    """One connection that makes rows durable."""

    statements_per_commit: int

    def commit(self, rows: Sequence[Row]) -> None: ...

    def commit_each(self, rows: Sequence[Row]) -> list[float]:
        """One commit for each row, with the time before the first and after each."""
        ...

    def read_all(self) -> list[Row]: ...


class SqliteDriver:
    """apsw on a file in WAL mode with synchronous=FULL."""

    statements_per_commit = 3

    def __init__(self, path: str) -> None:
        import apsw

        self._connection: Any = apsw.Connection(path)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        pragmas = (self._connection.pragma("journal_mode"), self._connection.pragma("synchronous"))
        assert pragmas == ("wal", 2), f"SQLite is not in WAL with synchronous=FULL: {pragmas}"
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS events (root TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL,"
            " PRIMARY KEY (root, seq)) WITHOUT ROWID"
        )

    def commit(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def commit_each(self, rows: Sequence[Row]) -> list[float]:
        stamps = [time.perf_counter()]
        for row in rows:
            self.commit([row])
            stamps.append(time.perf_counter())
        return stamps

    def read_all(self) -> list[Row]:
        return self._connection.execute("SELECT root, seq, body FROM events ORDER BY root, seq").fetchall()  # type: ignore[no-any-return]


class PostgresDriver:
    """asyncpg, one prepared unnest per commit. Its loop is entered once for as much as possible."""

    statements_per_commit = 1

    def __init__(self, url: str) -> None:
        import asyncpg

        self._loop = asyncio.new_event_loop()
        self._connection: Any = self._loop.run_until_complete(asyncpg.connect(url))
        self._loop.run_until_complete(
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS events (root text NOT NULL, seq bigint NOT NULL, body bytea NOT NULL,"
                " PRIMARY KEY (root, seq))"
            )
        )
        self._insert: Any = self._loop.run_until_complete(
            self._connection.prepare("INSERT INTO events SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])")
        )

    def commit(self, rows: Sequence[Row]) -> None:
        self._loop.run_until_complete(self._commit(rows))

    async def _commit(self, rows: Sequence[Row]) -> None:
        roots, seqs, bodies = (list(column) for column in zip(*rows, strict=True))
        await self._insert.fetch(roots, seqs, bodies)

    def commit_each(self, rows: Sequence[Row]) -> list[float]:
        return self._loop.run_until_complete(self._commit_each(rows))

    async def _commit_each(self, rows: Sequence[Row]) -> list[float]:
        stamps = [time.perf_counter()]
        for row in rows:
            await self._commit([row])
            stamps.append(time.perf_counter())
        return stamps

    def read_all(self) -> list[Row]:
        query = "SELECT root, seq, body FROM events ORDER BY root, seq"
        return [tuple(row) for row in self._loop.run_until_complete(self._connection.fetch(query))]


def connect(order: Order) -> Driver:
    path = order.sqlite_path
    return SqliteDriver(path) if path is not None else PostgresDriver(order.database)


def rows_of(runs: Sequence[int], seq: int, body: bytes = BODY) -> list[Row]:
    return [(f"w-{run}", seq, body) for run in runs]


def commit_in_batches(driver: Driver, rows: Sequence[Row], size: int = BATCH_ROWS) -> None:
    for first in range(0, len(rows), size):
        driver.commit(rows[first : first + size])


def lockstep(driver: Driver, runs: int, steps: int, body: bytes = BODY) -> None:
    for first in range(0, runs, OPEN_RUNS):
        wave = range(first, min(first + OPEN_RUNS, runs))
        for seq in range(steps + 1):
            driver.commit(rows_of(wave, seq, body))


def throughput(order: Order, driver: Driver) -> Figures:
    steps = 1 if order.workload == "W1" else STEPS_PER_RUN
    watch = Stopwatch()
    lockstep(driver, order.n, steps, b"x" * LARGE_BYTES if order.workload == "W2k" else BODY)
    return watch.figures(order.n * steps)


def cost(order: Order, driver: Driver) -> Figures:
    written, cpu = bytes_written(), time.process_time()
    lockstep(driver, order.n, STEPS_PER_RUN)
    steps = order.n * STEPS_PER_RUN
    rows = order.n * (STEPS_PER_RUN + 1)
    return {
        "rows": rows / steps,
        "commits": rows / OPEN_RUNS / steps,
        "statements": driver.statements_per_commit * rows / OPEN_RUNS / steps,
        "bytes": (bytes_written() - written) / steps if order.sqlite_path is not None else None,
        "cpu_ms": 1000 * (time.process_time() - cpu) / steps,
    }


def fill_wal(driver: Driver) -> None:
    """Commit until SQLite has begun to write over its WAL, whose usual size is 1,000 pages."""
    single_commits(driver, 0, WAL_COMMITS, root="f-0")


def single_commits(driver: Driver, first: int, last: int, *, root: str = "w-0") -> list[float]:
    return driver.commit_each([(root, seq, BODY) for seq in range(first, last)])


def latency(order: Order, driver: Driver) -> Figures:
    if order.workload == "W3b":
        fill_wal(driver)
    return latency_figures(single_commits(driver, 0, order.n))


def fan_out(order: Order, driver: Driver) -> Figures:
    watch = Stopwatch()
    driver.commit([("w-0", seq, BODY) for seq in range(order.n)])
    return watch.figures(order.n)


def long_prepare(order: Order, driver: Driver) -> Figures:
    fill_wal(driver)
    return growth_figures(single_commits(driver, 0, order.killed_at))


def long_recover(order: Order, driver: Driver) -> Figures:
    done = len(driver.read_all()) - WAL_COMMITS
    single_commits(driver, done, order.n)
    return {"completed_at": time.monotonic(), "steps_redone": 0}


def gated_prepare(order: Order, driver: Driver) -> Figures:
    for seq in range(BLOCKED_STEP):
        commit_in_batches(driver, rows_of(range(order.n), seq))
    return {"blocked": order.n}


def gated_recover(order: Order, driver: Driver) -> Figures:
    assert len(driver.read_all()) == order.n * BLOCKED_STEP
    for seq in range(BLOCKED_STEP, STEPS_PER_RUN + 1):
        commit_in_batches(driver, rows_of(range(order.n), seq))
    return {"completed_at": time.monotonic()}


def sleepers(order: Order, driver: Driver) -> Figures:
    commit_in_batches(driver, rows_of(range(order.n), 0))
    began = time.perf_counter()
    commit_in_batches(driver, [(root, 1, body) for root, _, body in driver.read_all()])
    return {"wake_seconds": time.perf_counter() - began}


MEASURES: dict[tuple[str, str], Callable[[Order, Driver], Figures]] = {
    ("W1", "run"): throughput,
    ("W2", "run"): throughput,
    ("W2k", "run"): throughput,
    ("W3", "run"): latency,
    ("W3b", "run"): latency,
    ("W4", "run"): fan_out,
    ("W5", "prepare"): long_prepare,
    ("W5", "recover"): long_recover,
    ("W6", "prepare"): gated_prepare,
    ("W6", "recover"): gated_recover,
    ("W7", "run"): sleepers,
    ("cost", "run"): cost,
}


def measure(order: Order) -> Figures:
    """Carry out the order with the bare driver."""
    figures = MEASURES[order.workload, order.phase](order, connect(order))
    if order.sqlite_path is not None:
        figures["durability"] = "WAL, synchronous=FULL"
    return figures
