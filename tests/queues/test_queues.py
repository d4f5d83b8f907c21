"""Queues: how many runs are under way at once, and who is next, as a program sees it."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import outlive
from outlive import Queue
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.errors.run import QueueNotFoundError
from outlive.testing import TestEngine, crash_everywhere
from outlive.types import WorkerOptions
from tests.engine.inside import row_of
from tests.engine.support import Place, in_time, parks, registry_of, stage, turns_of_the_loop, until, waits

pytestmark = pytest.mark.any_store

pair = Queue("pair", concurrency=2)
single = Queue("single", concurrency=1)
polite = Queue("polite", concurrency=1, hold="running")
ranked = Queue("ranked", concurrency=1, priorities=True, ageing=10)


class Crowd:
    """How many are in a step at once."""

    now = most = 0

    async def visit(self) -> None:
        """Be in the step for a few turns of the loop."""
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1


crowd = Crowd()


@outlive.step
async def visit_queued(name: str) -> str:
    stage.call(name)
    await crowd.visit()
    return name


@outlive.workflow
async def queued_visit(name: str) -> str:
    return await visit_queued(name)


@outlive.workflow(queue=single)
async def single_visit(name: str) -> str:
    return await visit_queued(name)


@outlive.workflow
async def queued_nap(name: str) -> str:
    await asyncio.sleep(60)
    return await visit_queued(name)


@outlive.workflow
async def begun_and_over() -> tuple[datetime, datetime]:
    begun = outlive.now()
    await asyncio.sleep(1800)
    return begun, outlive.now()


@outlive.workflow
async def queued_wait(name: str) -> str:
    await outlive.wait_for_signal("go")
    return await visit_queued(name)


@outlive.workflow
async def queued_generations(left: int) -> str:
    await visit_queued(f"generation {left}")
    return outlive.continue_as_new(left - 1) if left else "done"


@outlive.workflow
async def starts_queued(name: str) -> str:
    child = await outlive.start(single_visit, name, detached=True, id=f"detached-{name}")
    return await child.result()


class QueuedState(enum.Enum):
    """Where a machine in a queue is."""

    VISIT = "visit"
    DONE = "done"


@dataclass
class QueuedGuest:
    """What a machine in a queue knows."""

    name: str


queued_machine = outlive.Machine(
    "queued_machine",
    QueuedState,
    data=QueuedGuest,
    start=QueuedState.VISIT,
    exits={QueuedState.DONE},
    queue=single,
)


@queued_machine.state(QueuedState.VISIT)
async def visit_by_machine(data: QueuedGuest) -> QueuedState:
    stage.call(data.name)
    return QueuedState.DONE


@pytest.fixture(autouse=True)
def _empty() -> None:
    crowd.now = crowd.most = 0


# -- Beginning at once -------------------------------------------------------------------------------------------------


@pytest.mark.every_store
async def test_run_begins_at_once_in_a_queue_that_limits_nothing(engine: outlive.Engine) -> None:
    """From the second one on: the claim of the first has found no other run in line."""
    for name in ("first", "second"):
        assert await in_time((await engine.start(queued_visit, name, queue="open")).result()) == name

    assert (engine.counters.runs_claimed, engine.counters.runs_started) == (1, 1)


@pytest.mark.every_store
async def test_limit_that_is_set_holds_for_the_next_start(engine: outlive.Engine) -> None:
    """A queue that limited nothing before: its worker does not go by what it knew."""
    await in_time((await engine.start(queued_visit, "first", queue="open")).result())
    await engine.queues.set("open", concurrency=1)

    runs = await asyncio.gather(*(engine.start(queued_nap, str(number), queue="open") for number in range(5)))
    await waits(runs[0])

    assert (engine.counters.runs_claimed, engine.counters.runs_started) == (2, 0)
    assert (await engine.queues.stats("open")).in_line == 4


async def test_paused_queue_lets_no_run_begin(engine: outlive.Engine) -> None:
    """A run that this process starts in a queue that it knew as open waits while the queue is paused."""
    await in_time((await engine.start(queued_visit, "first", queue="open")).result())
    await engine.queues.pause("open")

    run = await engine.start(queued_visit, "second", queue="open")
    assert (await run.info()).status == "pending"
    await engine.queues.resume("open")

    assert await in_time(run.result()) == "second"
    assert stage.calls == ["first", "second"]


async def test_worker_of_named_queues_lets_no_run_jump_the_order(place: Place) -> None:
    """It takes from the first of them first, so a new run in another one waits for a claim."""
    async with place.engine(queues=["important", "open"]) as engine:
        for name in ("first", "second"):
            await in_time((await engine.start(queued_visit, name, queue="open")).result())

        assert (engine.counters.runs_claimed, engine.counters.runs_started) == (2, 0)


@pytest.mark.every_store
async def test_no_more_runs_than_the_queue_allows(place: Place) -> None:
    """Two workers share the slots; every run ends. [FE-R7]"""
    async with place.engine() as one, place.engine() as two:
        runs = [await engine.start(queued_visit, f"{n}", queue=pair) for n in range(6) for engine in (one, two)]
        results = [await in_time(run.result()) for run in runs]

    assert len(results) == 12
    assert 1 <= crowd.most <= 2


async def test_queue_of_the_workflow_is_that_of_its_runs(place: Place) -> None:
    """Runs that a program starts, by name or not, or that another run starts, get in line in the queue of the
    workflow. A run whose start names another queue does not."""
    async with place.engine() as engine:
        runs = [
            await engine.start(single_visit, "a"),
            await engine.start("single_visit", ["b"]),
            await engine.start(single_visit, "c", queue="default"),
            await engine.start(single_visit, "d", queue=pair),
            await engine.start(starts_queued, "e"),
        ]
        for run in runs:
            await in_time(run.result())
        queues = [(await run.info()).queue for run in runs]

        assert queues == ["single", "single", "", "pair", ""]
        assert (await engine.get("detached-e").info()).queue == "single"


async def test_machine_has_a_queue_like_every_workflow() -> None:
    """It waits for its slot."""
    async with TestEngine() as engine:
        holder = await engine.start(queued_wait, "holder", queue=single)
        await engine.settle()
        machine = await engine.start(queued_machine, QueuedGuest("machine"))
        await engine.settle()
        assert ((await machine.info()).queue, await machine.status()) == ("single", "pending")
        await engine.signal(holder.id, "go")
        await machine.result()

    assert stage.calls == ["holder", "machine"]


async def test_queue_can_be_named(place: Place) -> None:
    """Without its declaration it is a line like any other. [DB-Q7]"""
    async with place.engine() as engine:
        run = await engine.start(queued_visit, "a", queue="elsewhere", key="me")

        assert await in_time(run.result()) == "a"
        info = await run.info()
        assert (info.queue, info.queue_key) == ("elsewhere", "me")


async def test_waiting_run_keeps_its_slot_or_gives_it_back() -> None:
    """A run that waits for a signal keeps its slot, or gives it back if its queue says so."""
    async with TestEngine() as engine:
        first = await engine.start(queued_wait, "first", queue=single)
        second = await engine.start(queued_visit, "second", queue=single)
        other = await engine.start(queued_wait, "other", queue=polite)
        last = await engine.start(queued_visit, "last", queue=polite)

        assert await last.result() == "last"
        assert (await second.info()).status == "pending"
        for run in (first, other):
            await engine.signal(run.id, "go")
        assert [await run.result() for run in (first, second, other)] == ["first", "second", "other"]


async def test_priority_goes_first() -> None:
    """The run with the highest priority in the line begins first."""
    async with TestEngine() as engine:
        holder = await engine.start(queued_wait, "holder", queue=ranked)
        await engine.settle()
        runs = [await engine.start(queued_visit, f"{level}", queue=ranked, priority=level) for level in (0, 5, -1, 9)]
        await engine.signal(holder.id, "go")
        for run in runs:
            await run.result()

    assert stage.calls[1:] == ["9", "5", "0", "-1"]


async def test_run_begins_when_its_time_has_come() -> None:
    """With a queue and without one; signals that come before wait for it."""
    async with TestEngine() as engine:
        now = engine.now()
        runs = [
            await engine.start(queued_visit, "delay", delay=60),
            await engine.start(queued_visit, "queued", queue=single, delay=timedelta(seconds=90)),
            await engine.start(queued_wait, "instant", start_at=now + timedelta(seconds=30)),
            await engine.start(queued_visit, "past", start_at=datetime(2000, 1, 1, tzinfo=UTC)),
        ]
        await engine.signal(runs[2].id, "go")
        for run in runs:
            await run.result()

        assert stage.calls == ["past", "instant", "delay", "queued"]
        assert engine.now() >= now + timedelta(seconds=90)


async def test_clock_of_a_run_begins_when_a_worker_begins_it() -> None:
    """A delay or time in line spends nothing of its first wait; a fork sees the time of its origin."""
    async with TestEngine() as engine:
        created = engine.now()
        delayed = await engine.start(begun_and_over, delay=3600)
        begun, over = await delayed.result()
        fork = await engine.fork(delayed.id)

        assert timedelta(seconds=3600) <= begun - created < timedelta(seconds=3610)
        assert timedelta(seconds=1800) <= over - begun < timedelta(seconds=1810)
        assert (await fork.result())[0] == begun

        created = engine.now()
        runs = [await engine.start(begun_and_over, queue=single) for _ in range(2)]
        (_, first_over), (begun, over) = [await run.result() for run in runs]

        assert begun >= first_over >= created + timedelta(seconds=1800)
        assert timedelta(seconds=1800) <= over - begun < timedelta(seconds=1810)


async def test_runs_begin_no_more_often_than_the_rate_says() -> None:
    """The worker comes back when the next one may."""
    slow = Queue("slow", rate=[outlive.limits.TokenBucket(0.1, 2), outlive.limits.FixedWindow(100, 60)])
    async with TestEngine() as engine:
        began = engine.now()
        runs = [await engine.start(queued_visit, f"{n}", queue=slow) for n in range(4)]
        for run in runs:
            await run.result()

        assert timedelta(seconds=20) <= engine.now() - began < timedelta(seconds=30)


async def test_no_more_runs_than_a_sliding_window_allows_begin_in_any_period(place: Place) -> None:
    """Two in any 10 s: the third begins 10 s after the first, and not with the next full ten seconds of the clock."""
    paced = Queue("paced", rate=outlive.limits.SlidingWindow(2, 10))
    async with place.engine() as engine:

        async def has_begun(count: int) -> bool:
            return await engine.count(queue="paced", status="pending") == 5 - count

        runs = [await engine.start(queued_visit, f"{n}", queue=paced) for n in range(5)]
        await until(partial(has_begun, 2))
        for seconds, count in ((7, 2), (4, 4), (8, 4), (3, 5)):
            place.clock.skip(seconds=seconds)
            await turns_of_the_loop(20)
            await until(partial(has_begun, count))

        assert [await in_time(run.result()) for run in runs] == [f"{n}" for n in range(5)]


async def test_parked_run_does_not_block_its_queue(place: Place) -> None:
    """It gets in line again when it is resumed."""
    async with place.engine() as engine:
        held = await engine.start(queued_wait, "held", queue=single)
        await in_time(waits(held))
        await engine.pause(held.id)
        await in_time(parks(held))
        other = await engine.start(queued_visit, "other", queue=single)

        assert await in_time(other.result()) == "other"
        await engine.resume(held.id)
        await engine.signal(held.id, "go")
        assert await in_time(held.result()) == "held"


async def test_run_in_line_can_be_cancelled(place: Place) -> None:
    """At once, and nothing of it runs. [DB-Q39]"""
    async with place.engine() as engine:
        holder = await engine.start(queued_wait, "holder", queue=single)
        waiting = await engine.start(queued_visit, "never", queue=single)
        late = await engine.start(queued_visit, "never", delay=3600)
        for run in (waiting, late):
            await engine.cancel(run.id)
            assert (await run.info()).status == "cancelled"
        await engine.signal(holder.id, "go")
        await in_time(holder.result())

    assert stage.calls == ["holder"]


async def test_next_generation_goes_on_with_the_slot(place: Place) -> None:
    """The others wait as long."""
    async with place.engine() as engine:
        long = await engine.start(queued_generations, 3, queue=single)
        other = await engine.start(queued_visit, "other", queue=single)

        assert [await in_time(run.result()) for run in (long, other)] == ["done", "other"]
    assert stage.calls == [*(f"generation {left}" for left in (3, 2, 1, 0)), "other"]


async def test_worker_takes_from_its_queues_only(place: Place) -> None:
    """A worker takes runs of its own queues only, and leaves in line a run of another queue that was started on it.
    [DB-Q3]"""
    async with place.engine(queues=[single, "default"]) as engine, place.engine(queues=["pair"]) as other:
        here = await engine.start(queued_visit, "here", queue=single)
        plain = await other.start(queued_visit, "plain")
        gone = await engine.start(queued_visit, "gone", queue="gone")
        there = await engine.start(queued_visit, "there", queue=pair)

        assert [await in_time(run.result()) for run in (here, plain, there)] == ["here", "plain", "there"]
        assert (await gone.info()).status == "pending"
        assert (other.counters.runs_claimed, (await row_of(there)).epoch) == (1, 1)


async def test_limits_are_those_of_the_code_that_was_started_last(place: Place) -> None:
    """A worker lets the store know what its code says; starts do so, too."""
    async with place.engine() as engine:
        await engine.start(queued_visit, "a", queue=Queue("changing", concurrency=1), id="a")
        await engine.start(queued_wait, "b", queue=Queue("changing", concurrency=2), id="b")
        await engine.start(queued_wait, "c", queue="changing", id="c")
        for name in "bc":
            await engine.signal(name, "go")
        assert [await in_time(engine.get(name).result()) for name in "abc"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"key": "a"}, InvalidArgumentError, "runs with a queue"),
        ({"priority": 1}, InvalidArgumentError, "runs with a queue"),
        ({"slots": 2}, InvalidArgumentError, "runs with a queue"),
        ({"queue": single, "slots": 0}, InvalidArgumentError, "slots"),
        ({"queue": single, "slots": "two"}, ArgumentTypeError, "slots"),
        ({"queue": single, "priority": 1}, InvalidArgumentError, "declare it with them"),
        ({"queue": ranked, "priority": "high"}, ArgumentTypeError, "priority"),
        ({"queue": single, "key": "x" * 300}, InvalidArgumentError, "200"),
        ({"queue": single, "key": ""}, InvalidArgumentError, "key"),
        ({"queue": 7}, ArgumentTypeError, "outlive.Queue"),
        ({"queue": "a,b"}, InvalidArgumentError, "commas"),
        ({"delay": 1, "start_at": datetime(2030, 1, 1, tzinfo=UTC)}, InvalidArgumentError, "not both"),
        ({"delay": -1}, InvalidArgumentError, "delay"),
        ({"start_at": datetime(2030, 1, 1)}, InvalidArgumentError, "time zone"),  # noqa: DTZ001
    ],
    ids=str,
)
async def test_bad_place_is_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """With what is wrong, and what to do; nothing is started. [DB-Q28 DB-Q32]"""
    async with TestEngine() as engine:
        with pytest.raises(error, match=text):
            await engine.start(queued_visit, "a", **options)
        assert await engine.count() == 0


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"per_worker": -1},
        {"per_key": 1.5},
        {"rate": 10},
        {"rate": [outlive.limits.TokenBucket(1), "fast"]},
        {"rate": [outlive.limits.SlidingWindow(1, 1), outlive.limits.SlidingWindow(1, 1)]},
        {"rate": [outlive.limits.TokenBucket(1), outlive.limits.TokenBucket(1)]},
        {"rate": [outlive.limits.TokenBucket(rate) for rate in range(1, 12)]},
        {"concurrency": 10**30},
        {"hold": "forever"},
        {"weights": {"a": 0}},
        {"weights": ["a"]},
        {"ageing": 0},
        {"priorities": 1},
    ],
    ids=str,
)
def test_bad_queue_is_refused(options: dict[str, Any]) -> None:
    """When it is declared. [DB-Q6]"""
    with pytest.raises((InvalidArgumentError, ArgumentTypeError), match=next(iter(options))):
        Queue("bad", **options)


def test_queue_can_be_kept_in_a_set() -> None:
    """Queues are hashable, with and without weights, and equal ones are one element of a set."""
    queues = {Queue("a", weights={"x": 2}), Queue("a", weights={"x": 2}), Queue("a")}

    assert len(queues) == 2


@pytest.mark.parametrize("name", ["", "default", "a,b", 7])
def test_bad_name_of_a_queue_is_refused(name: Any) -> None:
    """Workers are given names in a list with commas, and the default queue is not a queue."""
    with pytest.raises((InvalidArgumentError, ArgumentTypeError), match="name"):
        Queue(name)


def test_worker_is_given_names_of_queues() -> None:
    """At least one, in a list."""
    for wrong in ([], "emails", [7]):
        with pytest.raises((InvalidArgumentError, ArgumentTypeError), match="queue"):
            outlive.Engine("memory:", worker=WorkerOptions(queues=wrong))  # type: ignore[arg-type]


async def test_queue_that_is_declared_twice_is_refused(place: Place) -> None:
    """Not both can count."""
    registry = registry_of(single_visit)
    spec = single_visit.spec.__class__(
        **{name: getattr(single_visit.spec, name) for name in single_visit.spec.__struct_fields__}
        | {"name": "other_single", "queue": Queue("single", concurrency=5)}
    )
    registry.add_workflow(spec)
    with pytest.raises(InvalidArgumentError, match="declare it once"):
        async with place.engine(registry=registry):
            """It does not start."""


async def test_queued_run_survives_crashes() -> None:
    """Killed and recovered at each commit: it gets its slot once, and ends as before."""
    await crash_everywhere(single_visit, "a", max_points=5)


# -- What people do with queues ------------------------------------------------------------------------------


@pytest.mark.every_store
async def test_limits_can_be_set_at_run_time(place: Place) -> None:
    """They win over what code declares, until they are reset; `stats` says what there is. [DB-Q4 DB-Q5]"""
    async with place.engine() as engine:
        first, second = [await engine.start(queued_wait, name, queue=single, id=name) for name in ("one", "two")]
        await in_time(waits(first))
        info = await engine.queues.stats("single")
        assert (int(info.in_line), int(info.running), info.limits.concurrency, info.changed) == (1, 1, 1, ())
        assert [(holder.id, holder.worker) for holder in info.holders] == [("one", "")]
        assert info.waiting is not None

        await engine.queues.set(single, concurrency=2, rate=outlive.limits.TokenBucket(1000))
        await in_time(waits(second))

        info = await engine.queues.stats(single)
        assert (int(info.in_line), int(info.running), info.limits.concurrency) == (0, 2, 2)
        assert info.changed == ("concurrency", "rate")
        await engine.queues.reset("single")
        assert (await engine.queues.stats("single")).limits.concurrency == 1
        assert "single" in [info.name for info in await engine.queues.list()]
        for run in (first, second):
            await engine.signal(run.id, "go")
            await in_time(run.result())


async def test_drained_queue_is_paused_until_it_is_resumed(place: Place) -> None:
    """`drain` pauses a queue and returns when the runs that had begun have ended; the runs in line wait until it is
    resumed."""
    async with place.engine() as engine:
        holder = await engine.start(queued_wait, "holder", queue=single)
        await in_time(waits(holder))
        waiting = await engine.start(queued_visit, "waiting", queue=single, id="waiting")
        draining = asyncio.create_task(engine.queues.drain("single", by="ops"))

        async def is_paused() -> bool:
            return (await engine.queues.stats("single")).paused == "paused by ops: draining"

        await until(is_paused)
        await engine.signal(holder.id, "go")
        await in_time(draining)

        assert await waiting.why() == (
            "it is in line in queue single, in place 1; the queue is paused by ops: draining; "
            "engine.queues.resume('single') lets it go on"
        )
        await engine.resume(queue="single")
        assert await in_time(waiting.result()) == "waiting"
        await engine.pause(queue="single", reason="night")
        assert (await engine.queues.stats("single")).paused == "paused: night"


async def test_run_in_line_says_its_place_and_who_holds_the_slots(place: Place) -> None:
    """For one key, or for all."""
    async with place.engine() as engine:
        await in_time(waits(await engine.start(queued_wait, "h", queue=single, id="holder")))
        runs = [await engine.start(queued_visit, name, queue=single, key="me") for name in "ab"]
        keyed = Queue("keyed", per_key=1)
        await in_time(waits(await engine.start(queued_wait, "k", queue=keyed, key="me", id="mine")))
        mine = await engine.start(queued_visit, "m", queue=keyed, key="me")
        late = await engine.start(queued_visit, "late", start_at=datetime(2030, 1, 1, tzinfo=UTC))

        assert await runs[1].why() == (
            "it is in line in queue single, in place 2 of key 'me'; the only slot is taken: holder"
        )
        assert await mine.why() == (
            "it is in line in queue keyed, in place 1 of key 'me'; the only slot is taken that its key may have: mine"
        )
        assert await late.why() == "it is to begin at 2030-01-01T00:00:00+00:00"
        assert [run.id for run in await engine.list(queue="keyed")] == [mine.id, "mine"]
        assert await engine.count(queue="default") == 1


async def test_verbs_of_queues_refuse_what_cannot_be() -> None:
    """With what can. [DB-Q5]"""
    async with TestEngine() as engine:
        for options, text in (({}, "concurrency"), ({"hold": "end"}, "declared in code"), ({"concurrency": 0}, "1")):
            with pytest.raises(InvalidArgumentError, match=text):
                await engine.queues.set("emails", **options)
        with pytest.raises(InvalidArgumentError, match="default"):
            await engine.queues.pause("default")
        with pytest.raises(ArgumentTypeError, match="Queue"):
            await engine.queues.stats(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["stats", "pause", "resume", "drain", "reset"])
async def test_a_misspelt_queue_is_refused(verb: str) -> None:
    """The error names a queue with a similar name, so that a person who pauses a queue in a hurry does not pause
    nothing."""
    async with TestEngine() as engine:
        await engine.queues.set("emails", concurrency=3)
        with pytest.raises(QueueNotFoundError, match="did you mean 'emails'") as caught:
            await getattr(engine.queues, verb)("emials")
        assert (caught.value.name, caught.value.near) == ("emials", "emails")
        with pytest.raises(QueueNotFoundError, match=r"engine\.queues\.list"):
            await getattr(engine.queues, verb)("other")
        assert "emials" not in [info.name for info in await engine.queues.list()]


async def test_a_queue_that_only_runs_have_named_is_known() -> None:
    """It needs no declaration, and its runs may have ended."""
    async with TestEngine() as engine:
        await (await engine.start(queued_visit, "a", queue="named_once")).result()
        await engine.queues.pause("named_once")
        assert (await engine.queues.stats("named_once")).paused == "paused"


async def test_code_of_an_older_process_does_not_win(place: Place) -> None:
    """Its first start comes after that of the newer one; what was started last counts all the same."""
    async with place.engine(worker=False) as older:
        place.clock.skip(seconds=1)
        async with place.engine(worker=False) as newer:
            await newer.start(queued_visit, "a", queue=Queue("changing", concurrency=5))
            place.clock.skip(seconds=1)
            await older.start(queued_visit, "b", queue=Queue("changing", concurrency=1))

            assert (await newer.queues.stats("changing")).limits.concurrency == 5


def test_queues_have_sync_verbs() -> None:
    """The sync engine sets the limits of a queue and reads its stats."""
    with TestEngine().sync as engine:
        engine.queues.set("emails", concurrency=3)
        assert engine.queues.stats("emails").limits.concurrency == 3


@pytest.mark.every_store
async def test_a_start_into_a_queue_wakes_the_worker_of_the_same_process_once_it_is_durable(place: Place) -> None:
    async with place.engine(poll_seconds=600) as engine:
        await in_time((await engine.start(single_visit, "first")).result())
        # Nothing else is under way that could make the worker look again by chance.
        assert await in_time((await engine.start(single_visit, "second")).result()) == "second"


async def test_queue_that_no_one_knows_is_logged_with_what_may_be_meant(caplog: pytest.LogCaptureFixture) -> None:
    """Once; those of the code and of the store are known."""
    async with TestEngine(worker=WorkerOptions(queues=["single", "sinlge", "nowhere", "default"])):
        pass

    assert [record.getMessage() for record in caplog.records if "takes from" in record.getMessage()] == [
        "this worker takes from queue 'sinlge', which neither its code nor the store knows; did you mean 'single'?",
        "this worker takes from queue 'nowhere', which neither its code nor the store knows; it may come later",
    ]


async def test_a_start_in_a_queue_that_no_worker_takes_and_no_code_has_declared_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the queue that may be meant. A queue that a worker takes needs no declaration."""
    async with TestEngine(worker=WorkerOptions(queues=["single", "gpu", "default"])) as engine:
        for queue in ("sinlge", "sinlge", "gpu", "single"):
            await engine.start(queued_visit, "a", queue=queue)
        await engine.start(queued_visit, "a", queue=pair)

    assert [record.getMessage() for record in caplog.records if "is started in" in record.getMessage()] == [
        "a run is started in queue 'sinlge', from which no live worker takes; no code has declared queue 'sinlge'; did "
        "you mean 'single'?"
    ]


