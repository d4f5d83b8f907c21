"""The workloads, written for Outlive as its documentation says to write them.

Nothing here reaches inside the engine. Runs are started with `engine.start` and awaited with `run.result()`,
one at a time per lane; there is no bulk path, because DBOS is not offered one either. What a step costs is
taken from outside where that is possible: journal rows and pages from the file by SQLite itself, bytes from
the kernel's count of what this process wrote, and the durability from the connections, which a hook of apsw
hands over as the engine opens them. Rows and commits are the engine's own count.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from typing import Any

import outlive
from bench import flows, states, streams
from bench.drive import drive
from bench.fleet import enqueue, serve
from bench.meter import BLOCKED_STEP, LARGE_BYTES, STEPS_PER_RUN, Figures, Order, keep_open
from bench.stage import STAGE

SYNCHRONOUS_FULL = 2
WAITERS_MAX = 1000
ASKED_MAX = 200
POLL_SECONDS = 0.01
LARGE = "x" * LARGE_BYTES

connections: list[Any] = []


@outlive.step
async def noop() -> int:
    return 1


@outlive.step
async def large() -> str:
    return LARGE


@outlive.step
async def stamp() -> int:
    await STAGE.pass_stamp()
    return 1


@outlive.step
async def gate() -> int:
    await STAGE.pass_gate()
    return 1


@outlive.workflow
async def one_step() -> int:
    return await noop()


@outlive.workflow
async def ten_steps() -> int:
    total = 0
    for _ in range(STEPS_PER_RUN):
        total += await noop()
    return total


@outlive.workflow
async def ten_large_steps() -> int:
    total = 0
    for _ in range(STEPS_PER_RUN):
        total += len(await large())
    return total


@outlive.workflow
async def long_run(n: int) -> int:
    total = 0
    for _ in range(n):
        total += await stamp()
    STAGE.reach_end()
    return total


@outlive.workflow
async def wide_run(n: int) -> int:
    return sum(await asyncio.gather(*(noop() for _ in range(n))))


@outlive.workflow
async def gated_run() -> int:
    total = 0
    for number in range(1, STEPS_PER_RUN + 1):
        total += await (gate() if number == BLOCKED_STEP else noop())
    STAGE.reach_end()
    return total


@outlive.workflow
async def sleeper(seconds: float) -> int:
    await asyncio.sleep(seconds)
    STAGE.reach_end()
    return 1


class OutliveSystem:
    """Outlive, as the procedures of `drive` see it."""

    one_step: Any = staticmethod(one_step)
    ten_steps: Any = staticmethod(ten_steps)
    ten_large_steps: Any = staticmethod(ten_large_steps)
    long_run: Any = staticmethod(long_run)
    wide_run: Any = staticmethod(wide_run)
    gated_run: Any = staticmethod(gated_run)
    sleeper: Any = staticmethod(sleeper)

    def __init__(self, order: Order, engine: outlive.Engine) -> None:
        self._order = order
        self._engine: Any = engine
        self._before: Figures = {}

    async def start(self, workflow: Any, run_id: str, *args: Any) -> Any:
        return await self._engine.start(workflow, *args, id=run_id)

    async def complete(self, workflow: Any, run_id: str, *args: Any) -> None:
        run = await self._engine.start(workflow, *args, id=run_id)
        await run.result()

    async def wait_for_all(self, run_ids: Sequence[str]) -> None:
        async def wait_for(number: int) -> None:
            await self._engine.get(run_ids[number]).result()

        await keep_open(len(run_ids), wait_for, width=WAITERS_MAX)

    def begin_counting(self) -> None:
        self._before = self._totals()

    def counts(self) -> Figures:
        before = self._before
        return {name: difference(total, before.get(name)) for name, total in self._totals().items()}

    def _totals(self) -> Figures:
        counters = getattr(self._engine, "counters", None)
        totals: Figures = {name: getattr(counters, name, None) for name in ("rows", "commits")}
        totals |= {"payload_bytes": getattr(counters, "bytes", None)}
        return totals | (server_totals(self._order) if self._order.sqlite_path is None else file_totals(self._order))


def difference(after: float | str | None, before: float | str | None) -> float | None:
    """What was added, where both are known."""
    return after - before if isinstance(after, int | float) and isinstance(before, int | float) else None


def file_totals(order: Order) -> Figures:
    """What is in the file, read by SQLite and not by the engine."""
    if order.sqlite_path is None:
        return {}
    connection = sqlite3.connect(f"file:{order.sqlite_path}?mode=ro", uri=True)
    try:
        events: int = connection.execute("SELECT count(*) FROM outlive_events").fetchone()[0]
        pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
        page_size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    except sqlite3.OperationalError:  # The table has another name than the one promised: no figure.
        return {}
    finally:
        connection.close()
    return {"event_rows": events, "file_bytes": pages * page_size}


def server_totals(order: Order) -> Figures:
    """The statements that reached the server, by its own count."""
    import psycopg

    with psycopg.connect(order.database, autocommit=True) as connection:
        try:
            found = connection.execute(
                "SELECT sum(calls) FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid"
                " WHERE d.datname = current_database() AND s.toplevel"
            ).fetchone()
        except psycopg.Error:  # This server does not count.
            return {}
    return {"statements": None if found is None or found[0] is None else int(found[0])}


def watch_connections() -> None:
    """Have apsw hand us every connection the engine opens."""
    try:
        import apsw
    except ImportError:
        return
    apsw.connection_hooks.append(connections.append)


async def durability() -> str:
    """What the engine's writing connections say of themselves."""
    said = {pragmas for connection in connections if (pragmas := await pragmas_of(connection)) is not None}
    if not said:
        return "not seen: no apsw connection that writes"
    assert all(mode == "wal" and synchronous >= SYNCHRONOUS_FULL for mode, synchronous in said), (
        f"Outlive is not in WAL with synchronous=FULL: {said}"
    )
    return "WAL, synchronous=FULL"


