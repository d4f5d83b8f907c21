"""What one caller may take of the server for long: lists that it follows, requests that follow or wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime

import pytest

from outlive.engine.view import view_of
from outlive.http import Api, ApiLimits
from outlive.http.limits import Places
from outlive.http.live import (
    LOOK_SECONDS,
    LOOK_SECONDS_MAX,
    LOOKS_SHARE,
    PAUSE_SECONDS_MAX,
    LivePages,
    LookBudget,
    in_whole_minutes,
    rest_after,
)
from outlive.http.principal import Principal
from outlive.http.wire.runs import RunsFollowQuery
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Caller, Message

FAR = "192.0.2.7"
LIST = "/api/v1/runs/follow?id_prefix="


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine() as engine:
        yield engine


# -- Followed lists -------------------------------------------------------------------------------------------------


async def follow(caller: Caller, path: str, until: asyncio.Event) -> list[Message]:
    """Follow a list, and say when it is there."""

    def look(seen: list[Message]) -> bool:
        if seen:
            until.set()
        return False

    return await caller.follow(path, until=look)


async def test_a_principal_follows_a_bounded_number_of_different_lists(engine: TestEngine) -> None:
    """Each one costs a look a second. A list that it follows already, and another principal, are not refused. [S35]"""
    app = Api(engine, auth="keys", limits=ApiLimits(lists_max=2))
    eve, ann = [
        Caller(app, key=(await engine.keys.create("ops", scope=scope)).secret, address=FAR)
        for scope in ("admin", "viewer")
    ]
    reading = []
    for who, prefix in ((eve, "a"), (eve, "b"), (eve, "a"), (ann, "c")):
        reading.append(asyncio.ensure_future(follow(who, LIST + prefix, begun := asyncio.Event())))
        await begun.wait()
    refused = await eve.get(LIST + "d")
    reading[1].cancel()
    await asyncio.wait([reading[1]])
    reading.append(asyncio.ensure_future(follow(eve, LIST + "d", begun := asyncio.Event())))
    await begun.wait()
    app.close()

    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "too_many_lists", "5")
    assert [[message.name for message in await each] for each in reading] == [["list"]] * 5


async def test_lists_that_are_asked_for_at_the_same_moment_are_counted(engine: TestEngine) -> None:
    """All of them passed the check before the first one was followed. [S35]"""
    pages = LivePages(lists_max=2)
    queries = [RunsFollowQuery(id_prefix=prefix) for prefix in "abc"]
    for query in queries:
        pages.check(query, of="", by="eve")
    readers = [pages.follow(view_of(engine), query, of="", by="eve") for query in queries]
    begun = [[part async for part in first_of(reader)] for reader in readers]

    assert [len(parts) for parts in begun] == [1, 1, 0]
    for reader in readers:
        await reader.aclose()


async def first_of(reader: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """What comes first, if anything comes; the reader stays."""
    try:
        yield await anext(reader)
    except StopAsyncIteration:
        return


def test_a_list_rests_for_longer_when_its_looks_are_dear() -> None:
    """Up to a limit: a store that was slow once is looked at again. [S35]"""
    assert [rest_after(took) for took in (0.0, 0.004, 0.1, 60.0)] == [LOOK_SECONDS, LOOK_SECONDS, 2.0, LOOK_SECONDS_MAX]


class Time:
    """A clock that a sleep moves on."""

    def __init__(self) -> None:
        self.at = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        """The instant."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Sleep at once."""
        self.slept.append(seconds)
        self.at += seconds


async def test_all_lists_of_a_server_share_one_budget_of_time() -> None:
    """Looks of different lists together take a quarter of the time, however many lists there are. [S35 S51]"""
    time = Time()
    budget = LookBudget(now=time.now, sleep=time.sleep)
    looks, took = 40, 0.01
    for _ in range(looks):
        async with budget.turn():
            time.at += took
    async with budget.turn():
        busy, at = looks * took, time.at

    assert busy / at == pytest.approx(LOOKS_SHARE)
    async with budget.turn():
        time.at += 60
    async with budget.turn():
        pass
    assert time.slept[-1] == PAUSE_SECONDS_MAX


