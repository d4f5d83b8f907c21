"""A replay gives way: it is done in slices, between which other runs move, and whatever happens meanwhile is handled.

In these tests each event is a slice, each page has three events, and each result is a blob that is read when its event
is next. A store that stops answering reads of blobs holds a replay in the middle.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import outlive
from bench.replays import LONG_TURNS, record_talk, write
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.command import WorkflowSpec
from outlive._kernel.runtime.environment import ReplayPace
from outlive._kernel.runtime.session import replays
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Store
from outlive.errors import StoreUnavailableError
from outlive.events import RunClaimed, RunReleased, StepSucceeded
from outlive.limits import Limits
from tests.engine.inside import (
    counters_of,
    give_replay_pace,
    keeper_of,
    lease_of,
    reporter_of,
    session_id_of,
    worker_of,
)
from tests.engine.support import Place, events_of, in_time, note, parks, reaches, stage, until, waits

pytestmark = pytest.mark.any_store

TURNS = 12
READS = 5
LEASE_SECONDS = 1.0
"""The shortest."""
LIMITS = Limits(payload_inline_bytes_max=100)
SLICED = ReplayPace(slice_seconds=0.0, pause_seconds=0.0, rows_max=3, blobs_max=1)


@outlive.step
async def said(number: int) -> str:
    """A result that is stored as a blob."""
    stage.call(number)
    return f"{number}".ljust(200, ".")


@outlive.workflow(name="replayed.talk")
async def talk(turns: int) -> list[str]:
    """Steps, then signals."""
    heard = [(await said(number)).rstrip(".") for number in range(turns)]
    while (word := await outlive.wait_for_signal("word", str)) != "end":
        heard.append(await note(word))
    return heard


async def changed_talk(turns: int) -> str:
    """New code for that workflow, which goes another way after half of the turns."""
    for number in range(turns // 2):
        await said(number)
    return await note("changed")


@outlive.workflow(name="replayed.other")
async def other(word: str) -> str:
    """Another run of the same worker."""
    return await note(word)


class Halfway:
    """A store that answers some reads of blobs, and then none before the test lets it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.reads: list[list[str]] = []
        self.pages: list[int] = []
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
        self.fault: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> Any:
        """Note how long each page is."""
        rows = await self.inner.read_journal(journal, after=after, limit=limit)
        self.pages.append(len(rows))
        return rows

    async def get_blobs(self, ids: list[str]) -> dict[str, bytes]:
        """Stop after some reads."""
        self.reads.append(ids)
        if len(self.reads) > READS and not self.gate.is_set():
            self.reached.set()
            await self.gate.wait()
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        return await self.inner.get_blobs(ids)


async def begin(place: Place) -> None:
    """Bring a run to its first signal, and leave it to another worker."""
    async with place.engine(limits=LIMITS) as engine:
        await waits(await engine.start(talk, TURNS, id="talk"))
    stage.calls.clear()


@asynccontextmanager
async def replaying(place: Place, *words: str, **options: Any) -> AsyncIterator[tuple[outlive.Engine, Halfway]]:
    """A worker in the middle of the replay of that run."""
    await begin(place)
    stores: list[Any] = []

    def wrap(inner: Store) -> Any:
        stores.append(Halfway(inner))
        return stores[-1]

    engine = place.engine(wrap=wrap, limits=LIMITS, **options)
    give_replay_pace(engine, SLICED)
    async with engine:
        for word in words or ("one",):
            await engine.signal("talk", "word", word)
        await in_time(stores[0].reached.wait())
        yield engine, stores[0]
        stores[0].gate.set()


def heard(*words: str) -> list[str]:
    """What the run returns."""
    return [*map(str, range(TURNS)), *words]


async def test_other_runs_move_while_one_is_replayed(place: Place) -> None:
    """Its journal is read in pages and its blobs one by one, and no completed step runs again."""
    async with replaying(place) as (engine, store):
        assert "other" == await in_time((await engine.start(other, "other")).result())
        assert not worker_of(engine).is_resting
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())
    assert max(store.pages) == 3
    assert all(len(ids) == 1 for ids in store.reads if ids)
    assert ["other", "one"] == stage.calls


async def test_the_loop_turns_between_the_events_of_a_replay(place: Place) -> None:
    """A callback that asks for the next turn of the loop gets one for each event."""
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn) if turns < 100_000 else None

    async with replaying(place, "end") as (engine, store):
        turn()
        store.gate.set()
        assert heard() == await in_time(engine.get("talk").result())
        seen, turns = turns, 100_000
    assert seen > TURNS - READS


