"""Cano: a program that keeps its own state, on a checkpoint store of its own.

The page's trait has three methods: append, load_run and clear. `outlive.checkpoints` has the same three on a
SQLite file or PostgreSQL, where the page has redb. The loop below is the page's engine in small: it writes a row
before the work of a state, stops in the middle, and goes on at the last row. It runs on a store that this file
makes, and on ours.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import outlive
from outlive.checkpoints import Checkpoint

STATES = ("START", "PROCESS", "FINALIZE", "DONE")


class Store(Protocol):
    """What the loop needs. `outlive.checkpoints.CheckpointStore` fits it."""

    async def append(self, run_id: str, row: Checkpoint, /) -> None: ...
    async def load_run(self, run_id: str, /) -> Sequence[Checkpoint]: ...
    async def clear(self, run_id: str, /) -> None: ...


class InMemoryStore:
    """The page's example of a store: a dictionary. A number that is taken is refused, and rows come in order."""

    def __init__(self) -> None:
        self._runs: defaultdict[str, dict[int, Checkpoint]] = defaultdict(dict)

    async def append(self, run_id: str, row: Checkpoint) -> None:
        if row.sequence in self._runs[run_id]:
            raise ValueError(f"run {run_id} has a row {row.sequence}: two processes share an id")
        self._runs[run_id][row.sequence] = row

    async def load_run(self, run_id: str) -> list[Checkpoint]:
        rows = self._runs.get(run_id, {})
        return [rows[number] for number in sorted(rows)]

    async def clear(self, run_id: str) -> None:
        self._runs.pop(run_id, None)


async def drive(store: Store, run_id: str, *, dies_in: str = "") -> list[str]:
    """Begin the run, or resume it: the state of its last row is entered again, those before it are not."""
    rows = await store.load_run(run_id)
    at = STATES.index(rows[-1].state) if rows else 0
    sequence = rows[-1].sequence + 1 if rows else 0
    entered = []
    for number, state in enumerate(STATES[at:], sequence):
        await store.append(run_id, Checkpoint(number, state))
        entered.append(state)
        if state == dies_in:
            return entered  # the process is gone: its work may have been done, or not
    await store.clear(run_id)
    return entered


async def try_out(name: str, store: Store) -> None:
    print(name, "first process:", await drive(store, "demo-run", dies_in="PROCESS"))
    try:
        await store.append("demo-run", Checkpoint(1, "PROCESS"))
    except (ValueError, outlive.errors.ConflictError) as error:
        print(name, "a number twice:", type(error).__name__)
    print(name, "second process:", await drive(store, "demo-run"))
    print(name, "left:", await store.load_run("demo-run"))


async def main() -> None:
    await try_out("memory", InMemoryStore())
    async with outlive.checkpoints.open_store("sqlite:workflow.db") as store:
        await try_out("sqlite", store)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# memory first process: ['START', 'PROCESS']
# memory a number twice: ValueError
# memory second process: ['PROCESS', 'FINALIZE', 'DONE']
# memory left: []
# sqlite first process: ['START', 'PROCESS']
# sqlite a number twice: DuplicateCheckpointError
# sqlite second process: ['PROCESS', 'FINALIZE', 'DONE']
# sqlite left: []
