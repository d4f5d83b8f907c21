"""Forty machines in processes that are killed again and again: what was rolled back holds nothing, the others all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from outlive.testing.fsck import check_store
from tests.engine.support import Place
from tests.machine.saga_program import COUNT, FAILING

ROOT = Path(__file__).parents[2]
LINES = 17
"""Effects of one life."""
LIVES_MAX = 60


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_forty_machines_survive_any_number_of_kills(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """Every fifth fails at each of its places, and completes at none. [CA-X8]"""
    server_url = request.getfixturevalue("postgres_url") if kind == "postgres" else ""
    place = Place(None if server_url else tmp_path / "program.db", server_url)
    codes: list[int] = []
    said = ""
    while (not codes or codes[-1] != 0) and len(codes) < LIVES_MAX:
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        environment = os.environ | paths | {"LEDGER": str(tmp_path / "ledger"), "LINES": str(LINES)}
        command = [sys.executable, "-m", "tests.machine.saga_program", place.url]
        life = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=40)
        assert life.returncode in (0, -signal.SIGKILL), life.stderr
        codes.append(life.returncode)
        said = life.stdout.strip()

    assert codes.count(-signal.SIGKILL) >= 5
    assert said == str(COUNT // 5)
    held: dict[str, set[str]] = {f"trip-{number}": set() for number in range(COUNT)}
    for line in (tmp_path / "ledger").read_text().splitlines():
        sign, name, what = line.split()
        (held[name].add if sign == "+" else held[name].discard)(what)
    whole = {"ROOM", "SEAT", "TRUCK", "PAY"}
    assert held == {f"trip-{number}": set() if FAILING[number % 5] else whole for number in range(COUNT)}
    store = place.store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()
