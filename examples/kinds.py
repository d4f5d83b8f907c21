"""Kinds of steps: in a process, at most once, and in a transaction of the store's own database."""

import asyncio
import hashlib
from typing import Any

import outlive


@outlive.step(process=True)  # CPU-bound work in a process; killed when cancelled or timed out
def resize(image: bytes) -> bytes:
    return hashlib.sha256(image * 1000).digest()


@outlive.step(
    once=True
)  # intent is journaled first; after a crash the workflow gets StepInterruptedError, not a second call
async def send_sms(to: str, text: str) -> None:
    print(f"to {to}: {text}")


@outlive.step(transaction=True)  # commits with the journal: exactly once in that database
async def credit(tx: Any, account: str, cents: int) -> int:
    await tx.execute("CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, cents INTEGER NOT NULL)")
    add = """
        INSERT INTO accounts (id, cents) VALUES ($1, $2)
        ON CONFLICT (id) DO UPDATE SET cents = accounts.cents + excluded.cents
        RETURNING cents
    """
    cents_now = await tx.fetchval(add, account, cents)
    return int(cents_now)


@outlive.workflow
async def reward(account: str, image: bytes) -> str:
    small = await resize(image)
    balance = await credit(account, 500)
    try:
        await send_sms(account, f"thank you, you have {balance}")
    except outlive.errors.StepInterruptedError:
        return "it is not known whether the message was sent"
    return f"{len(small)} bytes, {balance} cents"


async def main() -> None:
    async with outlive.Engine("sqlite:kinds.db") as engine:
        for number in (1, 2):
            run = await engine.start(reward, "ann", b"a picture", id=f"reward-{number}")
            print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
