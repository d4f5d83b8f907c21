"""A program that ends while a step of it runs in a process, and while that process has one of its own.

    python exiting.py FILE: the step writes FILE when both are there.

Nothing stops its engine, which runs on a daemon thread: so does that of a program whose main thread fails.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from pathlib import Path

import outlive


@outlive.step(process=True)
def wait_with_a_child(file: str) -> None:
    """Start a process that outlives this step unless it is killed."""
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
    Path(file).touch()
    time.sleep(60)


@outlive.workflow
async def exiting(file: str) -> None:
    """Wait for the step."""
    await wait_with_a_child(file)


async def work(file: str) -> None:
    """Run for ever, on a thread that is never joined."""
    async with outlive.Engine("memory:") as engine:
        await (await engine.start(exiting, file)).result()


def main(file: str) -> None:
    """Leave when the step is under way."""
    threading.Thread(target=lambda: asyncio.run(work(file)), daemon=True).start()
    while not Path(file).exists():
        time.sleep(0.01)


if __name__ == "__main__":
    main(sys.argv[1])
