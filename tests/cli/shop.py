"""What the worker processes of these tests run: steps that say when they begin and end, and wait for a file."""

from __future__ import annotations

import asyncio
import os
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
    """Leaves a thread behind that nobody can stop."""
    tell("begin thread")
    await asyncio.to_thread(threading.Event().wait)


@outlive.workflow
async def stick() -> None:
    """One such step."""
    await wait_in_thread()
