"""Steps: async and sync, with retries, timeouts and options per call; each outcome is journaled once."""

import asyncio
import time
from dataclasses import dataclass

import outlive


@dataclass
class Order:
    id: str
    cents: int


@dataclass
class Receipt:
    order: str
    cents: int
    key: str


class NetworkError(Exception):
    """The payment service did not answer; try again."""


@outlive.step(
    retry=outlive.Retry(attempts=5, first=0.1, factor=2, cap=60, jitter=0.2, on=(NetworkError,)),
    timeout=30,
)
async def charge(order: Order) -> Receipt:
    me = outlive.current_step()  # run_id, name, attempt, idempotency_key, epoch, heartbeat(progress), last_progress
    print(f"charge {order.id}: attempt {me.attempt}, progress {me.last_progress}")
    me.heartbeat("asked the bank")
    if me.attempt < 3:
        raise NetworkError("no answer")
    return Receipt(order.id, order.cents, me.idempotency_key)


@outlive.step  # sync functions run on a thread and never stall the engine
def render(receipt: Receipt) -> bytes:
    time.sleep(0.1)
    return f"{receipt.order}: {receipt.cents / 100:.2f}".encode()


@outlive.step
async def archive(page: bytes) -> str:
    await asyncio.sleep(60)
    return "archived"


@outlive.workflow
async def checkout(order: Order) -> str:
    receipt = await charge(order)
    page = await render(receipt)
    try:
        place = await archive.options(timeout=0.2)(page)  # per call
    except outlive.errors.StepTimeoutError as error:
        place = f"not archived: {error}"
    return f"{page.decode()} ({place})"


async def main() -> None:
    async with outlive.Engine("sqlite:steps.db") as engine:
        run = await engine.start(checkout, Order("o-1", 1999), id="checkout-1")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
