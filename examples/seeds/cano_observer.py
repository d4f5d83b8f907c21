"""Cano: an observer hears of every checkpoint, and of a resumed run.

The page has two hooks: `on_checkpoint` after a row is durable, and `on_resume` once, when a run goes on. Ours are
called `transition_written` and `resumed`, beside hooks for attempts, retries, undos, breakers and ends. A hook is
called when its fact is durable, and never by a replay. An exception of a hook is logged, and the run goes on.
"""

import asyncio
from enum import Enum

import outlive


class Step(Enum):
    START = "start"
    WORK = "work"
    DONE = "done"


class Ear(outlive.machine.Observer):
    def transition_written(self, fact: outlive.machine.TransitionFact) -> None:  # on_checkpoint
        print("checkpoint of", fact.run_id, "in", fact.state, "to", fact.to)

    async def resumed(self, fact: outlive.machine.ResumeFact) -> None:  # on_resume
        print("resumed", fact.run_id, "in", fact.state, "by", fact.by)

    def ended(self, fact: outlive.machine.EndFact) -> None:
        print("ended", fact.run_id, fact.status)


workflow = outlive.Machine("observed", Step, start=Step.START, exits=[Step.DONE])
workflow.observe(Ear())
begun = asyncio.Event()


@workflow.state(Step.START)
async def start() -> Step:
    return Step.WORK


@workflow.state(Step.WORK)
async def work() -> Step:
    if not begun.is_set():
        begun.set()
        await asyncio.Event().wait()  # until this worker stops
    return Step.DONE


async def main() -> None:
    options = outlive.types.WorkerOptions(grace_seconds=0)
    async with outlive.Engine("sqlite:observed.db", worker=options) as engine:
        await engine.start(workflow, id="run-42")
        await begun.wait()
    async with outlive.Engine("sqlite:observed.db", worker=options) as engine:
        print("state", (await engine.get("run-42").result()).state.name)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# checkpoint of run-42 in START to WORK
# resumed run-42 in WORK by worker
# checkpoint of run-42 in WORK to DONE
# ended run-42 succeeded
# state DONE
