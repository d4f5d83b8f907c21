"""pydantic models as arguments, results, signals and input of runs: what goes in comes out, live and after a crash."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

import outlive
from tests.engine.inside import crash
from tests.engine.support import Place, hold, in_time, stage


class Card(BaseModel):
    """One way to pay."""

    kind: Literal["card"] = "card"
    number: bytes


class Invoice(BaseModel):
    """Another one."""

    kind: Literal["invoice"] = "invoice"
    due: datetime
    buyer: str = Field(alias="buyerName")


Payment = Annotated[Card | Invoice, Field(discriminator="kind")]


class Order(BaseModel):
    """Holds some of them."""

    id: int
    payments: list[Payment] = []
    tags: set[str] = set()


@outlive.step
async def add(order: Order, payment: Payment) -> Order:
    """A model and a union of models in, a model out."""
    return order.model_copy(update={"payments": [*order.payments, payment]})


@outlive.step
async def last(order: Order) -> Payment | None:
    """A union out."""
    return order.payments[-1] if order.payments else None


@outlive.workflow
async def pay(order: Order) -> tuple[Order, Payment | None]:
    payment: Payment = await outlive.wait_for_signal("paid", Payment)  # type: ignore[call-overload]
    paid = await add(order, payment)
    found = await last(paid)
    await hold("paid")
    return paid, found


ORDER = Order(id=1, tags={"a", "b"})
PAYMENTS = [Card(number=b"\xff\x00"), Invoice.model_validate({"due": "2026-01-01T00:00:00Z", "buyerName": "ann"})]


async def test_models_come_through_a_run(place: Place) -> None:
    """A pydantic model comes back equal as input, signal, argument and result, even when it is replayed after a
    crash."""
    first = await place.engine().__aenter__()
    for number, payment in enumerate(PAYMENTS):
        await first.start(pay, ORDER, id=f"run-{number}")
        await first.signal(f"run-{number}", "paid", payment)
        await stage.gate("paid").reached()
    await crash(first)
    async with place.engine() as second:
        stage.gate("paid").open()
        for number, payment in enumerate(PAYMENTS):
            order, found = await in_time(second.get(f"run-{number}").result())
            assert found == payment
            assert order == ORDER.model_copy(update={"payments": [payment]})
