"""What a streamed reply costs in the store, and how late each word of it reaches a reader in another process.

A step emits the reply word by word at the pace of a quick model. A second process, begun before the first word, reads
the stream and notes when each word came; its clock is that of the same machine. The lag of a word is the time from its
`emit` to its arrival, with everything between: the buffer, the transaction, the ring or the next look, the read.

Beside it the same reply is shown as it could be before there were streams: the step publishes what it has so far,
after each word. Both are runs of one database, one after the other; the figure is what the store has grown by.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import time
from typing import Any

import outlive
from bench.meter import Figures, Order, percentile

WORD_SECONDS = 0.005
LETTERS = "aabcdeeeefghiiijklmnnooopqrrssttuuvwxyz"

emitted: list[float] = []


def word(number: int) -> str:
    """One of the reply: short, and of no use to the compression of a database."""
    chance = random.Random(number)
    return "".join(chance.choices(LETTERS, k=chance.randint(2, 7))) + " "


async def pace(number: int, began: float) -> None:
    """Wait until a word is due; a model does not wait for a slow reader."""
    await asyncio.sleep(max(0.0, began + number * WORD_SECONDS - time.perf_counter()))


@outlive.step
async def stream_reply(n: int) -> int:
    began = time.perf_counter()
    for number in range(n):
        await pace(number, began)
        emitted.append(time.time())
        await outlive.emit("tokens", word(number))
    return n


@outlive.step
async def publish_reply(n: int) -> int:
    began, said = time.perf_counter(), ""
    for number in range(n):
        await pace(number, began)
        said += word(number)
        outlive.publish(reply=said)
    return n


@outlive.workflow
async def streamed(n: int) -> int:
    await outlive.wait_for_signal("go")
    return await stream_reply(n)


@outlive.workflow
async def published(n: int) -> int:
    return await publish_reply(n)


async def reply(order: Order) -> Figures:
    """W11: a reply that another process reads along, and the same reply published."""
    async with outlive.Engine(order.database) as engine:
        run = await engine.start(streamed, order.n, id="streamed")
        reader = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.streams", order.database, run.id, stdout=asyncio.subprocess.PIPE
        )
        assert reader.stdout is not None
        await reader.stdout.readline()
        before = await size_of(order)
        await run.signal("go")
        arrived: list[float] = json.loads(await reader.stdout.read())
        await reader.wait()
        await run.result()
        streamed_bytes = await size_of(order) - before
        assert len(arrived) == order.n, f"{len(arrived)} of {order.n} words came"
        other = await engine.start(published, order.n, id="published")
        before = await size_of(order)
        await other.result()
        published_bytes = await size_of(order) - before
    lags = [(there - here) * 1_000 for here, there in zip(emitted, arrived, strict=True)]
    return {
        "stream_kb": streamed_bytes / 1_000,
        "publish_kb": published_bytes / 1_000,
        "ratio": published_bytes / max(1, streamed_bytes),
        "lag_p50_ms": percentile(lags, 0.5),
        "lag_p99_ms": percentile(lags, 0.99),
    }


async def size_of(order: Order) -> int:
    """How many bytes the tables of the store have, by the word of the database."""
    if order.sqlite_path is not None:
        # In a process of its own: a second SQLite in this one, when it closes the file, drops the locks of the first.
        asked = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.streams", order.sqlite_path, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await asked.communicate()
        return int(said)
    import psycopg

    with psycopg.connect(order.database, autocommit=True) as server:
        found: Any = server.execute(
            "SELECT sum(pg_total_relation_size(table_.oid)) FROM pg_class AS table_"
            " JOIN pg_namespace AS space ON space.oid = table_.relnamespace"
            " WHERE space.nspname = 'outlive' AND table_.relkind = 'r'"
        ).fetchone()
    return int(found[0])


def size_of_file(path: str) -> int:
    """What is in a file, read by SQLite."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    page_bytes: int = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    return pages * page_bytes


async def read_along(database: str, run_id: str) -> None:
    """The other process: prints that it reads, and at the end when each word came."""
    async with outlive.Engine(database, worker=False) as engine:
        run = engine.get(run_id)
        print("reading", flush=True)
        arrived = [time.time() async for _ in run.stream("tokens")]
    print(json.dumps(arrived), flush=True)


MEASURES = {"W11": reply}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(size_of_file(sys.argv[1]))
    else:
        asyncio.run(read_along(*sys.argv[1:]))
