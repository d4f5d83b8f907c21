"""Stepflow: how a journal recovers a run.

The page: results go to the journal while a flow runs, the orchestrator crashes, and on its restart it lists its
own running runs, takes their leases, reads their journals and resumes them. Run this twice. The first process
kills itself with SIGKILL while `summarize` is in flight; the second one is started under the same name, so it
takes its own run at once. `fetch` had ended and is not called again; `summarize` was in flight and is.
"""

import asyncio
import os
import signal

import outlive
from outlive import flow

# The page's `recovery:` section. What is left out has the defaults of Outlive, which claims orphans twice a second.
RECOVERY = outlive.types.Recovery(
    enabled=True,
    orphans_at_start_max=100,  # maxStartupRecovery
    orphans_per_check_max=10,  # maxClaimsPerCheck
)
WORKER = outlive.types.WorkerOptions(name="orch-1", lease_seconds=30)  # the orchestrator's id and its TTL


@outlive.step
async def fetch(url: str) -> list[int]:
    print(f"fetching {url}", flush=True)
    return [3, 4, 5]


@outlive.step
async def summarize(numbers: list[int]) -> int:
    epoch = outlive.current_step().epoch
    print(f"summing {numbers} in life {epoch}", flush=True)
    if epoch == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return sum(numbers)


report = flow.parse("""
name: report
input: { url: string }
steps:
  data: { use: fetch, with: { url: "${{ input.url }}" } }
  total: { use: summarize, with: { numbers: "${{ steps.data }}" } }
output: "${{ steps.total }}"
""")


async def main() -> None:
    async with outlive.Engine("sqlite:stepflow.db", recovery=RECOVERY, worker=WORKER) as engine:
        run = await engine.start(report, {"url": "https://example.org/data"}, id="report-1")
        print("total", await run.result())
        print([event.type for event in await run.history()])


if __name__ == "__main__":
    asyncio.run(main())

# Prints, and is killed:
# fetching https://example.org/data
# summing [3, 4, 5] in life 1
#
# Started again, it prints:
# summing [3, 4, 5] in life 2
# total 12
# ['RunCreated', 'StepSucceeded', 'RunClaimed', 'StepSucceeded', 'RunSucceeded']
