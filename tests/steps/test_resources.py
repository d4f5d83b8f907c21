"""Resources of steps: `outlive.resource`, `outlive.use`, and what takes their place in a test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.define import live_resources
from outlive.errors import ArgumentTypeError, DefinitionError, ResourceError, RunFailedError, WrongArgumentsError
from outlive.testing import TestEngine
from tests.engine.support import in_time, stage


class Pool:
    """A pool of the tests."""

    def __init__(self, name: str) -> None:
        self.name = name


def check_pool(pool: Pool) -> str | None:
    """What the test wants it to say."""
    return stage.values.get("complaint")


@outlive.resource(health=check_pool)
async def pool() -> AsyncIterator[Pool]:
    """Waits or fails if the test wants; its task group must be left by the task that entered it."""
    stage.call("open pool")
    if stage.values.get("slow"):
        await stage.gate("set-up").pass_through()
    if stage.count("open pool") <= stage.values.get("failures", 0):
        raise ConnectionError("no server")
    async with asyncio.TaskGroup() as background:
        if stage.values.get("dies"):
            background.create_task(die())
        yield Pool("real")
    stage.call("close pool")


async def die() -> None:
    """When the test says so."""
    await stage.gate("die").pass_through()
    raise OSError("planned")


@outlive.resource
def cache(db: Pool = outlive.use(pool)) -> Iterator[str]:
    """A plain generator that uses another resource."""
    stage.call("open cache")
    yield f"cache of {db.name}"
    stage.call("close cache")


@outlive.resource
async def plain_client() -> str:
    """Returns, and has nothing to tear down."""
    return "client"


@outlive.resource
@contextlib.asynccontextmanager
async def managed() -> AsyncIterator[str]:
    """A context manager."""
    yield "managed"
    stage.call("left")


@outlive.step(name="resources.save", retry=Retry(attempts=2, first=0, on=(ConnectionError,)))
async def save(order: str, db: Pool = outlive.use(pool)) -> str:
    """Async."""
    return f"{order} in {db.name}"


@outlive.step(name="resources.load")
def load(*, near: str = outlive.use(cache), client: str = outlive.use(plain_client)) -> str:
    """Sync."""
    return f"{near} by {client}"


@outlive.step(name="resources.enter", transaction=True)
async def enter(tx: Any, order: str, within: str = outlive.use(managed)) -> str:
    """In a transaction."""
    return f"{order} {within}"


def release(saved: str, db: Pool = outlive.use(pool)) -> None:
    """An undo."""
    stage.call(f"release {saved} from {db.name}")


@outlive.step(name="resources.reserve", undo=release)
async def reserve(order: str) -> str:
    """Wants nothing itself."""
    return order


@outlive.workflow(name="resources.all_kinds")
async def all_kinds(order: str) -> list[str]:
    """One after the other."""
    return [await save(order), await load(), await enter(order)]


@outlive.workflow(name="resources.one_save")
async def one_save(order: str) -> str:
    """One step."""
    return await save(order)


@outlive.workflow(name="resources.failing")
async def failing() -> None:
    """Undoes."""
    async with outlive.saga():
        await reserve("chair")
        raise ValueError("planned")


@outlive.workflow(name="resources.with_argument")
async def with_argument() -> None:
    """Gives what is not an argument."""
    await save("chair", db=Pool("own"))


async def test_steps_of_every_kind_share_what_they_use() -> None:
    """Set up when first used, once for all runs, torn down in reverse in the task that set it up."""
    async with TestEngine() as engine:
        assert [] == stage.calls
        first, second = await asyncio.gather(engine.start(all_kinds, "lamp"), engine.start(all_kinds, "vase"))
        assert ["lamp in real", "cache of real by client", "lamp managed"] == await first.result()
        assert ["vase in real", "cache of real by client", "vase managed"] == await second.result()
        assert ["open pool", "open cache"] == stage.calls
        stage.calls.clear()
    assert ["left", "close cache", "close pool"] == stage.calls


async def test_a_resource_can_be_replaced() -> None:
    """By a value, which is neither set up nor torn down, also for the resources that use it; or by another resource."""
    async with TestEngine(resources={pool: Pool("fake"), managed: plain_client}) as engine:
        result = await (await engine.start(all_kinds, "lamp")).result()
    assert ["lamp in fake", "cache of fake by client", "lamp client"] == result
    assert ["open cache", "close cache"] == stage.calls


async def test_an_undo_can_use_a_resource() -> None:
    """A plain function that becomes a step."""
    async with TestEngine(resources={pool: Pool("fake")}) as engine:
        with pytest.raises(RunFailedError, match="planned"):
            await (await engine.start(failing)).result()
    assert ["release chair from fake"] == stage.calls


async def test_a_set_up_that_fails_is_a_failed_attempt_and_is_tried_again() -> None:
    """By the policy of the step, as if the step had raised what the set-up did; the health says so meanwhile."""
    stage.values["failures"] = 2
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="resource pool could not be set up: ConnectionError:") as caught:
            await (await engine.start(one_save, "lamp")).result()
        assert isinstance(caught.value.__cause__, ResourceError)
        health = await engine.health()
        assert {"pool": "unhealthy: could not be set up: ConnectionError: no server"} == health.resources
        assert not health.is_ready
        assert "lamp in real" == await (await engine.start(one_save, "lamp")).result()
        assert {"pool": "healthy"} == (await engine.health()).resources
        stage.values["complaint"] = "full"
        assert {"pool": "unhealthy: full"} == (await engine.health()).resources


@pytest.mark.parametrize(
    ("said", "words"), [(None, "healthy"), (True, "healthy"), (False, "unhealthy: False"), ("", "unhealthy: ")]
)
async def test_health_check_says_nothing_or_true_of_a_healthy_resource(said: object, words: str) -> None:
    """Everything else that the check of a resource returns is a complaint."""
    stage.values["complaint"] = said
    async with TestEngine() as engine:
        await (await engine.start(one_save, "lamp")).result()

        assert (await engine.health()).resources == {"pool": words}


async def test_first_users_share_one_set_up_that_no_cancelled_step_ends() -> None:
    """The step that began the set-up is cancelled, and the other step gets the resource."""
    stage.values["slow"] = True
    async with TestEngine() as engine:
        first = await engine.start(one_save, "lamp")
        await stage.gate("set-up").reached()
        second = await engine.start(one_save, "vase")
        await first.cancel()
        with pytest.raises(outlive.errors.RunCancelledError):
            await first.result()
        stage.gate("set-up").open()
        assert "vase in real" == await second.result()
    assert ["open pool", "close pool"] == stage.calls


async def test_a_resource_that_ends_by_itself_is_set_up_again(caplog: pytest.LogCaptureFixture) -> None:
    """Its task group failed; the next step that uses it gets another one."""
    stage.values["dies"] = True
    async with TestEngine() as engine:
        assert "lamp in real" == await (await engine.start(one_save, "lamp")).result()
        stage.gate("die").open()
        await engine.settle()
        stage.values["dies"] = False
        assert "vase in real" == await (await engine.start(one_save, "vase")).result()
    assert 2 == stage.count("open pool")
    assert "resource pool has ended; the next step that uses it sets it up again" in caplog.messages


async def test_a_health_check_may_not_take_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The health of a resource whose check does not end is unhealthy, with the reason."""
    monkeypatch.setattr(live_resources, "HEALTH_SECONDS", 0)
    stage.values["complaint"] = asyncio.Event().wait()
    async with TestEngine() as engine:
        await (await engine.start(one_save, "lamp")).result()
        assert {"pool": "unhealthy: its check does not end: it took longer than 0 s"} == (
            await engine.health()
        ).resources


