"""`engine.sync`: every verb from a thread without a loop, and whole programs without one."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

import outlive
from outlive.engine.any_engine import SyncEngine
from outlive.engine.sync import Blocking, Bridge, Host
from outlive.errors import ConfigurationError, EngineClosedError, ResultTimeoutError, RunNotFoundError, StoreError
from outlive.errors.program import NotDurableError, SyncOnLoopError
from outlive.types import RunHandle
from tests.engine.support import Place, in_time, note, stage

pytestmark = pytest.mark.any_store

T = TypeVar("T")


@outlive.workflow
async def greeting(name: str) -> str:
    return f"Hello, {await note(name)}!"


@outlive.workflow
async def patient() -> str:
    word: str = await outlive.wait_for_signal("go")
    return word


@outlive.workflow
async def tempted() -> str:
    engine: outlive.Engine = stage.values["engine"]
    try:
        engine.sync.cancel("other")
    except NotDurableError as error:
        return str(error)
    return "it did"


def threads_since(before: set[threading.Thread]) -> list[str]:
    """The threads of sync engines that began after these."""
    return [each.name for each in set(threading.enumerate()) - before if each.name == "outlive-sync"]


async def on_thread(what: Callable[[], T]) -> T:
    """What sync code gives on a thread of its own."""
    return await in_time(asyncio.to_thread(what))


# -- Beside a loop -----------------------------------------------------------------------------------------------------


async def test_a_thread_can_do_everything(engine: outlive.Engine) -> None:
    """Start, look, signal, wait, list, cancel; handles are blocking too."""

    def work() -> list[Any]:
        sync = engine.sync
        run = sync.start(greeting, "world", id="run-1")
        waiting = sync.start(patient, id="run-2", tags={"kind": "slow"})
        sync.signal("run-2", "go", "gone")
        got: str = run.result(timeout=10)
        answer = [got, waiting.result(), run.status(), run.id, len(run.history()), run.info().workflow]
        stuck = sync.start(patient, id="run-3")
        stuck.cancel(reason="enough")
        with pytest.raises(outlive.errors.RunCancelledError, match="enough"):
            stuck.result()
        return [*answer, sync.get("run-2").why(), [each.id for each in sync.list(tags={"kind": "slow"})]]

    *answer, why, listed = await on_thread(work)

    assert answer == ["Hello, world!", "gone", "succeeded", "run-1", 3, "greeting"]
    assert "succeeded" in why
    assert listed == ["run-2"]


async def test_error_of_a_verb_is_raised_in_the_calling_thread(engine: outlive.Engine) -> None:
    """An error of a verb is raised in the thread that called it, with its type."""

    def work() -> None:
        with pytest.raises(RunNotFoundError):
            engine.sync.cancel("missing")
        run = engine.sync.start(patient)
        with pytest.raises(ResultTimeoutError):
            run.result(timeout=0.01)
        run.signal("go", "now")
        assert run.result() == "now"

    await on_thread(work)


async def test_many_threads_share_an_engine(engine: outlive.Engine) -> None:
    """Each gets its own answers."""
    results = await asyncio.gather(
        *(on_thread(lambda it=number: engine.sync.start(greeting, str(it)).result()) for number in range(20))  # type: ignore[misc]
    )

    assert results == [f"Hello, {number}!" for number in range(20)]


async def test_on_the_thread_of_the_loop_it_says_what_to_do(engine: outlive.Engine) -> None:
    """A call would wait for itself, for ever."""
    with pytest.raises(SyncOnLoopError, match=r"await engine\.start"):
        engine.sync.start(greeting, "world")


async def test_in_a_workflow_it_is_refused(engine: outlive.Engine) -> None:
    """Like every verb of an engine."""
    stage.values["engine"] = engine

    assert "an engine's verb" in await in_time((await engine.start(tempted)).result())


async def test_a_sync_step_can_use_it(engine: outlive.Engine) -> None:
    """It runs on a thread, and the loop is free."""
    stage.values["engine"] = engine

    assert await in_time((await engine.start(starting)).result()) == "Hello, step!"


@outlive.step
def start_from_step() -> str:
    """Starts a run and waits for it."""
    engine: outlive.Engine = stage.values["engine"]
    return engine.sync.start(greeting, "step").result()


@outlive.workflow
async def starting() -> str:
    return await start_from_step()


async def test_an_engine_that_is_not_running_says_so(place: Place) -> None:
    """Before and after; and a caller that waits when it stops gets the error."""
    engine = place.engine()

    def use() -> None:
        with pytest.raises(EngineClosedError):
            engine.sync.get("run-1").why()

    await on_thread(use)
    waiting = threading.Event()

    def wait() -> None:
        run = engine.sync.start(patient, id="run-1")
        waiting.set()
        with pytest.raises(EngineClosedError):
            run.result()

    async with engine:
        task = asyncio.create_task(asyncio.to_thread(wait))
        await in_time(asyncio.to_thread(waiting.wait))
    await in_time(task)
    await on_thread(use)


async def test_every_async_verb_has_a_sync_twin_with_the_same_help(engine: outlive.Engine) -> None:
    """The sync engine has every async verb of an engine and of a run handle, found by name, with its docstring."""
    for cls, blocking in ((outlive.Engine, engine.sync), (RunHandle, await on_thread(lambda: engine.sync.get("x")))):
        verbs = [name for name, _ in inspect.getmembers(cls, inspect.iscoroutinefunction) if name[0] != "_"]
        assert len(verbs) > 5
        for name in verbs:
            assert getattr(blocking, name).__doc__ == inspect.getdoc(getattr(cls, name)) is not None
            assert name in dir(blocking)
    assert engine.sync.limits is engine.limits
    with pytest.raises(AttributeError):
        _ = engine.sync.no_such_verb


class Batch:
    """What a later verb may give: things with async methods, and streams."""

    __module__ = "outlive._kernel.client.later"

    def __init__(self) -> None:
        self.is_closed = False

    async def total(self) -> int:
        """A verb."""
        return 3

    async def items(self) -> AsyncIterator[int]:
        """A stream."""
        try:
            for number in range(3):
                yield number
        finally:
            self.is_closed = True


async def test_streams_and_things_of_later_verbs_are_blocking_too(engine: outlive.Engine) -> None:
    """Whatever has async methods, alone or in a list; a stream that is left early is closed."""
    batch = Batch()

    def work() -> list[Any]:
        bridge = Bridge(engine)
        (one,) = bridge.call(lambda: [batch])
        assert isinstance(one, Blocking)
        all_items = list(one.items())
        assert batch.is_closed
        batch.is_closed = False
        stream = one.items()
        first = next(stream)
        stream.close()
        return [one.total(), all_items, first, batch.is_closed]

    assert await on_thread(work) == [3, [0, 1, 2], 0, True]


# -- Without a loop ----------------------------------------------------------------------------------------------------


def test_a_program_without_a_loop(tmp_path: Path) -> None:
    """The engine has a thread of its own while the block lasts, and runs workflows."""
    url = f"sqlite:{tmp_path}/sync.db"
    before = set(threading.enumerate())
    with outlive.Engine(url, poll_seconds=0.01).sync as engine:
        assert engine.start(greeting, "world", id="run-1").result(timeout=20) == "Hello, world!"
        assert threads_since(before) == ["outlive-sync"]
    assert threads_since(before) == []
    with pytest.raises(EngineClosedError):
        engine.get("run-1").why()
    with outlive.Engine(url, worker=False).sync as client:
        assert client.get("run-1").result() == "Hello, world!"


def test_an_engine_can_be_entered_again() -> None:
    """Not twice at a time."""
    engine = outlive.Engine("memory:", worker=False)
    for _ in range(2):
        with engine.sync as sync:
            assert isinstance(sync, SyncEngine)
            with pytest.raises(ConfigurationError, match="running already"):
                engine.sync.__enter__()
            assert sync.list() == []


def test_two_threads_cannot_enter_one_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two threads that enter an engine at the same moment is refused, and the engine works in the other."""
    engine = outlive.Engine(f"sqlite:{tmp_path}/sync.db")
    together = threading.Barrier(2)
    # Called on the way in: both threads are there at once.
    monkeypatch.setattr("outlive.engine.engine.refuse_while_imported", lambda: together.wait(20))
    seen: list[str] = []

    def enter() -> None:
        try:
            with engine.sync as sync:
                seen.append(sync.start(greeting, "world").result(timeout=20))
                together.wait(20)
        except ConfigurationError as error:
            seen.append(str(error))
            together.wait(20)

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert any("running already" in text for text in seen)
    assert "Hello, world!" in seen
    monkeypatch.undo()
    with engine.sync as sync:
        assert sync.start(greeting, "again").result(timeout=20) == "Hello, again!"


