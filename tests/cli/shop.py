"""What the worker processes of these tests run: steps that say when they begin and end, and wait for a file."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path

import outlive

FOLDER = Path(os.environ.get("SHOP", "."))


def tell(line: str) -> None:
    """One line for the test, with the process and the time."""
    with (FOLDER / "ledger").open("a") as file:
        file.write(f"{line} {os.getpid()} {time.time()}\n")


@outlive.step
async def pack(name: str) -> str:
    """Begins, and ends when the gate is open."""
    tell(f"begin {name}")
    while not (FOLDER / "gate").exists():  # noqa: ASYNC110 (another process opens it)
        await asyncio.sleep(0.01)
    tell(f"end {name}")
    return name


@outlive.workflow
async def order(name: str) -> str:
    """Two steps."""
    return await pack(f"{name}-1") + " " + await pack(f"{name}-2")


@outlive.step
async def block() -> None:
    """Stalls the event loop of its worker."""
    tell("begin block")
    time.sleep(1000)  # noqa: ASYNC251 (that is the point)


@outlive.workflow
async def spin() -> None:
    """Never gives way."""
    tell("begin spin")
    while True:
        pass


@outlive.workflow
async def stall() -> None:
    """One such step."""
    await block()


@outlive.step
async def wait_in_thread() -> None:
    """Leaves a thread behind that no worker can stop."""
    tell("begin thread")
    await asyncio.to_thread(threading.Event().wait)


@outlive.workflow
async def stick() -> None:
    """One such step."""
    await wait_in_thread()


@outlive.step
async def exit_beside() -> None:
    """Its library wants to end the process, in a task of its own."""
    tell("begin exit")
    async with asyncio.TaskGroup() as group:
        group.create_task(_exit())


async def _exit() -> None:
    raise SystemExit(3)


@outlive.step
async def interrupt() -> None:
    """Raises what Ctrl-C raises."""
    tell("begin interrupt")
    raise KeyboardInterrupt


@outlive.workflow
async def fall(how: str) -> None:
    """One of these steps, or it falls itself."""
    if how == "body":
        raise KeyboardInterrupt
    await (exit_beside if how == "task" else interrupt)()


@outlive.step
async def terminate() -> None:
    """Stops the worker that it runs on."""
    tell("begin terminate")
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(1000)


@outlive.workflow
async def poison() -> None:
    """One such step."""
    await terminate()
