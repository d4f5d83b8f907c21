"""A store with a little of everything in it, and the statements that damage it."""

from __future__ import annotations

import asyncio
import enum
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

import outlive
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.checkpoints import Checkpoint, CheckpointKind
from outlive.engine.url import store_for
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite.builders import begin, hire

LARGE = "x" * 100_000
"""More than an event holds."""
DAY = 86_400


@outlive.step
async def fsck_make(size: int) -> str:
    return "x" * size


@outlive.workflow
async def fsck_child(size: int) -> str:
    return await fsck_make(size)


@outlive.workflow
async def fsck_tree() -> str:
    outlive.publish(stage="packing")
    await outlive.emit("words", "packing")
    first = await fsck_child(10)
    return first + await fsck_child(len(LARGE))


@outlive.workflow
async def fsck_fail() -> None:
    raise ValueError("planned, with a reason")


@outlive.workflow
async def fsck_wait() -> str:
    async with asyncio.timeout(DAY):
        await outlive.wait_for_signal("go", str)
        return await outlive.wait_for_signal("again", str)


@outlive.workflow
async def fsck_asked() -> None:
    ask = await anext(outlive.asks("add", int))
    ask.reply(ask.body + 1)


@outlive.workflow
async def fsck_relay(left: int) -> str:
    """Goes on as a new generation."""
    made = await fsck_make(left)
    if left:
        outlive.continue_as_new(left - 1)
    return made


@outlive.workflow
async def fsck_rest() -> str:
    return await outlive.wait_for_signal("never", str)


@outlive.workflow
async def fsck_start() -> None:
    apart = await outlive.start(fsck_rest, id="apart", detached=True)
    await apart.result()


@outlive.step
async def fsck_double(number: int) -> int:
    return number * 2


class FsckState(enum.Enum):
    """One that goes round, and an end."""

    TURN = "turn"
    END = "end"


fsck_wheel = outlive.Machine(
    "fsck_wheel", FsckState, data=str, start=FsckState.TURN, exits=[FsckState.END], snapshot_after=5
)


@fsck_wheel.workflow(FsckState.TURN)
async def fsck_turn(data: str) -> tuple[FsckState, str]:
    """With a child."""
    data += await fsck_child(10)
    return (FsckState.TURN if len(data) < 100 else FsckState.END), data


async def fill(url: str) -> None:
    """A finished tree, one with a snapshot, one of two generations, a failed one, some that wait for this and that, a
    batch, a parked, a new and an owned one."""
    async with outlive.Engine(url) as engine:
        await (await engine.start(fsck_tree, id="tree", tags={"shop": "north", "kind": "big one"})).result()
        await (await engine.start_batch(fsck_double, range(5), id="batch")).result()
        await (await engine.start(fsck_wheel, "", id="wheel")).result()
        await (await engine.start(fsck_relay, 1, id="relay")).result()
        failing = await engine.start(fsck_fail, id="failed")
        waiting = [await engine.start(it, id=name) for it, name in ((fsck_wait, "waits"), (fsck_start, "starter"))]
        await engine.signal("waits", "go", "now", key="key-1")
        await engine.ask("asked", "add", 1, start=(fsck_asked,), key="key-3")
        runs: list[outlive.types.RunHandle[Any]] = [failing, *waiting]
        for run, status in zip(runs, ("failed", "waiting", "waiting"), strict=True):
            while (await run.status()) != status:  # noqa: ASYNC110 (a store has no event)
                await asyncio.sleep(0.005)
        while "again" not in await waiting[0].why():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    async with outlive.Engine(url, worker=False) as client:
        await client.start(fsck_tree, id="new")
        await client.signal("waits", "later", LARGE + "!", key="key-2")
        await client.checkpoints.append("import-1", Checkpoint(4, "IMPORT", "task", CheckpointKind.CURSOR, b"17", 2))
        await client.checkpoints.append("import-1", Checkpoint(9, "DONE"))
        await client.checkpoints.append("tree", Checkpoint(4, "EMPTY", output=b""))
    store = open_at(url)
    await store.open()
    await hire(store, "anvil", lease_seconds=DAY)
    await (await begin(store, "owned", worker="anvil", nonce=7)).step("a")
    await (await begin(store, "parked", nonce=8)).park()
    await store.close()


