"""TanStack: the append-only event log, and the state of a run beside it.

The workflow does everything that makes one of the page's events. Replay comes from the log; the row of the run
says what people and hosts ask: its status, its version, and everything that it waits for. The page has room for
several waits at once (`awaiting[]`) and an engine that makes one at a time; here a run has as many as its code.
"""

import asyncio

import outlive


@outlive.step
async def reserve() -> str:
    return "reserved"


@outlive.step(raises=(ValueError,))
async def refuse() -> None:
    raise ValueError("no truck today")


@outlive.workflow(version=3)
async def order() -> str:
    await reserve()  # STEP_FINISHED
    try:
        await refuse()  # STEP_FAILED, and raised again in every replay
    except ValueError as error:
        print("refused:", error)
    paid, answer = await asyncio.gather(
        outlive.wait_for_signal("paid", int),  # SIGNAL_AWAITED, SIGNAL_RESOLVED
        outlive.wait_for_approval("ship", title="Ship it?"),  # APPROVAL_REQUESTED, APPROVAL_RESOLVED
    )
    at, number = outlive.now(), outlive.uuid4()  # NOW_RECORDED, UUID_RECORDED: no events, they follow from the log
    assert (at.year > 2000, number.version) == (True, 4)
    if not answer:
        raise ValueError(f"{answer.by} says no")  # RUN_ERRORED
    return f"{paid} cents, shipped for {answer.by}"  # RUN_FINISHED


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(order, id="order-1")
        info = await run.until("waiting")
        print(info.status, info.definition, sorted(wait.name for wait in info.waits))
        await engine.signal("order-1", "paid", 4200)
        await engine.approvals.approve("order-1", "ship", by="ann")
        print(await run.result())
        for event in await run.history():
            print(event.seq, event.type, event.data.get("call") or event.data.get("name", ""))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# refused: no truck today
# waiting order@3 ['paid', 'ship']
# 4200 cents, shipped for ann
# 0 RunCreated
# 1 StepSucceeded reserve
# 2 StepFailed refuse
# 3 ApprovalRequested 2/@approval/ship
# 4 RunSuspended
# 5 RunClaimed
# 6 SignalReceived paid
# 7 ApprovalDecided
# 8 RunSucceeded