async def test_why_says_how_far_a_replay_is(place: Place) -> None:
    """`why` says that a replay is at least half done when all events were read and none was fed."""
    async with replaying(place) as (engine, store):
        why = await engine.get("talk").why()
        assert re.fullmatch(r"it is being replayed, [5-9]\d %, by worker .*", why), why
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())


@pytest.mark.every_store
async def test_another_process_reads_how_far_a_replay_is(place: Place) -> None:
    """When it has lasted for some seconds, as it reads of steps."""
    async with replaying(place) as (engine, store), place.engine(worker=False) as client:
        place.clock.skip(seconds=10)
        reporter_of(engine).look()

        async def is_written() -> bool:
            return reporter_of(engine).is_resting

        await until(is_written)
        why = await client.get("talk").why()
        assert re.fullmatch(r"it is being replayed, [5-9]\d %, by worker .*", why), why
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())


async def test_workers_do_not_pass_a_long_replay_to_each_other(place: Place) -> None:
    """It takes longer than a lease, which is renewed meanwhile; the other worker has room and waits for work."""
    async with replaying(place, lease_seconds=LEASE_SECONDS) as (engine, store), place.engine(name="other"):
        first_until = lease_of(engine).until

        async def has_outlasted_its_lease() -> bool:
            return lease_of(engine).until > first_until + LEASE_SECONDS

        await until(has_outlasted_its_lease)
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())
        claims = await events_of(engine.get("talk"), RunClaimed)
        assert 2 == len(claims), "one for each worker that has had it"


async def test_signal_that_comes_during_a_replay_is_taken_after_it(place: Place) -> None:
    """A signal that comes during a replay is taken once, behind the signal that was there before."""
    async with replaying(place) as (engine, store):
        for word in ("two", "end"):
            await engine.signal("talk", "word", word)
        assert "other" == await in_time((await engine.start(other, "other")).result())
        store.gate.set()
        assert heard("one", "two") == await in_time(engine.get("talk").result())


async def test_engine_that_stops_in_the_middle_of_a_replay_releases_the_run(place: Place) -> None:
    """Another worker has it at once, and begins the replay again."""
    async with replaying(place):
        """The engine stops here."""
    async with place.engine(limits=LIMITS) as second:
        run = second.get("talk")
        await run.signal("word", "end")
        assert heard("one") == await in_time(run.result())
        assert 1 == len(await events_of(run, RunReleased))
    assert ["one"] == stage.calls


async def test_lost_lease_ends_a_replay(place: Place) -> None:
    """The next session of the worker claims the run; nothing of the first replay is written."""
    async with replaying(place) as (engine, store):
        first = worker_of(engine)
        keeper_of(engine).end_session("a test")
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())
        claims = await events_of(engine.get("talk"), RunClaimed)
        assert [2, 3] == [claim.epoch for claim in claims]
        assert not first.trees.active()
    assert ["one"] == stage.calls


async def test_workflow_that_is_paused_during_a_replay_begins_nothing_after_it(place: Place) -> None:
    """Until it is resumed."""
    async with replaying(place) as (engine, store):
        await engine.pause(workflow="replayed.talk")
        store.gate.set()

        async def is_gone() -> bool:
            return not worker_of(engine).trees.active()

        await until(is_gone)
        assert [] == stage.calls
        await engine.resume(workflow="replayed.talk")
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())


async def test_run_that_is_cancelled_during_its_replay_is_cancelled_after_it(place: Place) -> None:
    """The request waits in its inbox meanwhile."""
    async with replaying(place) as (engine, store):
        await engine.cancel("talk")
        store.gate.set()
        await in_time(reaches(engine.get("talk"), "cancelled"))


async def test_store_that_is_away_during_a_replay_costs_another_one(place: Place) -> None:
    """The run is claimed again when the store is back."""
    async with replaying(place) as (engine, store):
        store.fault = StoreUnavailableError("the store", "it is down")
        store.gate.set()
        await engine.signal("talk", "word", "end")
        assert heard("one") == await in_time(engine.get("talk").result())
    assert ["one"] == stage.calls


