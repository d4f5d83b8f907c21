"""Steps and workflows that the flows of the tests use, and what they have done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import outlive

CALLS: list[Any] = []
"""What has run, in order."""
FAILURES: dict[str, list[Exception]] = {}
"""What the next calls of a step raise, by what they say."""


def clear() -> None:
    """Begin again."""
    CALLS.clear()
    FAILURES.clear()


@dataclass
class Order:
    """What is bought."""

    id: int
    cents: int = 0


@outlive.step(name="shop.reserve")
async def reserve(order: Order) -> dict[str, Any]:
    """Typed: gets an object of its own class."""
    CALLS.append(("reserve", order))
    return {"id": f"hold-{order.id}", "at": "2026-01-01"}


@outlive.step(name="shop.charge")
async def charge(hold: str, cents: int, *, note: str = "") -> str:
    """With an argument that need not be given."""
    CALLS.append(("charge", hold, cents, note))
    return f"{hold}:{cents}"


@outlive.step(name="shop.say")
async def say(what: Any) -> Any:
    """Says something, and gives it back; fails as long as the test wants."""
    CALLS.append(what)
    if FAILURES.get(str(what)):
        raise FAILURES[str(what)].pop(0)
    return what


@outlive.step(name="shop.stamp")
def stamp(what: str) -> Any:
    """A plain function, whose result JSON has no form of its own for."""
    return {"what": what, "at": datetime(2026, 1, 2, tzinfo=UTC), "pair": (1, 2)}


@outlive.step(name="shop.meet")
async def meet(name: str, others: int) -> int:
    """Returns when that many are there: only side by side."""
    MEETING.setdefault(others, asyncio.Barrier(others))
    await MEETING[others].wait()
    CALLS.append(name)
    return others


MEETING: dict[int, asyncio.Barrier] = {}


@outlive.workflow(name="shop.audit")
async def audit(order: Order, *, depth: int = 1) -> Order:
    """A function beside the flow."""
    await say(f"audit {order.id} {depth}")
    return Order(order.id, order.cents + depth)


@outlive.step(name="shop.release")
async def release(hold: str) -> None:
    """Takes a reservation back."""
    CALLS.append(("release", hold))


async def give_back(result: dict[str, Any]) -> None:
    """The undo that a step has by itself."""
    CALLS.append(("give back", result["book"]))


@outlive.step(name="shop.lend", undo=give_back)
async def lend(book: str) -> dict[str, Any]:
    """A step that can be undone by itself."""
    CALLS.append(("lend", book))
    return {"book": book}


@outlive.step(name="shop.wait")
async def wait(seconds: float) -> float:
    """Takes a while, unless it is cancelled."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        CALLS.append("cancelled")
        raise
    return seconds


class StatusError(Exception):
    """As an HTTP client raises it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status
