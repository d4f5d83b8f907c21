"""Lists and counts of one tenant whose filters are dear: those of others do not wait for them, and point reads less."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import outlive
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.store.postgres import connection as postgres
from outlive._kernel.store.postgres import requests
from outlive._kernel.store.postgres.commit import Writing
from outlive._kernel.store.postgres.store import SEARCHES_MAX
from outlive._kernel.store.sqlite import connection as sqlite
from outlive._kernel.store.sqlite import read
from outlive._kernel.store.tables.searching import RunSearch
from outlive.http import Api, ApiLimits
from outlive.http.line import AT_ONCE
from outlive.http.operation import EVENT_STREAM, OPERATIONS, Operation
from outlive.testing import TestEngine
from tests.engine.inside import store_of
from tests.engine.support import Place
from tests.http.caller import Caller

LIST_SQLITE, LIST_POSTGRES = read.list_runs, requests.list_runs
FAR = "192.0.2.7"
API = "/api/v1"
DEAR = f"{API}/runs?id_prefix=seed-2-&limit=1"
SEARCHING = {
    *("approvals.list", "batches.list", "bulk.cancel", "bulk.list", "bulk.pause", "bulk.purge", "bulk.resume"),
    *("bulk.retry", "overview.get", "runs.count", "runs.count_by", "runs.list", "runs.list_stuck"),
}
"""Operations that look for runs by filters."""
SHARED = {"health.metrics", "overview.get"}
"""All callers share the figures of these, which are made again after some seconds."""


@outlive.workflow
async def noisy_filters_rest() -> None:
    """Waits."""
    await outlive.wait_for_signal("go")


class Searches:
    """Searches of one store, which do not end before they may."""

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.begun = asyncio.Event()
        self._may_end, self._ended = threading.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def on_thread(self, session: sqlite.Session, search: RunSearch) -> list[Run]:
        """One of SQLite, which is on a thread."""
        if not search.filter.is_search:
            return LIST_SQLITE(session, search)
        self._note()
        self._may_end.wait(20)
        self.under_way -= 1
        return []

    async def on_loop(self, session: postgres.Session, search: RunSearch, writing: Writing) -> list[Run]:
        """One of PostgreSQL, which has a connection meanwhile."""
        if not search.filter.is_search:
            return await LIST_POSTGRES(session, search, writing)
        self._note()
        await self._ended.wait()
        self.under_way -= 1
        return []

    def end(self) -> None:
        """Let them end."""
        self._may_end.set()
        self._ended.set()

    def _note(self) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self._loop.call_soon_threadsafe(self.begun.set)


pytestmark = pytest.mark.every_store


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Any) -> Place:
    """A store that several processes may use."""
    place = Place(tmp_path / "engine.db")
    if request.param == "postgres":
        place.server_url = request.getfixturevalue("postgres_url")
    return place


@pytest.fixture
async def engine(place: Place) -> AsyncIterator[outlive.Engine]:
    """An engine with a run of each of two tenants."""
    async with place.engine(worker=False) as engine:
        for tenant in "ab":
            await engine.start(noisy_filters_rest, id=f"run-{tenant}", tags={"tenant": tenant})
        yield engine


@pytest.fixture
async def searches(engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Searches]:
    """The searches of that engine's store."""
    searches = Searches()
    monkeypatch.setattr(read, "list_runs", searches.on_thread)
    monkeypatch.setattr(requests, "list_runs", searches.on_loop)
    yield searches
    searches.end()


async def callers_of(engine: outlive.Engine, tenants: str, **options: Any) -> list[Caller]:
    """A viewer of each of these tenants."""
    api = Api(engine, auth="keys", limits=ApiLimits(**options))
    keys = [await engine.keys.create("viewer", scope="viewer", tags={"tenant": tenant}) for tenant in tenants]
    return [Caller(api, key=made.secret, address=FAR) for made in keys]


async def test_point_reads_do_not_wait_for_searches(engine: outlive.Engine, searches: Searches) -> None:
    """A run, its history and the check of a key are read while fifty lists of another tenant wait. [S35 S51]"""
    a, b = await callers_of(engine, "ab")
    lists = [asyncio.ensure_future(a.get(DEAR)) for _ in range(50)]
    await asyncio.wait_for(searches.begun.wait(), 20)
    answers = [await asyncio.wait_for(b.get(f"{API}/runs/run-b{part}"), 20) for part in ("", "/history", "/tree")]
    started = await engine.start(noisy_filters_rest)
    were_done = [each.done() for each in lists]
    searches.end()

    assert ([200] * 3, [False] * 50) == ([answer.status for answer in answers], were_done)
    assert "pending" == (await started.info()).status
    assert {200} == {answer.status for answer in await asyncio.gather(*lists)}
    assert 1 == searches.most


