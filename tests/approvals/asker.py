"""A process that asks people, and processes that decide: `python -m tests.approvals.asker DATABASE [WHO]`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

import outlive


@dataclass(frozen=True)
class AskerForm:
    cents: int


@outlive.workflow
async def asker_workflow() -> str:
    answer = await outlive.wait_for_approval("refund", form=AskerForm, deadline=3600)
    return f"{answer.by} {answer.form}"


async def ask(database: str) -> None:
    """Start the run, or go on with it, and say what it returns."""
    async with outlive.Engine(f"sqlite:{database}", poll_seconds=0.02) as engine:
        run = await engine.start(asker_workflow, id="run-1")
        print(await run.result())  # noqa: T201


async def decide(database: str, who: str) -> None:
    """Decide, and say who was first."""
    async with outlive.Engine(f"sqlite:{database}", worker=False) as engine:
        decided = await engine.approvals.approve("run-1", "refund", by=who, form={"cents": len(who)})
        print(decided.by, decided.is_first)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(ask(sys.argv[1]) if len(sys.argv) == 2 else decide(sys.argv[1], sys.argv[2]))