async def test_resources_of_one_name_are_both_shown() -> None:
    """In the order in which they were set up."""
    live = live_resources.LiveResources()

    def made() -> str:
        return "made"

    one, two = outlive.resource(made), outlive.resource(made)
    step = outlive.step(name="resources.both")(uses_both(one, two))
    assert {"a": "made", "b": "made"} == await live.get(step.spec.resources)
    assert ["healthy", "healthy"] == list((await live.health()).values())
    await live.close()


def uses_both(one: Any, two: Any) -> Any:
    """A function at the top of a module."""
    both.__kwdefaults__ = {"a": outlive.use(one), "b": outlive.use(two)}
    return both


async def both(*, a: str = "", b: str = "") -> None:
    """Two resources."""


# -- Outside of a run --------------------------------------------------------------------------------------------------


async def test_outside_of_a_run_the_caller_gives_the_resource() -> None:
    """A plain call gives the resource by name or by position; without it, the error says what to give."""
    assert "lamp in own" == await save("lamp", db=Pool("own"))
    assert "lamp in own" == await save("lamp", Pool("own"))
    assert "near by here" == load(near="near", client="here")  # type: ignore[comparison-overlap]
    wanted = r"resource pool is not set up outside of a run, where step resources.save was called.*save\(\.\.\., db="
    with pytest.raises(ResourceError, match=wanted):
        await save("lamp")
    assert [] == stage.calls


