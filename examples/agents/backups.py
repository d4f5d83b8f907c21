"""What the agents in this folder work on, and how they are started: the same for all three frameworks.

`ledger.txt` says what was really done. With PAUSE=60 deleting takes a minute: time to kill the process in the middle
of it.
"""

import asyncio
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from model_server import ModelServer

import outlive

LEDGER = Path("ledger.txt")


async def find() -> list[str]:
    _write("listed")
    return ["2019.tar", "2024.tar"]


async def delete(name: str) -> str:
    _write(f"deleting {name}")
    await asyncio.sleep(float(os.environ.get("PAUSE", "0")))
    _write(f"deleted {name}")
    return f"deleted {name}"


def _write(line: str) -> None:
    with LEDGER.open("a", encoding="utf-8") as ledger:
        ledger.write(f"{line}\n")


async def main(workflow: Any) -> None:
    """Start the run, or go on with it, and show what the model writes as it writes it."""
    with ExitStack() as stack:
        if "OPENAI_BASE_URL" not in os.environ:
            os.environ.update(OPENAI_BASE_URL=stack.enter_context(ModelServer()).url, OPENAI_API_KEY="none")
        async with outlive.Engine("sqlite:ops.db") as engine:
            run = await engine.start(workflow, "Delete the oldest backup.", id="clean-up-1")
            async for words in run.stream("tokens"):
                print(words, end="", flush=True)
            print()
            print(await run.result(), (await run.published())["usage"])
