"""The workloads, written for DBOS as its documentation says to write them.

Fairness, in DBOS's favour wherever there was a choice:

* As shipped, DBOS keeps its SQLite file in rollback-journal mode (four fsyncs per step). Here every
  connection its engine opens is put in WAL with synchronous=FULL, the durability Outlive has, and the process
  refuses to measure unless SQLite says so itself when asked.
* Logging is off but for errors. Statements and commits are counted only in the `cost` order, which is not
  timed. The size of the connection pool is DBOS's own; between 1 and 50 it moved W1 and W2 by a tenth.
* Where a DBOS handle would poll once a second, the end of a run is noticed in the run itself and then read
  from the status table every 10 ms, so no figure contains the idle half of a poll.
* No more than 100 runs are submitted at once, which keeps its connection pool from running dry.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, SetWorkflowID

from bench.drive import drive
from bench.fleet import enqueue, serve
from bench.meter import BLOCKED_STEP, LARGE_BYTES, STEPS_PER_RUN, Figures, Order
from bench.stage import STAGE

POLL_SECONDS = 0.01
QUEUE = "bench"
LARGE = "x" * LARGE_BYTES
WAL_AND_FULL = ("wal", 2)

connections: list[Any] = []
pragmas: set[tuple[str, int]] = set()


@DBOS.step()
async def noop() -> int:
    return 1


@DBOS.step()
async def large() -> str:
    return LARGE


@DBOS.step()
async def stamp() -> int:
    await STAGE.pass_stamp()
    return 1


@DBOS.step()
async def gate() -> int:
    await STAGE.pass_gate()
    return 1


@DBOS.workflow()
async def one_step() -> int:
    return await noop()


@DBOS.workflow()
async def ten_steps() -> int:
    total = 0
    for _ in range(STEPS_PER_RUN):
        total += await noop()
    return total


@DBOS.workflow()
async def ten_large_steps() -> int:
    total = 0
    for _ in range(STEPS_PER_RUN):
        total += len(await large())
    return total


@DBOS.workflow()
async def long_run(n: int) -> int:
    total = 0
    for _ in range(n):
        total += await stamp()
    STAGE.reach_end()
    return total


@DBOS.workflow()
async def wide_run(n: int) -> int:
    return sum(await asyncio.gather(*(noop() for _ in range(n))))


@DBOS.workflow()
async def gated_run() -> int:
    total = 0
    for number in range(1, STEPS_PER_RUN + 1):
        total += await (gate() if number == BLOCKED_STEP else noop())
    STAGE.reach_end()
    return total


@DBOS.workflow()
async def sleeper(seconds: float) -> int:
    await DBOS.sleep_async(seconds)
    STAGE.reach_end()
    return 1


class DbosSystem:
    """DBOS, as the procedures of `drive` see it."""

    one_step, ten_steps, long_run = staticmethod(one_step), staticmethod(ten_steps), staticmethod(long_run)
    ten_large_steps = staticmethod(ten_large_steps)
    wide_run, gated_run, sleeper = staticmethod(wide_run), staticmethod(gated_run), staticmethod(sleeper)

    def __init__(self, order: Order) -> None:
        self._is_sqlite = order.sqlite_path is not None
        self._url = dbos_url(order)
        self._statements = 0
        self._commits = 0
        self._rows_before = 0

    async def start(self, workflow: Any, run_id: str, *args: Any) -> Any:
        with SetWorkflowID(run_id):
            return await DBOS.start_workflow_async(workflow, *args)

    async def complete(self, workflow: Any, run_id: str, *args: Any) -> None:
        handle = await self.start(workflow, run_id, *args)
        await handle.get_result()

    async def wait_for_all(self, run_ids: Sequence[str]) -> None:
        await STAGE.wait_for_arrival()
        table = "workflow_status" if self._is_sqlite else "dbos.workflow_status"
        query = sa.text(f"SELECT count(*) FROM {table} WHERE status = 'SUCCESS' AND workflow_uuid LIKE 'w-%'")
        engine = sa.create_engine(self._url)
        try:
            # DBOS has no event for this that does not poll as well.
            while count_rows(engine, query) < len(run_ids):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)
        finally:
            engine.dispose()

    def begin_counting(self) -> None:
        sa.event.listen(sa.Engine, "after_cursor_execute", self._count_statement)
        sa.event.listen(sa.Engine, "commit", self._count_commit)
        self._rows_before = rows_changed()

    def counts(self) -> Figures:
        rows = rows_changed() - self._rows_before if self._is_sqlite else None
        return {"rows": rows, "commits": self._commits, "statements": self._statements}

    def _count_statement(self, *_: Any) -> None:
        self._statements += 1

    def _count_commit(self, _connection: Any) -> None:
        self._commits += 1


def count_rows(engine: sa.Engine, query: sa.TextClause) -> int:
    with engine.connect() as connection:
        return int(connection.execute(query).scalar_one())


def rows_changed() -> int:
    """The rows all of DBOS's SQLite connections have inserted, updated or deleted so far."""
    return sum(connection.total_changes for connection in connections)


def dbos_url(order: Order) -> str:
    """The database of the order, as SQLAlchemy spells it."""
    if order.sqlite_path is not None:
        return f"sqlite:///{order.sqlite_path}"
    return order.database.replace("postgresql://", "postgresql+psycopg://", 1)


@sa.event.listens_for(sa.Engine, "connect")
def make_durable(connection: Any, _record: Any) -> None:
    """Give every SQLite connection the durability Outlive has, and note what SQLite made of it."""
    if type(connection).__module__.startswith("sqlite3"):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
        pragmas.add((mode, connection.execute("PRAGMA synchronous").fetchone()[0]))
        connections.append(connection)


def launch(order: Order) -> None:
    """Start DBOS on the database of the order; unfinished runs begin to recover."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": dbos_url(order),
        "application_version": "bench",
        "log_level": "ERROR",
    }
    DBOS(config=config)
    DBOS.launch()


def durability() -> str:
    """What SQLite said on every connection DBOS opened."""
    assert pragmas == {WAL_AND_FULL}, f"DBOS is not in WAL with synchronous=FULL: {pragmas}"
    return "WAL, synchronous=FULL"


@DBOS.step()
async def say_when() -> float:
    return time.monotonic()


@DBOS.workflow()
async def enqueued() -> float:
    return await say_when()


async def work(url: str) -> None:
    """Be the worker of W8."""
    launch(Order(workload="W8", phase="run", n=0, database=url))
    await DBOS.register_queue_async(QUEUE)
    await serve()


async def start_elsewhere(order: Order, pauses: Iterator[float]) -> list[float]:
    """W8: from enqueueing to the step in the worker of another process, which finds it in its queue."""
    client = DBOSClient(system_database_url=dbos_url(order))
    seconds = []
    for _ in range(order.n):
        await asyncio.sleep(next(pauses))
        started_at = time.monotonic()
        handle: Any = await client.enqueue_async({"queue_name": QUEUE, "workflow_name": "enqueued"})
        seconds.append(await handle.get_result(polling_interval_sec=POLL_SECONDS) - started_at)
    return seconds


def measure(order: Order) -> Figures:
    """Carry out the order with DBOS."""
    if order.workload == "W8":
        return enqueue(order, side="dbos_side", start_all=start_elsewhere)

    async def main() -> Figures:
        launch(order)
        if order.sqlite_path is not None:
            durability()
        return await drive(order, DbosSystem(order))

    figures = asyncio.run(main())
    if order.sqlite_path is not None:
        figures["durability"] = durability()
    return figures
