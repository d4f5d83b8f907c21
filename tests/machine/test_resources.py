"""Resources of machines: set up when wanted, shared, torn down in reverse, and never in a journal."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.define import live_resources
from outlive.errors import DefinitionError, RunCancelledError, RunFailedError
from outlive.errors.program import MachineError
from outlive.events import AttemptFailed
from outlive.machine import All
from outlive.testing import TestEngine
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, in_time, stage

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """States that want something."""

    READ = "read"
    SPLIT = "split"
    ITEMS = "items"
    STREAM = "stream"
    DONE = "done"


async def open_pool() -> str:
    """Fails as often as the test wants."""
    stage.call("open pool")
    if stage.count("open pool") <= stage.values.get("failures", 0):
        raise ConnectionError("no server")
    return "pool"


async def close_pool(pool: str) -> None:
    """Fails if the test wants."""
    stage.call(f"close {pool}")
    if stage.values.get("trouble"):
        raise ConnectionError("no server any more")


def open_cache(*, pool: str) -> str:
    """Sync, and needs another one."""
    stage.call("open cache")
    return f"cache of {pool}"


def close_cache(cache: str) -> None:
    """Sync."""
    stage.call(f"close {cache}")


def ask_pool(pool: str) -> Any:
    """How it is."""
    if stage.values.get("trouble"):
        raise ConnectionError("no server any more")


reader = outlive.Machine("resources.reader", S, data=list[str], start=S.READ, exits=[S.DONE])
reader.resource("pool", open_pool, close_pool, ask_pool)
reader.resource("cache", open_cache, close_cache)
reader.resource("unused", open_pool)


def put_back(data: list[str], *, pool: str) -> None:
    """An undo wants it too."""
    stage.call(f"undo with {pool}")


@reader.state(S.READ, retry=Retry(attempts=2, first=0), undo=put_back)
def read(data: list[str], *, cache: str) -> S:
    """A sync handler."""
    data.append(cache)
    return S.SPLIT


async def branch(data: list[str], *, pool: str) -> str:
    """A branch."""
    return f"branch with {pool}"


def merge(data: list[str], results: dict[str, str]) -> None:
    """Plain."""
    data += results.values()


async def load(*, pool: str) -> list[int]:
    """Only a resource, no data."""
    return [1]


def process(item: int, *, pool: str) -> str:
    """One item."""
    return f"item {item} with {pool}"


async def finish(data: list[str], results: list[str], *, pool: str) -> S:
    """The end of the batch."""
    data += results
    return S.STREAM


async def source(data: list[str], cursor: int | None, *, pool: str) -> AsyncGenerator[tuple[int, str], None]:
    """One item."""
    if cursor is None:
        yield 1, f"line with {pool}"


async def handle(line: str, *, cache: str) -> str:
    """And nothing else."""
    return line


async def flush(data: list[str], window: list[str], *, pool: str) -> None:
    """Fails if the test wants."""
    if stage.values.get("fails"):
        raise ValueError("planned")
    data += window


reader.split(S.SPLIT, [branch], join=All(then=S.ITEMS), merge=merge)
reader.batch(S.ITEMS, load=load, process=process, finish=finish)
reader.stream(S.STREAM, source=source, process=handle, flush=flush, then=S.DONE)


async def test_every_handler_can_have_resources(place: Place) -> None:
    """Set up once, when wanted, with what they need; torn down in reverse when the engine stops."""
    async with place.engine() as engine:
        assert stage.calls == []
        for _ in range(2):
            result = await in_time((await engine.start(reader, [])).result())
            assert result.data == [
                "cache of pool",
                "branch with pool",
                "item 1 with pool",
                "line with pool",
            ]
        assert stage.calls == ["open pool", "open cache"]
        stage.calls.clear()
    assert stage.calls == ["close cache of pool", "close pool"]


async def test_every_engine_has_resources_of_its_own(place: Place) -> None:
    """Set up by the first run that wants them, and torn down with their engine."""
    async with place.engine() as outer:
        async with place.engine() as inner:
            await in_time((await inner.start(reader, [])).result())
        assert stage.calls[-1] == "close pool"
        await in_time((await outer.start(reader, [])).result())
    assert 2 == stage.count("open pool") == stage.count("close pool")


async def test_a_set_up_that_fails_is_a_failed_attempt(engine: outlive.Engine) -> None:
    """The next attempt tries again."""
    stage.values["failures"] = 1
    assert (await in_time((await engine.start(reader, [])).result())).state is S.DONE


async def test_a_set_up_that_keeps_failing_fails_the_run(engine: outlive.Engine) -> None:
    """After the attempts of the state."""
    stage.values["failures"] = 9
    with pytest.raises(RunFailedError, match="no server"):
        await in_time((await engine.start(reader, [])).result())
    assert stage.calls == ["open pool", "open pool"]


class Short(enum.Enum):
    """Two states that want nothing, and one that wants something."""

    READ = "read"
    WAIT = "wait"
    ITEMS = "items"
    DONE = "done"


kept = outlive.Machine("resources.kept", Short, data=list[str], start=Short.READ, exits=[Short.DONE])
kept.resource("pool", open_pool, close_pool)


@kept.state(Short.READ)
async def kept_read(data: list[str]) -> Short:
    """Wants nothing."""
    stage.call("read")
    return Short.WAIT


@kept.state(Short.WAIT)
async def kept_wait(data: list[str]) -> Short:
    """Until the test lets it."""
    await stage.gate("wait").pass_through()
    return Short.ITEMS


@kept.state(Short.ITEMS, retry=Retry(attempts=2, first=0))
async def kept_items(data: list[str], *, pool: str) -> Short:
    """Ends as the test wants."""
    stage.call("items")
    if stage.values.get("fails"):
        raise ValueError("planned")
    await stage.gate("items").pass_through()
    return Short.DONE


async def test_a_run_that_goes_on_keeps_its_journal_when_a_set_up_fails(place: Place) -> None:
    """In the process that recovers it: what is there stays as it is, the failed set-up is a failed attempt behind it,
    and the next one goes on. [CA-U7]"""
    first = await place.engine().__aenter__()
    run = await first.start(kept, [], id="run-1")
    await stage.gate("wait").reached()
    before = await journal_of(run)
    await crash(first)
    stage.gate("wait").open()
    stage.gate("items").open()
    stage.values["failures"] = 1

    async with place.engine() as second:
        assert (await in_time(second.get("run-1").result())).state is Short.DONE
        after = await journal_of(second, "run-1")
    assert after[: len(before)] == before
    assert 1 == len([event for event in after if isinstance(event, AttemptFailed)])
    assert stage.calls == ["read", "open pool", "open pool", "items", "close pool"]


@pytest.mark.parametrize("way", ["fails", "is cancelled"])
async def test_a_resource_is_torn_down_however_the_run_ends(place: Place, way: str) -> None:
    """A resource is torn down when the engine stops, whether its run failed or was cancelled. [CA-U7 FE-A6]"""
    stage.values["fails"] = way == "fails"
    stage.gate("wait").open()
    async with place.engine() as engine:
        run = await engine.start(kept, [])
        if way == "is cancelled":
            await stage.gate("items").reached()
            await run.cancel()
        with pytest.raises((RunFailedError, RunCancelledError)):
            await in_time(run.result())
    assert stage.calls[-1] == "close pool"


async def test_an_undo_can_have_resources(engine: outlive.Engine) -> None:
    """A plain function."""
    stage.values["fails"] = True
    with pytest.raises(RunFailedError, match="planned"):
        await in_time((await engine.start(reader, [])).result())
    assert stage.calls[-1] == "undo with pool"


async def test_a_teardown_that_fails_does_not_keep_others_from_it(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged."""
    async with place.engine() as engine:
        await in_time((await engine.start(reader, [])).result())
        stage.values["trouble"] = True
    assert stage.calls[-2:] == ["close cache of pool", "close pool"]
    assert ["teardown failed: resource resources.reader.pool"] == [
        record.getMessage() for record in caplog.records if record.levelno == logging.ERROR
    ]


