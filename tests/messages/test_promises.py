"""Promises: values that programs outside settle by id, once, typed, before or after they are awaited."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import Any

import pydantic
import pytest

import outlive
from outlive.errors import ArgumentTypeError, ConfigurationError, RunFinishedError, RunNotFoundError
from outlive.errors.program import NotInRunError
from outlive.errors.run import PromiseNotFoundError, PromiseTypeError
from outlive.events import PromiseMade, SignalReceived
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from tests.engine.faults import FaultyStore, faulty, unknown
from tests.engine.support import Place, events_of, in_time, registry_of, waits


@dataclass(frozen=True)
class Verdict:
    approved: bool
    day: date


class Even(pydantic.BaseModel):
    """Its schema does not say all that it wants."""

    number: int

    @pydantic.field_validator("number")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("it is odd")
        return number


class Undescribed:
    """Neither a dataclass nor a model."""


class Unpaid(Exception):
    """The workflow names it."""


links: list[str] = []


@outlive.step
async def send_promise(promise: str) -> None:
    """Where the world learns of it."""
    links.append(promise)


@outlive.workflow(raises=(Unpaid,))
async def promised(kind: str) -> Any:
    """Makes a promise, sends its id, and awaits it."""
    promise: Any = {"verdict": outlive.promise, "even": outlive.promise, "any": outlive.promise}[kind](
        *{"verdict": (Verdict,), "even": (Even,), "any": ()}[kind]
    )
    await send_promise(promise.id)
    try:
        value = await promise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return repr(value)


@pytest.fixture(autouse=True)
def _no_links() -> None:
    links.clear()


async def link_of(engine: outlive.Engine, run: outlive.types.RunHandle[Any]) -> str:
    """The id that a run has sent, when it waits for it."""
    await (engine.settle() if isinstance(engine, TestEngine) else waits(run))
    return links[-1]


@pytest.mark.every_store
async def test_a_promise_is_settled_from_another_process(place: Place) -> None:
    """One that has not even the code; the run may be out of memory, and `why` says what it waits for."""
    async with place.engine() as engine:
        run = await engine.start(promised, "verdict", id="order-7")
        promise = await link_of(engine, run)
        assert promise.startswith("order-7:")
        assert f"it waits for promise {promise}" == await run.why()
    async with place.engine(worker=False, registry=registry_of()) as client:
        assert await client.promises.resolve(promise, {"approved": True, "day": "2024-02-29"})
    async with place.engine() as engine:
        run = engine.get("order-7")
        expected = Verdict(approved=True, day=date(2024, 2, 29))
        assert repr(expected) == await in_time(run.result())
        assert not await engine.promises.resolve(promise, expected)
        assert 1 == len(await events_of(run, SignalReceived)) == len(await events_of(run, PromiseMade))


async def test_a_promise_is_settled_once() -> None:
    """One of five callers that resolve a promise at once settles it; the others, and a later failure, change
    nothing."""
    async with TestEngine() as engine:
        run = await engine.start(promised, "any")
        promise = await link_of(engine, run)
        settled = await asyncio.gather(*(engine.promises.resolve(promise, number) for number in range(5)))
        assert 1 == sum(settled)
        assert not await engine.promises.fail(promise, ValueError("too late"))
        assert repr(settled.index(True)) == await run.result()


@pytest.mark.parametrize(
    ("error", "heard"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (Unpaid("again"), "Unpaid: again"),
        (pytest.UsageError("mine"), "PromiseFailedError: promise order-7:"),
    ],
)
async def test_a_promise_that_is_failed_raises_where_it_is_awaited(error: Exception, heard: str) -> None:
    """A failed promise raises its error itself if the workflow can know the class, else PromiseFailedError."""
    async with TestEngine() as engine:
        run = await engine.start(promised, "verdict", id="order-7")
        assert await engine.promises.fail(await link_of(engine, run), error)
        assert heard in await run.result()


@pytest.mark.parametrize("value", [None, "yes", {"approved": "yes", "day": "2024-02-29"}, {"approved": True}, object()])
async def test_a_value_of_another_type_is_refused_before_it_is_accepted(value: Any) -> None:
    """By the schema in the journal; a right one can follow."""
    async with TestEngine() as engine:
        run = await engine.start(promised, "verdict")
        promise = await link_of(engine, run)
        with pytest.raises(PromiseTypeError, match="takes a value of type Verdict"):
            await engine.promises.resolve(promise, value)
        assert await engine.promises.resolve(promise, Verdict(approved=False, day=date(2024, 1, 1)))
        assert "approved=False" in await run.result()


async def test_a_value_that_only_the_code_can_refuse_is_set_aside() -> None:
    """The run waits on, says so, and takes the next one."""
    async with TestEngine() as engine:
        run = await engine.start(promised, "even")
        promise = await link_of(engine, run)
        assert await engine.promises.resolve(promise, {"number": 3})
        await engine.settle()
        assert f"it waits for promise {promise} (1 message was set aside: it cannot be read as Even" in await run.why()
        assert ["promise"] == [found.kind for found in await engine.dead_letters.list(run.id)]
        assert await engine.promises.resolve(promise, Even(number=4))
        assert not await engine.promises.resolve(promise, {"number": 6})
        assert "Even(number=4)" == await run.result()


@outlive.workflow
async def keeps_promises() -> list[Any]:
    """Settled early, awaited late, by several tasks, and in time or not."""
    first, second = outlive.promise(int), outlive.promise(str)
    await send_promise(first.id)
    await send_promise(second.id)
    heard: list[Any] = []
    try:
        async with asyncio.timeout(3600):
            heard.append(await second)
    except TimeoutError:
        heard.append("late")
    heard += await asyncio.gather(first, first)
    return [*heard, await first, await second]


async def settle_both(engine: outlive.Engine, run_id: str) -> None:
    """The world: it settles the first at once, and the second after the timeout."""
    assert isinstance(engine, TestEngine)
    await engine.settle()
    made = await events_of(engine.get(run_id), PromiseMade)
    if len(made) < 2:
        return
    await engine.promises.resolve(links[0], 7)
    await engine.skip(seconds=3601)
    await engine.promises.resolve(links[1], "at last")


async def test_a_promise_is_kept_until_it_is_awaited() -> None:
    """A timeout around it is durable, and it can be awaited again."""
    async with TestEngine() as engine:
        run = await engine.start(keeps_promises)
        await settle_both(engine, run.id)
        assert ["late", 7, 7, 7, "at last"] == await run.result()


@outlive.workflow
async def promise_in_time() -> int:
    """One promise."""
    promise = outlive.promise(int)
    await send_promise(promise.id)
    return await promise + 1


async def settle_once(engine: outlive.Engine, run_id: str) -> None:
    """The world settles what it was sent; after a crash the driver does so again."""
    await engine.settle()  # type: ignore[attr-defined]
    if links:
        await engine.promises.resolve(links[-1], 41)


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_promises_survive_a_crash_at_every_commit(points: int) -> None:
    """The id is the same in every replay."""
    await crash_everywhere(
        promise_in_time, drive=settle_once, reset=links.clear, check=lambda _: one_link(), max_points=points
    )


def one_link() -> None:
    """See that every attempt has sent the same id."""
    assert 1 == len(set(links))


async def test_a_settlement_that_was_not_answered_is_sent_again(place: Place) -> None:
    """It counts once; that it was ours is not known then."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(promised, "any")
        promise = await link_of(engine, run)
        stores[0].after["deliver"].append(unknown())
        assert not await engine.promises.resolve(promise, 5)
        assert "5" == await in_time(run.result())


