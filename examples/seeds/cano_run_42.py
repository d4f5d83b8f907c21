"""Cano: attach a store to a machine, kill the process, and resume "run-42" from its last state.

Run it twice. The first process kills itself with SIGKILL in the middle of WORK, after its side effect; the second
one does not enter START again, runs WORK again, and ends in DONE. There is nothing to attach, and no
`resume_from`: the same start under the same id goes on with the run.
"""

import asyncio
import os
import signal
from enum import Enum

import outlive


class Step(Enum):
    START = "start"
    WORK = "work"
    DONE = "done"


workflow = outlive.Machine("run_42", Step, start=Step.START, exits=[Step.DONE])


@workflow.state(Step.START)
async def start() -> Step:
    print("START", flush=True)
    return Step.WORK


@workflow.state(Step.WORK)
async def work() -> Step:
    me = outlive.current_step()
    print("WORK, life", me.epoch, flush=True)
    if me.epoch == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return Step.DONE


async def main() -> None:
    async with outlive.Engine("sqlite:workflow.db") as engine:
        run = await engine.start(workflow, id="run-42")
        print((await run.result()).state.name)
        for event in await run.history():
            print(event.seq, event.type, event.data.get("call", ""))


if __name__ == "__main__":
    asyncio.run(main())

# Prints, and is killed:
# START
# WORK, life 1
#
# Started again, it prints:
# WORK, life 2
# DONE
# 0 RunCreated
# 1 StepSucceeded run_42.START
# 2 RunClaimed
# 3 StepSucceeded run_42.WORK
# 4 RunSucceeded
