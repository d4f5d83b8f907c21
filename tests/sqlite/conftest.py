"""Stores on files, and children that use them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from outlive._kernel.store.sqlite import SqliteStore, migrate
from outlive._kernel.store.sqlite.file import create_file
from outlive.testing.clock import ManualClock
from tests.sqlite.disk import WatchedDisk, watched_disk

PROGRAM = Path(__file__).with_name("child.py")
PATIENCE_SECONDS = 60.0


class Child:
    """A process of its own, talked to line by line; what it forks ends with it."""

    def __init__(self, job: str, *arguments: object) -> None:
        command = [sys.executable, str(PROGRAM), job, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def say(self, words: str = "go") -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        """Wait for its next line; empty when it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def hear_all(self) -> list[str]:
        """Wait for its end; everything it has said since."""
        output, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0
        return output.splitlines()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """End it without a chance to say goodbye, and wait until the kernel has cleaned up."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture(autouse=True)
def new_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a file comes to be is the point here: it is empty, and migrated."""
    monkeypatch.setattr(migrate, "create_file", create_file)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file will be."""
    return tmp_path / "outlive.db"


@pytest.fixture
def clock() -> ManualClock:
    """The clock of the stores."""
    return ManualClock()


@pytest_asyncio.fixture
async def open_store(path: Path, clock: ManualClock) -> AsyncIterator[Callable[[], Awaitable[SqliteStore]]]:
    """Opens stores on the file, and closes them after the test."""
    stores = []

    async def open_one() -> SqliteStore:
        store = SqliteStore(path, clock=clock)
        await store.open()
        stores.append(store)
        return store

    yield open_one
    for store in stores:
        await store.close()


@pytest_asyncio.fixture
async def store(open_store: Callable[[], Awaitable[SqliteStore]]) -> SqliteStore:
    """A store on the file."""
    return await open_store()


@pytest.fixture
def disk() -> Iterator[WatchedDisk]:
    """What the store of this test lies on."""
    with watched_disk() as disk:
        yield disk


@pytest_asyncio.fixture
async def on_disk(path: Path, clock: ManualClock, disk: WatchedDisk) -> AsyncIterator[SqliteStore]:
    """A store whose disk is watched."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def spawn() -> Iterator[Callable[..., Child]]:
    """Starts children, and ends the children that still run."""
    children = []

    def spawn_one(job: str, *arguments: object) -> Child:
        child = Child(job, *arguments)
        children.append(child)
        return child

    yield spawn_one
    for child in children:
        child.kill()