def open_at(url: str) -> Store:
    """The store at this place, not opened yet."""
    return store_for(url, clock=SystemClock().now)


TABLES = (
    "runs",
    "events",
    "inbox_keys",
    "inbox",
    "items",
    "blobs",
    "workers",
    "tags",
    "waits",
    "checkpoints",
    "streams",
    "stream_chunks",
)


class World:
    """One copy of the store, which a test may damage; `t` stands for a table in its statements, as `{runs}`."""

    kind = ""
    url = ""

    def damage(self, statement: str) -> None:
        """Change something behind everybody's back."""
        assert self.execute(statement + " RETURNING 1"), "nothing was damaged"

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement; `?` is a value."""
        raise NotImplementedError

    def journal(self, run_id: str) -> int:
        """The handle of a tree."""
        ((journal,),) = self.execute("SELECT journal FROM {runs} WHERE id = ?", run_id)
        return int(journal)


class SqliteWorld(World):
    """A file."""

    kind = "sqlite"

    def __init__(self, source: Path, folder: Path) -> None:
        for file in source.parent.glob(source.name + "*"):
            shutil.copy(file, folder)
        self._path = folder / source.name
        self.url = f"sqlite:{self._path}"

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """See `World`."""
        connection = apsw.Connection(str(self._path))
        try:
            return list(connection.execute(_filled(statement, lambda name: f"outlive_{name}"), values))
        finally:
            connection.close()


class PostgresWorld(World):
    """A database that is put back as it was: much faster than to copy it."""

    kind = "postgres"

    def __init__(self, database: str, server: PostgresServer) -> None:
        self._server, self._database = server, database
        self.url = server.store_url(database)
        self._restoring = ""
        self._server.execute("CREATE SCHEMA saved", database=database)
        for table in TABLES:
            server.execute(f"CREATE TABLE saved.{table} AS TABLE outlive.{table}", database=database)
            found = server.execute(
                "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
                f"WHERE table_schema = 'outlive' AND table_name = '{table}' AND is_generated = 'NEVER'",
                database=database,
            )
            columns = found[0][0]
            self._restoring += (
                f"DELETE FROM outlive.{table}; INSERT INTO outlive.{table} ({columns}) OVERRIDING SYSTEM VALUE "
                f"SELECT {columns} FROM saved.{table}; "
            )

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """See `World`."""
        text = _filled(statement, lambda name: f"outlive.{name}")
        for value in values:
            text = text.replace("?", _literal(value), 1)
        return self._server.execute(text, database=self._database)

    def restore(self) -> None:
        """Take all damage back."""
        self._server.execute(f"DO $$ BEGIN {self._restoring} END $$", database=self._database)


def _filled(statement: str, name: Callable[[str], str]) -> str:
    for table in TABLES:
        statement = statement.replace(f"{{{table}}}", name(table))
    return statement


def _literal(value: Any) -> str:
    match value:
        case bytes():
            return f"'\\x{value.hex()}'::bytea"
        case str():
            return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case None:
            return "NULL"
        case _:
            return str(value)


def each_bit(value: int | bytes) -> Iterator[int | bytes]:
    """A value with each of its bits flipped in turn."""
    size = value.bit_length() + 1 if isinstance(value, int) else len(value) * 8
    return (_flipped(value, bit) for bit in range(size))


def flip(value: Any, chance: random.Random) -> Any:
    """A value with one of its bits flipped; an integer has as many as it needs, and one more."""
    match value:
        case bool():
            return not value
        case int():
            return _flipped(value, chance.randrange(value.bit_length() + 1))
        case str():
            return _flip_text(value.encode(), chance)
        case _:
            return _flipped(value, chance.randrange(len(value) * 8))


def _flip_text(data: bytes, chance: random.Random) -> str:
    """Some bit that leaves it a text."""
    while True:
        try:
            text: str = _flipped(data, chance.randrange(len(data) * 8)).decode()
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text


def _flipped(value: Any, bit: int) -> Any:
    if isinstance(value, int):
        return value ^ (1 << bit)
    data = bytearray(value)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)
