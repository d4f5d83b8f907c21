"""Runs of one tenant with much in them: a request for one takes neither the memory nor the time of others."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Sequence

import pytest

import outlive
from outlive._kernel.client.shown import EVENTS_AT_ONCE, PORTION_BYTES
from outlive._kernel.journal.codec import Row
from outlive.http import Api
from outlive.http.asked import PAGE_BYTES_MAX
from outlive.testing import TestEngine
from tests.engine.inside import row_of, store_of
from tests.flow.conftest import own_flows
from tests.http.caller import Caller

__all__ = ["own_flows"]

STEPS, STEP_BYTES = 12, PORTION_BYTES // 3
RUNS = "/api/v1/runs"


@outlive.step
async def large_part(number: int, size: int = STEP_BYTES) -> str:
    """Much."""
    return f"{number:02}" * (size // 2)


@outlive.step
async def large_item(number: int) -> str:
    """Much."""
    return await large_part(number, PORTION_BYTES)


@outlive.workflow
async def large_runs_whole(steps: int, size: int) -> None:
    """Has much in its journal."""
    for number in range(steps):
        await large_part(number, size)


FLOW = "name: large\nsteps:\n" + "".join(
    f"  s{number}: {{ use: large_part, with: {{ number: {number} }}, must_run: true }}\n" for number in range(STEPS)
)


@pytest.fixture(params=[False, True], ids=["plain", "redacted"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[TestEngine]:
    """An engine with runs that have much in them."""
    async with TestEngine(redact=["password"] if request.param else []) as engine:
        await engine.start(large_runs_whole, STEPS, STEP_BYTES, id="large")
        await engine.flows.apply(FLOW)
        await engine.flows.start("large", id="flow")
        await engine.settle()
        yield engine


def watched(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of blobs are read at a time from now on."""
    read = store_of(engine).get_blobs
    portions = list[int]()

    async def get_blobs(ids: Sequence[str]) -> dict[str, bytes]:
        found = await read(ids)
        portions.append(sum(len(data) for data in found.values()))
        return found

    monkeypatch.setattr(store_of(engine), "get_blobs", get_blobs)
    return portions