async def test_resources_say_how_they_are(engine: outlive.Engine) -> None:
    """Health shows the resources that this engine has set up, and why one of them is unhealthy."""
    assert (await engine.health()).resources == {}
    await in_time((await engine.start(reader, [])).result())
    well = {"resources.reader.pool": "healthy", "resources.reader.cache": "healthy"}
    assert await engine.health() == outlive.types.Health(
        is_ready=True, store="healthy", worker="healthy", resources=well
    )
    assert (await engine.health()).is_ready
    stage.values["trouble"] = True
    health = await engine.health()
    assert health.resources["resources.reader.pool"] == "unhealthy: ConnectionError: no server any more"
    assert not health.is_ready
    stage.values["trouble"] = False


def test_a_resource_that_is_not_declared_is_a_problem() -> None:
    """Found before anything runs; and code that is replayed can have none."""
    made: outlive.Machine[S, list[str]] = outlive.Machine(
        "resources.missing", S, data=list[str], start=S.READ, exits=[S.DONE]
    )
    made.state(S.READ)(read)
    with pytest.raises(MachineError, match="read wants the resource 'cache', which is not declared"):
        made.validate()
    with pytest.raises(DefinitionError, match=r"asks for 'cache', and only steps are given resources: ask in"):
        made.router(S.SPLIT)(read)


