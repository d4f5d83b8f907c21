"""Our own tables, beside those of Outlive in one database, and the steps that write them.

Each step writes its rows and its own completion in one transaction: exactly once, whatever is killed. No table has a
unique key that would hide a row that was written twice.

    python -m invoices.tables        # creates the tables; again does no harm
"""

import asyncio
import os
from datetime import datetime

import asyncpg

import outlive
from invoices.models import Order, Row, Settlement

TABLES = """
    CREATE TABLE IF NOT EXISTS invoices (
        number text, customer text, item text, cents bigint, status text, charge text, at timestamptz DEFAULT now()
    );
    CREATE INDEX IF NOT EXISTS invoices_number ON invoices (number);
    CREATE TABLE IF NOT EXISTS stock (number text, item text, taken int);
    CREATE INDEX IF NOT EXISTS stock_number ON stock (number);
    CREATE TABLE IF NOT EXISTS bookings (event text, number text, charge text, cents bigint);
    CREATE TABLE IF NOT EXISTS closings (at timestamptz, paid bigint);
    CREATE TABLE IF NOT EXISTS imported (file text, line int, cents bigint);
"""


async def migrate(store: str) -> None:
    """Create the tables, before workers start. Several processes may do it at once."""
    connection = await asyncpg.connect(store.partition("?")[0])  # What follows is for Outlive.
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(2026)")
        await connection.execute(TABLES)
    await connection.close()


@outlive.step(transaction=True)
async def void(tx: outlive.types.Tx, number: str) -> None:
    """Nothing is owed any more."""
    await tx.execute("UPDATE invoices SET status = 'void' WHERE number = $1", number)


@outlive.step(transaction=True, undo=void)
async def record(tx: outlive.types.Tx, number: str, order: Order) -> str:
    """Write the invoice."""
    await tx.execute(
        "INSERT INTO invoices (number, customer, item, cents, status) VALUES ($1, $2, $3, $4, 'open')",
        number,
        order.customer,
        order.item,
        order.cents,
    )
    return number


@outlive.step(transaction=True)
async def put_back(tx: outlive.types.Tx, number: str) -> None:
    """Another customer may have the item."""
    await tx.execute("INSERT INTO stock SELECT number, item, -1 FROM stock WHERE number = $1 AND taken = 1", number)


@outlive.step(transaction=True, undo=put_back)
async def take_from_stock(tx: outlive.types.Tx, number: str, item: str) -> str:
    """Keep the item for this customer."""
    await tx.execute("INSERT INTO stock (number, item, taken) VALUES ($1, $2, 1)", number, item)
    return number


@outlive.step(transaction=True)
async def mark_paid(tx: outlive.types.Tx, number: str, charge: str) -> None:
    """The money is there."""
    await tx.execute("UPDATE invoices SET status = 'paid', charge = $2 WHERE number = $1", number, charge)


@outlive.step(transaction=True)
async def book(tx: outlive.types.Tx, event: str, settlement: Settlement) -> None:
    """Write down that the bank has said so."""
    await tx.execute(
        "INSERT INTO bookings (event, number, charge, cents) VALUES ($1, $2, $3, $4)",
        event,
        settlement.number,
        settlement.charge,
        settlement.cents,
    )


@outlive.step(transaction=True)
async def close(tx: outlive.types.Tx, at: datetime) -> int:
    """Write down how many invoices are paid at this moment."""
    paid: int = await tx.fetchval("SELECT count(*) FROM invoices WHERE status = 'paid'")
    await tx.execute("INSERT INTO closings (at, paid) VALUES ($1, $2)", at, paid)
    return paid


@outlive.step(transaction=True, raises=(ValueError,))
async def import_row(tx: outlive.types.Tx, row: Row) -> int:
    """Take over one old invoice."""
    if row.cents < 0:
        raise ValueError(f"line {row.line} of {row.file} has a negative amount")
    await tx.execute("INSERT INTO imported (file, line, cents) VALUES ($1, $2, $3)", row.file, row.line, row.cents)
    return row.cents


if __name__ == "__main__":
    asyncio.run(migrate(os.environ["OUTLIVE_STORE"]))
