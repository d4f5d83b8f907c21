"""What the tests of the page of a run run, in their own process or in that of a worker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

import outlive


class Refund(msgspec.Struct):
    """What a person fills in."""

    amount: int
    note: str = ""


class Refused(Exception):
    """The bank said no."""


class Weather:
    """Whether the ship can sail."""

    is_good = True


@outlive.step
async def page_reserve(order: int) -> dict[str, int]:
    """Reserve."""
    return {"reserved": order}


@outlive.step(retry=outlive.Retry(2, first=0.01))
async def page_ship(order: int) -> str:
    """Ship, if the weather is good."""
    if not Weather.is_good:
        raise Refused(f"order {order} cannot be shipped")
    return f"{order} shipped"


@outlive.step
async def page_say(text: str) -> None:
    """Stream words."""
    for word in text.split():
        outlive.emit("words", f"{word} ")


@outlive.workflow
async def page_invoice(order: int) -> str:
    """A child."""
    await page_say("an invoice")
    return f"invoice {order}"


@outlive.workflow
async def page_order(order: int) -> str:
    """Steps, a child, a signal and an approval."""
    found = await page_reserve(order)
    await page_say("all is well")
    outlive.publish(stage="invoice")
    await page_invoice(found["reserved"])
    await outlive.wait_for_signal("paid")
    decided = await outlive.wait_for_approval("refund", title="Refund 5 EUR?", assignees=["ann"], form=Refund)
    return f"{found['reserved']}: {decided.form.amount if decided.form else 'no'}"


@outlive.workflow
async def page_shipment(order: int) -> str:
    """Fails in bad weather."""
    found = await page_reserve(order)
    return await page_ship(found["reserved"])


@outlive.step
async def page_crash(folder: str) -> str:
    """Hang when it is first called; its worker is killed then."""
    begun = Path(folder) / "begun"
    if not begun.exists():
        begun.write_text("")
        await asyncio.Event().wait()
    return "charged once"


@outlive.workflow
async def page_survivor(folder: str) -> str:
    """Outlives the worker that it begins on."""
    await page_reserve(1)
    charged = await page_crash(folder)
    await outlive.wait_for_signal("end")
    return charged


@outlive.step(retry=outlive.Retry(5, first=3600.0))
async def page_moor(port: str) -> str:
    """Fail, and be tried again in an hour."""
    raise Refused(f"{port} is closed")


@outlive.workflow
async def page_voyage(port: str = "Kiel") -> str:
    """Goes on when a person skips the step that cannot work."""
    return f"moored: {await page_moor(port)}"


@outlive.workflow
async def page_cart() -> int:
    """Answers two asks."""
    total = 0
    async for ask in outlive.asks("add", int):
        total += ask.body
        ask.reply(total)
        if total > 9:
            break
    return total


@outlive.step
async def page_send(promise_id: str) -> str:
    """Send the id of a promise to another program."""
    return promise_id


@outlive.workflow
async def page_courier() -> str:
    """Waits for another program."""
    promise = outlive.promise(str)
    await page_send(promise.id)
    return await promise


@outlive.step
async def page_tick(number: int) -> int:
    """One of many."""
    return number


@outlive.workflow
async def page_long(count: int) -> int:
    """Many steps, then a wait."""
    for number in range(count):
        await page_tick(number)
    await outlive.wait_for_signal("end")
    return count


class Bank(Exception):
    """The bank does not answer."""


@outlive.step(retry=outlive.Retry(5, first=0.01))
async def page_call_bank(account: str, cents: int) -> None:
    """Fail once, and hang."""
    if outlive.current_step().attempt == 1:
        raise Bank("no answer")
    outlive.current_step().heartbeat({"sent": 3})
    await asyncio.Event().wait()


@outlive.workflow
async def page_hang(account: str) -> None:
    """Hang in a step."""
    await page_reserve(1)
    await page_call_bank(account, 1_999)