async def pragmas_of(connection: Any) -> tuple[str, int] | None:
    """Journal mode and synchronous of a connection that is open and can write."""
    import apsw

    for _ in range(ASKED_MAX):
        try:
            if connection.readonly("main") or connection.pragma("query_only"):
                return None
            return connection.pragma("journal_mode"), connection.pragma("synchronous")
        except apsw.ConnectionClosedError:
            return None
        except apsw.ThreadingViolationError:  # It is in use by its thread this very moment.
            await asyncio.sleep(POLL_SECONDS)
    raise AssertionError("a connection of Outlive is never at rest")


@outlive.step
async def say_when() -> float:
    return time.monotonic()


@outlive.workflow
async def enqueued() -> float:
    return await say_when()


async def work(url: str) -> None:
    """Be the worker of W8."""
    async with outlive.Engine(url):
        await serve()


async def start_elsewhere(order: Order, pauses: Iterator[float]) -> list[float]:
    """W8: from a start to its step in the worker of another process."""
    seconds = []
    async with outlive.Engine(order.database, worker=False, poll_seconds=POLL_SECONDS) as engine:
        for _ in range(order.n):
            await asyncio.sleep(next(pauses))
            started_at = time.monotonic()
            run = await engine.start(enqueued)
            seconds.append(await run.result() - started_at)
    return seconds


def measure(order: Order) -> Figures:
    """Carry out the order with Outlive."""

    async def main() -> Figures:
        async with outlive.Engine(order.database) as engine:
            figures = await drive(order, OutliveSystem(order, engine))
            if order.sqlite_path is not None:
                figures["durability"] = await durability()
        return figures

    if order.workload == "W8":
        return enqueue(order, side="outlive_side", start_all=start_elsewhere)
    own = states.MEASURES | streams.MEASURES | flows.MEASURES
    if order.workload in own:
        return asyncio.run(own[order.workload](order))
    if order.sqlite_path is not None:
        watch_connections()
    return asyncio.run(main())
