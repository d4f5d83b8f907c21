"""What any test may ask for."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from zlib import adler32

import pytest

from outlive._kernel.store.sqlite import SqliteStore, migrate
from outlive._kernel.store.sqlite.file import create_file
from outlive_conformance.servers.etcd import EtcdNotFoundError, EtcdServer
from outlive_conformance.servers.pgbouncer import PgBouncer, PgBouncerNotFoundError
from outlive_conformance.servers.postgres import PostgresNotFoundError, PostgresServer
from proof.postgres_place import PostgresPlace
from tests.warm_start import WarmPopen

ROOT = Path(__file__).parents[1]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As `nohup make test &` has it. A child inherits that, and could not be interrupted; it does not inherit a handler.
    signal.signal(signal.SIGINT, lambda *_: None)


POSTGRES = {
    "shared_buffers": "32MB",
    # What is done now and then, in a time of its own, is done for no test.
    "autovacuum_naptime": "1d",
    "checkpoint_timeout": "1d",
    # No test copies this server.
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""Settings of the server."""

MEMORY_DISK_BYTES_MIN = 2 << 30
"""The server has a tenth of it."""

FOLDERS = count()
"""Their numbers."""

PART, PARTS = map(int, os.environ.pop("OUTLIVE_PART", "0/1").split("/"))
"""Which part of the test files is ours, where `.ci/parts` runs several processes; tests of tests see none of it."""


TOGETHER = {ROOT / "tests" / "e2e", ROOT / "tests" / "integrations"}
"""Folders of which all files are in the same part: it starts the only browser, and imports each framework once."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A file of another part is not even imported."""
    together = collection_path.parent if collection_path.parent in TOGETHER else collection_path
    name = together.relative_to(ROOT).as_posix()
    is_other = collection_path.name.startswith("test_") and adler32(name.encode()) % PARTS != PART
    return is_other or None


gc.disable()  # While tests are collected almost everything is kept: looking for garbage costs a third of the time.


def pytest_collection_finish() -> None:
    """From now on there is garbage, but none in what was collected."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on several stores runs on PostgreSQL in `make slow`; in `make test` only if the store is its point, and
    on a file unless any store will do and it runs in memory too.
    """
    names = {item.nodeid for item in items}
    # Processes that share the tests, and notes about them, know a test by its name.
    if unsteady := [name for name in names if " at 0x" in name]:
        raise pytest.UsageError(f"give these parameters ids: an address is another one in every process: {unsteady}")
    for item in items:
        call = getattr(item, "callspec", None)  # Only a test with parameters has one.
        if call is None or item.get_closest_marker("every_store") is not None:
            continue
        later = {"postgres"}
        if item.get_closest_marker("any_store") is not None and item.nodeid.replace("sqlite", "memory") in names:
            later.add("sqlite")
        if any(isinstance(value, str) and value in later for value in call.params.values()):
            item.add_marker("slow")
    items.sort(key=uses_a_browser)


def uses_a_browser(item: pytest.Item) -> bool:
    """These come last: from the first of them on, playwright has an event loop running in this thread, and no test can
    run one of its own any more."""
    return "browser" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def migrated_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new file of SQLite is a copy of one that was migrated: all migrations take longer than many a test.

    Not in other processes, and not in `tests/sqlite`, where the file is the point.
    """
    path = tmp_path_factory.mktemp("migrated") / "new.db"
    asyncio.run(_make_file(path))
    content = path.read_bytes()

    def create_migrated(path: Path) -> None:
        # Linked when it is whole: another process, or another store of this one, may be creating it too.
        draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        with suppress(OSError):  # There is one, or none can be here: that is said below.
            if path.parent.is_dir() and not path.exists():
                draft.touch(0o600)
                draft.write_bytes(content)
                os.link(draft, path)
        draft.unlink(missing_ok=True)
        create_file(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "create_file", create_migrated)
        yield


@pytest.fixture(scope="session", autouse=sys.platform == "linux")
def warm_starts() -> Iterator[None]:
    """Programs of ours that tests start are copies of a process that has imported Outlive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", WarmPopen)
        yield
    if WarmPopen.nursery is not None:
        WarmPopen.nursery.close()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder for one test, as pytest has it. Only its number comes from here: pytest looks for the next free one
    among the folders of all tests, and with thousands of them that takes longer than many a test."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    return tmp_path_factory.mktemp(f"{name}{next(FOLDERS)}", numbered=False)


async def _make_file(path: Path) -> None:
    store = SqliteStore(path, clock=lambda: 0)
    await store.open()
    await store.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests that ask; without fsync, because the plug of this machine is not pulled.

    Make a database or a schema of your own in it. A test that stops or kills its server starts one of its own.
    """
    with TemporaryDirectory(prefix="outlive-tests-", dir=_memory_disk()) as folder:
        Path(folder).chmod(0o711)  # The server is another user's, if this is root.
        server = PostgresServer(fsync=False, settings=POSTGRES, data=Path(folder) / "data")
        try:
            server.start()
        except PostgresNotFoundError as error:
            if os.environ.get("CI"):
                pytest.fail(str(error))
            pytest.skip(str(error))
        yield server
        server.remove()


def _memory_disk() -> Path | None:
    """Where files cost least: tests make many tables and indexes, and each is a file. None: on a real disk."""
    disk = Path("/dev/shm")
    return disk if disk.is_dir() and disk_usage(disk).free >= MEMORY_DISK_BYTES_MIN else None


@pytest.fixture(scope="module")
def postgres_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database for the tests of one module; its name."""
    name = postgres_server.create_database()
    yield name
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def shared_place(postgres_server: PostgresServer) -> Iterator[PostgresPlace]:
    """The schema of `postgres_url`; a test that begins several times empties it before each."""
    with PostgresPlace(postgres_server, postgres_server.create_database("place"), schema="place") as place:
        yield place


@pytest.fixture
def postgres_place(shared_place: PostgresPlace) -> str:
    """The database of `postgres_url`; its name."""
    return shared_place.database


@pytest.fixture
def postgres_url(shared_place: PostgresPlace) -> str:
    """An empty schema for one test: it is made once, which takes long, and emptied for each."""
    return shared_place.empty()


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    """A PgBouncer in front of the server, in transaction mode; two connections to each database, so that they are
    given from hand to hand all the time.
    """
    try:
        bouncer = PgBouncer(postgres_server.url(), pool_size=2)
    except PgBouncerNotFoundError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    with bouncer:
        yield bouncer


@pytest.fixture
def pgbouncer_url(pgbouncer: PgBouncer, postgres_url: str, postgres_place: str) -> str:
    """The empty place of `postgres_url`, through PgBouncer."""
    return f"{pgbouncer.url(postgres_place)}?{postgres_url.partition('?')[2]}&pgbouncer=true"


@pytest.fixture(scope="session")
def etcd_program() -> None:
    """An etcd that can be started: where CI is set it must be there, elsewhere its tests are skipped."""
    try:
        EtcdServer()
    except EtcdNotFoundError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