async def test_searches_of_a_program_leave_room_for_point_reads(engine: outlive.Engine, searches: Searches) -> None:
    """No line is before the searches of code; the store does few of them at once. [S51]"""
    lists = [asyncio.ensure_future(engine.list(id_prefix="seed-2-")) for _ in range(20)]
    await asyncio.wait_for(searches.begun.wait(), 20)
    found = await asyncio.wait_for(engine.get("run-b").info(), 20)
    searches.end()
    await asyncio.gather(*lists)

    assert "run-b" == found.id
    assert searches.most <= SEARCHES_MAX


async def test_tenants_take_turns_with_their_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a tenant is done after one of each of the others, however many of theirs wait. [S35 S51]"""
    async with TestEngine() as engine:
        a, b, c = await callers_of(engine, "abc")
        store, order, begun, whole = store_of(engine), list[str](), asyncio.Event(), asyncio.Event()
        find = store.list_runs

        async def list_runs(wanted: RunFilter, **options: Any) -> list[Run]:
            order.append(wanted.tags["tenant"])
            if len(order) == AT_ONCE:
                begun.set()
            await whole.wait()
            return await find(wanted, **options)

        monkeypatch.setattr(store, "list_runs", list_runs)
        noisy = [asyncio.ensure_future(each.get(DEAR)) for each in (a, c) for _ in range(10)]
        await begun.wait()
        quiet = asyncio.ensure_future(b.get(DEAR))
        for _ in range(100):  # Until it is in the line.
            await asyncio.sleep(0)
        whole.set()
        answers = await asyncio.gather(quiet, *noisy)

    assert {200} == {answer.status for answer in answers}
    assert "b" in order[:5]


async def test_a_sender_has_so_many_searches_in_the_line(engine: outlive.Engine, searches: Searches) -> None:
    """A sender with too many searches gets 503, and another one still has a place. [S35 S51]"""
    a, b = await callers_of(engine, "ab", searches_waiting_max=4)
    lists = [asyncio.ensure_future(a.get(DEAR)) for _ in range(8)]
    done, _ = await asyncio.wait(lists, return_when=asyncio.FIRST_COMPLETED)
    other = asyncio.ensure_future(b.get(DEAR))
    await asyncio.wait_for(searches.begun.wait(), 20)
    searches.end()
    statuses = [answer.status for answer in await asyncio.gather(*lists)]
    first = done.pop().result()

    assert (503, "too_busy", "5") == (first.status, first.code, first.headers["retry-after"])
    assert [3, 5] == [statuses.count(200), statuses.count(503)]
    assert 200 == (await other).status


async def test_a_search_that_takes_too_long_is_given_up(engine: outlive.Engine, searches: Searches) -> None:
    """Its caller may come again. [S35]"""
    (a,) = await callers_of(engine, "a", search_seconds=0.02)
    answer = await a.get(DEAR)

    assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "too_busy", "5")
    assert answer.data["detail"] == "the search for runs was not done: it was not done within 0.02 s"


async def test_a_search_that_waits_when_its_engine_ends_gets_503(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its turn comes too late. [S35]"""
    begun, whole = asyncio.Event(), asyncio.Event()

    async def list_runs(*_: Any, **options: Any) -> list[Run]:
        begun.set()
        await whole.wait()
        return []

    async with TestEngine() as engine:
        monkeypatch.setattr(store_of(engine), "list_runs", list_runs)
        (a,) = await callers_of(engine, "a")
        lists = [asyncio.ensure_future(a.get(DEAR)) for _ in range(2)]
        await begun.wait()
    whole.set()
    first, second = await asyncio.gather(*lists)

    assert 200 == first.status
    assert (503, "engine_closed") == (second.status, second.code)


def body_of(operation: Operation) -> dict[str, Any] | None:
    """A body with a filter that no run passes."""
    if operation.body is None:
        return None
    known = {"workflow": "nothing", "older_than": 60.0}
    return {each.name: known[each.name] for each in msgspec.structs.fields(operation.body) if each.name in known}


async def test_every_operation_that_searches_takes_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations that look for runs by filters are known, and each search is done in the line. [S35 S51]"""
    place = Place(None)
    async with place.engine(worker=False) as engine:
        api, store, asked = Caller(Api(engine)), store_of(engine), ""
        found: dict[bool, set[str]] = {True: set(), False: set()}

        def watch(name: str) -> None:
            find = getattr(store, name)

            async def watched(wanted: RunFilter, *by: Any, **options: Any) -> Any:
                task = asyncio.current_task()
                if wanted.is_search and task is not None:
                    found[task.get_name() == "outlive-http-line"].add(asked)
                return await find(wanted, *by, **options)

            monkeypatch.setattr(store, name, watched)

        watch("list_runs")
        watch("count_runs")
        watch("count_groups")
        for it in OPERATIONS.values():
            asked = it.name
            if it.media != EVENT_STREAM and not it.names:
                await api.send(it.method, it.path, body_of(it))

    assert SEARCHING == found[True]
    assert SHARED >= found[False]
