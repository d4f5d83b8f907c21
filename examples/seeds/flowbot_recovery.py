"""Flowbot: the recovery manager, and a pipeline that says whether it is resumable.

The page's settings: `enabled`, `stale_timeout`, `auto_resume`, `max_resume_age`. Run this twice. The first process
kills itself with SIGKILL while both pipelines are in their second step. The feed is resumable and goes on in the
second process: the step that was interrupted is called again, and no step is skipped. The invoice is not, and
waits until a person lets it go on.
"""

import asyncio
import os
import signal

import outlive

RECOVERY = outlive.types.Recovery(
    enabled=True,
    stale_after=0,  # stale_timeout: a killed process on this machine is seen at once; others by their lease
    auto_resume=True,
    resume_age_max=24 * 3600,  # max_resume_age: older ones are parked, and not cancelled: a person can still look
)
interrupted: list[str] = []


@outlive.step
async def load(what: str) -> str:
    print(f"{what}: load", flush=True)
    return what


@outlive.step
async def publish(what: str) -> str:
    if outlive.current_step().epoch == 1:
        interrupted.append(what)
        if len(interrupted) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.Event().wait()  # until the other one is here, too
    print(f"{what}: publish", flush=True)
    return f"{what} is out"


@outlive.workflow  # resumable: true
async def feed() -> str:
    return await publish(await load("feed"))


@outlive.workflow(resumable=False)
async def invoice() -> str:
    return await publish(await load("invoice"))


async def main() -> None:
    async with outlive.Engine("sqlite:flowbot.db", recovery=RECOVERY) as engine:
        runs = [await engine.start(feed, id="feed-1"), await engine.start(invoice, id="invoice-1")]
        print(await runs[0].result())
        print("the invoice is parked:", (await runs[1].until("parked")).reason.partition(";")[0])
        await engine.resume("invoice-1")
        print(await runs[1].result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints, and is killed:
# feed: load
# invoice: load
#
# Started again, it prints:
# feed: publish
# feed is out
# the invoice is parked: interrupted: its worker was lost, and workflow invoice is not resumable
# invoice: publish
# invoice is out
