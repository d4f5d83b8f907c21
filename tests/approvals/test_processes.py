"""Approvals among real processes: one asks and is killed, others decide at once, the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import outlive
from outlive.errors import RunNotFoundError, StoreError
from outlive.events import ApprovalDecided, ApprovalRequested
from outlive.testing.fsck import check_store
from tests.engine.support import PATIENCE_SECONDS, Place, events_of, until

ROOT = Path(__file__).parents[2]


def begin(folder: Path, *who: str) -> subprocess.Popen[str]:
    """A process that asks, or that decides."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "tests.approvals.asker", str(folder / "asker.db"), *who]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """What a process has said when it has ended well."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (0, "") == (process.returncode, err)
    return out.strip()


async def test_processes_that_decide_at_once_all_get_the_first_decision(tmp_path: Path) -> None:
    """The worker that asked was killed with -9; the next worker goes on with that decision."""
    killed = begin(tmp_path)
    async with outlive.Engine(f"sqlite:{tmp_path / 'asker.db'}", worker=False) as engine:
        run = engine.get("run-1")

        async def has_asked() -> bool:
            try:
                return bool(await run.approvals())
            except (RunNotFoundError, StoreError):
                return False

        await until(has_asked)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()

        deciders = [begin(tmp_path, who) for who in ("a", "bb", "ccc")]
        answers = Counter(finish(decider) for decider in deciders)
        ((first, _),) = Counter(answer.split()[0] for answer in answers.elements()).items()
        assert {f"{first} True": 1, f"{first} False": 2} == answers

        assert f"{first} AskerForm(cents={len(first)})" == finish(begin(tmp_path))
        assert 1 == len(await events_of(run, ApprovalRequested)) == len(await events_of(run, ApprovalDecided))
    store = Place(tmp_path / "asker.db").store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()
