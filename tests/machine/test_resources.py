"""Resources of machines: set up when wanted, shared, torn down in reverse, and never in a journal."""

from __future__ import annotations

import enum
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import outlive
from outlive import All, Retry
from outlive.errors import DefinitionError, MachineError, RunFailed
from tests.engine.support import Place, in_time, stage


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


async def test_a_resource_is_torn_down_with_the_last_engine(place: Place) -> None:
    """Those that are left may still use it; an engine that comes later sets it up anew."""
    async with place.engine():
        async with place.engine() as inner:
            await in_time((await inner.start(reader, [])).result())
        assert "close pool" not in stage.calls
    assert stage.calls[-1] == "close pool"
    async with place.engine() as engine:
        await in_time((await engine.start(reader, [])).result())
    assert 2 == stage.count("open pool")


async def test_a_set_up_that_fails_is_a_failed_attempt(engine: outlive.Engine) -> None:
    """The next attempt tries anew; without one the run fails, and nothing was done. [CA-U7]"""
    stage.values["failures"] = 1
    assert (await in_time((await engine.start(reader, [])).result())).state is S.DONE


async def test_a_set_up_that_keeps_failing_fails_the_run(engine: outlive.Engine) -> None:
    """What was set up before is torn down with the engine. [CA-U7]"""
    stage.values["failures"] = 9
    with pytest.raises(RunFailed, match="no server"):
        await in_time((await engine.start(reader, [])).result())
    assert stage.calls == ["open pool", "open pool"]


async def test_an_undo_can_have_resources(engine: outlive.Engine) -> None:
    """A plain function."""
    stage.values["fails"] = True
    with pytest.raises(RunFailed, match="planned"):
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
    assert ["teardown failed: resource pool"] == [
        record.getMessage() for record in caplog.records if record.levelno == logging.ERROR
    ]


async def test_resources_say_how_they_are(engine: outlive.Engine) -> None:
    """Those of this process."""
    assert set((await reader.health()).values()) == {"not set up"}
    await in_time((await engine.start(reader, [])).result())
    assert await reader.health() == {"pool": "healthy", "cache": "healthy", "unused": "not set up"}
    stage.values["trouble"] = True
    assert (await reader.health())["pool"] == "unhealthy: ConnectionError: no server any more"
    stage.values["trouble"] = False


def test_a_resource_that_nobody_declared_is_a_problem() -> None:
    """Found before anything runs; and code that is replayed can have none."""
    made: outlive.Machine[S, list[str]] = outlive.Machine(
        "resources.missing", S, data=list[str], start=S.READ, exits=[S.DONE]
    )
    made.state(S.READ)(read)
    with pytest.raises(MachineError, match="read wants the resource 'cache', which is not declared"):
        made.validate()
    with pytest.raises(DefinitionError, match="wants more than the 1 it is given"):
        made.router(S.SPLIT)(read)
