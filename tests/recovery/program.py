"""A process that dies in the middle of its work: `LEDGER=... WAY=... python -m tests.recovery.program URL`.

Every effect is a line in the ledger. The first process to come to the deadly place dies there, in the way of `WAY`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import outlive
from outlive.types import WorkerOptions

LEDGER = Path(os.environ.get("LEDGER", "ledger"))
WAY = os.environ.get("WAY", "")
WAYS = ("kill in an async step", "exit in a sync step", "segfault in a sync step", "kill while it sleeps")


def write(what: str) -> bool:
    """Add a line to the ledger; whether it is the first of its kind."""
    is_first = not LEDGER.exists() or what not in LEDGER.read_text().splitlines()
    with LEDGER.open("a") as file:
        file.write(f"{what}\n")
    return is_first


def die(way: str) -> None:
    """End this process without any clean-up, if that is the way it should end."""
    if way != WAY:
        return
    if way == "exit in a sync step":
        os._exit(1)
    if way == "segfault in a sync step":
        os.kill(os.getpid(), signal.SIGSEGV)
    os.kill(os.getpid(), signal.SIGKILL)


@outlive.step
async def program_before(name: str) -> str:
    write(f"before {name}")
    return f"{name} 1"


@outlive.step
async def program_async(name: str) -> str:
    if write(f"async {name}"):
        die("kill in an async step")
    return f"{name} 2"


@outlive.step
def program_sync(name: str) -> str:
    if write(f"sync {name}"):
        die("exit in a sync step")
        die("segfault in a sync step")
    return f"{name} 3"


@outlive.step
async def program_after(name: str) -> str:
    if write(f"after {name}"):
        die("kill while it sleeps")
    return f"{name} 4"


@outlive.workflow
async def program_workflow(name: str) -> list[str]:
    done = [await program_before(name), await program_async(name), await program_sync(name)]
    sleep = asyncio.create_task(asyncio.sleep(0.1))
    done.append(await program_after(name))
    await sleep
    done.append(await outlive.wait_for_signal("go", str))
    return done


async def main(url: str) -> None:
    """Start a run, or go on with it, and say what it returns."""
    # No test has the time to wait until such a lease has run out.
    async with outlive.Engine(url, poll_seconds=0.02, worker=WorkerOptions(lease_seconds=3600)) as engine:
        run = await engine.start(program_workflow, "a", id="run-1")
        await run.signal("go", "sent", key="once")
        print(*await run.result(), sep=", ")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