def test_resources_that_wait_for_themselves_are_a_problem() -> None:
    """Their handlers would wait for ever."""

    def first(*, second: int) -> int:
        return second

    def second(*, third: int) -> int:
        return third

    def third(*, second: int) -> int:
        return second

    made = outlive.Machine("resources.circle", S, data=list[str], start=S.READ, exits=[S.DONE])
    made.resource("first", first)
    made.resource("second", second)
    made.resource("third", third)
    with pytest.raises(
        MachineError, match="the setup of resource second wants third wants second, and so waits"
    ) as answer:
        made.validate()
    assert "setup of resource first" not in str(answer.value)


def test_a_setup_or_teardown_with_more_parameters_is_refused() -> None:
    """A set-up or teardown that wants more parameters than it gets is refused where it is declared."""
    made = outlive.Machine("resources.needy", S, data=list[str], start=S.READ, exits=[S.DONE])

    def two(pool: str, other: str) -> None: ...

    with pytest.raises(DefinitionError, match=r"setup of resource pool: .*two\(.* wants more than the 0 it is given"):
        made.resource("pool", two)
    with pytest.raises(DefinitionError, match=r"resource pool: .*two\(.* wants more than the 1 it is given"):
        made.resource("pool", open_pool, two)  # type: ignore[arg-type]
    made.resource("pool", dict)


# -- Engines that stop -------------------------------------------------------------------------------------------------


async def open_slowly() -> str:
    """Goes on if it is cancelled, when the test wants that."""
    stage.call("begin")
    try:
        await stage.gate("set-up").pass_through()
    except asyncio.CancelledError:
        stage.call("cancelled")
        if not stage.values.get("stubborn"):
            raise
    return "slow"


class Want(enum.Enum):
    """One state that wants something."""

    WANT = "want"
    DONE = "done"


slow = outlive.Machine("resources.slow", Want, start=Want.WANT, exits=[Want.DONE])
slow.resource("pool", open_slowly, close_pool)


@slow.state(Want.WANT)
async def want_it(*, pool: str) -> Want:
    """Nothing else."""
    return Want.DONE


@pytest.mark.parametrize("is_stubborn", [False, True])
async def test_a_set_up_is_not_left_behind_by_the_last_engine(place: Place, *, is_stubborn: bool) -> None:
    """It is cancelled; and what it has made all the same is torn down."""
    stage.values["stubborn"] = is_stubborn
    async with place.engine(grace_seconds=0) as engine:
        await engine.start(slow)
        await stage.gate("set-up").reached()
    assert stage.calls == ["begin", "cancelled", *(["close slow"] if is_stubborn else [])]


