"""Processes that share a file ring each other: workers when something is due, readers when there is more to read."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import outlive
from outlive._kernel.client import answers
from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.bells import IDS_MAX, READERS, WORKERS, Bells
from outlive._platform import open_bell
from outlive_conformance.suite.builders import begin, claim, follow, hire, message, new_tree, send
from tests.engine.support import in_time, turns_of_the_loop
from tests.sqlite.conftest import Child

HOUR = 3_600_000_000
Opener = Callable[[], Awaitable[SqliteStore]]


async def heard(bells: list[str], *wanted: str) -> None:
    """Return when exactly these ids were heard."""
    async with asyncio.timeout(10):
        while bells != list(wanted):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


# -- The sockets -------------------------------------------------------------------------------------------------------


async def test_ring_is_heard_by_all_other_processes(tmp_path: Path) -> None:
    """Every other process hears each id once, and the process that rings hears nothing. Many ids at once are one ring
    for all runs."""
    rings: list[list[str]] = [[], [], []]
    bells = [Bells(tmp_path / "bells", READERS) for _ in rings]
    assert [bell.listen(ring.append) for bell, ring in zip(bells, rings, strict=True)] == [True] * 3

    bells[0].ring(["a", "b", "a"])
    await heard(rings[1], "a", "b")
    await heard(rings[2], "a", "b")
    bells[1].ring([str(number) for number in range(IDS_MAX + 1)])
    await heard(rings[0], "")

    for bell in bells:
        bell.close()
    assert not (tmp_path / "bells").exists()


async def test_worker_is_not_rung_for_readers(tmp_path: Path) -> None:
    """A reply of a thousand words is not a reason for it to look a thousand times."""
    workers, readers = Bells(tmp_path / "bells", WORKERS), Bells(tmp_path / "bells", READERS)
    rings: list[str] = []
    assert workers.listen(rings.append)

    readers.ring(["a"])
    Bells(tmp_path / "bells", WORKERS).ring()

    await heard(rings, "")
    workers.close()


async def test_bell_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    """By the first ring that finds no listener; without any listener a ring is nothing."""
    ringer = Bells(tmp_path / "bells", WORKERS)
    ringer.ring()
    (tmp_path / "bells").mkdir(mode=0o700)
    open_bell(tmp_path / "bells", "workers-dead").close()

    ringer.ring()

    assert list((tmp_path / "bells").iterdir()) == []


async def test_fork_does_not_keep_the_bell_of_its_dead_parent(tmp_path: Path, spawn: Callable[..., Child]) -> None:
    """It has a copy of the socket, which would take every ring and answer none."""
    child = spawn("leave_a_fork", tmp_path / "bells")
    assert child.hear() == "forked"
    child.process.wait()
    assert len(list((tmp_path / "bells").iterdir())) == 1

    Bells(tmp_path / "bells", WORKERS).ring()

    assert list((tmp_path / "bells").iterdir()) == []
    child.say()


async def test_bell_that_is_not_read_makes_no_process_wait(tmp_path: Path) -> None:
    """Its process may be frozen: what it cannot take any more is lost, and its bell stays."""
    (tmp_path / "bells").mkdir(mode=0o700)
    ringer = Bells(tmp_path / "bells", WORKERS)
    with open_bell(tmp_path / "bells", "workers-frozen") as frozen:
        frozen.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        for _ in range(600):
            ringer.ring()

        assert [bell.name for bell in (tmp_path / "bells").iterdir()] == ["workers-frozen"]


async def test_folder_with_a_long_path_has_bells_too(tmp_path: Path) -> None:
    """Longer than an address of a socket may be."""
    folder = tmp_path / ("x" * 120)
    bells, rings = Bells(folder, WORKERS), list[str]()
    assert bells.listen(rings.append)

    Bells(folder, WORKERS).ring()

    await heard(rings, "")
    bells.close()
    assert not folder.exists()


@pytest.mark.parametrize("trouble", ["no such sockets", "no right to the folder"])
async def test_without_bells_nothing_fails(tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows, or a folder of another user: workers and readers look by themselves then."""
    folder = tmp_path / "bells"
    if trouble == "no such sockets":
        monkeypatch.delattr(socket, "AF_UNIX")
    else:
        folder.write_text("a file is in the way")
    bells = Bells(folder, WORKERS)

    assert bells.listen(lambda run_id: None) is False

    bells.ring()
    bells.close()
    assert not folder.is_dir()


