"""Work that another system finishes: a promise whose id goes out with the request, and comes back with the answer.

The step ends as soon as the request is sent, so nothing waits in memory for the hours that a payment may take. The
webhook settles the promise, from any process; a second call of the webhook changes nothing.
"""

import asyncio
from dataclasses import dataclass

import outlive

requests: asyncio.Queue[str] = asyncio.Queue()


@dataclass(frozen=True)
class Paid:
    cents: int


@outlive.step(name="patterns.request_payment")
async def request_payment(order: str, promise_id: str) -> None:
    requests.put_nowait(promise_id)  # POST ... {"callback": "https://shop/paid/<promise_id>"}


@outlive.workflow(name="patterns.paid_order")
async def paid_order(order: str) -> str:
    promise = outlive.promise(Paid)
    await request_payment(order, promise.id)
    try:
        async with asyncio.timeout(3 * 24 * 3600):  # Durable.
            paid = await promise
    except TimeoutError:
        return f"{order} was not paid"
    return f"{order}: {paid.cents} cents"


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(paid_order, "order-7")
        promise_id = await requests.get()
        print(
            await engine.promises.resolve(promise_id, {"cents": 1200})
        )  # The body of the webhook, checked by the type.
        print(await engine.promises.resolve(promise_id, {"cents": 1200}))
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# True
# False
# order-7: 1200 cents
