"""TanStack: the five layers of idempotency.

The id of a run, the id of a step for effects outside, the id of a signal, that of an approval, and that of a tick.
Each is used twice here, as a webhook or a cron provider does that delivers twice.
"""

import asyncio
from datetime import timedelta

import outlive
from outlive.testing import TestEngine

charged: dict[str, int] = {}  # the bank: it knows the keys that it has seen


@outlive.step(retry=outlive.Retry(attempts=2, first=0.01))
async def pay(cents: int) -> int:
    me = outlive.current_step()
    charged.setdefault(me.idempotency_key, cents)
    if me.attempt == 1:
        raise ConnectionError("the answer of the bank was lost")
    return cents


@outlive.workflow
async def sale(cents: int) -> str:
    await pay(cents)
    first = await outlive.wait_for_signal("paid", str)
    answer = await outlive.wait_for_approval("refund", title="Refund?")
    return f"{first}, refund {answer.approved} by {answer.by}"


@outlive.workflow(schedule=outlive.every(hours=1, name="nightly"))
async def nightly() -> None: ...


async def main() -> None:
    async with TestEngine(schedules=True) as engine:
        first = await engine.start(sale, 500, id="sale-1")  # runId
        again = await engine.start(sale, 500, id="sale-1")
        print("runs:", await engine.count(workflow="sale"), "ids:", {first.id, again.id})

        await engine.signal("sale-1", "paid", "by card", key="evt_123")  # signalId
        await engine.signal("sale-1", "paid", "by card", key="evt_123")
        await engine.settle()
        while not await engine.approvals.list():
            await engine.skip(seconds=1)  # the pause before the second attempt
        await engine.approvals.approve("sale-1", "refund", by="ann")  # approvalId
        late = await engine.approvals.reject("sale-1", "refund", by="bob")
        print("late decision:", late.by, late.approved, late.is_first)
        print(await first.result())
        print("charged:", list(charged.values()), "in two attempts")  # stepCtx.id

        await engine.skip(hours=2)
        ticks = await engine.count(tags={"schedule": "nightly"})
        filled = await engine.schedules.backfill(
            "nightly", engine.now() - timedelta(hours=2), engine.now()
        )  # ids of ticks
        print("ticks:", ticks, "started again:", filled)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# runs: 1 ids: {'sale-1'}
# late decision: ann True False
# by card, refund True by ann
# charged: [500] in two attempts
# ticks: 2 started again: 0
