"""Testing your workflows: run with `pytest -o asyncio_mode=auto` in this folder."""

from checkout import Order, checkout
from waiting import Payment, refund

from outlive.testing import TestEngine, crash_everywhere, replay


async def test_refund_expires():
    async with TestEngine() as engine:  # in memory; time skips when nothing is running
        run = await engine.start(refund, "o-1")
        await engine.signal(run.id, "paid", Payment(4200, "ann"))
        assert await run.result() == "expired"  # two days in milliseconds


async def test_checkout_survives():
    await crash_everywhere(checkout, Order("o-1", 1999))  # kills and recovers at every commit; same result


def test_yesterdays_runs_still_replay():
    replay("histories/*.jsonl", workflows=[checkout, refund])
