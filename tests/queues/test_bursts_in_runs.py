"""Workflows whose starts become one run with those of others: `outlive.start(..., debounce=...)`."""

from __future__ import annotations

from typing import Any

import pytest

import outlive
from outlive.errors import ConfigurationError, InvalidArgumentError
from outlive.events import StepSucceeded
from outlive.limits import Debounce, Throttle
from outlive.testing import TestEngine
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage, until

pytestmark = pytest.mark.any_store


@outlive.step
async def indexed(text: str) -> str:
    stage.call(text)
    return text


@outlive.workflow
async def index_of(text: str, *, by: str = "") -> str:
    return await indexed(text + by)


@outlive.workflow
async def goods_changed(text: str, quiet: float = 30) -> list[str]:
    """Start the run of a burst, and wait for it."""
    how = Debounce(key="shop", quiet=quiet)
    run = await outlive.start(index_of.bind(text, by="!"), detached=True, debounce=how, tags={"shop": "a"})
    return [run.id, await run.result()]


@outlive.workflow
async def throttled(text: str) -> str:
    run = await outlive.start(index_of, text, detached=True, throttle=Throttle(key="shop", every=60))
    return await run.result()


async def test_starts_of_several_runs_are_one_burst() -> None:
    """With those of a program outside; all get the result of the last arguments, and the tags are those of the first
    start. [DB-D1]"""
    async with TestEngine() as engine:
        first = await engine.start(goods_changed, "one", headers={"tenant": "a"})
        await engine.skip(seconds=20)
        outside = await engine.start(index_of, "two", debounce=Debounce(key="shop", quiet=30))
        await engine.skip(seconds=20)
        last = await engine.start(goods_changed, "three", headers={"tenant": "b"})
        results = [await first.result(), await last.result()]

        assert results == [[outside.id, "three!"], [outside.id, "three!"]]
        run = await outside.info()
        assert (run.tags, run.parent_id) == ({"shop": "a"}, None)
    assert stage.calls == ["three!"]


async def test_throttled_starts_of_runs_are_the_first_one() -> None:
    """For as long as it is said."""
    async with TestEngine() as engine:
        results = [await (await engine.start(throttled, text)).result() for text in ("one", "two")]
        await engine.skip(seconds=61)
        results.append(await (await engine.start(throttled, "three")).result())

    assert results == ["one", "one", "three"]


@pytest.mark.every_store
async def test_burst_of_a_run_is_started_once_though_its_worker_dies(place: Place) -> None:
    """A replay does not start it again: its id is in the journal. [DB-D11]"""
    first = await place.engine().__aenter__()
    run = await first.start(goods_changed, "one", 0.000001, id="changed")

    async def has_started() -> bool:
        return len(await events_of(run, StepSucceeded)) == 1

    await until(has_started)
    await crash(first)
    async with place.engine() as second:
        run_id, result = await in_time(second.get("changed").result())

        assert result == "one!"
        assert [run_id] == [run.id for run in await second.list(workflow="index_of")]


@outlive.workflow
async def badly_gathered(options: dict[str, Any]) -> None:
    how = Debounce(key="shop", quiet=30)
    await outlive.start(index_of, "one", debounce=how, **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ConfigurationError, "detached=True"),
        ({"detached": True, "id": "a"}, InvalidArgumentError, "the key says which run it is"),
        ({"detached": True, "throttle": 5}, InvalidArgumentError, "not both"),
    ],
    ids=str,
)
async def test_bad_start_of_a_burst_is_refused(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """With what to do; nothing is started."""
    async with TestEngine() as engine:
        run = await engine.start(badly_gathered, options)
        with pytest.raises(outlive.errors.RunFailedError, match=text) as found:
            await run.result()
        assert await engine.count(workflow="index_of") == 0
    assert error.__name__ in str(found.value)
