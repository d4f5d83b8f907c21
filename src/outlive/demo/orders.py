"""A small shop. Every line is ordinary async Python; what makes it survive are the two decorators.

A step does something in the outside world, and its result is kept: a finished step never runs again. A workflow says
what happens in which order. Kill the process wherever you like: another one goes on from the last step that had
finished.
"""

import asyncio
from dataclasses import dataclass

import outlive
from outlive.demo import world


@dataclass(frozen=True)
class Order:
    """The order of a customer."""

    id: str
    items: dict[str, int]
    """Prices in cents."""
    busy_calls: int = 0
    """How often the carrier's line is busy before it is answered."""

    @property
    def cents(self) -> int:
        """The price of everything."""
        return sum(self.items.values())


@dataclass(frozen=True)
class Receipt:
    """How an order ended."""

    order_id: str
    cents: int
    confirmed_by: str
    parcel: str


@outlive.step
async def reserve(order: Order, item: str) -> None:
    """Put one item aside."""
    async with world.effect("reserve", order.id):
        await asyncio.sleep(0.05)


@outlive.step
async def charge(order: Order) -> int:
    """Take the money; asked again with the same idempotency key, the bank takes it once."""
    async with world.effect("charge", order.id, cents=order.cents):
        await asyncio.sleep(0.4)
    return order.cents


@outlive.step(retry=outlive.Retry(attempts=5, first=0.1, on=(ConnectionError,)))
async def call_carrier(order: Order) -> str:
    """Get a parcel number from a carrier who does not always pick up the phone."""
    async with world.effect("call_carrier", order.id):
        if outlive.current_step().attempt <= order.busy_calls:
            raise ConnectionError("the line is busy")
    return f"parcel-{order.id}"


@outlive.step
async def hand_over(parcel: str, order: Order) -> None:
    """Give the parcel to the driver."""
    async with world.effect("hand_over", order.id):
        await asyncio.sleep(0.05)


@outlive.workflow
async def delivery(order: Order) -> str:
    """From the shelf to the door."""
    parcel = await call_carrier(order)
    await hand_over(parcel, order)
    return parcel


@outlive.workflow
async def checkout(order: Order) -> Receipt:
    """From the basket to the receipt."""
    await asyncio.gather(*(reserve(order, item) for item in order.items))
    customer = await outlive.wait_for_signal("confirmed", str)
    cents = await charge(order)
    await asyncio.sleep(0.3)  # A durable timer: three months would cost no more than this.
    parcel = await delivery(order)  # A workflow in a workflow is a child run.
    return Receipt(order.id, cents, customer, parcel)
