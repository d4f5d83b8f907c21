"""A saga: what was booked is given back, newest first, if the order cannot be paid."""

import asyncio
from dataclasses import dataclass

import outlive


@dataclass
class Order:
    id: str
    cents: int
    balance: int = 10_000


@dataclass
class Hold:
    order: str
    what: str = ""


class CardRefusedError(Exception):
    """There is no point in trying again."""


async def release(hold: Hold) -> None:  # becomes the step reserve.undo, tried for a quarter of an hour
    print(f"gave back {hold.order}")


@outlive.step(retry=outlive.Retry(attempts=50))
async def give_back(hold: Hold) -> None:
    print(f"gave back the {hold.what} of {hold.order}")


@outlive.step(undo=release)
async def reserve(order: Order) -> Hold:
    print(f"reserved {order.id}")
    return Hold(order.id)


@outlive.step(undo=give_back)
async def book_truck(order: Order) -> Hold:
    print(f"booked a truck for {order.id}")
    return Hold(order.id, "truck")


@outlive.step(undo=give_back)
async def book_slot(order: Order) -> Hold:
    print(f"booked a slot for {order.id}")
    return Hold(order.id, "slot")


@outlive.step(raises=(CardRefusedError,))
async def charge(order: Order) -> str:
    if order.cents > order.balance:
        raise CardRefusedError(f"no money for {order.id}")
    return f"{order.cents} for {order.id}"


@outlive.workflow
async def checkout(order: Order) -> str:
    async with outlive.saga():
        await reserve(order)
        await asyncio.gather(book_truck(order), book_slot(order))  # parallel branches too
        return await charge(order)


async def main() -> None:
    async with outlive.Engine("sqlite:checkout.db") as engine:
        run = await engine.start(checkout, Order("o-1", 1999), id="checkout-1")
        print("paid:", await run.result())
        run = await engine.start(checkout, Order("o-2", 99_999), id="checkout-2")
        try:
            await run.result()
        except outlive.errors.RunFailedError as error:
            print(error)


if __name__ == "__main__":
    asyncio.run(main())