async def open_like_a_cancel() -> str:
    """Something inside cancels it, once."""
    stage.call("open")
    if stage.count("open") == 1:
        raise asyncio.CancelledError
    return "pool"


fragile = outlive.Machine("resources.fragile", Want, start=Want.WANT, exits=[Want.DONE])
fragile.resource("pool", open_like_a_cancel)
fragile.state(Want.WANT)(want_it)


async def test_a_set_up_that_ends_like_a_cancel_is_tried_again(engine: outlive.Engine) -> None:
    """By the next run that wants it."""
    with pytest.raises(RunFailedError):
        await in_time((await engine.start(fragile)).result())
    assert (await in_time((await engine.start(fragile)).result())).state is Want.DONE


async def hang(pool: str) -> None:
    """For ever."""
    await asyncio.Event().wait()


hanging = outlive.Machine("resources.hanging", Want, start=Want.WANT, exits=[Want.DONE])
hanging.resource("pool", open_pool, hang)
hanging.state(Want.WANT)(want_it)


async def test_an_engine_does_not_wait_for_ever_for_a_teardown(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged as one that failed."""
    monkeypatch.setattr(live_resources, "CLOSING_SECONDS", 0)
    async with asyncio.timeout(10), place.engine() as engine:
        await in_time((await engine.start(hanging)).result())
    assert any(
        message.startswith("teardown failed: resource resources.hanging.pool: it took") for message in caplog.messages
    )


# -- Resources of steps in machines ------------------------------------------------------------------------------------


@outlive.resource(name="resources.own_pool")
async def own_pool() -> AsyncGenerator[str, None]:
    """As a step would use it."""
    yield await open_pool()
    await close_pool("own pool")


class Used(enum.Enum):
    """Two states that use something."""

    READ = "read"
    SPLIT = "split"
    DONE = "done"


user = outlive.Machine("resources.user", Used, data=list[str], start=Used.READ, exits=[Used.DONE])
named = user.resource("pool", own_pool)


@user.state(Used.READ)
async def use_it(data: list[str], db: str = outlive.use(own_pool)) -> Used:
    """Without a declaration, and by position."""
    data.append(db)
    return Used.SPLIT


@user.stepped(Used.SPLIT)
async def use_both(data: list[str], cursor: int | None, db: str = outlive.use(own_pool), *, pool: str) -> Used:
    """In both ways, behind a cursor."""
    data.append(db + pool)
    return Used.DONE


async def test_a_machine_shares_a_resource_with_steps() -> None:
    """One set-up; and `Machine.resource` gives the resource, for tests that replace it."""
    assert named is own_pool
    async with TestEngine() as engine:
        assert (await in_time((await engine.start(user, [])).result())).data == ["pool", "poolpool"]
    assert stage.calls == ["open pool", "close own pool"]
    async with TestEngine(resources={named: "fake"}) as engine:
        assert (await in_time((await engine.start(user, [])).result())).data == ["fake", "fakefake"]


async def use_other(data: list[str], window: list[str], *, pool: str = outlive.use(own_pool)) -> None:
    """Another resource under a name that is taken."""


def test_functions_of_one_state_agree_on_the_names_of_their_resources() -> None:
    """They are called with the same keywords."""

    @outlive.resource
    async def other() -> str:
        return "other"

    async def read_other(
        data: list[str], cursor: int | None, *, pool: str = outlive.use(other)
    ) -> AsyncGenerator[tuple[int, str], None]:
        yield 1, pool

    made = outlive.Machine("resources.taken", S, data=list[str], start=S.READ, exits=[S.DONE])
    with pytest.raises(DefinitionError, match=r"use_other uses resources.own_pool as 'pool', and another function"):
        made.stream(S.READ, source=read_other, process=handle, flush=use_other, then=S.DONE)
