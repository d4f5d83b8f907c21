"""Other clients that come first, every time: verbs give up after a limit and say so, and a store that is away is waited
for without haste."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import outlive
from outlive._kernel.client.starting import REPLACES_MAX
from outlive._kernel.store.contract import Outcome, Store
from outlive.errors import (
    ArgumentTypeError,
    ConfigurationError,
    InvalidArgumentError,
    OutliveError,
    RunExistsError,
    StoreUnavailableError,
)
from outlive.errors.store import StoreMovedError
from outlive.middleware import Middleware, StartCall
from outlive.testing import TestEngine
from outlive.testing.watched_store import WatchedStore
from tests.engine.inside import give_store, store_of, watch_through
from tests.engine.support import turns_of_the_loop
from tests.remote.test_servers import drained

CONFLICT = (Outcome.CONFLICT, 0)


def lose(changes: list[Any]) -> list[tuple[Outcome, int]]:
    """Another client was first."""
    return [CONFLICT] * len(changes)


@outlive.step(retry=outlive.Retry(attempts=1))
async def fail_alone() -> None:
    """Fails."""
    raise ValueError("no")


@outlive.workflow(name="races.order")
async def order(number: int = 0) -> int:
    """Waits for a signal."""
    await outlive.wait_for_signal("go")
    return number


@outlive.workflow(name="races.other")
async def other() -> None:
    """Another one."""


@outlive.workflow(name="races.failing")
async def failing() -> None:
    """Fails in a step."""
    await fail_alone()


class Meddling(WatchedStore):
    """A store to which something else happens before a verb, or in its place."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.instead: dict[str, list[Any]] = {}
        """By verb, the answers that are given in the place of its own, one for each call."""
        self.always: dict[str, Any] = {}
        self.asked: list[str] = []

    async def _do(self, name: str, verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.asked.append(name)
        answer = self.always.get(name)
        if answers := self.instead.get(name):
            answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return answer(*args)
        return await super()._do(name, verb, *args, **kwargs) if answer is None else answer


@pytest.fixture
def stopped() -> TestEngine:
    """An engine before its start."""
    return TestEngine()


@pytest.fixture
def store(stopped: TestEngine) -> Any:
    """Its store."""
    return watch_through(stopped, Meddling)


@pytest.fixture
async def engine(stopped: TestEngine, store: Any) -> AsyncIterator[TestEngine]:
    """The engine, started."""
    async with stopped:
        yield stopped


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "o", "on_conflict": "replace"}, "run o could not be replaced: it moved on 100 times"),
        ({"debounce": outlive.limits.Debounce("k", 5)}, "could not be started: others came first 100 times"),
    ],
    ids=["replaced", "gathered"],
)
async def test_start_that_loses_every_race_says_so(
    engine: TestEngine, store: Any, options: dict[str, Any], message: str
) -> None:
    """After a hundred tries, and nothing was started."""
    await engine.start(order, 1, id="o")
    await engine.settle()
    store.always["commit"] = lose

    with pytest.raises(OutliveError, match=message):
        await engine.start(order, 2, **options)

    store.always.clear()
    assert [run.id for run in await engine.list()] == ["o"]


async def test_retry_that_loses_every_race_says_so(engine: TestEngine, store: Any) -> None:
    """After a hundred tries; the run is as it was."""
    run = await engine.start(failing, id="o")
    await engine.settle()
    store.always["commit"] = lose

    with pytest.raises(OutliveError, match="run o could not be retried: it moved on 100 times; try again"):
        await run.retry()

    store.always.clear()
    assert await run.status() == "failed"


async def test_run_that_was_deleted_meanwhile_is_started_after_all(engine: TestEngine, store: Any) -> None:
    """The store says that the id is taken, and then that no run has it: the id is free by now."""
    store.instead["commit"] = [[CONFLICT]]

    run = await engine.start(order, 7, id="o")
    await run.signal("go")
    assert await run.result() == 7


async def test_run_that_is_deleted_and_started_again_meanwhile_is_the_run_that_was_asked_for(
    engine: TestEngine, store: Any
) -> None:
    """If it is one of another workflow, the start is refused; else its caller gets that run."""
    await engine.start(order, 1, id="o")
    await engine.settle()
    journals = store.inner
    found = await journals.find_run("o")

    async def start(workflow: Any, *args: Any) -> Any:
        # Not known at the two looks before the commits, and at the look after the second conflict.
        store.instead["find_runs"] = [{}, {}]
        store.instead["find_run"] = [_Nothing, _Nothing]
        store.instead["commit"] = [[CONFLICT], [CONFLICT]]
        return await engine.start(workflow, *args, id="o")

    assert (await start(order, 2)).id == "o"
    with pytest.raises(RunExistsError, match=r"races\.order"):
        await start(other)
    store.instead.clear()
    assert await journals.find_run("o") == found


_Nothing: Any = None


async def test_replaced_runs_are_numbered_without_an_end(engine: TestEngine) -> None:
    """The names of a hundred and more replaced runs are all different."""
    for number in range(REPLACES_MAX + 2):
        await engine.start(order, number, id="o", on_conflict="replace", delay=60)

    names = {run.id for run in await engine.list(limit=1000)}
    assert names == {"o", *(f"o~old{number}" for number in range(1, REPLACES_MAX + 2))}