async def test_a_promise_that_cannot_be_settled_is_refused_with_the_reason() -> None:
    """A promise whose run is unknown or has made no such promise is refused with the reason."""
    async with TestEngine() as engine:
        run = await engine.start(promised, "any", id="order-7")
        promise = await link_of(engine, run)
        with pytest.raises(PromiseNotFoundError, match="not the id of a promise"):
            await engine.promises.resolve("order-7", 1)
        with pytest.raises(PromiseNotFoundError, match="'order-7' has made no such promise"):
            await engine.promises.resolve(promise[:-1] + ("0" if promise[-1] != "0" else "1"), 1)
        with pytest.raises(RunNotFoundError, match="order-8"):
            await engine.promises.resolve(promise.replace("order-7", "order-8"), 1)
        with pytest.raises(ArgumentTypeError, match="give an exception"):
            await engine.promises.fail(promise, "no")  # type: ignore[arg-type]
        await run.cancel()
        with pytest.raises(outlive.errors.RunCancelledError):
            await run.result()
        with pytest.raises(RunFinishedError, match="cancelled"):
            await engine.promises.resolve(promise, 1)


@outlive.workflow
async def promises_by_generation(generation: int) -> Any:
    """Makes the same promise in each generation, and awaits the last one."""
    promise = outlive.promise(int)
    await send_promise(promise.id)
    if generation < 2:
        await outlive.wait_for_signal("next")
        outlive.continue_as_new(generation + 1)
    return await promise


async def test_a_promise_ends_with_its_generation() -> None:
    """The link to a promise of one generation does not settle the promise of the next generation."""
    async with TestEngine() as engine:
        run = await engine.start(promises_by_generation, 1, id="order-7")
        first = await link_of(engine, run)
        assert await engine.promises.resolve(first, 1)
        await run.signal("next")
        second = await link_of(engine, run)
        assert first != second
        with pytest.raises(PromiseNotFoundError, match="a run that had this id before"):
            await engine.promises.resolve(first, 1)
        assert await engine.promises.resolve(second, 2)
        assert 2 == await run.result()


@outlive.workflow
async def promises_too_much() -> str:
    """A type that nothing describes."""
    try:
        outlive.promise(Undescribed)
    except ConfigurationError as error:
        return str(error)
    return "made"


async def test_a_type_that_no_schema_describes_is_refused() -> None:
    """When the promise is made, and not when it is settled."""
    async with TestEngine() as engine:
        said = await (await engine.start(promises_too_much)).result()
    assert "outlive.promise: kind=Undescribed cannot be described as JSON" in said


def test_a_promise_outside_a_workflow_is_refused() -> None:
    """`outlive.promise` outside a workflow raises NotInRunError."""
    with pytest.raises(NotInRunError, match=r"outlive\.promise\(\) was called outside a workflow"):
        outlive.promise(int)


def test_sync_code_settles_promises() -> None:
    """The sync engine settles a promise without `await`."""
    with outlive.Engine("memory:").sync as engine:
        run = engine.start(promised, "any")
        while not links:
            run.status()
        assert engine.promises.resolve(links[-1], 3)
        assert "3" == run.result()
