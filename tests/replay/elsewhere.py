"""A program that replays a journal in a process of its own: `python -m tests.replay.elsewhere < rows`.

It has another hash seed, another clock and other memory addresses than the process that wrote the journal, and prints
what the run asks for.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from outlive import now, random, uuid4
from outlive._kernel.journal.codec import Row, open_journal
from outlive._kernel.replay.feeding import feed
from tests.replay.define import NONCE, Code, step, workflow
from tests.replay.life import describe, fed


@step()
async def double(n: int) -> int:
    """Pure work."""
    return 2 * n


@step()
async def tell(text: str) -> str:
    """Says something to the world: what, must not depend on where."""
    return text


@step()
async def collect(words: set[str], more: Any) -> int:
    """Takes sets, whose order depends on the hash seed."""
    return len(words) + len(more)


@workflow()
async def worldly() -> list[str]:
    """Everything that could differ between two processes, as arguments of steps."""
    said = [await tell(f"{now()} {random()} {uuid4()}")]

    async def branch(n: int) -> int:
        await tell(f"{n} {random()} {uuid4()} {asyncio.get_running_loop().time()}")
        return await double(n)

    tasks = {asyncio.create_task(branch(n)) for n in range(12)}
    done, _ = await asyncio.wait(tasks)
    for task in done:
        said.append(await tell(f"{task.result()} {now()}"))  # noqa: PERF401

    async def sleeper(n: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await tell(f"cancelled {n}")

    try:
        async with asyncio.TaskGroup() as group:
            for n in range(12):
                group.create_task(sleeper(n))
            await double(0)
            raise ValueError("stop them all")
    except* ValueError:
        pass
    words = {f"word {n}" for n in range(20)}
    await collect(words, frozenset(words))
    child = await inner(3)
    return [*said, child]


@workflow()
async def inner(n: int) -> str:
    """A child has chances of its own."""
    return await tell(f"{n} {random()} {uuid4()}")


CODE = Code(worldly, inner)


def replay(rows: list[Row]) -> list[Any]:
    """What a run asks for because of each of these rows."""
    with fed(CODE, []) as execution:
        return [
            [repr(describe(command)) for command in feed(execution, event)]
            for event in open_journal(rows, nonce=NONCE, run_id="r")
        ]


def main() -> None:
    """Replay what comes in."""
    time.time = time.monotonic = lambda: 4_000_000_000.0
    rows = [(seq, kind, crc, body.encode()) for seq, kind, crc, body in json.load(sys.stdin)]
    json.dump(replay(rows), sys.stdout)


if __name__ == "__main__":
    main()
