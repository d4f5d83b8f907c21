"""Steps that keep a ledger in the store's own database, and a look into it."""

from __future__ import annotations

import asyncio
from typing import Any

import outlive
from outlive import Retry
from tests.engine.support import Place, stage

TABLE = "CREATE TABLE IF NOT EXISTS ledger (account TEXT NOT NULL, cents INTEGER NOT NULL)"
ENTRY = "INSERT INTO ledger (account, cents) VALUES ($1, $2)"
BALANCE = "SELECT coalesce(sum(cents), 0) FROM ledger WHERE account = $1"
ENTRIES = "SELECT account, cents FROM ledger ORDER BY account, cents"


@outlive.step(transaction=True)
async def open_ledger(tx: Any) -> None:
    await tx.execute(TABLE)


@outlive.step(transaction=True)
async def ledger_credit(tx: Any, account: str, cents: int) -> int:
    stage.call(f"{account} {cents}")
    await tx.execute(ENTRY, account, cents)
    balance: int = await tx.fetchval(BALANCE, account)
    return balance


@outlive.step(transaction=True)
def ledger_credit_on_thread(tx: Any, account: str, cents: int = 5) -> int:
    tx.execute(ENTRY, account, cents)
    balance: int = tx.fetchval(BALANCE, account)
    return balance


@outlive.step(transaction=True)
async def ledger_credit_slowly(tx: Any, account: str) -> str:
    """Write, then wait until the test opens the gate of this name."""
    await tx.execute(ENTRY, account, 1)
    await stage.gate(account).pass_through()
    return f"credited {account}"


@outlive.step(transaction=True)
def ledger_credit_slowly_on_thread(tx: Any, account: str) -> str:
    tx.execute(ENTRY, account, 1)
    stage.gate(account).pass_on_thread()
    return f"credited {account}"


@outlive.step(transaction=True, retry=Retry(attempts=3, first=0, jitter=0))
async def ledger_credit_at_last(tx: Any, account: str) -> int:
    attempt = outlive.current_step().attempt
    await tx.execute(ENTRY, account, attempt)
    if attempt < 3:
        raise ConnectionError("not yet")
    return attempt


@outlive.step(transaction=True)
async def ledger_give(tx: Any, account: str) -> object:
    await tx.execute(ENTRY, account, 1)
    return object()


@outlive.step(transaction=True, retry=Retry(attempts=2, first=0, jitter=0))
async def ledger_dawdle(tx: Any, account: str) -> int:
    """At first take longer than a transaction may."""
    attempt = outlive.current_step().attempt
    await tx.execute(ENTRY, account, attempt)
    if attempt == 1:
        await asyncio.sleep(1.2)
    return attempt


async def entries(place: Place) -> list[tuple[str, int]]:
    """What stands in the ledger."""
    store = place.store()
    await store.open()
    tx = await store.begin()
    await tx.handle.execute(TABLE)
    rows = [tuple(row) for row in await tx.handle.fetch(ENTRIES)]
    await tx.rollback()
    await store.close()
    return rows
