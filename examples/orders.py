"""An order from both sides: what a run knows and says, and how an operator finds it, changes it and brings it back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import outlive

log = outlive.get_logger(__name__)  # silent while replaying; every record has the run, the step and the attempt
bank = {"is_open": False}


@dataclass
class Decision:
    by: str


class Tenants(outlive.middleware.Middleware):
    async def on_start(self, start: outlive.middleware.StartCall, call_next: Callable[[], Awaitable[Any]]) -> Any:
        start.headers.setdefault("tenant", "a")  # of the run, and of all that it starts
        return await call_next()

    async def on_step(self, step: outlive.types.StepContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        log.debug("%s for tenant %s", step.name, step.headers["tenant"])
        return await call_next()


@outlive.resource
async def prices() -> AsyncIterator[dict[str, int]]:
    yield {"lamp": 4200}  # set up once per worker when first needed; what follows the yield tears it down


@outlive.step
async def quote(item: str, book: dict[str, int] = outlive.use(prices)) -> int:  # not an argument of the call
    return book[item]


@outlive.step
async def fraud_check(item: str) -> bool:
    return False


@outlive.step(retry=outlive.Retry(attempts=2, first=0.01))
async def charge(cents: int, is_safe: bool) -> str:  # noqa: FBT001 (it is the result of a step)
    if not bank["is_open"]:
        raise ConnectionError("the bank does not answer")
    return f"{cents} cents" if is_safe else f"{cents} cents, to be looked at"


@outlive.step
async def write_letter(item: str) -> None:
    for word in ("your", item, "is", "paid"):
        await outlive.emit("letter", word)  # ordered, cheap, not replayed


@outlive.step
async def send_link(promise: str) -> None:
    await outlive.current_engine().promises.resolve(promise, Decision("ann"))  # a person outside would do that


@outlive.workflow
async def order(item: str) -> str:
    me = outlive.current_run()
    outlive.set_tags(stage="pricing")  # searchable while the run is open
    cents = await quote(item)
    rate = await outlive.run_step(lambda: 2, name="rate", retry=outlive.Retry())  # any function as a step
    receipt = await charge(cents * rate, await fraud_check(item))
    await write_letter(item)
    outlive.set_tags(stage="done")
    return f"{me.id} of tenant {me.headers['tenant']}: {receipt}"


@outlive.workflow
async def shipping(order_id: str) -> str:
    paid = await outlive.get(order_id).result()  # of a run that another program started
    await outlive.signal("ledger", "paid", paid)  # durable, delivered once
    promise = outlive.promise(Decision)
    await send_link(promise.id)
    return f"{order_id} goes to {(await promise).by}"


@outlive.workflow
async def ledger() -> str:
    return await outlive.wait_for_signal("paid", str)


async def main() -> None:
    async with outlive.Engine("memory:", middleware=[Tenants()]) as engine:
        book = await engine.start(ledger, id="ledger")
        run = await engine.start(order, "lamp", id="order-7", tags={"tenant": "a"})
        try:
            await run.result()
        except outlive.errors.RunFailedError as error:
            print(error)

        page = await engine.list(
            workflow="order", status=("failed", "parked"), tags={"tenant": "a", "stage": "pricing"}, id_prefix="order-",
            error="ConnectionError", order="-created_at", limit=50,
        )  # fmt: skip
        print([found.id for found in page], await engine.count(workflow="order", status="parked"))

        bank["is_open"] = True
        await engine.retry("order-7")  # the same id, completed steps stay
        print(await run.result())
        print([word async for word in run.stream("letter", after=1)])  # any process, resumes after a lost connection

        other = await engine.fork("order-7", at="charge", set={"fraud_check": True}, id="order-7b")
        print(await other.result())

        print((await book.why()).partition(",")[0], await engine.count(waiting_for="paid"))
        await engine.pause("ledger", by="ann")
        print(await (await engine.start(shipping, "order-7", id="shipping-7")).result())
        await engine.resume("ledger")
        print(await book.result())

        await engine.workflows.list()  # what workers can run, with schemas of arguments and results
        named = await engine.start("order", {"item": "lamp"}, headers={"tenant": "b"}, id="order-8")
        print(await named.result(), await engine.approvals.list(assignee="finance"))


if __name__ == "__main__":
    asyncio.run(main())