async def test_failure_in_a_replay_is_logged_and_the_run_is_claimed_again(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect of a store, for example; the other runs go on."""
    async with replaying(place, "end") as (engine, store):
        with caplog.at_level(logging.ERROR, "outlive"):
            store.fault = RuntimeError("a defect")
            store.gate.set()
            assert heard() == await in_time(engine.get("talk").result())
    assert ["run talk could not be taken in"] == [record.message for record in caplog.records]


async def test_other_code_is_found_halfway_and_parks_the_run(place: Place) -> None:
    """A replay in slices that meets other code parks the run with the event of the journal that does not fit."""
    registry, name = Registry(), "replayed.talk"
    registry.add_workflow(WorkflowSpec(name=name, version=1, fn=changed_talk, signature=Signature(changed_talk, name)))
    async with replaying(place, registry=registry) as (engine, store):
        store.gate.set()
        reason = await in_time(parks(engine.get("talk")))
    assert "step said#7 succeeded" in reason
    assert [] == stage.calls


async def test_client_that_ends_a_run_during_its_replay_ends_the_replay(place: Place) -> None:
    """A run of that id that is started in its place is another one."""
    async with replaying(place) as (engine, store):
        run = await engine.start(other, "new", id="talk", on_conflict="replace")
        store.gate.set()
        assert "new" == await in_time(run.result())

        async def is_gone() -> bool:
            return worker_of(engine).is_resting

        await until(is_gone)
    assert "one" not in stage.calls


@outlive.step
async def load(rows: int) -> list[dict[str, int | str]]:
    """A large value."""
    stage.call("load")
    return [{"id": row, "name": f"customer {row}", "city": "Stockholm", "cents": row * 7} for row in range(rows)]


@outlive.step
async def count(rows: list[dict[str, int | str]]) -> int:
    """Is given all rows."""
    stage.call("count")
    return len(rows)


@outlive.workflow(name="replayed.rows")
async def count_often(steps: int, rows: int) -> int:
    """One large value for many steps, then a signal."""
    loaded = await load(rows)
    total = 0
    for _ in range(steps):
        total += await count(loaded)
    await outlive.wait_for_signal("go")
    return total


@pytest.mark.parametrize(
    "rows", [500, pytest.param(200_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])], ids=["500", "200k"]
)
async def test_a_run_that_gave_many_rows_to_many_steps_goes_on_in_another_worker(place: Place, rows: int) -> None:
    """No step of it is called again, and the worker keeps its session, however short its lease is."""
    async with place.engine() as engine:
        run = await engine.start(count_often, 60, rows, id="rows")
        await run.until("waiting", timeout=300)
    stage.calls.clear()
    async with place.engine(lease_seconds=LEASE_SECONDS) as engine:
        session = session_id_of(engine)
        await engine.signal("rows", "go")
        assert 60 * rows == await engine.get("rows").result(timeout=100)
        assert session == session_id_of(engine)
    assert [] == stage.calls


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_conversation_of_ten_thousand_turns_goes_on_in_a_worker(place: Place) -> None:
    """It has the journal that turns of 5 kB leave, each of which was given all turns before it. The worker keeps its
    session, however short its lease is, calls no turn again, and advises a fresh journal."""
    await write(place.store(), "talk", 1, await record_talk(LONG_TURNS))
    async with place.engine(lease_seconds=LEASE_SECONDS) as engine:
        session = session_id_of(engine)
        run = engine.get("talk-0")
        assert "its journal has more than 10,000 events" in await run.why()
        await run.signal("go", "on")
        assert LONG_TURNS == await run.result(timeout=300)
        assert session == session_id_of(engine)
        assert LONG_TURNS == len(await events_of(run, StepSucceeded))


@pytest.mark.parametrize("is_busy", [True, False])
async def test_reading_a_long_journal_gives_way_to_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, is_busy: bool
) -> None:
    """Between two pages a replay waits as between two slices: if others commit meanwhile, and not else."""
    await begin(place)
    pages_at: list[int] = []
    stores: list[Any] = []

    class Pause(Wakeup):
        async def sleep(self, seconds: float | None) -> None:
            pages_at.append(len(stores[0].pages))

    class Busy(Halfway):
        async def read_journal(self, journal: int, *, after: int = -1, limit: int | None = None) -> Any:
            counters_of(engine).commits += is_busy
            return await super().read_journal(journal, after=after, limit=limit)

    monkeypatch.setattr(replays, "Wakeup", Pause)

    def wrap(inner: Store) -> Any:
        stores.append(Busy(inner))
        stores[0].gate.set()
        return stores[-1]

    engine = place.engine(wrap=wrap, limits=LIMITS)
    give_replay_pace(engine, SLICED)
    async with engine:
        await engine.signal("talk", "word", "end")
        assert heard() == await in_time(engine.get("talk").result())
    many = len(stores[0].pages)
    assert many > 3
    assert is_busy == ({*range(1, many + 1)} <= {*pages_at})