@pytest.mark.parametrize(
    "path",
    ["large/history?payload_bytes=0", "large/history?limit=1000", "large/follow?payload_bytes=0", "flow/graph"],
)
async def test_a_large_journal_is_read_in_portions(
    engine: TestEngine, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journal with many large results is read in portions of bounded size, however many events are asked for and
    shown. [S35 S51]"""
    portions = watched(engine, monkeypatch)
    answer = await asyncio.wait_for(Caller(Api(engine)).get(f"{RUNS}/{path}"), 20)

    assert answer.status == 200
    assert max(portions) <= PORTION_BYTES
    assert sum(portions) >= STEPS * STEP_BYTES


async def test_a_page_of_a_history_ends_where_it_has_much(engine: TestEngine) -> None:
    """A page of a history ends when it holds much, and the next page goes on up to the last event. [S51]"""
    await engine.start(large_runs_whole, PAGE_BYTES_MAX // 60_000 + 10, 60_000, id="pages")
    await engine.settle()
    api, pages = Caller(Api(engine)), list[list[int]]()
    after: int | None = -1
    while after is not None:
        page = (await api.get(f"{RUNS}/pages/history?limit=1000&after={after}")).data
        pages.append([event["seq"] for event in page["items"]])
        after = page["next"]

    events = len(await engine.get("pages").history())
    assert len(pages) == 2
    assert [*pages[0], *pages[1]] == list(range(events))


async def test_a_long_history_gives_way_to_other_requests(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop turns after each portion, also where all is in the rows of the journal. [S35 S51]"""
    await engine.start(large_runs_whole, 5 * EVENTS_AT_ONCE, 10, id="many")
    await engine.settle()
    store, turns = store_of(engine), 0
    rows = await store.read_journal((await row_of(engine, "many")).journal)

    async def read_journal(journal: int, *, after: int = -1, limit: int | None = None) -> list[Row]:
        """It answers at once: it is not the store that lets the loop turn."""
        return [row for row in rows if row[0] > after][:limit]

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(store, "read_journal", read_journal)
    turning = asyncio.ensure_future(turn())
    answer = await Caller(Api(engine)).get(f"{RUNS}/many/history?limit=1000")
    turning.cancel()

    assert len(answer.data["items"]) == len(rows)
    assert turns >= 5


@outlive.workflow
async def large_runs_deaf() -> None:
    """Waits for a number, and then for anything."""
    await outlive.wait_for_signal("any")
    await outlive.wait_for_signal("go", int)


async def test_messages_that_could_not_be_read_are_shown_up_to_a_size(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead letters are shown up to a size in all and read in portions, so a sender of many large ones cannot fill the
    memory of the server. [S35 S51]"""
    run = await engine.start(large_runs_deaf, id="deaf")
    await run.signal("any", "x" * PORTION_BYTES)
    count = PAGE_BYTES_MAX // PORTION_BYTES + 3
    for number in range(count):
        await run.signal("go", f"{number}" + "x" * PORTION_BYTES)
    await engine.settle()
    portions = watched(engine, monkeypatch)
    letters = (await Caller(Api(engine)).get(f"{RUNS}/deaf/dead-letters")).data["items"]

    assert max(portions) < 2 * PORTION_BYTES
    assert len(portions) == len(letters) == count
    shown = [it["value"] for it in letters if isinstance(it["value"], str)]
    assert shown
    assert sum(map(len, shown)) <= PAGE_BYTES_MAX
    assert letters[-1]["value"] == {"[large]": PORTION_BYTES + 3}
    assert [it.value[0] for it in await engine.dead_letters.list("deaf")] == [str(number) for number in range(count)]


async def test_a_page_of_items_ends_where_they_hold_much(engine: TestEngine) -> None:
    """A page of items ends when they hold much, and the next page goes on behind it. [S35 S51]"""
    count = PAGE_BYTES_MAX // PORTION_BYTES + 3
    batch = await engine.start_batch(large_item, list(range(count)), id="batch")
    await batch.results()
    api, pages = Caller(Api(engine)), list[list[int]]()
    after: int | None = -1
    while after is not None:
        answer = await api.get(f"/api/v1/batches/batch/items?limit=100&after={after}")
        assert len(answer.body) < PAGE_BYTES_MAX + 2 * PORTION_BYTES
        pages.append([item["index"] for item in answer.data["items"]])
        after = answer.data["next"]

    assert len(pages) > 1
    assert [index for page in pages for index in page] == list(range(count))


@outlive.workflow
async def large_runs_talk() -> None:
    """Emits much."""
    for number in range(3 * STEPS):
        outlive.emit("words", f"{number:02}" * (STEP_BYTES // 2))


async def test_a_large_stream_is_read_in_portions(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream with many large items is read in portions of a few items. [S35 S51]"""
    await (await engine.start(large_runs_talk, id="talk")).result()
    portions = watched(engine, monkeypatch)
    answer = await asyncio.wait_for(Caller(Api(engine)).get(f"{RUNS}/talk/streams/words"), 20)

    assert answer.body.count(b"event: stream") == 3 * STEPS
    assert max(portions) <= 4 * PORTION_BYTES
    assert sum(portions) >= 3 * STEPS * STEP_BYTES


@outlive.step
async def large_lists() -> list[list[int]]:
    """Little text, and much when it is read."""
    return [[] for _ in range(PORTION_BYTES // 3)]


@outlive.workflow
async def large_runs_dear() -> list[list[int]]:
    """Ends with it."""
    return await large_lists()


async def test_a_result_is_not_read_to_be_shown() -> None:
    """Where nothing in it is hidden: as values of Python it takes thirty times its size, and the event
    loop. [S35 S51]"""
    async with TestEngine() as engine:
        await (await engine.start(large_runs_dear, id="dear")).result()
        api = Caller(Api(engine))
        tracemalloc.start()
        try:
            answer = await api.get(f"{RUNS}/dear/result")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert len(answer.data["result"]) == PORTION_BYTES // 3
    assert peak < 8 * PORTION_BYTES
