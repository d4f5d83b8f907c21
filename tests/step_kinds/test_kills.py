"""Real processes that are really killed in a step: what a kind of step promises holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from outlive.testing.fsck import check_store
from tests.engine.support import Place
from tests.step_kinds.kill_program import KINDS

ROOT = Path(__file__).parents[2]


def live(folder: Path, kind: str) -> subprocess.CompletedProcess[str]:
    """One life of the program, which may be short."""
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    environment = os.environ | paths | {"FOLDER": str(folder), "KIND": kind}
    command = [sys.executable, "-m", "tests.step_kinds.kill_program", str(folder / "program.db")]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("kind", KINDS)
async def test_killed_process_leaves_what_its_steps_promise(tmp_path: Path, kind: str) -> None:
    """Every entry of the ledger is there once; a step that is called once is called once."""
    assert -signal.SIGKILL == live(tmp_path, kind).returncode
    again = live(tmp_path, kind)
    message = "step kill_once of run run-1 was interrupted and is not called again" if kind == KINDS[2] else ""
    assert (0, message) == (again.returncode, again.stderr.strip())
    answer = "interrupted" if kind == KINDS[2] else "called"
    assert f"10, 11, {answer}" == again.stdout.strip()

    begun = Counter((tmp_path / "began").read_text().splitlines())
    expected = {KINDS[0]: 2, KINDS[1]: 1, KINDS[2]: 1}
    assert (expected if kind == KINDS[2] else expected | {kind: expected[kind] + 1}) == dict(begun)
    store = Place(tmp_path / "program.db").store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()
