"""Context variables: what the engine calls sees what the engine gives, and nothing of the caller that woke it.

The store does not matter here: everything runs in memory.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive.types import WorkerOptions
from tests.engine.support import in_time, stage

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant_of_the_caller", default="none")


def see(where: str) -> str:
    """Note what a function of the user sees."""
    stage.values.setdefault("seen", set()).add((where, TENANT.get()))
    return TENANT.get()


@pytest.fixture
async def engine() -> AsyncIterator[outlive.Engine]:
    """A running engine, entered where the variable has a value."""
    TENANT.set("who entered the engine")
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        yield engine


@outlive.step
async def undo_look(result: str) -> None:
    see("undo")


@outlive.step(undo=undo_look)
async def look() -> str:
    await asyncio.sleep(0)
    return see("async step")


@outlive.step(timeout=60)
async def look_with_timeout() -> str:
    return see("async step with a timeout")


@outlive.step
def look_on_thread() -> str:
    return see("sync step")


@outlive.step(transaction=True)
async def look_in_transaction(tx: Any) -> str:
    return see("transaction step")


@outlive.step(once=True)
async def look_once() -> str:
    return see("once step")


@outlive.step(retry=Retry(attempts=2, first=0))
async def look_twice() -> str:
    see("retried step")
    if outlive.current_step().attempt == 1:
        raise ConnectionError("planned")
    return outlive.current_step().run_id


@outlive.workflow(name="contexts.every_kind")
async def every_kind() -> str:
    see("workflow")
    try:
        async with outlive.saga():
            for each in (look, look_with_timeout, look_on_thread, look_once):
                await each()
            await look_in_transaction()
            raise LookupError("planned")
    except LookupError:
        return await look_twice()


async def as_tenant(engine: outlive.Engine, name: str) -> tuple[str, str]:
    """What a start by this tenant returns, and the id of its run."""
    TENANT.set(name)
    run = await engine.start(every_kind)
    return await in_time(run.result()), run.id


async def test_no_step_sees_a_variable_of_any_caller(engine: outlive.Engine) -> None:
    """Four tenants start runs at once: steps of every kind, undos and workflows see none of them."""
    ends = await asyncio.gather(*(as_tenant(engine, name) for name in ("a", "b", "c", "d")))

    kinds = ("async step", "async step with a timeout", "sync step", "once step", "transaction step", "retried step")
    assert {(kind, "none") for kind in (*kinds, "undo", "workflow")} == stage.values["seen"]
    assert all(result == run_id for result, run_id in ends)  # current_step() is what the engine gives.


class S(enum.Enum):
    """Two states."""

    WORK = "work"
    DONE = "done"


class Watching(outlive.machine.Observer):
    """Looks in a plain hook and in an async one."""

    def state_entered(self, fact: Any) -> None:
        """Plain."""
        see("hook")

    async def ended(self, fact: Any) -> None:
        """Async."""
        await asyncio.sleep(0)
        see("async hook")
        stage.values["ended"].set()


def no_step() -> str:
    """Whether there is a current step."""
    try:
        outlive.current_step()
    except outlive.errors.OutliveError:
        return "no step"
    return "a step"


async def open_pool() -> str:
    """A resource."""
    return see(f"set-up in {no_step()}")


def close_pool(pool: str) -> None:
    """A resource."""
    see("teardown")


machine = outlive.Machine("contexts.machine", S, data=str, start=S.WORK, exits=[S.DONE])
machine.observe(Watching())
machine.resource("pool", open_pool, close_pool)


@machine.state(S.WORK)
async def work(data: str, *, pool: str) -> S:
    """Wants the resource."""
    see("handler")
    return S.DONE


async def test_hooks_handlers_and_resources_see_no_caller() -> None:
    """An observer's hooks, a state's handler, and the set-up and teardown of what it uses run in contexts of theirs."""
    stage.values["ended"] = asyncio.Event()
    TENANT.set("who enters and leaves")
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        TENANT.set("who starts")
        await in_time((await engine.start(machine, "x")).result())
        await in_time(stage.values["ended"].wait())

    where = ("hook", "async hook", "set-up in no step", "teardown", "handler")
    assert {(each, "none") for each in where} == stage.values["seen"]


@outlive.workflow(name="contexts.until_signal")
async def until_signal() -> None:
    await outlive.wait_for_signal("go")


class Request:
    """Something large that hangs on a context, as web frameworks have it."""


REQUEST: contextvars.ContextVar[Request] = contextvars.ContextVar("request_of_the_caller")


async def test_the_engine_keeps_nothing_of_a_caller_alive() -> None:
    """The context of a caller is freed when the caller has ended, while its run and the engine go on."""

    async def call(engine: outlive.Engine) -> weakref.ref[Request]:
        REQUEST.set(Request())
        run = await engine.start(until_signal, id="goes-on")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.result(), 0)
        return weakref.ref(REQUEST.get())

    async def enter(engine: outlive.Engine) -> weakref.ref[Request]:
        REQUEST.set(Request())
        await engine.__aenter__()
        return weakref.ref(REQUEST.get())

    engine = outlive.Engine("memory:", worker=WorkerOptions(tune=False))
    requests = [await asyncio.create_task(enter(engine)), await asyncio.create_task(call(engine))]
    try:
        await asyncio.sleep(0)
        gc.collect()
        assert [None, None] == [request() for request in requests]
    finally:
        await engine.__aexit__(None, None, None)
