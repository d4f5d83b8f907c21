"""What happens beside the checkouts: payments are booked, the books are closed, old invoices are imported."""

from datetime import datetime

import outlive
from invoices import settings
from invoices.models import Settlement
from invoices.tables import book, close

imports = outlive.Queue("imports", concurrency=8)
"""For batches of old invoices: they must not crowd out the checkouts."""


@outlive.workflow(on_event="payment.settled")
async def take_payment(settlement: Settlement) -> str:
    """One run for each word of the bank, however often it is sent: book it, and pass it on to its checkout."""
    await book(outlive.current_run().headers["event_id"], settlement)
    try:
        await outlive.signal(f"invoice-{settlement.number}", "settled", settlement)
    except (outlive.errors.RunNotFoundError, outlive.errors.RunFinishedError):
        return "late"  # The checkout has given up, and the bank was asked to give the money back.
    return "passed on"


@outlive.workflow(
    schedule=outlive.every(
        seconds=settings.CLOSE_SECONDS, args={"at": outlive.tick}, overlap="allow", catch_up="all", name="close-books"
    )
)
async def close_books(at: datetime) -> int:
    """One closing for each tick; those that were missed are made up for."""
    return await close(at)
