"""Processes that kill themselves at a commit: `python -m tests.machine.killing JOB URL LEDGER MOMENT WAY`.

A job is a module with `runs(trial)`: what every process of a trial starts, or goes on with. Trial 1 is killed with
SIGKILL right before (or after) its first write to the store, trial 2 at its second, and so on, until a process gets
through without coming to its point. Each trial has runs of its own in the one store. The process that goes on with it
is killed too, at one of its first writes; the next one is not. Each trial is one line of JSON: what became of its
processes.

Runs that move side by side share their commits: forty machines need seven of them. If WAY is `singly`, each change is
committed on its own, so that there is a death between any two of them.

Python starts once. The processes are forks of one that has only imported things: it has no loop, no thread and no
connection, so each of them begins as a process of its own does, in a hundredth of the time.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import outlive
from outlive._kernel.store.contract import Change, Outcome
from outlive.testing.crash.mortal import Death, Moment, MortalStore
from outlive.types import WorkerOptions, Workflow
from tests.engine.inside import give_store, store_of

Runs = list[tuple[Workflow[..., Any], Any, str]]
"""Workflow, argument, id."""
LIFE_SECONDS_MAX = 40
TRIALS_MAX = 1_000
AGAIN = 4
"""Up to which of its writes the process that goes on is killed; the first of them is a claim."""


class KilledStore(MortalStore):
    """A store whose process is killed at a given write."""

    is_single = False
    """Whether changes that came together are written one by one."""

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        if not self.is_single:
            return await super().commit(changes)
        return [(await super(KilledStore, self).commit([change]))[0] for change in changes]

    async def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Ledger:
    """What was done in the world: entries with an idempotency key, in a file of their own."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with self._open() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS entries"
                " (number INTEGER PRIMARY KEY, key TEXT UNIQUE, run TEXT, what TEXT, change INTEGER)"
            )

    def enter(self, run: str, what: str, change: int) -> None:
        """Book (1) or take back (-1), once for each step of each run, however often that step is called."""
        key = outlive.current_step().idempotency_key
        with self._open() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO entries (key, run, what, change) VALUES (?, ?, ?, ?)", (key, run, what, change)
            )

    def held(self, run: str) -> list[str]:
        """What a run holds, in the order of its booking; never less than nothing on the way."""
        with self._open() as connection:
            rows = connection.execute("SELECT what, change FROM entries WHERE run = ? ORDER BY number", (run,))
            held: list[str] = []
            for what, change in rows:
                if change > 0:
                    assert what not in held, f"{what} of {run} was booked twice"
                    held.append(what)
                else:
                    assert what in held, f"{what} of {run} was taken back and was not booked"
                    held.remove(what)
        return held

    def _open(self) -> closing[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")  # A killed process loses nothing that it has written.
        return closing(connection)


def ledger() -> Ledger:
    """The ledger of this process."""
    return Ledger(os.environ["LEDGER"])


# -- Processes ---------------------------------------------------------------------------------------------------------


async def live(url: str, runs: Runs, death: Death | None, *, is_single: bool = False) -> None:
    """One process: start all runs or go on with them, and wait for their ends."""
    engine = outlive.Engine(url, poll_seconds=0.02, worker=WorkerOptions(lease_seconds=2, grace_seconds=0.05))
    store = KilledStore(store_of(engine), death)
    store.is_single = is_single
    give_store(engine, store)
    try:
        async with asyncio.timeout(LIFE_SECONDS_MAX), engine:
            handles = await asyncio.gather(*(engine.start(workflow, arg, id=id) for workflow, arg, id in runs))
            await asyncio.gather(*(handle.result() for handle in handles), return_exceptions=True)
    finally:
        await store.inner.close()


def in_a_process(work: Callable[[], Any]) -> int:
    """Do something in a child; how that ended: 0, or less than 0 for the signal that killed it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # It is reported, and this process must not go on as its parent does.
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def try_all(job: str, url: str, moment: Moment, *, is_single: bool) -> None:
    """Trial after trial, until nothing is left to be killed at."""
    runs_of: Callable[[str], Runs] = importlib.import_module(f"tests.machine.{job}").runs
    for write in range(1, TRIALS_MAX):
        trial = f"{moment.name}-{write}".lower()
        runs = runs_of(trial)
        codes: list[int] = []
        for death in (Death(write, moment), Death(1 + write % AGAIN, moment), None):
            codes.append(in_a_process(partial(begin, url, runs, death, is_single=is_single)))
            if codes[-1] != -signal.SIGKILL:
                break
        print(json.dumps({"trial": trial, "codes": codes}), flush=True)  # noqa: T201
        if codes[-1] != 0 or len(codes) == 1:
            return


def begin(url: str, runs: Runs, death: Death | None, *, is_single: bool) -> None:
    """What a process does first."""
    asyncio.run(live(url, runs, death, is_single=is_single))


if __name__ == "__main__":
    os.environ["LEDGER"] = sys.argv[3]
    try_all(sys.argv[1], sys.argv[2], Moment[sys.argv[4]], is_single=sys.argv[5] == "singly")