async def test_a_run_that_no_worker_takes_from_its_queue_says_so() -> None:
    """`why` names the queue, and for one that no code has declared the queue that may be meant; `list_stuck` has it."""
    definition = f"{queued_visit.spec.name}@1"
    async with TestEngine(worker=WorkerOptions(queues=["single"])) as engine:
        lost = await engine.start(queued_visit, "a", queue="sinlge")
        known = await engine.start(queued_visit, "a", queue=pair, begin_within=60)
        plain = await engine.start(queued_visit, "a")
        late = await engine.start(queued_visit, "a", queue="sinlge", delay=3600)
        (worker,) = await engine.workers.list()

        assert await lost.why() == (
            f"no live worker that has {definition} takes from queue sinlge, in which it is; start one with --queues "
            "sinlge, or without --queues; no code has declared queue 'sinlge'; did you mean 'single'?"
        )
        assert (await known.why()).startswith(f"no live worker that has {definition} takes from queue pair, in which")
        assert "; it fails if no worker has begun it by" in await known.why()
        assert "takes runs without a queue, as it is; start one with --queues default" in await plain.why()
        assert "it is to begin at" in await late.why()
        assert {(it.run.id, it.kind) for it in await engine.list_stuck()} == {
            (run.id, "untaken") for run in (lost, known, plain)
        }
        assert worker.queues == ("single",)
        assert not any(name.startswith("outlive.takes") for name in (*worker.definitions, *worker.built_in))


