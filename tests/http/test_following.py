"""Following runs over HTTP: everything once, in order, from any position on, and nothing that is redacted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest

from outlive._kernel.client.news import Position
from outlive.engine.view import View, view_of
from outlive.http import Api, ApiLimits
from outlive.http.live import LivePages
from outlive.http.problem import Problem
from outlive.http.sse import Cursor, read_cursor
from outlive.http.wire.runs import RunsFollowQuery
from outlive.testing import TestEngine
from tests.http import shop
from tests.http.caller import Caller, Message

LIMITS = ApiLimits(look_seconds=0.01)
SECRET = "hunter2222"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine."""
    async with TestEngine(redact=["password"]) as engine:
        yield engine


@pytest.fixture
def api(engine: TestEngine) -> Caller:
    """Its API."""
    return Caller(Api(engine, limits=LIMITS))


def seqs(messages: list[Message]) -> list[int]:
    """The numbers of the events of the journal."""
    return [each.data["seq"] for each in messages if each.name == "journal"]


def has_stage(stage: str, messages: list[Message]) -> bool:
    """Whether this was published."""
    return any(each.name == "published" and each.data == {"stage": stage} for each in messages)


async def test_a_run_is_followed_and_a_cut_reader_goes_on_behind_what_it_has(api: Caller, engine: TestEngine) -> None:
    """Both readers together have every event once; the end has the run; then there is nothing more. [SSE]"""
    run = await engine.start(shop.api_talker, SECRET, id="talk")
    path = "/api/v1/runs/talk/follow?stream=words"
    first = await api.follow(path, until=lambda seen: has_stage("waiting", seen))
    rest = asyncio.ensure_future(api.follow(path, after=first[-1].id))
    await run.signal("go")
    second = await rest
    history = await api.get("/api/v1/runs/talk/history")

    assert seqs(first) + seqs(second) == [each["seq"] for each in history.data["items"]]
    assert has_stage("talking", second)
    assert [0, 1, 2] == [each.data["value"]["n"] for each in second if each.name == "stream"]
    assert ("end", "succeeded") == (second[-1].name, second[-1].data["status"])
    assert SECRET not in repr(first) + repr(second)
    again = await api.get(path, headers={"last-event-id": second[-1].id})
    assert (204, b"") == (again.status, again.body)
    whole = await api.follow(path)
    assert seqs(whole) == seqs(first) + seqs(second)


async def test_later_events_hide_the_secret_of_an_earlier_one(api: Caller, engine: TestEngine) -> None:
    """A reader that begins behind the event with a secret does not see that secret in a later event."""
    shop.Flag.is_up = False
    await engine.start(shop.api_talker, SECRET, id="bad")
    path = "/api/v1/runs/bad/follow"
    first = await api.follow(path, until=lambda seen: has_stage("waiting", seen))
    rest = asyncio.ensure_future(api.follow(path, after=first[-1].id))
    await engine.signal("bad", "go")
    second = await rest

    assert "failed" == second[-1].data["status"]
    assert "wrong: [redacted]" in repr([each.data for each in second if each.name == "journal"])
    assert SECRET not in repr([each.data for each in second if each.name == "journal"])


async def test_a_stream_is_followed_from_a_position(api: Caller, engine: TestEngine) -> None:
    """Given as a number, or as the id of its last message."""
    run = await engine.start(shop.api_talker, SECRET, id="s")
    await run.signal("go")
    await run.result()
    path = "/api/v1/runs/s/streams/words"
    whole, rest = await api.follow(path), await api.follow(f"{path}?after=2")
    resumed = await api.follow(path, after=whole[1].id)

    assert [1, 2, 3] == [each.data["position"] for each in whole[:-1]]
    assert {"n": 0, "password": "[redacted]"} == whole[0].data["value"]
    assert [3] == [each.data["position"] for each in rest[:-1]]
    assert [3] == [each.data["position"] for each in resumed[:-1]]
    assert ("end", {"position": 3}) == (whole[-1].name, whole[-1].data)
    assert 404 == (await api.get("/api/v1/runs/nothing/streams/words")).status


