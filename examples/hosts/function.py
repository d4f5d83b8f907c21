"""A function of a cloud that lives for seconds and is killed at its deadline: it ships orders while it lives.

OUTLIVE_STORE=postgresql://... is set for the function. An order comes as {"order": "o-1"}; call it with {} once a
minute too, so that sleeping orders go on when their time has come.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import outlive

engine = outlive.Engine(
    os.environ.get("OUTLIVE_STORE", "sqlite:orders.db"),
    worker=outlive.types.WorkerOptions(grace_seconds=1),  # A step without a timeout has this long at the end.
)


@outlive.step(timeout=2)  # It is begun only if so much time is left.
async def print_label(order: str) -> str:
    return f"label of {order}"


@outlive.step
async def drive(order: str) -> None:
    await asyncio.sleep(float(os.environ.get("DRIVE_SECONDS", "0")))


@outlive.workflow
async def send_order(order: str) -> str:
    label = await print_label(order)
    await drive(order)
    return label


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What the platform calls; `context` has the signature that AWS Lambda gives it."""
    return asyncio.run(handle(event, seconds=context.get_remaining_time_in_millis() / 1000))


async def handle(event: dict[str, Any], *, seconds: float) -> dict[str, Any]:
    """Take the order of the event, and work until nothing is due or the time is over."""
    async with engine.work(seconds, until_idle=True) as work:
        if "order" in event:
            await engine.start(send_order, event["order"], id=event["order"])
    assert work.done is not None
    return {"done": str(work.done), "has_more": work.done.has_more}
