"""What the processes of `test_forked_processes` do: `python -m tests.sync.forks JOB URL`. They talk by lines."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

import outlive
from outlive.types import WorkerOptions

PATIENCE_SECONDS = 20


@outlive.step
async def work(name: str) -> str:
    """Never ends in the process that is killed, where it says that it has begun."""
    if os.environ.get("OUTLIVE_HOLD"):
        say("working")
        await asyncio.Event().wait()
    return name


@outlive.workflow
async def task(name: str) -> str:
    return await work(name)


@outlive.workflow(signals={"typed": int})
async def pause(name: str) -> str:
    await outlive.wait_for_signal("go")
    return await work(name)


def say(*words: object) -> None:
    """One line for the test; whole, whichever processes write."""
    os.write(1, (" ".join(str(word).replace("\n", " ") for word in words) + "\n").encode())


def new_engine(url: str, **options: Any) -> outlive.Engine:
    """An engine whose lease does not run out in the time of a test."""
    return outlive.Engine(
        url, worker=WorkerOptions(lease_seconds=10_000, grace_seconds=0.05), poll_seconds=0.01, **options
    )


def wait_for(child: int) -> int:
    """The exit code of a forked child."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def misuse(url: str) -> None:
    """Fork beside a running engine; in the child use every verb, its handles and `sync`, close it, and end."""
    engine = new_engine(url)
    with engine.sync as sync:
        run, handle = sync.start(pause, "kept", id="run-1"), engine.get("run-1")
        child = os.fork()
        if not child:
            _use(engine, run, handle)
            return  # The way out that frees everything, through the end of the block.
        code = wait_for(child)
        run.signal("go")
        say("parent", code, run.result(timeout=PATIENCE_SECONDS))
        say("parent", sync.start(task, "later").result(timeout=PATIENCE_SECONDS))


def _use(engine: outlive.Engine, run: Any, handle: outlive.types.RunHandle[Any]) -> None:
    calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lambda: engine.start(task, "child"),
        lambda: engine.signal("run-1", "go"),
        lambda: engine.cancel("run-1"),
        lambda: engine.resume("run-1"),
        lambda: engine.history("run-1"),
        engine.list,
        handle.result,
        handle.why,
        lambda: handle.signal("go"),
        lambda: handle.signal("typed", 1),
        lambda: handle.approve("refund", by="ann"),
        handle.approvals,
    ]
    for call in calls:
        try:
            say("child", "did it", asyncio.run(call()))
        except outlive.errors.OutliveError as error:
            say("child", type(error).__name__, error)
    for use in (run.result, lambda: engine.sync.start(task, "child")):
        try:
            say("child", "did it", use())
        except outlive.errors.OutliveError as error:
            say("child", type(error).__name__, error)
    asyncio.run(engine.__aexit__(None, None, None))
    gc.collect()


def preload(url: str) -> None:
    """Make the engine, fork two workers as a web server does, and enter it in each of them."""
    engine = new_engine(url)
    children = []
    for name in ("first", "second"):
        child = os.fork()
        if not child:
            with engine.sync as sync:
                run = sync.start(task, name)
                say(name, run.result(timeout=PATIENCE_SECONDS), run.id[-18:])
            os._exit(0)
        children.append(child)
    say("parent", *[wait_for(child) for child in children])


def prepare_then_fork(url: str) -> None:
    """Enter the engine and leave it, fork, and enter it again in the child."""
    engine = new_engine(url)
    with engine.sync as sync:
        say("parent", sync.start(task, "before", id="run-1").result(timeout=PATIENCE_SECONDS))
    child = os.fork()
    if not child:
        with engine.sync as sync:
            say("child", sync.get("run-1").result(), sync.start(task, "after").result(timeout=PATIENCE_SECONDS))
        os._exit(0)
    say("parent", wait_for(child))


def orphan(url: str) -> None:
    """Run a step, and fork a child that lives on when this process is killed."""
    context = multiprocessing.get_context("fork")
    with new_engine(url).sync as sync:
        sync.start(task, "orphan", id="run-1")
        child = context.Process(target=time.sleep, args=(100 * PATIENCE_SECONDS,), daemon=True)
        child.start()
        say("child", child.pid)
        time.sleep(PATIENCE_SECONDS)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
