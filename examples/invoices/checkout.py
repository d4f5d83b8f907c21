"""An order becomes a paid invoice, or nothing at all."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

import outlive
from invoices import settings
from invoices.models import Credit, CreditRefusedError, DeclinedError, Order, Receipt, Settlement
from invoices.services import charge, give_back, mail
from invoices.tables import mark_paid, record, take_from_stock

T = TypeVar("T")

checkouts = outlive.Queue("checkouts", concurrency=20, per_key=3, hold="running")
"""Fair between customers: one that orders a thousand things does not keep the others waiting. A checkout that waits for
the bank or for a person gives its slot back."""


@outlive.workflow(
    queue=checkouts,
    signals={"settled": Settlement},
    approvals={"credit": Credit},
    raises=(CreditRefusedError, DeclinedError, TimeoutError),
)
async def checkout(number: str, order: Order) -> Receipt:
    """Sell one thing. Until the money has arrived everything can be undone; then nothing is."""
    async with outlive.saga() as block:
        await record(number, order)
        await take_from_stock(number, order.item)
        outlive.publish(stage="recorded", number=number)

        credit_by = await ask_for_credit(number, order)

        block.add(give_back, number)  # Before the call: also a charge whose answer was lost is given back.
        charged = await charge(number, order.customer, order.cents)
        outlive.publish(stage="charged")

        async with asyncio.timeout(settings.SETTLE_SECONDS):
            await outlive.wait_for_signal("settled", Settlement)  # It may have come before the answer of the bank.
        await mark_paid(number, charged)

    outlive.publish(stage="paid")
    await to_the_end(mail(order.customer, "receipt", number, f"You have paid {order.cents} cents for {order.item}."))
    outlive.publish(stage="done")
    return Receipt(number, charged, order.cents, credit_by)


async def ask_for_credit(number: str, order: Order) -> str | None:
    """Who gave credit, or None if the amount needs no decision."""
    if order.cents < settings.CREDIT_FROM_CENTS:
        return None
    outlive.publish(stage="waits for credit")
    answer = await outlive.wait_for_approval(
        "credit",
        title=f"{order.cents / 100:.2f} for {order.customer}?",
        form=Credit,
        assignees=["finance"],
        deadline=settings.DECIDE_SECONDS,
    )
    if not answer:
        raise CreditRefusedError(f"{answer.by} says no to {number}")
    return answer.by


async def to_the_end(work: Coroutine[object, None, T]) -> T:
    """The result of work that a cancel does not stop any more: an invoice that is paid gets its receipt."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
