"""`outlive.map`: every item durable on its own, a limit on items at once, and failures that are tolerated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import outlive
from outlive.errors import ConfigurationError, RunFailedError, ToleranceExceededError
from outlive.events import RunCreated, StepSucceeded
from outlive.limits import Tolerance
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, stage, until

pytestmark = pytest.mark.any_store


@outlive.step
async def map_double(number: int) -> int:
    stage.call(number)
    stage.values["running"] = stage.values.get("running", 0) + 1
    stage.values["most"] = max(stage.values.get("most", 0), stage.values["running"])
    if number in stage.values.get("held", ()):
        await stage.gate(str(number)).pass_through()
    else:
        await asyncio.sleep(0)
    stage.values["running"] -= 1
    if number in stage.values.get("bad", ()):
        raise ValueError(f"bad {number}")
    return number * 2


@outlive.step
def map_double_on_thread(number: int) -> int:
    return number * 2


@outlive.workflow
async def map_child(number: int) -> int:
    return await map_double(number)


@outlive.workflow
async def mapped(count: int, concurrency: int, of: str = "step") -> list[int]:
    work = map_child if of == "child" else map_double_on_thread if of == "thread" else map_double
    return await outlive.map(work, numbers(count), concurrency=concurrency)


@outlive.workflow
async def mapped_tolerant(count: int, failures: int | None, ratio: float | None) -> list[int | str]:
    tolerance = Tolerance(failures=failures, ratio=ratio)
    try:
        found = await outlive.map(map_double, range(count), tolerate=tolerance, concurrency=2)
    except ToleranceExceededError as error:
        return [str(error), *error.errors]
    return [str(each) if isinstance(each, Exception) else each for each in found]


@outlive.workflow
async def mapped_twice() -> list[int]:
    first, second = await asyncio.gather(outlive.map(map_double, [1, 2]), outlive.map(map_double, [3, 4]))
    return [*first, *second, *await outlive.map(map_double, [])]


def numbers(count: int) -> Iterator[int]:
    """Read lazily; at the end it says so."""
    for number in range(count):
        stage.values["read"] = number + 1
        yield number


@pytest.mark.parametrize("of", ["step", "child", "thread"])
async def test_results_come_in_the_order_of_the_items(engine: outlive.Engine, of: str) -> None:
    """For steps, sync steps and workflows."""
    run = await engine.start(mapped, 12, 3, of)

    assert [number * 2 for number in range(12)] == await in_time(run.result())
    children = [event for event in await events_of(run, RunCreated) if event.run]
    assert (12 if of == "child" else 0) == len(children)


async def test_no_more_items_than_the_concurrency_are_under_way(engine: outlive.Engine) -> None:
    """A map with a concurrency of 7 has 7 items under way and has read only 7 from its iterable."""
    stage.values["held"] = set(range(7))
    run = await engine.start(mapped, 100, 7)
    for number in range(7):
        await stage.gate(str(number)).reached()
    assert 7 == stage.values["read"]
    for number in range(7):
        stage.gate(str(number)).open()
    await in_time(run.result())
    assert 7 == stage.values["most"]


async def test_the_identity_of_an_item_is_its_number(engine: outlive.Engine) -> None:
    """The number does not depend on which item is slow, nor on how many lanes there are."""
    stage.values["held"] = {0}
    slow = await engine.start(mapped, 5, 2)
    await stage.gate("0").reached()

    async def are_others_done() -> bool:
        return len(await events_of(slow, StepSucceeded)) == 4

    await until(are_others_done)
    stage.gate("0").open()
    await in_time(slow.result())
    wide = await engine.start(mapped, 5, 5)
    await in_time(wide.result())
    calls = [[event.call for event in await events_of(run, StepSucceeded)] for run in (slow, wide)]

    assert calls[0] == [f"1.{number}/map_double" for number in (2, 3, 4, 5, 1)]
    assert calls[1] == [f"1.{number}/map_double" for number in (1, 2, 3, 4, 5)]


async def test_items_that_are_done_are_not_done_again(place: Place) -> None:
    """A crash costs the items under way. [FE-S5]"""
    stage.values["held"] = {3}
    first = await place.engine().__aenter__()
    run = await first.start(mapped, 6, 2, id="run-1")
    await stage.gate("3").reached()

    async def are_others_done() -> bool:
        return len(await events_of(run, StepSucceeded)) == 5

    await until(are_others_done)
    await crash(first)
    stage.gate("3").open()
    async with place.engine() as second:
        assert [0, 2, 4, 6, 8, 10] == await in_time(second.get("run-1").result())
    assert [1, 1, 1, 2, 1, 1] == [stage.count(number) for number in range(6)]


async def test_the_first_failure_cancels_the_rest(engine: outlive.Engine) -> None:
    """A map raises the first failure as it is, cancels the items under way, and begins no other. [FB-R15]"""
    stage.values.update(bad={1}, held={0})
    run = await engine.start(mapped, 100, 2)

    with pytest.raises(RunFailedError, match="ValueError: bad 1"):
        await in_time(run.result())
    assert [0, 1] == stage.calls


async def test_tolerated_failures_stand_in_the_list(engine: outlive.Engine) -> None:
    """In the place of their item."""
    stage.values["bad"] = {1, 3}
    run = await engine.start(mapped_tolerant, 5, 2, None)

    assert [0, "bad 1", 4, "bad 3", 8] == await in_time(run.result())


@pytest.mark.parametrize(
    ("failures", "ratio", "tolerated"), [(1, None, "1"), (None, 0.1, "10% of them"), (5, 0.1, "5 and 10% of them")]
)
async def test_more_failures_than_tolerated_cancel_the_rest(
    engine: outlive.Engine, failures: int | None, ratio: float | None, tolerated: str
) -> None:
    """The error has the failed items, by number."""
    stage.values["bad"] = {2, 3}
    run = await engine.start(mapped_tolerant, 10, failures, ratio)

    message = f"2 items failed, and {tolerated} were tolerated; the first of them is item 2: ValueError: bad 2"
    assert [message, 2, 3] == await in_time(run.result())
    assert 9 not in stage.calls


async def test_maps_side_by_side_do_not_meet(engine: outlive.Engine) -> None:
    """Each has a place of its own, and an empty one is empty."""
    run = await engine.start(mapped_twice)

    assert [2, 4, 6, 8] == await in_time(run.result())


async def test_a_cancelled_map_cancels_its_items(engine: outlive.Engine) -> None:
    """A cancelled run cancels the items of its map that are under way, and begins no other."""
    stage.values["held"] = {0, 1}
    run = await engine.start(mapped, 100, 2)
    await stage.gate("0").reached()
    await stage.gate("1").reached()
    await run.cancel()

    with pytest.raises(outlive.errors.RunCancelledError):
        await in_time(run.result())
    assert [0, 1] == stage.calls


async def test_a_thousand_items_are_not_a_thousand_tasks() -> None:
    """Outside a run a map is plain concurrency, in as many lanes."""
    most = 0

    def counted() -> Iterator[int]:
        nonlocal most
        for number in range(1_000):
            most = max(most, len(asyncio.all_tasks()))
            yield number

    before = len(asyncio.all_tasks())
    assert [number * 2 for number in range(1_000)] == await outlive.map(map_double, counted(), concurrency=4)
    assert most <= before + 4
    assert 4 == stage.values["most"]


async def test_outside_a_run_failures_are_the_same() -> None:
    """Raised, tolerated, or too many."""
    stage.values["bad"] = {1}
    with pytest.raises(ValueError, match="bad 1"):
        await outlive.map(map_double, range(5))
    found = await outlive.map(map_double, range(3), tolerate=Tolerance(failures=1))
    assert [0, "bad 1", 4] == [str(each) if isinstance(each, Exception) else each for each in found]
    with pytest.raises(ToleranceExceededError):
        await outlive.map(map_double, range(3), tolerate=Tolerance(failures=0))
    assert [0, 2, 4] == await outlive.map(map_double_on_thread, range(3))


def broken() -> Iterator[int]:
    """Breaks after two items."""
    yield from (0, 1)
    raise LookupError("no more")


@pytest.mark.parametrize("concurrency", [1, 5])
async def test_items_that_cannot_be_read_fail_the_map(concurrency: int) -> None:
    """With the error of the iterable."""
    with pytest.raises(LookupError, match="no more"):
        await outlive.map(map_double, broken(), concurrency=concurrency)


async def test_nonsense_is_refused() -> None:
    """With what to do."""
    with pytest.raises(ConfigurationError, match="a whole number from 1 on"):
        await outlive.map(map_double, [], concurrency=0)
    with pytest.raises(TypeError, match="give it a step or a workflow"):
        await outlive.map(print, [])  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="failures=, ratio= or both"):
        Tolerance()
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        Tolerance(ratio=2)
    with pytest.raises(ConfigurationError, match="a whole number from 0 on"):
        Tolerance(failures=-1)
