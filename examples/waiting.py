"""Waiting: signals, asks, approvals, timeouts, races, timers, children and cancellation, all of them durable."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import outlive


@dataclass
class Payment:
    cents: int
    by: str


@dataclass
class RefundForm:
    cents: int


@dataclass
class Item:
    name: str
    count: int


@outlive.step
async def ask_warehouse(order_id: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"{order_id} asked for {seconds} s"


@outlive.step
async def release_order(order_id: str) -> None:
    print(f"{order_id}: everything given back")


@outlive.workflow
async def invoice(order_id: str) -> int:
    return len(order_id) * 100


@outlive.workflow
async def audit(order_id: str) -> str:
    return f"{order_id} is fine"


@outlive.workflow(version=2)
async def refund(order_id: str) -> str:
    payment = await outlive.wait_for_signal("paid", Payment)  # early signals are buffered, first in first out
    try:
        async with asyncio.timeout(2 * 24 * 3600):  # durable
            answer = await outlive.wait_for_approval("refund", title="Refund?", form=RefundForm, assignees=["finance"])
    except TimeoutError:
        return "expired"
    quick = asyncio.create_task(ask_warehouse(order_id, 0.1))
    slow = asyncio.create_task(ask_warehouse(order_id, 60))
    winner, rest = await asyncio.wait([quick, slow], return_when=asyncio.FIRST_COMPLETED)  # replayed as it happened
    for task in rest:
        task.cancel()
    await outlive.sleep_until(outlive.now() + timedelta(seconds=0.5))
    child = await outlive.start(audit, order_id, detached=True)  # another tree, maybe another worker
    total = await invoice(order_id)  # a workflow called in a workflow: a child run in this tree
    return f"{payment.by}, {answer.by} says {answer.form}, {winner.pop().result()}, {await child.result()}, {total}"


@outlive.workflow
async def reservation(order_id: str) -> str:
    try:
        return await outlive.wait_for_signal("confirmed", str)
    finally:
        await release_order(order_id)  # runs when the run is cancelled, too


@outlive.workflow
async def cart(user: str) -> int:
    total = 0
    async for ask in outlive.asks("add", Item):  # a signal with an answer; every ask gets exactly one
        if ask.body.count > 99:
            ask.fail(ValueError(f"{ask.body.count} are too many for {user}"))
            continue
        total += ask.body.count
        ask.reply(total)
        if total > 9:
            break
    return total


async def main() -> None:
    async with outlive.Engine("sqlite:waiting.db") as engine:
        # The same key: once. start=(...): create it if absent.
        for _ in range(2):
            await engine.signal("run-1", "paid", Payment(4200, "ann"), key="evt_123", start=(refund, "o-1"))
        while not await engine.approvals.list("run-1"):
            await asyncio.sleep(0.05)
        for person in ("bea", "cem"):  # the first decision is the only one; the second one gets it back
            decided = await engine.approvals.approve(
                "run-1", "refund", by=person, form={"cents": 4200}
            )  # engine.approvals.reject(...)
            print(f"decided by {decided.by}")
        print(await engine.get("run-1").result())

        for count in (3, 100, 7):  # the same key, also after a crash or the end of the run: the same answer
            add = engine.ask("run-3", "add", Item("hat", count), start=(cart, "u-1"), key=f"evt-{count}", timeout=5)
            try:
                print(f"{await add} in the cart")
            except outlive.errors.AskFailedError as error:
                print(error.__cause__)

        run = await engine.start(reservation, "o-2", id="run-2")
        await engine.cancel("run-2", reason="the customer has left")  # durable, reaches steps, children and other hosts
        try:
            await run.result()
        except outlive.errors.RunCancelledError as error:
            print(error)


if __name__ == "__main__":
    asyncio.run(main())