async def test_a_resource_is_refused_as_an_argument_in_a_run() -> None:
    """A call in a run that gives a resource as an argument fails, because the journal could not hold it."""
    async with TestEngine() as engine:
        with pytest.raises(RunFailedError, match="unexpected keyword argument 'db'") as caught:
            await (await engine.start(with_argument)).result()
    assert isinstance(caught.value.__cause__, outlive.errors.StepFailedError | WrongArgumentsError)


# -- What is refused ---------------------------------------------------------------------------------------------------


async def behind(db: Pool = outlive.use(pool), order: str = "") -> None:
    """In the wrong order."""


async def in_process(db: Pool = outlive.use(pool)) -> None:
    """Async, and in a process."""


def sync_in_process(db: Pool = outlive.use(pool)) -> None:
    """In a process."""


def test_definitions_that_cannot_work_are_refused() -> None:
    """Where they are written."""
    with pytest.raises(DefinitionError, match="its parameter 'order' comes behind 'db', which takes a resource"):
        outlive.step(behind)
    with pytest.raises(
        DefinitionError, match="'db' takes a resource, and process=True runs it in a process of its own"
    ):
        outlive.step(process=True)(sync_in_process)
    with pytest.raises(DefinitionError, match="'db' takes a resource, and a workflow runs again in every replay"):
        outlive.workflow(in_process)
    with pytest.raises(DefinitionError, match="wants more than the 0 it is given"):

        @outlive.resource
        def needy(order: str) -> None: ...

    with pytest.raises(ArgumentTypeError, match=r"outlive.use: resource=5 cannot work: give a Resource"):
        outlive.use(5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="give a function"):
        outlive.resource(5)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match="give a dict from resources"):
        TestEngine(resources={"pool": 5})


async def test_health_of_an_engine_that_only_talks_to_the_store() -> None:
    """It has no worker, and is ready when the store answers."""
    async with outlive.Engine("memory:", worker=False) as engine:
        assert outlive.types.Health(is_ready=True, store="healthy", worker=None, resources={}) == await in_time(
            engine.health()
        )


@pytest.mark.parametrize("health", [7, lambda pool, more: None], ids=["no function", "takes two"])
def test_health_check_takes_the_resource_at_most(health: Any) -> None:
    """Anything else is refused where the resource is defined, and not when a page is shown at night."""
    with pytest.raises((ArgumentTypeError, DefinitionError), match="health"):
        outlive.resource(name="checked", health=health)(lambda: 1)


SAME: list[Any] = [
    outlive.resource(name="pool", health=lambda _, said=said: said)(lambda: 1)  # type: ignore[misc]
    for said in ("a", "b", None)
]


@outlive.step(name="resources.of_one_name")
async def use_all(
    one: int = outlive.use(SAME[0]), two: int = outlive.use(SAME[1]), three: int = outlive.use(SAME[2])
) -> int:
    return one + two + three


@outlive.workflow(name="resources.one_name")
async def use_all_once() -> int:
    return await use_all()


async def test_resources_with_one_name_are_all_shown() -> None:
    """A number tells them apart, in the order in which they were set up."""
    async with TestEngine() as engine:
        assert await (await engine.start(use_all_once)).result() == 3
        assert (await engine.health()).resources == {
            "pool": "unhealthy: a",
            "pool (2)": "unhealthy: b",
            "pool (3)": "healthy",
        }
