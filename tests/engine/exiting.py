"""A program that ends while a step of it runs in a process, and while that process has one of its own.

    python exiting.py FILE: the step writes FILE when both are there.

It does not stop its engine: that is what a program does that ends because of an error somewhere else.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import outlive


@outlive.step(process=True)
def wait_with_a_child(file: str) -> None:
    """Start a process that outlives this step unless it is killed."""
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    Path(file).touch()
    time.sleep(600)


@outlive.workflow
async def exiting(file: str) -> None:
    """Wait for the step."""
    await wait_with_a_child(file)


async def main(file: str) -> None:
    """Leave when the step is under way."""
    engine = await outlive.Engine("memory:").__aenter__()
    await engine.start(exiting, file)
    while not Path(file).exists():  # noqa: ASYNC110, ASYNC240 (no event announces it)
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
