"""How tests let processes die: really, with `tests.machine.killing`, or as `crash_everywhere` does it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.store.contract import Store
from outlive._kernel.store.postgres import PostgresStore
from outlive.testing.fsck import check_store
from proof.postgres_place import PostgresPlace
from tests.engine.support import Place

ROOT = Path(__file__).parents[2]


def kill_everywhere(job: str, place: Place, ledger: Path, moment: str, way: str, *, seconds_max: int) -> dict[str, Any]:
    """Kill processes at every write; the exit codes of the processes of each trial."""
    command = [sys.executable, "-m", "tests.machine.killing", job, place.url, str(ledger), moment, way]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, cwd=ledger.parent, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            said, output = process.communicate(timeout=seconds_max)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # Its children too: they would go on with runs of other tests.
            raise
    assert process.returncode == 0, output
    trials = {line["trial"]: line["codes"] for line in map(json.loads, said.splitlines())}
    assert [] == [trial for trial, codes in trials.items() if codes[-1] != 0], output
    *killed, last = trials.values()
    assert last == [0], "the last one came to its end before it came to its point"
    assert all(set(codes[:-1]) == {-signal.SIGKILL} for codes in killed)
    return trials


async def read_ends(place: Place) -> dict[str, RunStatus]:
    """How every run has ended, in a store that is whole."""
    store = place.store()
    await store.open()
    assert [] == await check_store(store)
    ends: dict[str, RunStatus] = {}
    cursor = None
    while page := await store.list_runs(RunFilter(roots_only=True), limit=500, before=cursor):
        ends |= {run.id: run.status for run in page}
        cursor = (page[-1].created_at, page[-1].id)
    await store.close()
    return ends


def crash_on_server(place: PostgresPlace) -> dict[str, Any]:
    """The arguments with which `crash_everywhere` uses a server: each trial begins in an empty place."""

    def store(trial: int, clock: Callable[[], int]) -> Store:
        return PostgresStore(place.url, clock=clock)

    return {"store": store, "reset": place.empty}
