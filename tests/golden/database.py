"""What an earlier Outlive left in its databases, and how it was written: `python -m tests.golden.database`.

`runs.db.gz` is a file of SQLite, `runs.sql.gz` a dump of PostgreSQL. Never write them again: that they were made by
earlier code is what makes them worth keeping. For another schema, write others beside them.
"""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from outlive.errors import RunFailedError
from outlive.limits import Limits
from outlive.testing import SkipClock, TestEngine
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.postgres_programs import find_programs
from tests.golden.machine_stories import Label, parcel
from tests.golden.more_stories import counter
from tests.golden.stories import failure, order, pack, patience, report

FILE = Path(__file__).with_name("runs.db.gz")
DUMP = Path(__file__).with_name("runs.sql.gz")
LETTER_BYTES = 40_000
"""Too large to stand in the journal."""


async def fill(url: str) -> None:
    """Leave runs in every state behind."""
    clock = SkipClock()
    tight = Limits(payload_inline_bytes_max=100, payload_bytes_max=1_000)
    async with TestEngine(url, clock=clock, limits=tight) as engine:
        await engine.start(report, 200, id="parked")
        await engine.settle()
    async with TestEngine(url, clock=clock) as engine:
        await (await engine.start(pack, "a", id="succeeded")).result()
        with suppress(RunFailedError):
            await (await engine.start(failure, id="failed")).result()
        await (await engine.start(counter, 2, id="generations")).result()
        await (await engine.start(pack, "first", id="replaced")).result()
        await engine.start(patience, id="replaced", on_conflict="replace")
        await engine.start(patience, id="for-a-signal", tags={"team": "shop"})
        await engine.start(pack, "x" * LETTER_BYTES, id="with-a-blob")
        await engine.start(parcel, Label("ann"), id="machine")
        # Its child sleeps, a step waits for its next attempt, and a run that it started stands on its own.
        await engine.start(order, "o-1", id="with-a-child")
        await engine.settle()
        await engine.signal("with-a-child", "paid", 4200, key="evt-1")
        await engine.settle()
    async with TestEngine(url, clock=clock, worker=False) as engine:
        await engine.start(pack, "b", id="pending")
        await engine.signal("for-a-signal", "something else", 1, key="evt-2")


def dump(server: PostgresServer) -> str:
    """Everything in the schema `outlive`, as statements that any driver can run."""
    program = find_programs() / "pg_dump"
    options = ["--inserts", "--no-owner", "--schema=outlive", server.url()]
    text = subprocess.run([program, *options], check=True, capture_output=True, text=True).stdout
    return "\n".join(
        line for line in text.splitlines() if not line.startswith(("--", "\\", "SET ", "SELECT pg_catalog.set_c"))
    )


def main() -> None:
    """Write what is not there."""
    if not FILE.exists():
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(fill(f"sqlite:{folder}/runs.db"))
            FILE.write_bytes(gzip.compress(Path(folder, "runs.db").read_bytes(), mtime=0))
    if not DUMP.exists():
        with PostgresServer(fsync=False) as server:
            asyncio.run(fill(server.store_url()))
            DUMP.write_bytes(gzip.compress(dump(server).encode(), mtime=0))


if __name__ == "__main__":
    main()
