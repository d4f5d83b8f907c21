"""Handlers of every kind with resources: each is called exactly as a handler of its kind without any."""

from __future__ import annotations

import enum
import threading
from typing import Any

import pytest

import outlive
from outlive.errors import RunFailedError
from outlive.types import WorkerOptions
from tests.engine.support import Place, in_time, stage


class S(enum.Enum):
    """States that want a resource."""

    WRITE = "write"
    DONE = "done"


def machine(name: str) -> outlive.Machine[S, list[str]]:
    """One with a resource."""
    made = outlive.Machine(f"resource_kinds.{name}", S, data=list[str], start=S.WRITE, exits=[S.DONE])
    made.resource("table", open_table)
    return made


async def open_table() -> str:
    """Waits if the test wants."""
    stage.call("set up")
    if stage.values.get("slow"):
        await stage.gate("set-up").pass_through()
    return "kept"


async def write(tx: Any, data: list[str], *, table: str) -> S:
    """On the loop."""
    await tx.execute(f"INSERT INTO {table} (what) VALUES ('async')")
    return S.DONE


def write_sync(tx: Any, data: list[str], *, table: str) -> S:
    """On a thread."""
    stage.call(threading.current_thread().name.startswith("outlive-step-"))
    tx.execute(f"INSERT INTO {table} (what) VALUES ('sync')")
    return S.DONE


on_loop, on_thread = machine("on_loop"), machine("on_thread")
on_loop.state(S.WRITE, transaction=True)(write)
on_thread.state(S.WRITE, transaction=True)(write_sync)


@outlive.step(transaction=True, name="resource_kinds.make")
async def make(tx: Any) -> None:
    """The table of the test."""
    await tx.execute("CREATE TABLE kept (what TEXT)")


@outlive.step(transaction=True, name="resource_kinds.read")
async def read(tx: Any) -> list[str]:
    """What is in it."""
    return [what for (what,) in await tx.fetch("SELECT what FROM kept")]


@outlive.workflow(name="resource_kinds.prepare")
async def prepare() -> None:
    await make()


@outlive.workflow(name="resource_kinds.look")
async def look() -> list[str]:
    return await read()


@pytest.mark.parametrize(("work", "wrote"), [(on_loop, "async"), (on_thread, "sync")], ids=["async", "sync"])
async def test_rows_of_a_handler_with_a_resource_and_a_transaction_are_there(
    meeting_place: Place, work: outlive.Machine[S, list[str]], wrote: str
) -> None:
    """The rows that a handler with a resource writes in its transaction are there, for async and sync handlers."""
    async with meeting_place.engine() as engine:
        await in_time((await engine.start(prepare)).result())
        await in_time((await engine.start(work, [])).result())
        assert [wrote] == await in_time((await engine.start(look)).result())


async def test_no_transaction_is_open_while_a_resource_is_set_up(tmp_path: Any) -> None:
    """Others write meanwhile: SQLite has one writer for all of them."""
    stage.values["slow"] = True
    async with outlive.Engine(f"sqlite:{tmp_path / 'a.db'}", worker=WorkerOptions(tune=False)) as engine:
        await in_time((await engine.start(prepare)).result())
        run = await engine.start(on_loop, [])
        await stage.gate("set-up").reached()
        assert [] == await in_time((await engine.start(look)).result())
        stage.gate("set-up").open()
        assert (await in_time(run.result())).state is S.DONE


def work_on_thread(data: list[str], *, table: str) -> S:
    """Says where it runs and what it is."""
    me = outlive.current_step()
    stage.call((threading.current_thread().name.startswith("outlive-step-"), me.attempt))
    return S.DONE


plain, once = machine("plain"), machine("once")
plain.state(S.WRITE)(work_on_thread)
once.state(S.WRITE, once=True)(work_on_thread)


@pytest.mark.parametrize("work", [plain, once], ids=["plain", "once"])
async def test_a_sync_handler_with_a_resource_runs_on_a_thread_of_the_engine(
    work: outlive.Machine[S, list[str]],
) -> None:
    """`threads_max` counts the threads of sync handlers, as it counts those of sync steps."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        await in_time((await engine.start(work, [])).result())
    assert ["set up", (True, 1)] == stage.calls


def undo_on_thread(data: list[str], *, table: str) -> None:
    """Says where it runs."""
    stage.call(f"undo {table} {threading.current_thread().name.startswith('outlive-step-')}")


class T(enum.Enum):
    """Two states."""

    BOOK = "book"
    FAIL = "fail"
    DONE = "done"


undone = outlive.Machine("resource_kinds.undone", T, data=list[str], start=T.BOOK, exits=[T.DONE])
undone.resource("table", open_table)


@undone.state(T.BOOK, undo=undo_on_thread)
async def book(data: list[str]) -> T:
    """Wants nothing itself."""
    return T.FAIL


@undone.state(T.FAIL)
async def fail(data: list[str]) -> T:
    """Always."""
    raise ValueError("planned")


async def test_a_sync_undo_with_a_resource_runs_on_a_thread_of_the_engine() -> None:
    """Its resource is set up for it alone."""
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        with pytest.raises(RunFailedError, match="planned"):
            await in_time((await engine.start(undone, [])).result())
    assert ["set up", "undo kept True"] == stage.calls


slow = machine("slow")
slow.state(S.WRITE, timeout=0.01)(work_on_thread)


async def test_a_set_up_that_hangs_is_ended_by_the_timeout_of_the_handler() -> None:
    """The set-up goes on for others that want it; this attempt has failed, and its function was not called."""
    stage.values["slow"] = True
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False, grace_seconds=0)) as engine:
        run = await engine.start(slow, [])
        with pytest.raises(RunFailedError, match="timeout"):
            await in_time(run.result())
        assert await run.status() == "failed"
    assert ["set up"] == stage.calls


async def test_outside_of_a_run_an_undo_has_its_resources() -> None:
    """A machine that is called as a function, in a test of the user, rolls back in memory."""
    with pytest.raises(ValueError, match="planned"):
        await undone([])
    assert ["set up", "undo kept False"] == stage.calls