def test_a_stream_that_outlives_its_engine_can_be_closed() -> None:
    """A stream that outlives its engine can be closed without an error."""
    with outlive.Engine("memory:").sync as engine:
        stream = engine.start_batch(note, ["a", "b"]).items()
        assert next(stream).index == 0

    stream.close()


class LateHost(Host):
    """Its thread has begun and does nothing until a thread waits for its end."""

    def __init__(self, engine: outlive.Engine) -> None:
        super().__init__(engine)
        self.may_begin = threading.Event()

    def live(self) -> None:
        assert self.may_begin.wait(20)
        super().live()


def test_an_engine_that_is_left_before_it_was_entered_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the thread of the engine has not even a loop."""
    host = LateHost(outlive.Engine("memory:", worker=False))
    join = host.thread.join

    def join_begun() -> None:
        host.may_begin.set()
        join(20)

    monkeypatch.setattr(host.thread, "join", join_begun)
    host.thread.start()

    host.stop()

    assert not host.thread.is_alive()


def test_error_at_the_start_is_raised_in_the_calling_thread(tmp_path: Path) -> None:
    """An error at the start of a sync engine is raised where it was entered, and no thread is left."""
    before = set(threading.enumerate())
    with pytest.raises(StoreError), outlive.Engine(f"sqlite:{tmp_path}/no/such/folder/x.db").sync:
        pass
    assert threads_since(before) == []


def test_a_thread_that_has_just_ended_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has closed its loop in the meantime can be stopped without an error."""
    host = Host(outlive.Engine(f"sqlite:{tmp_path}/no/such/folder/x.db"))
    with pytest.raises(StoreError):
        host.start()
    monkeypatch.setattr(host.thread, "is_alive", lambda: True)

    host.stop()


