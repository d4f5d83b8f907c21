"""Cells whose names come from data are removed when they say nothing any more, and not before."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

import outlive
from outlive._features.retention.cell_collector import CELL_TURNS_CELL
from outlive.engine.view import view_of
from outlive.errors.key import LinkRefusedError
from outlive.limits import Breaker, Debounce, FixedWindow, RateLimit, TokenBucket
from outlive.testing import TestEngine
from tests.engine.inside import store_of

DAY = timedelta(days=1)
KEEP = outlive.retention.Keep("kept", succeeded=DAY)
day = RateLimit("day", TokenBucket(rate=1 / (3 * 86_400), burst=1), shared=True, when_full="fail")
second = RateLimit("second", FixedWindow(10, seconds=1), shared=True)
healthy = Breaker("healthy", shared=True)
shaky = Breaker("shaky", failures=5, shared=True)


@outlive.step(limit=day)
async def daily() -> None: ...


@outlive.step(limit=second, breaker=healthy)
async def quick() -> None: ...


@outlive.step(breaker=shaky)
async def failing() -> None:
    raise ConnectionError("away")


@outlive.workflow
async def limited_for_a_while() -> str:
    await daily()
    await quick()
    with suppress(ConnectionError):
        await failing()
    return "done"


@outlive.workflow
async def refused_again() -> None:
    await daily()


@outlive.workflow
async def bursting(text: str) -> str:
    return text


@outlive.workflow
async def asked() -> str:
    return (await outlive.wait_for_approval("pay", title="Pay?")).by


async def cells(engine: TestEngine) -> list[str]:
    """The names of the cells of which there may be many."""
    names = await store_of(engine).examiner.list_cells(limit=100)
    return [name for name in names if not name.startswith(("@", "outlive.retention", "outlive.blobs", CELL_TURNS_CELL))]


async def walk(engine: TestEngine, days: int) -> None:
    """Let so many days pass; a walk takes a few turns."""
    await engine.skip(days * DAY)
    for _ in range(10):
        await engine.skip(seconds=1)


async def test_cells_that_say_nothing_any_more_are_removed() -> None:
    """Limits whose windows are over, healthy breakers, bursts of long ago; what still counts stays and holds."""
    async with TestEngine(retention=[KEEP]) as engine:
        await walk(engine, days=0)
        await (await engine.start(limited_for_a_while)).result()
        await (await engine.start(bursting, "a", debounce=Debounce(key="shop", quiet=1))).result()
        before = await cells(engine)
        assert [name.split("/")[0] for name in before] == ["breaker", "breaker", "limit", "limit", "outlive.bursts"]

        await walk(engine, days=2)
        assert await cells(engine) == ["breaker/shaky", "limit/day"]
        with pytest.raises(outlive.errors.RunFailedError, match="1 at once"):
            await (await engine.start(refused_again)).result()
        await walk(engine, days=5)

        assert await cells(engine) == ["breaker/shaky"]
        assert engine.counters.cells_removed == 4
        await (await engine.start(refused_again)).result()


async def test_tokens_that_have_expired_are_removed() -> None:
    """One that is valid stays."""
    async with TestEngine(retention=[KEEP]) as engine:
        await engine.start(asked, id="asked")
        await engine.settle()
        tokens = view_of(engine).run_tokens
        await tokens.create("asked", stream="", seconds=3_600, by="ann", key="")
        valid = await tokens.create("asked", stream="", seconds=10 * 86_400, by="ann", key="")
        await walk(engine, days=3)

        assert len([name for name in await cells(engine) if name.startswith("outlive.token/")]) == 1
        assert await tokens.find(valid.token) is not None


async def test_links_that_have_expired_are_removed() -> None:
    """They are refused before and after; one that is valid decides."""
    async with TestEngine(retention=[KEEP]) as engine:
        run = await engine.start(asked, id="asked")
        await engine.settle()
        short = await engine.approvals.links.create(
            "asked", "pay", approved=False, by="bob", expires=timedelta(hours=1)
        )
        valid = await engine.approvals.links.create("asked", "pay", approved=True, by="ann", expires=10 * DAY)
        await walk(engine, days=3)

        assert len([name for name in await cells(engine) if name.startswith("outlive.link/")]) == 1
        with pytest.raises(LinkRefusedError):
            await engine.approvals.links.use(short.token)
        await engine.approvals.links.use(valid.token)
        assert await run.result() == "ann"


async def test_many_cells_are_walked_over_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk over many cells removes all that have expired, page by page."""
    monkeypatch.setattr("outlive._features.retention.cell_collector.CELLS_AT_ONCE", 2)
    async with TestEngine(retention=[KEEP]) as engine:
        for number in range(5):
            await (await engine.start(bursting, "a", debounce=Debounce(key=f"{number}", quiet=1))).result()
        assert len(await cells(engine)) == 5
        await walk(engine, days=0)
        await walk(engine, days=3)

        assert await cells(engine) == []
        assert engine.counters.cells_removed == 5
