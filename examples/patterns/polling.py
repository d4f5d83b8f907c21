"""Polling a service that calls nobody back: often, now and then, and in rounds (after Temporal's sample `polling`)."""

import asyncio

import outlive


class NotReady(Exception):
    """The service has no answer yet."""


asked: dict[str, int] = {}


async def ask(job: str) -> str:
    """Stands for the service: it has an answer at the fourth call."""
    asked[job] = asked.get(job, 0) + 1
    if asked[job] < 4:
        raise NotReady(job)
    return f"{job} is done after {asked[job]} calls"


# Often: one step that goes on asking and says that it is alive. If it hangs, or its worker dies, it begins again.
@outlive.step(heartbeat_timeout=30, retry=outlive.Retry(attempts=None))
async def ask_often(job: str) -> str:
    while True:
        outlive.current_step().heartbeat()
        try:
            return await ask(job)
        except NotReady:
            await asyncio.sleep(0.01)


# Every minute: each call is an attempt, and nothing is held between two of them: no worker, no thread, no memory.
@outlive.step(
    retry=outlive.Retry(attempts=None, first=60, delay="fixed", jitter=0, on=(NotReady,), elapsed_max=24 * 3600)
)
async def ask_now_and_then(job: str) -> str:
    return await ask(job)


@outlive.step
async def ask_once(job: str) -> str | None:
    try:
        return await ask(job)
    except NotReady:
        return None


# In rounds, with something else between: the workflow itself loops, and its sleep is durable.
@outlive.workflow
async def poll_in_rounds(job: str) -> str:
    while (answer := await ask_once(job)) is None:
        outlive.publish(waiting_for=job)
        await asyncio.sleep(3600)
    return answer


@outlive.workflow
async def poll(job: str) -> str:
    return await (ask_often(job) if job == "scan" else ask_now_and_then(job))


async def main() -> None:
    async with outlive.Engine("sqlite:polling.db") as engine:
        runs = [await engine.start(poll, "scan"), await engine.start(poll, "report")]
        runs.append(await engine.start(poll_in_rounds, "audit"))
        for run in runs:  # The last two take minutes and hours: stop it whenever you like, and start it again.
            print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