def test_exception_in_the_block_stops_the_engine() -> None:
    """An exception in the block of a sync engine stops the engine and reaches the caller."""
    before = set(threading.enumerate())
    with pytest.raises(ZeroDivisionError), outlive.Engine("memory:").sync:
        _ = 1 / 0
    assert threads_since(before) == []


INTERRUPTED = """
import outlive
from tests.sync.test_sync import patient
try:
    with outlive.Engine("sqlite:{path}").sync as engine:
        run = engine.start(patient, id="run-1")
        print("waiting", flush=True)
        run.result()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


async def test_ctrl_c_ends_a_wait_and_the_engine(tmp_path: Path) -> None:
    """At once; the run is left for others."""
    path = tmp_path / "sync.db"
    program, paths = INTERRUPTED.format(path=path), os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
    )
    try:
        assert child.stdout is not None
        assert await in_time(child.stdout.readline()) == b"waiting\n"
        child.send_signal(signal.SIGINT)

        assert await in_time(child.stdout.read()) == b"interrupted\n"
        assert await in_time(child.wait()) == 0
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    async with outlive.Engine(f"sqlite:{path}", poll_seconds=0.01) as engine:
        await engine.signal("run-1", "go", "on")
        assert await in_time(engine.get("run-1").result()) == "on"
