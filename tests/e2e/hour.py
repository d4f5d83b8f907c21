"""An hour of a shop, for pictures of the dashboard: runs of several workflows, in all states, over the last minutes.

The runs are real; only the instants at which they were created are moved back in the file, while no engine is open.
"""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw

import outlive
from outlive.engine import Engine

RUNS = 120
MINUTES = 58
TENANTS = ("acme", "umbrella", "initech", "globex")


class CardDeclined(Exception):
    """The bank said no."""


@outlive.step
async def web_charge(number: int) -> str:
    """Charge a card; one in a few is declined."""
    if number % 17 == 3:
        raise CardDeclined(f"card of order {number} was declined")
    return f"ch_{number}"


@outlive.workflow
async def web_checkout(number: int = 0) -> str:
    """An order."""
    return await web_charge(number)


@outlive.workflow
async def monthly_invoice(number: int) -> str:
    """An invoice, which waits for its payment if it is the newest."""
    return str(await outlive.wait_for_signal("paid")) if number > RUNS - 14 else f"invoice {number}"


@outlive.workflow
async def card_refund(number: int) -> bool:
    """A refund, which a person approves."""
    return bool(await outlive.wait_for_approval("refund", title=f"Refund order {number}?", assignees=["finance"]))


def fill(url: str) -> None:
    """Write the runs of an hour into a new store. On a thread of its own: playwright has a loop on this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _fill(url)).result()


async def _fill(url: str) -> None:
    chance = random.Random(7)
    async with Engine(url) as engine:
        await engine.queues.set("emails", concurrency=2)
        await engine.schedules.set("nightly-report", outlive.cron("0 3 * * *", tz="Europe/Berlin"), web_checkout)
        await engine.schedules.set("digest", outlive.every(minutes=15), web_checkout)
        await engine.schedules.set("stock-check", outlive.cron("*/40 * * * *"), web_checkout)
        for number in range(RUNS):
            workflow = web_checkout if number % 3 else monthly_invoice
            tags = {"tenant": chance.choice(TENANTS)}
            queue = "emails" if number > RUNS - 14 else None
            key = tags["tenant"] if queue else None
            run = await engine.start(workflow, number, id=f"order-{4000 + number}", tags=tags, queue=queue, key=key)
            if number <= RUNS - 14:
                async for _ in run.follow():  # Until it has ended.
                    pass
        for number in (1, 2):
            async for entry in (await engine.start(card_refund, number, id=f"refund-{number}")).follow():
                if entry.type == "ApprovalRequested":
                    break
        parked = await engine.start(monthly_invoice, RUNS, id="order-3999")
        await parked.pause(by="ann", reason="the total looks wrong")
    _spread(Path(url.removeprefix("sqlite:")), chance)


def _spread(file: Path, chance: random.Random) -> None:
    """Move the runs back that have ended, so that they were created over an hour."""
    connection = apsw.Connection(str(file))
    try:
        ended = "SELECT key FROM outlive_runs WHERE finished_at IS NOT NULL ORDER BY created_at DESC"
        keys = [key for (key,) in connection.execute(ended)]
        for place, key in enumerate(keys):
            back = int((place / len(keys)) ** 1.1 * MINUTES * 60e6 + chance.random() * 40e6)
            connection.execute(
                "UPDATE outlive_runs SET created_at = created_at - ?1, updated_at = updated_at - ?1 + ?2, "
                "finished_at = finished_at - ?1 + ?2 WHERE key = ?3",
                (back, int(chance.expovariate(1 / 900_000)), key),
            )
    finally:
        connection.close()