heavy = Queue("heavy", concurrency=4, per_worker=3)


async def test_a_start_says_how_many_slots_a_run_takes(place: Place) -> None:
    """The queue, the run and its `why` say it; a smaller run behind it waits until it has had its turn."""
    async with place.engine() as engine, place.engine() as other:
        first = await engine.start(queued_wait, "first", queue=heavy, slots=2)
        await in_time(waits(first))
        second = await engine.start(queued_wait, "second", queue=heavy, slots=3, id="second")
        third = await other.start(queued_wait, "third", queue=heavy)
        stats = await engine.queues.stats(heavy)

        assert (int(stats.running), int(stats.slots), stats.holders[0].slots) == (1, 2, 2)
        assert (await second.info()).slots == 3
        assert (
            f"it is in line in queue heavy, in place 1; it takes 3 slots, and 2 of 4 are free: {first.id}"
            == await second.why()
        )
        assert "in place 2; a worker will take it when it is its turn" in await third.why()
        await engine.signal(first.id, "go")
        await in_time(waits(second))
        await in_time(waits(third))
        for run in (second, third):
            await engine.signal(run.id, "go")
        assert [await in_time(run.result()) for run in (first, second, third)] == ["first", "second", "third"]


async def test_a_run_that_can_never_have_its_slots_is_refused_or_says_so() -> None:
    """A start is refused where the limit is known; a run that was in line before the limit was lowered says it."""
    async with TestEngine() as engine:
        await engine.queues.set(single, concurrency=1)
        with pytest.raises(InvalidArgumentError, match="queue heavy has at most 3 for a run"):
            await engine.start(queued_visit, "a", queue=heavy, slots=4)
        with pytest.raises(InvalidArgumentError, match="queue single has at most 1 for a run"):
            await engine.start(queued_visit, "a", queue="single", slots=2)
        await engine.queues.set(single, concurrency=2)
        holder = await engine.start(queued_wait, "holder", queue=single, slots=2)
        await in_time(waits(holder))
        lost = await engine.start(queued_visit, "lost", queue=single, slots=2)
        other = await engine.start(queued_visit, "other", queue=single)
        await engine.queues.set(single, concurrency=1)
        await engine.signal(holder.id, "go")

        assert await other.result() == "other"
        assert await lost.why() == (
            "it is in line in queue single, in place 1; it takes 2 slots, and the queue has at most 1 for a run: it "
            "can never begin; engine.queues.set('single', concurrency=2) lets it begin"
        )
        await engine.queues.set(single, concurrency=2, per_worker=1)
        assert "it can never begin unless its limit per_worker is raised" in await lost.why()
        await engine.queues.set(single, per_worker=None)
        assert await lost.result() == "lost"


async def test_many_starts_and_batches_take_slots_too() -> None:
    """Each run of `start_many`, and each item of a batch."""
    async with TestEngine() as engine:
        runs = await engine.start_many([(queued_visit, f"{n}") for n in range(4)], queue=heavy, slots=2)
        crowd.most = 0
        assert [await run.result() for run in runs] == ["0", "1", "2", "3"]
        batch = await engine.start_batch(visit_queued, ["x", "y", "z"], queue=heavy, slots=3)
        assert [await batch.results()] == [["x", "y", "z"]]

        assert crowd.most == 1
