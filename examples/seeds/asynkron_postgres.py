"""Asynkron: several hosts on PostgreSQL.

The page starts PostgreSQL with docker compose (here: `docker compose -f deploy/compose.yaml up`, with two workers
and the server beside it), and registers the provider with two options. The schema is made when the first engine
opens the store. Versions, owners and leases are columns that it keeps itself.
"""

import asyncio
import os

import outlive

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://durableuser:durablepass@localhost:5432/durablefunctions")
MAX_CONCURRENT_WORKFLOWS = 10

orchestrations = outlive.Queue("orchestrations", per_worker=MAX_CONCURRENT_WORKFLOWS)


@outlive.step
async def add(number: int) -> int:
    return number + 1


@outlive.workflow(queue=orchestrations)
async def adding(number: int) -> int:
    return await add(await add(number))


def host(name: str) -> outlive.Engine:
    """PollingIntervalMs = 100: a bound, as workers hear of new work at once."""
    return outlive.Engine(DATABASE_URL, poll_seconds=0.1, worker=outlive.types.WorkerOptions(name=name))


async def main() -> None:
    async with host("host-a") as first, host("host-b") as second:
        runs = await first.start_many([(adding, number) for number in range(30)])
        print(sum([await run.result() for run in runs]))
        steps = [event for run in runs for event in await second.history(run.id) if event.type == "StepSucceeded"]
        print(len(steps), "steps, each done once")
        print(sorted(worker.name for worker in await second.workers.list()))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# 495
# 60 steps, each done once
# ['host-a', 'host-b']