@pytest.mark.parametrize("at", [True, 1.5, ("charge",)])
async def test_place_of_a_fork_is_a_name_or_a_number(engine: TestEngine, at: Any) -> None:
    """Anything else is refused."""
    await engine.start(order, id="o")
    with pytest.raises(InvalidArgumentError, match="give the name of a step, a call or an event"):
        await engine.fork("o", at=at)


async def test_a_saga_is_entered_once() -> None:
    """A second `with` on the same block would mix the undo steps of two."""
    block = outlive.saga()
    async with block:
        pass
    with pytest.raises(ConfigurationError, match=r"a saga can be entered once; call outlive\.saga\(\) again"):
        async with block:
            pass


@outlive.workflow(name="races.refusing")
async def refusing() -> str:
    """Refuses an ask, first in the wrong way."""
    async for ask in outlive.asks("price", int):
        try:
            ask.fail("too many")  # type: ignore[arg-type]
        except ArgumentTypeError as error:
            ask.fail(ValueError("too many"))
            return str(error)
    return ""


async def test_an_ask_is_refused_with_an_exception(engine: TestEngine) -> None:
    """A text is refused, and the ask can still be refused in the right way."""
    run = await engine.start(refusing, id="o")
    asking = [each async for each in _outcome(run.ask("price", 1, timeout=60))]

    assert "too many" in str(asking[0])
    assert 'give an exception, for example ValueError("too many")' in await run.result()


async def _outcome(asking: Any) -> AsyncIterator[BaseException]:
    try:
        await asking
    except OutliveError as error:
        yield error


class Hearing(Middleware):
    """Hears of the outcome of each start."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.refuses = -1

    async def on_start(self, start: StartCall, call_next: Any) -> Any:
        """Around a start."""
        if start.args and start.args[0] == self.refuses:
            raise LookupError("not this one")
        try:
            found = await call_next()
        except Exception as error:
            self.heard.append((start.id, type(error).__name__))
            raise
        self.heard.append((start.id, "started"))
        return found


async def test_middleware_around_many_starts_gets_the_outcome_of_its_own() -> None:
    """Every start gets the error of a store that is away, and only the start with a taken id gets that error. If the
    middleware of one start refuses it, nothing is started. A start by name has no middleware, and waits for the
    others."""
    hearing = Hearing()
    engine = TestEngine(middleware=[hearing])
    store = watch_through(engine, Meddling)
    async with engine:
        starts: list[Any] = [{"start": (order, 1), "id": "a"}, {"start": (order, 2), "id": "b"}]
        store.instead["commit"] = [StoreUnavailableError("the store", "it is away")]
        with pytest.raises(StoreUnavailableError):
            await engine.start_many(starts)
        assert sorted(hearing.heard) == [("a", "StoreUnavailableError"), ("b", "StoreUnavailableError")]

        hearing.heard.clear()
        hearing.refuses = 2
        with pytest.raises(LookupError, match="not this one"):
            await engine.start_many(starts)
        hearing.refuses = -1
        assert await engine.list() == []

        hearing.heard.clear()
        named: Any = {"start": ("races.order", [3]), "id": "c"}
        assert [run.id for run in await engine.start_many([*starts, named])] == ["a", "b", "c"]
        assert sorted(hearing.heard) == [("a", "started"), ("b", "started")]

        hearing.heard.clear()
        again: Any = {"start": (order, 2), "id": "b", "on_conflict": "reject"}
        with pytest.raises(OutliveError, match="1 of 2 runs were not started"):
            await engine.start_many([{"start": (order, 4), "id": "d"}, again])
        assert sorted(hearing.heard) == [("b", "RunExistsError"), ("d", "started")]


READERS: dict[str, tuple[Callable[[Any], AsyncIterator[Any]], str]] = {
    "stream": (lambda run: run.stream("numbers"), "read_stream"),
    "published": (lambda run: run.watch(), "find_run"),
    "events": (lambda run: run.follow(), "find_run"),
}


@outlive.workflow(name="races.telling")
async def telling() -> None:
    """Says something, and then waits."""
    outlive.emit("numbers", 1)
    outlive.publish(stage="said")
    await outlive.wait_for_signal("go")


@pytest.mark.parametrize("what", READERS)
async def test_reader_of_a_store_that_is_away_waits_without_haste(what: str) -> None:
    """It looks now and then, and goes on where it was. A store that was replaced is the end of its reading."""
    read, verb = READERS[what]
    engine = outlive.Engine("memory:")
    store = Meddling(store_of(engine))
    give_store(engine, store)
    async with engine:
        run = await engine.start(telling, id="o")
        await run.until("waiting", timeout=30)
        first = await anext(read(run))
        store.asked.clear()
        reader = read(run)
        store.instead["find_run"] = [None]  # There is such a run.
        store.always[verb] = StoreUnavailableError("the store", "it is away")
        reading = asyncio.ensure_future(anext(reader))
        await turns_of_the_loop(60)

        assert 1 <= store.asked.count(verb) <= 3
        assert not reading.done()
        store.always.clear()
        assert await reading == first
        store.always[verb] = StoreMovedError("runs.db")
        with pytest.raises(StoreMovedError):
            await drained(reader, [])
        store.always.clear()
