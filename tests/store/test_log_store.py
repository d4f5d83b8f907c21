"""The worked example of a store, in an engine and by its own promises: `examples/store`."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import outlive
from examples.store.log_store import LogStore
from outlive.engine.url import store_for
from outlive.errors import ConfigurationError, StoreError
from outlive.stores import MemoryStore, register_store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, see_everything

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "store" / "log_store"
LINES_MAX = 1_500
PUBLIC = ("outlive", "outlive.errors", "outlive.stores")


@outlive.step
async def double_in_log(number: int) -> int:
    return 2 * number


@outlive.step(transaction=True)
async def note_in_log(tx: outlive.types.Tx, number: int) -> int:
    await tx.execute("CREATE TABLE IF NOT EXISTS notes (number INTEGER)")
    await tx.execute("INSERT INTO notes VALUES ($1)", number)
    return int(await tx.fetchval("SELECT count(*) FROM notes"))


@outlive.workflow
async def doubles_in_log(number: int) -> list[int]:
    found = [await double_in_log(number)]
    await asyncio.sleep(0.01)
    answer = await outlive.wait_for_signal("more", int)
    return [*found, answer, await note_in_log(number)]


async def test_an_engine_runs_on_a_store_of_another_author(tmp_path: Path) -> None:
    """A URL of its scheme names it. Steps, timers, signals and transactions work, and another engine goes on.
    [FE-P14]
    """
    url = f"log:{tmp_path / 'runs.log'}"
    async with outlive.Engine(url, poll_seconds=0.01) as engine:
        run = await engine.start(doubles_in_log, 21, id="run-1")
        await run.until("waiting", timeout=10)

    async with outlive.Engine(url, poll_seconds=0.01) as engine:
        await engine.signal("run-1", "more", 7)
        assert [42, 7, 1] == await engine.get("run-1").result(timeout=10)


async def test_a_snapshot_stands_for_the_records_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process has the same state from it, and a process that was behind goes on from it."""
    monkeypatch.setattr("examples.store.log_store.store.RECORDS_MAX", 5)
    path, clock = str(tmp_path / "runs.log"), ManualClock()
    store, behind = LogStore(path, clock=clock), LogStore(path, clock=clock)
    await store.open()
    await behind.open()
    tree = await begin(store, tags={"team": "a"})
    await tree.step(*(f"step-{number}" for number in range(3)))
    for number in range(8):
        await begin(store, f"other-{number}")

    await store.give_back()
    await tree.step("last")

    new = LogStore(path, clock=clock)
    await new.open()
    assert new.log.count() == 1
    assert await see_everything(store, tree) == await see_everything(new, tree) == await see_everything(behind, tree)
    for each in (store, behind, new):
        await each.close()


async def test_a_record_that_has_another_answer_now_is_refused(tmp_path: Path) -> None:
    """Rules of another release could lead to another state, and no process goes on with that."""
    path = str(tmp_path / "runs.log")
    store = LogStore(path, clock=ManualClock())
    await store.open()
    await begin(store)
    store.log.connection.execute("UPDATE outlive_log SET answer = answer + 1")
    await store.close()

    with pytest.raises(StoreError, match="by another release"):
        await LogStore(path, clock=ManualClock()).open()


@pytest.mark.slow
def test_processes_with_other_hashes_have_the_same_state(tmp_path: Path) -> None:
    """The order of a set is another one in each process, and must not decide anything."""
    program = (
        "import asyncio, sys\n"
        "from tests.store.test_log_store import doubles_in_log\n"
        "import outlive\n"
        "async def main():\n"
        "    async with outlive.Engine(sys.argv[1], poll_seconds=0.01) as engine:\n"
        "        runs = [await engine.start(doubles_in_log, number) for number in range(10)]\n"
        "        for run in runs: await run.signal('more', 1)\n"
        "        for run in runs: await run.result(timeout=30)\n"
        "asyncio.run(main())\n"
    )
    url = f"log:{tmp_path / 'runs.log'}"
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", program, url],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT / "src")},
        )
        for seed in (1, 2)
    ]
    try:
        assert [process.wait(50) for process in begun] == [0, 0]
    finally:
        for process in begun:
            process.kill()
            process.wait()


def test_the_example_uses_public_names_and_is_short() -> None:
    """An author needs nothing from inside of Outlive."""
    lines, found = 0, set()
    for file in sorted(FOLDER.glob("*.py")):
        text = file.read_text("utf-8")
        lines += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("outlive"):
                found.add(node.module)

    assert found <= set(PUBLIC)
    assert lines < LINES_MAX


def test_a_scheme_of_outlive_cannot_be_taken() -> None:
    """A URL that people know means what it always meant."""
    with pytest.raises(ConfigurationError, match="cannot be the scheme of another store"):
        register_store("sqlite", lambda rest, clock: MemoryStore(clock=clock))
    with pytest.raises(ConfigurationError, match="cannot be the scheme"):
        register_store("My Store", lambda rest, clock: MemoryStore(clock=clock))


def test_an_installed_package_offers_its_store_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`outlive worker --store mine:...` finds it without a program that registers it."""
    folder = tmp_path / "mine-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[outlive.stores]\nmine = mine_store:make\n")
    (tmp_path / "mine_store.py").write_text(
        "from outlive.stores import MemoryStore\ndef make(rest, clock):\n    return MemoryStore(clock=clock)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    assert isinstance(store_for("mine:anything", clock=ManualClock()), MemoryStore)