@pytest.mark.parametrize("trap", ["another user", "a link", "open to others"])
async def test_folder_that_others_may_use_is_not_used_for_bells(
    tmp_path: Path, trap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that another user may have made or can use is not used for bells. [S28]"""
    folder, theirs = tmp_path / "bells", tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    if trap == "a link":
        folder.symlink_to(theirs)
    else:
        folder.mkdir(mode=0o700)
        theirs = folder
    if trap == "open to others":
        folder.chmod(0o770)
    with open_bell(theirs, "workers-thief") as thief:
        if trap == "another user":
            monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        bells = Bells(folder, WORKERS)

        assert bells.listen(lambda run_id: None) is False
        bells.ring(["run-1"])
        with pytest.raises(BlockingIOError):
            thief.recv(100)
    bells.close()
    assert [each.name for each in theirs.iterdir()] == ["workers-thief"]


async def test_folder_that_the_last_one_removes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process closes between the making of the folder and that of the socket in it."""
    made = Path.mkdir
    left = [1, 2]

    def mkdir(self: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:  # noqa: FBT001, FBT002
        made(self, mode, parents, exist_ok)
        if left:
            left.pop()
            self.rmdir()

    monkeypatch.setattr(Path, "mkdir", mkdir)
    bells = Bells(tmp_path / "bells", WORKERS)

    assert bells.listen(lambda run_id: None)

    bells.close()


async def test_name_that_is_taken_is_not_taken_again(tmp_path: Path) -> None:
    """A killed process of the same number may have left it there, or one in another container has it."""
    first = Bells(tmp_path / "bells", WORKERS)
    assert first.listen(lambda run_id: None)
    (taken,) = (tmp_path / "bells").iterdir()
    first.close()
    (tmp_path / "bells").mkdir(mode=0o700)
    with open_bell(tmp_path / "bells", taken.name):
        assert first.listen(lambda run_id: None)

        assert len(list((tmp_path / "bells").iterdir())) == 2
    first.close()


# -- What rings --------------------------------------------------------------------------------------------------------


class Ear:
    """Counts the rings of a store."""

    def __init__(self, store: SqliteStore) -> None:
        self.rings = 0
        self.cells: list[str] = []
        self._heard = asyncio.Event()
        store.watch(self._ring)

    def _ring(self, cell: str) -> None:
        self.cells.append(cell)
        self.rings += 1
        self._heard.set()

    async def hear(self) -> None:
        """Wait for a ring."""
        await in_time(self._heard.wait())
        self._heard.clear()


@pytest.fixture
async def other(open_store: Opener) -> SqliteStore:
    """Another process, as far as a file can tell."""
    return await open_store()


@pytest.fixture
async def ear(open_store: Opener) -> Ear:
    """A worker that listens."""
    return Ear(await open_store())


async def test_work_for_other_workers_rings(ear: Ear, other: SqliteStore) -> None:
    """A new run, a message to an owned run, a released run and a retired worker ring other workers."""
    await other.commit([new_tree(other, "run-1")])
    await ear.hear()
    owned = await begin(other, "run-2", worker="worker-a")
    await send(other, message(other, "run-2"))
    await ear.hear()
    await owned.release()
    await ear.hear()
    await hire(other, "worker-a")
    await other.end_session("worker-a")
    await ear.hear()


async def test_cell_rings_if_it_is_to(ear: Ear, other: SqliteStore) -> None:
    """With its name. Most cells change all the time, and ring no process."""
    await other.change_cell("quiet", lambda before, now_at: (b"1", None))
    await other.ring("loud")
    await ear.hear()

    assert ear.cells == ["loud"]


async def test_slot_that_becomes_free_rings(ear: Ear, other: SqliteStore) -> None:
    """A worker of another process may have room for one of them."""
    await hire(other, "worker-a")
    for run_id in ("run-1", "run-2"):
        await begin(other, run_id, queue="mail")
        await ear.hear()
    await claim(other, "worker-a", limit=1)
    holder = await follow(other, "run-1")
    await turns_of_the_loop(5)
    before = ear.rings
    await holder.succeed()
    await ear.hear()

    assert ear.rings == before + 1


async def test_steps_sleep_and_ends_ring_for_no_process(ear: Ear, other: SqliteStore) -> None:
    """Nor does a run that its process begins and owns: a busy process that shares nothing makes no call more."""
    tree = await begin(other, worker="worker-a")
    await tree.step()
    await tree.suspend(wake_at=other.now() + HOUR)
    await (await begin(other, "run-2", worker="worker-a")).succeed()
    await turns_of_the_loop(5)
    assert ear.rings == 0

    await other.commit([new_tree(other, "run-3")])
    await ear.hear()

    assert ear.rings == 1


async def test_own_writes_do_not_ring(open_store: Opener) -> None:
    """A process knows what it has made due itself."""
    store = await open_store()
    ear = Ear(store)

    await store.commit([new_tree(store, "run-1")])
    await turns_of_the_loop(5)

    assert ear.rings == 0


# -- Engines -----------------------------------------------------------------------------------------------------------


@outlive.workflow
async def rung_reply(name: str) -> str:
    """Waits for one word."""
    return f"{await outlive.wait_for_signal('word', str)} {name}"


async def test_worker_takes_at_once_what_another_process_started_and_sent(tmp_path: Path) -> None:
    """Long before it would have looked by itself."""
    url = f"sqlite:{tmp_path / 'shared.db'}"
    async with (
        outlive.Engine(url, poll_seconds=600) as engine,
        outlive.Engine(url, worker=False, poll_seconds=600) as client,
    ):
        run = await client.start(rung_reply, "you", id="rung")
        await run.signal("word", "hello")

        assert await in_time(engine.get("rung").result()) == "hello you"


@outlive.workflow
async def rung_answer() -> None:
    """Answers one ask."""
    async for ask in outlive.asks("half", int):
        ask.reply(ask.body // 2)
        return


async def test_answer_of_another_process_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the caller would have looked for the first time."""
    monkeypatch.setattr(answers, "FIRST_SECONDS", 600)
    url = f"sqlite:{tmp_path / 'shared.db'}"
    async with (
        outlive.Engine(url, poll_seconds=600),
        outlive.Engine(url, worker=False, poll_seconds=600) as client,
    ):
        assert await in_time(client.ask("halving", "half", 8, start=(rung_answer,))) == 4


async def test_workflow_that_another_process_lets_go_on_goes_on(tmp_path: Path) -> None:
    """It was paused, and the worker would look for pauses in ten minutes."""
    url = f"sqlite:{tmp_path / 'shared.db'}"
    async with (
        outlive.Engine(url, poll_seconds=600) as engine,
        outlive.Engine(url, worker=False, poll_seconds=600) as client,
    ):
        await engine.pause(workflow="rung_reply")
        run = await client.start(rung_reply, "you", id="paused")
        await run.signal("word", "hello")
        await client.resume(workflow="rung_reply")

        assert await in_time(engine.get("paused").result()) == "hello you"
