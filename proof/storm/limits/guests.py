"""The queues of the storm, and what the runs in them do: visits that write down when they begin and when they end."""

from __future__ import annotations

import asyncio
import time

import outlive
from proof.storm.effects import effect

KEYS = ("ann", "bob", "cid", "dee")
QUEUES = {
    "one": outlive.Queue("one", concurrency=1),
    "seven": outlive.Queue("seven", concurrency=7),
    "keys": outlive.Queue("keys", per_key=1),
    "heavy": outlive.Queue("heavy", concurrency=5),
    "window": outlive.Queue("window", rate=outlive.limits.SlidingWindow(5, seconds=2)),
}
SLOTS_MAX = 3
"""The most slots that a guest of the heavy queue takes."""
NAP_SECONDS = 0.3


@outlive.step(name="limits.visit")
async def visit(place: int) -> None:
    """Be there for a moment."""
    with effect(place):
        await asyncio.sleep(0.02 + place % 5 * 0.03)


@outlive.step(name="limits.visit_on_thread")
def visit_on_thread(place: int) -> None:
    """The same on a thread, which no cancellation ends."""
    with effect(place):
        time.sleep(0.02 + place % 5 * 0.03)


@outlive.workflow(name="limits.guest")
async def guest(number: int) -> int:
    """Come twice; some are away for a while in between, and keep their slot."""
    await visit(number)
    if number % 4 == 0:
        await asyncio.sleep(NAP_SECONDS)
    if number % 3 == 0:
        await visit_on_thread(number + 1)
    else:
        await visit(number + 1)
    return number


def run_id(queue: str, number: int) -> str:
    """The id of a guest, which says where it is."""
    return f"{queue}-{number}" if queue != "keys" else f"{queue}-{KEYS[number % len(KEYS)]}-{number}"


def slots_of(run: str) -> int:
    """How many slots of its queue a guest takes."""
    return 1 + int(run.rpartition("-")[2]) % SLOTS_MAX if line_of(run) == "heavy" else 1


def line_of(run: str) -> str:
    """What a limit counts together: the queue of a guest, or its key."""
    return run.rpartition("-")[0]


LIMITS = {"one": 1, "seven": 7, "heavy": 5, **{f"keys-{key}": 1 for key in KEYS}}
"""How many slots guests under way may have, by `line_of`."""
WINDOWS = {"window": (5, 2_000_000)}
"""How many guests may begin in any period of so many microseconds, by `line_of`."""
