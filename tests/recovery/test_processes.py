"""Real processes that really die: the next one goes on."""

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
from tests.recovery.program import WAYS

ROOT = Path(__file__).parents[2]


def live(
    folder: Path, way: str, program: str = "tests.recovery.program", *, url: str = ""
) -> subprocess.CompletedProcess[str]:
    """One life of the program, which may be short."""
    environment = os.environ | {
        "LEDGER": str(folder / "ledger"),
        "WAY": way,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    }
    command = [sys.executable, "-m", program, url or f"sqlite:{folder / 'program.db'}"]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=30)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where processes meet: on a file or on a server."""
    server_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return Place(None if server_url else tmp_path / "program.db", server_url)


@pytest.mark.parametrize("way", [pytest.param(WAYS[0], marks=pytest.mark.every_store), *WAYS[1:]])
async def test_a_process_goes_on_where_another_one_died(tmp_path: Path, place: Place, way: str) -> None:
    """Whatever kills it, and at once: completed steps are done once, interrupted ones again, and every run ends right.
    [SF-X1 FE-P6]
    """
    assert 0 != live(tmp_path, way, url=place.url).returncode
    again = live(tmp_path, way, url=place.url)
    assert 0 == again.returncode, again.stderr
    assert "a 1, a 2, a 3, a 4, sent" == again.stdout.strip()

    done = Counter((tmp_path / "ledger").read_text().splitlines())
    deadly = {WAYS[0]: "async a", WAYS[1]: "sync a", WAYS[2]: "sync a", WAYS[3]: "after a"}[way]
    assert {"before a": 1, "async a": 1, "sync a": 1, "after a": 1} | {deadly: 2} == dict(done)
    store = place.store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()


def test_a_roll_back_goes_on_where_a_process_was_killed(tmp_path: Path) -> None:
    """Killed with -9 in every single undo: each is done once, newest first, and the run fails as it should."""
    names = ["c", "b", "a"]
    for _ in names:
        assert -signal.SIGKILL == live(tmp_path, "", "tests.sagas.program").returncode
    last = live(tmp_path, "", "tests.sagas.program")

    assert last.stdout.strip() == "run run-1 failed: ValueError: planned"
    assert last.stderr.startswith("run run-1 failed:\nTraceback"), "the log says so too"
    done = (tmp_path / "ledger").read_text().splitlines()
    assert [f"book {name}" for name in reversed(names)] == [line for line in done if line.startswith("book")]
    assert [f"undo {name}" for name in names] == [line for line in done if line.startswith("undo")]