async def test_a_principal_with_many_lists_waits_in_its_own_line(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lists do not make the list of another one wait longer, also if it follows that list too. [S35 S51]"""
    looked: list[str | None] = []
    may_look = asyncio.Semaphore(0)
    has_looked = asyncio.Event()

    async def runs(**query: object) -> list[object]:
        looked.append(str(query["id_prefix"]))
        has_looked.set()
        await may_look.acquire()
        return []

    view = view_of(engine)
    monkeypatch.setattr(view, "runs", runs)
    monkeypatch.setattr("outlive.http.live.PAUSE_SECONDS_MAX", 0.0)
    pages = LivePages()
    wanted = [*((f"e-{number}", "eve") for number in range(5)), ("all", "eve"), ("all", "ann")]
    readers = [pages.follow(view, RunsFollowQuery(id_prefix=prefix), of="", by=by) for prefix, by in wanted]
    for reader in readers:
        await anext(reader)
    await has_looked.wait()
    for _ in range(3):
        may_look.release()
        for _ in range(10):
            await asyncio.sleep(0)

    assert looked[0] == "e-0"
    assert "all" in looked[:3]
    for reader in readers:
        async with aclosing(reader):
            pass


def test_readers_that_ask_within_a_minute_follow_one_list() -> None:
    """Readers whose times differ within a minute follow one list, which covers what each asked for. [S35]"""

    def asked(second: int, minute: int = 5) -> RunsFollowQuery:
        return RunsFollowQuery(
            since=datetime(2026, 1, 1, 9, minute, second, tzinfo=UTC),
            until=datetime(2026, 1, 1, 10, minute, second, 1, tzinfo=UTC),
        )

    whole = in_whole_minutes(asked(1))

    assert whole == in_whole_minutes(asked(59))
    assert whole == in_whole_minutes(whole)
    assert whole.since == datetime(2026, 1, 1, 9, 5, tzinfo=UTC)
    assert whole.until == datetime(2026, 1, 1, 10, 6, tzinfo=UTC)
    last = RunsFollowQuery(until=datetime.max.replace(tzinfo=UTC))
    assert in_whole_minutes(last) == last


# -- Places ---------------------------------------------------------------------------------------------------------


def viewer(key: str, *, name: str = "viewer", **bounds: object) -> Principal:
    """A viewer with a key."""
    return Principal(name, frozenset({"viewer"}), key=key, **bounds)  # type: ignore[arg-type]


ROOT = Principal("root", frozenset({"admin"}), key="root")


def taken(places: Places, principal: Principal) -> int:
    """How many places a principal gets that takes all it can."""
    count = 0
    while places.take(principal):
        count += 1
    return count


def test_viewers_leave_places_to_each_other_and_to_admins() -> None:
    """However many of them take all that they can. [S35 S51]"""
    places = Places(100)

    assert [taken(places, viewer(key)) for key in "abcdef"] == [45, 23, 11, 6, 3, 1]
    assert taken(places, ROOT) == 11


def test_places_are_counted_by_the_key() -> None:
    """A key of the same name is another one; so is a person of the same name with other tags. [S35]"""
    places = Places(10)
    first, second = viewer("a"), viewer("b")
    assert taken(places, first) == 5
    assert taken(places, second) == 2
    for _ in range(5):
        places.leave(first)
    assert taken(places, second) == 3

    people = Places(10)
    acme, other = (viewer("", tags={"tenant": name}) for name in ("acme", "other"))
    assert [taken(people, acme), taken(people, other)] == [5, 2]


async def test_each_stream_that_is_followed_takes_a_place(engine: TestEngine) -> None:
    """It is looked at as often as a run: one request for a hundred of them costs as much as a hundred. [S35]"""
    app = Api(engine, auth="keys", limits=ApiLimits(followers_max=6))
    eve = Caller(app, key=(await engine.keys.create("eve")).secret, address=FAR)
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()
    path = "/api/v1/runs/run-0/follow?stream=a&stream=b"
    reading = asyncio.ensure_future(follow(eve, path, begun := asyncio.Event()))
    await begun.wait()
    refused = await asyncio.wait_for(eve.get("/api/v1/runs/run-0/follow"), 20)
    reading.cancel()
    await asyncio.wait([reading])
    again = asyncio.ensure_future(follow(eve, path, begun := asyncio.Event()))
    await begun.wait()
    app.close()
    await again

    assert (refused.status, refused.code) == (503, "too_many_followers")
    assert (await eve.get("/api/v1/runs/run-0/follow?" + "&".join(f"stream={n}" for n in range(6)))).status == 503


def test_an_admin_of_some_runs_takes_no_places_that_are_for_admins() -> None:
    """It is an admin of its tenant. [S35]"""
    places = Places(10)
    tenant = Principal("t", frozenset({"admin"}), tags={"tenant": "acme"}, key="t")

    assert [taken(places, tenant), taken(places, ROOT)] == [5, 5]


@pytest.mark.parametrize("wait", [0, 30])
async def test_a_request_that_waits_takes_a_place(engine: TestEngine, wait: int) -> None:
    """It costs as much as one that follows. Without `wait` it takes none. [S35]"""
    app = Api(engine, auth="keys", limits=ApiLimits(followers_max=4))
    eve = Caller(app, key=(await engine.keys.create("eve")).secret, address=FAR)
    await engine.start(shop.api_patient, id="run-0")
    await engine.settle()
    path = f"/api/v1/runs/run-0/result?wait={wait}"
    waiting = [asyncio.ensure_future(eve.get(path)) for _ in range(3)]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    statuses = sorted(each.result().status for each in done)
    await engine.signal("run-0", "go", 1)
    ended = sorted([(await each).status for each in waiting])

    if wait:
        assert statuses == [503]
        assert ended == [200, 200, 503]
    else:
        assert set(ended) == {202}
    assert (await eve.get("/api/v1/runs/run-0/result?wait=30")).status == 200