async def test_a_list_is_followed(engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two followers of a list get each new or changed run and each run that has left the list, with the same
    messages."""
    monkeypatch.setattr("outlive.http.live.LOOK_SECONDS", 0.01)
    api = Caller(Api(engine, limits=LIMITS))
    path = "/api/v1/runs/follow?workflow=api_patient&status=waiting&status=pending&status=running"
    await engine.start(shop.api_patient, id="l-1")
    await engine.settle()

    has_first, has_second = asyncio.Event(), asyncio.Event()

    def is_gone(seen: list[Message]) -> bool:
        for event, run_id in ((has_first, "l-1"), (has_second, "l-2")):
            if any(each.data.get("id") == run_id for each in seen):
                event.set()
        return any(each.name == "gone" for each in seen)

    readers = [asyncio.ensure_future(api.follow(path, until=is_gone)) for _ in range(2)]
    await has_first.wait()
    await engine.start(shop.api_patient, id="l-2")
    await has_second.wait()
    await engine.cancel("l-1")
    seen, other = await asyncio.gather(*readers)

    assert seen == other
    assert ["l-1", "l-2"] == sorted({each.data["id"] for each in seen if each.name == "run"})
    assert ["l-1"] == [each.data["id"] for each in seen if each.name == "gone"]


def is_listed(seen: list[Message]) -> bool:
    """Whether the reader has the whole list."""
    return any(each.name == "list" for each in seen)


async def test_a_cut_reader_of_a_list_gets_what_has_changed_since(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any server of the store; and what is in the list now, so that it can drop the others. [SSE]"""
    monkeypatch.setattr("outlive.http.live.LOOK_SECONDS", 0.01)
    path = "/api/v1/runs/follow?workflow=api_patient&status=waiting"
    for number in range(3):
        await engine.start(shop.api_patient, id=f"l-{number}")
    await engine.settle()
    first = await Caller(Api(engine, limits=LIMITS)).follow(path, until=is_listed)
    await engine.cancel("l-0")
    await engine.start(shop.api_patient, id="l-3")
    await engine.settle()
    other = Caller(Api(engine, limits=LIMITS))
    second = await other.follow(path, after=first[-1].id, until=is_listed)
    third = await other.follow(path, after=second[-1].id, until=is_listed)

    assert ["l-0", "l-1", "l-2"] == [each.data["id"] for each in first if each.name == "run"]
    assert ["l-3"] == [each.data["id"] for each in second if each.name == "run"]
    assert {"ids": ["l-3", "l-2", "l-1"]} == second[-1].data
    assert ["list"] == [each.name for each in third]
    assert third[-1].id == second[-1].id


@pytest.mark.parametrize("journal", [0, 1, 10**18 + 1, 2**63 - 1])
def test_place_in_any_journal_can_be_gone_on_from(journal: int) -> None:
    """Handles of journals are made of the clock, and have as many digits as a store can keep."""
    cursor = Cursor(Position(journal, 5), {"tokens": 34})

    assert read_cursor(cursor.write()) == cursor


@pytest.mark.parametrize(
    "mark",
    [
        "9223372036854775808.5",
        "-1.5",
        "7.-2",
        "7.5;tokens=-2",
        "7.x",
        "\N{ARABIC-INDIC DIGIT SEVEN}.5",
        "7" * 30 + ".5",
    ],
)
def test_place_that_no_journal_has_is_refused(mark: str) -> None:
    """It was made up."""
    with pytest.raises(Problem):
        read_cursor(mark)


async def test_a_reader_of_an_empty_list_gets_its_ids(api: Caller) -> None:
    """It need not wait for a run to know that there is none; and comes again with the id of an empty list."""
    path = "/api/v1/runs/follow?workflow=api_patient"
    seen = await api.follow(path, until=is_listed)

    assert [("list", {"ids": []})] == [(each.name, each.data) for each in seen]
    assert seen == await api.follow(path, after=seen[-1].id, until=is_listed)
    for mark in ("x", "=x", "=AAAA", "AAAAAAAA", "=" + "A" * 8_000, "1.2"):
        refused = await api.get(path, headers={"last-event-id": mark})
        assert (400, "malformed") == (refused.status, refused.code)


async def test_a_run_comes_before_the_one_that_it_pushes_out_of_a_list(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that shows more of the list than it follows keeps that one: it has only moved down."""
    monkeypatch.setattr("outlive.http.live.LOOK_SECONDS", 0.01)
    await engine.start(shop.api_patient, id="l-1")
    await engine.settle()
    listed = asyncio.Event()

    def is_gone(seen: list[Message]) -> bool:
        if is_listed(seen):
            listed.set()
        return any(each.name == "gone" for each in seen)

    api = Caller(Api(engine, limits=LIMITS))
    reading = asyncio.ensure_future(api.follow("/api/v1/runs/follow?workflow=api_patient&limit=1", until=is_gone))
    await listed.wait()
    await engine.start(shop.api_patient, id="l-2")
    seen = (await reading)[2:]

    assert [("run", "l-2"), ("gone", "l-1")] == [(each.name, each.data["id"]) for each in seen[:1] + seen[-1:]]


async def test_a_list_that_cannot_be_looked_at_ends_for_its_readers(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that waits for changes gets the error at once, and not silence for ever."""
    monkeypatch.setattr("outlive.http.live.LOOK_SECONDS", 0.01)
    listed = asyncio.Event()

    def note(seen: list[Message]) -> bool:
        if is_listed(seen):
            listed.set()
        return False

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no list")

    api = Caller(Api(engine, limits=LIMITS))
    reading = asyncio.ensure_future(api.follow("/api/v1/runs/follow?workflow=api_patient", until=note))
    await listed.wait()
    monkeypatch.setattr(View, "runs", fail)

    with pytest.raises(RuntimeError, match="no list"):
        await asyncio.wait_for(reading, 10)


async def test_readers_of_a_list_share_what_they_are_sent_and_a_slow_one_misses_nothing(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand readers cost little more than one; who comes late gets both changes at once."""
    monkeypatch.setattr("outlive.http.live.LOOK_SECONDS", 0.01)
    await engine.start(shop.api_patient, id="l-0")
    await engine.settle()
    pages, query = LivePages(), RunsFollowQuery(workflow="api_patient", status=["waiting"])
    first, second, slow = (pages.follow(view_of(engine), query, of="") for _ in range(3))

    async def until(reader: AsyncGenerator[bytes, None], name: bytes) -> list[bytes]:
        seen = [await anext(reader)]
        while name not in seen[-1]:
            seen.append(await anext(reader))
        return seen

    async with aclosing(first), aclosing(second), aclosing(slow):
        begun = [await until(reader, b"event: list") for reader in (first, second, slow)]
        last: list[list[bytes]] = []
        for run_id in ("l-1", "l-2"):
            await engine.start(shop.api_patient, id=run_id)
            await engine.settle()
            last = [await until(reader, run_id.encode()) for reader in (first, second)]
        late = await until(slow, b"l-2")

    assert all(one is other for one, other in zip(*begun[:2], strict=True))
    assert all(one is other for one, other in zip(*last, strict=True))
    assert [True, True] == [run_id in part for run_id, part in zip((b"l-1", b"l-2"), late, strict=True)]
    assert late[-1].startswith(b"id: ")


async def test_a_server_that_stops_ends_its_followers_and_leaves_no_task(engine: TestEngine) -> None:
    """A server that stops ends the requests that follow or wait and leaves no task; a follower beyond its limit gets
    503."""
    app = Api(engine, limits=ApiLimits(look_seconds=0.01, followers_max=1))
    api = Caller(app)
    await engine.start(shop.api_patient, id="quiet")
    path = "/api/v1/runs/quiet/follow"
    reading = asyncio.ensure_future(api.follow(path))
    waiting = asyncio.ensure_future(api.get("/api/v1/runs/quiet/result?wait=50"))
    for _ in range(10):
        await asyncio.sleep(0)
    busy = await api.get(path)
    app.close()
    seen, stopped = await reading, await waiting

    assert (503, "too_many_followers") == (busy.status, busy.code)
    assert "5" == busy.headers["retry-after"]
    assert "end" not in [each.name for each in seen]
    assert 503 == stopped.status
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("outlive-http")]


@pytest.mark.parametrize("mark", ["x", "1", "1.x", "1.2;=x", "1.2;a", "9" * 5000, "1.2;%ff=3", "0.\u0663"])
async def test_an_invalid_id_of_a_message_is_refused(api: Caller, engine: TestEngine, mark: str) -> None:
    """A follower whose position cannot be read gets 400."""
    await engine.start(shop.api_patient, id="odd")

    answer = await api.get(f"/api/v1/runs/odd/follow?after={mark}".encode("ascii", "replace").decode())

    assert (400, "malformed") == (answer.status, answer.code)


async def test_a_request_that_the_server_cancels_is_answered(engine: TestEngine) -> None:
    """A server that stops cancels the requests that are left. A caller that waits for a result gets 503, and the
    application does not fail."""
    api = Caller(Api(engine))
    await engine.start(shop.api_patient, id="quiet")
    waiting = asyncio.ensure_future(api.get("/api/v1/runs/quiet/result?wait=50"))
    for _ in range(10):
        await asyncio.sleep(0)

    waiting.cancel()
    stopped = await waiting

    assert (503, "engine_closed") == (stopped.status, stopped.code)
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("outlive-http")]


async def test_a_reader_of_a_list_that_goes_while_nothing_happens_leaves_no_task(engine: TestEngine) -> None:
    """Not even while another one still follows the same list."""
    await engine.start(shop.api_patient, id="quiet")
    await engine.settle()
    pages = LivePages()
    query = RunsFollowQuery(workflow="api_patient")
    stays, goes = (pages.follow(view_of(engine), query, of="") for _ in range(2))
    for reader in (stays, goes):
        while b"quiet" not in await anext(reader):
            pass
    before = asyncio.all_tasks()
    waiting = asyncio.ensure_future(anext(goes))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0)

    assert asyncio.all_tasks() <= before
    await stays.aclose()


async def test_a_batch_is_followed_and_a_cut_reader_loses_no_item(api: Caller, engine: TestEngine) -> None:
    """From the last message that it has; the index of an item says whether it came before. [SSE]"""
    await (await engine.start_batch(shop.api_fussy, range(5), id="fussy")).result()
    path = "/api/v1/batches/fussy/follow"
    whole = await api.follow(path)
    first = await api.follow(path, until=lambda seen: sum(each.name == "item" for each in seen) == 2)
    rest = await api.follow(path, after=first[-1].id)

    assert [0, 1, 2, 3, 4] == [each.data["index"] for each in whole[:-1]]
    assert ["succeeded", "failed"] == [each.data["status"] for each in whole[:2]]
    assert ("end", "succeeded", None) == (whole[-1].name, whole[-1].data["status"], whole[-1].data["parked"])
    assert {0, 1, 2, 3, 4} == {each.data["index"] for each in (*first, *rest) if each.name == "item"}
    assert ["end"] == [each.name for each in await api.follow(path, after=whole[-1].id)]
    assert 400 == (await api.get(path, headers={"last-event-id": "x"})).status
    assert 404 == (await api.get("/api/v1/batches/nothing/follow")).status
