"""Cano: the page's full example, `workflow_recovery`.

START, PROCESS, FINALIZE, DONE, and a PROCESS that fails the first time, in the place of a crash. The run fails,
and is brought back: `engine.retry` is the page's second call, `resume_from`. The resource that counts the attempts
is shared by all runs of the worker. For a real crash, with SIGKILL, see `cano_run_42.py`.
"""

import asyncio
from collections.abc import AsyncGenerator
from enum import Enum

import outlive


class Step(Enum):
    START = "start"
    PROCESS = "process"
    FINALIZE = "finalize"
    DONE = "done"


class CrashOnce:
    """Shared across runs by way of a resource: the first attempt of PROCESS fails, the others do not."""

    attempts = 0


@outlive.resource
async def crash_once() -> AsyncGenerator[CrashOnce, None]:
    yield CrashOnce()


workflow = outlive.Machine("recovery", Step, start=Step.START, exits=[Step.DONE])


@workflow.state(Step.START)
async def start() -> Step:
    return Step.PROCESS


@workflow.state(Step.PROCESS)  # no `retry`: the first failure ends the run, as the page's TaskConfig::minimal does
async def process(*, crash: CrashOnce = outlive.use(crash_once)) -> Step:
    crash.attempts += 1
    if crash.attempts == 1:
        raise RuntimeError("simulated crash")
    return Step.FINALIZE


@workflow.state(Step.FINALIZE)
async def finalize() -> Step:
    return Step.DONE


async def main() -> None:
    async with outlive.Engine("sqlite:recovery.db") as engine:
        run = await engine.start(workflow, id="demo-run")
        try:
            await run.result()
        except outlive.errors.RunFailedError as error:
            print(error)
        await engine.retry("demo-run", reason="the cause is gone")
        assert (await run.result()).state is Step.DONE
        for event in await run.history():  # the failure stays in the log, and what took it back
            print(f"#{event.seq} {event.type} {event.data.get('call', '')}".rstrip())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# run demo-run failed: RuntimeError: simulated crash
# #0 RunCreated
# #1 StepSucceeded recovery.START
# #2 StepFailed recovery.PROCESS
# #3 RunFailed
# #4 RunRetried
# #5 RunClaimed
# #6 StepSucceeded recovery.PROCESS
# #7 StepSucceeded recovery.FINALIZE
# #8 RunSucceeded
