"""The workflows whose histories are golden, and the acts of each story. Never change one: write another beside it.

A golden history is replayed with this code for ever. Together the stories hold every kind of event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import outlive
from outlive import Retry
from outlive.errors import RunFailedError
from outlive.limits import Limits
from outlive.testing import SkipClock, TestEngine
from outlive.types import WorkerOptions
from tests.engine.inside import journal_of

is_held = False
"""Whether `pick` waits: only while the first engine of a story is about to stop."""


@outlive.step(name="golden.reserve")
async def reserve(order: str) -> str:
    """Return at once."""
    return f"hold of {order}"


@outlive.step(name="golden.charge", retry=Retry(attempts=3, first=60))
async def charge(cents: int) -> dict[str, Any]:
    """Fail once."""
    if outlive.current_step().attempt == 1:
        raise ConnectionError("busy")
    return {"cents": cents, "by": "card"}


@outlive.step(name="golden.refuse")
async def refuse() -> None:
    """Fail for good."""
    raise ValueError("no such thing")


@outlive.step(name="golden.pick")
async def pick(order: str) -> list[str]:
    """Save how far it came; be interrupted by the end of an engine."""
    outlive.current_step().heartbeat({"picked": 1})
    await asyncio.sleep(0.01)
    if is_held:
        await asyncio.Event().wait()
    return [order, "picked"]


@outlive.step(name="golden.render")
def render(letters: int) -> str:
    """On a thread, and too large to stand in the journal."""
    return "x" * letters


@outlive.workflow(name="golden.pack")
async def pack(order: str) -> str:
    """A child."""
    await asyncio.sleep(5)
    return await reserve(f"box of {order}")


@outlive.workflow(name="golden.audit")
async def audit(order: str) -> str:
    """A tree of its own."""
    await asyncio.sleep(30)
    return f"audit of {order}"


@outlive.workflow(name="golden.order")
async def order(name: str) -> list[Any]:
    """Everything that goes well in the end."""
    hold = await reserve(name)
    picked = await pick(name)
    audited = await outlive.start(audit, name, detached=True)
    receipt, box = await asyncio.gather(charge(4200), pack(name))
    with suppress(ValueError):
        await refuse()
    paid = await outlive.wait_for_signal("paid", int)
    page = await render(32_800)
    return [hold, picked, receipt, box, paid, len(page), await audited.result(), outlive.random()]


@outlive.workflow(name="golden.report")
async def report(times: int) -> str:
    """A child whose argument the first engine finds too large."""
    return await pack(await reserve("r") * times)


@outlive.workflow(name="golden.patience")
async def patience() -> None:
    """Wait for a signal that never comes."""
    try:
        await outlive.wait_for_signal("never", str)
    finally:
        await reserve("what is left")


@outlive.workflow(name="golden.failure")
async def failure() -> None:
    """Fail."""
    await refuse()


async def tell_order(url: str) -> str:
    """Begun by one engine, which stops in the middle of a step; ended by another."""
    global is_held  # noqa: PLW0603 (a step has no other way to know)
    clock = SkipClock()
    is_held = True
    async with TestEngine(url, clock=clock, worker=WorkerOptions(grace_seconds=0.05)) as engine:
        run = await engine.start(order, "o-1", id="golden-order", tags={"team": "shop"})
        while not any(type(event).__name__ == "StepProgressed" for event in await journal_of(run)):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    is_held = False
    async with TestEngine(url, clock=clock) as engine:
        run = engine.get("golden-order")
        await run.signal("paid", 4200, key="evt-1")
        await run.result()
        return await engine.export(run.id)


async def tell_report(url: str) -> str:
    """Parked, and resumed with other limits."""
    clock = SkipClock()
    tight = Limits(payload_inline_bytes_max=100, payload_bytes_max=1_000)
    async with TestEngine(url, clock=clock, limits=tight) as engine:
        await engine.start(report, 200, id="golden-report")
        await engine.settle()
    async with TestEngine(url, clock=clock) as engine:
        await engine.resume("golden-report")
        await engine.get("golden-report").result()
        return await engine.export("golden-report")


async def tell_cancelled(url: str) -> str:
    """Cancelled; its last step runs all the same."""
    return await _end_of(url, patience, "golden-cancelled", lambda run: run.cancel(reason="changed my mind"))


async def tell_timed_out(url: str) -> str:
    """Out of time."""
    return await _end_of(url, patience, "golden-timed-out", None)


async def tell_failed(url: str) -> str:
    """Failed."""
    return await _end_of(url, failure, "golden-failed", None)


async def _end_of(url: str, workflow: Any, run_id: str, act: Callable[[Any], Awaitable[None]] | None) -> str:
    async with TestEngine(url) as engine:
        run = await engine.start(workflow, id=run_id, timeout=3600)
        if act is not None:
            await engine.settle()
            await act(run)
        with suppress(RunFailedError):
            await run.result()
        return await engine.export(run.id)


STORIES: dict[str, Callable[[str], Awaitable[str]]] = {
    "order": tell_order,
    "report": tell_report,
    "cancelled": tell_cancelled,
    "timed-out": tell_timed_out,
    "failed": tell_failed,
}
"""The file of each story is `tests/golden/<name>.jsonl`."""
