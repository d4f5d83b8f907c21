"""Middleware: around every start, every attempt of a step and every workflow."""

from __future__ import annotations

import contextvars
from collections.abc import AsyncIterator
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.define.middleware import Next
from outlive.errors import ArgumentTypeError, ConfigurationError, DefinitionError, RunFailedError, RunNotFoundError
from outlive.events import RunCreated
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.engine.support import stage

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="unset")


class Noting(outlive.middleware.Middleware):
    """Says what it is around, on both sides."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
        stage.call(f"{self.name}start {start.workflow}@{start.version} {start.args}")
        try:
            return await call_next()
        finally:
            stage.call(f"{self.name}started {start.id}")

    async def on_step(self, step: outlive.types.StepContext, call_next: Next) -> Any:
        stage.call(f"{self.name}step {step.name} of {step.run_id}: {step.attempt}")
        try:
            return await call_next()
        except ValueError as error:
            stage.call(f"{self.name}saw {error}")
            raise

    async def on_workflow(self, run: outlive.types.RunContext, call_next: Next) -> Any:
        if not run.is_replaying:
            stage.call(f"{self.name}workflow {run.workflow}")
        result = await call_next()
        if not outlive.current_run().is_replaying:
            stage.call(f"{self.name}ended {run.workflow}")
        return result


class TenantContext:
    """No base class: headers from the caller's context, and a context for steps."""

    async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
        start.headers.setdefault("tenant", TENANT.get())
        return await call_next()

    async def on_step(self, step: outlive.types.StepContext, call_next: Next) -> Any:
        TENANT.set(step.headers["tenant"])
        return await call_next()


@outlive.step(name="middleware.tell", retry=Retry(attempts=2, first=0))
async def tell() -> str:
    """Fails as often as the test wants."""
    if outlive.current_step().attempt <= stage.values.get("failures", 0):
        raise ValueError("planned")
    return TENANT.get()


@outlive.step(name="middleware.tell_sync")
def tell_sync() -> str:
    """On a thread."""
    return TENANT.get()


@outlive.step(name="middleware.tell_in_process", process=True)
def tell_in_process() -> str:
    """In another process, where no context variable goes."""
    return f"{TENANT.get()} with {outlive.current_step().headers['tenant']}"


@outlive.step(name="middleware.tell_row")
async def tell_row(row: int) -> str:
    """An item."""
    return f"{row}{TENANT.get()}"


@outlive.workflow(name="middleware.inner")
async def inner() -> str:
    """A child."""
    return await tell()


@outlive.workflow(name="middleware.outer")
async def outer(order: str) -> list[str]:
    """A step, and a child."""
    return [await tell_sync(), await inner(), TENANT.get()]


@outlive.workflow(name="middleware.processed")
async def processed() -> str:
    """A step in a process."""
    return await tell_in_process()


@outlive.workflow(name="middleware.waiting")
async def waiting() -> str:
    """Started by a signal or an ask."""
    await outlive.wait_for_signal("go")
    return outlive.current_run().headers["tenant"]


@pytest.fixture
async def tenant() -> AsyncIterator[str]:
    """Who asks."""
    token = TENANT.set("a")
    yield "a"
    TENANT.reset(token)


async def test_middleware_is_around_starts_steps_and_workflows() -> None:
    """The first one outermost; each attempt on its own; children too. [FE-A6]"""
    stage.values["failures"] = 1
    async with TestEngine(middleware=[Noting("1 "), Noting("2 ")]) as engine:
        run = await engine.start(outer, "lamp", id="run-1")
        assert ["unset"] * 3 == await run.result()
    expected = [
        "start middleware.outer@1 ('lamp',)",
        "started run-1",
        "workflow middleware.outer",
        "step middleware.tell_sync of run-1: 1",
        "workflow middleware.inner",
        "step middleware.tell of run-1~1: 1",
        "saw planned",
        "step middleware.tell of run-1~1: 2",
        "ended middleware.inner",
        "ended middleware.outer",
    ]
    for name in "12":
        assert sorted(expected) == sorted(call[2:] for call in stage.calls if call[0] == name)
    firsts = [stage.calls.index(f"{name} step middleware.tell of run-1~1: 1") for name in "12"]
    assert firsts == sorted(firsts)
    assert stage.calls.index("2 saw planned") < stage.calls.index("1 saw planned")


async def test_middleware_carries_a_context_to_steps(tenant: str) -> None:
    """From where the start is called, through headers, to steps on the loop and on threads; not into the workflow."""
    async with TestEngine(middleware=[TenantContext()]) as engine:
        run = await engine.start(outer, "lamp")
        assert [tenant, tenant, "unset"] == await run.result()
        (created, *_) = [event for event in await journal_of(run) if isinstance(event, RunCreated)]
        assert {"tenant": tenant} == created.headers
        assert ["1a", "2a"] == await (await engine.start_batch(tell_row, [1, 2])).results()
        await engine.signal("run-1", "go", start=(waiting,))
        assert tenant == await engine.get("run-1").result()
        await engine.start(waiting, id="run-2", headers={"tenant": "b"})
        await engine.signal("run-2", "go")
        assert "b" == await engine.get("run-2").result()


class Changing:
    """Changes what steps return."""

    async def on_step(self, step: outlive.types.StepContext, call_next: Next) -> Any:
        return f"{await call_next()} in {outlive.current_step().name}"


async def test_middleware_is_around_steps_in_processes(tenant: str) -> None:
    """In the process of the engine."""
    async with TestEngine(middleware=[TenantContext(), Changing()]) as engine:
        result = await (await engine.start(processed)).result()
    assert "unset with a in middleware.tell_in_process" == result


class Broken:
    """Fails where the test wants."""

    async def on_start(self, start: outlive.middleware.StartCall, call_next: Next) -> Any:
        if stage.values.get("refuses"):
            raise PermissionError("not for you")
        if stage.values.get("headers"):
            start.headers["bad"] = stage.values["headers"]
        return None if stage.values.get("forgets") else await call_next()

    async def on_step(self, step: outlive.types.StepContext, call_next: Next) -> Any:
        if step.attempt <= stage.values.get("steps", 0):
            raise LookupError("step")
        return await call_next()

    async def on_workflow(self, run: outlive.types.RunContext, call_next: Next) -> Any:
        if stage.values.get("workflow"):
            raise LookupError("workflow")
        return f"{await call_next()}!"


async def test_errors_of_middleware_are_errors_of_what_it_is_around() -> None:
    """A start raises, an attempt fails and is retried, a run fails; and what a hook returns is the outcome."""
    async with TestEngine(middleware=[Broken()]) as engine:
        stage.values["refuses"] = True
        with pytest.raises(PermissionError, match="not for you"):
            await engine.start(inner, id="run-1")
        with pytest.raises(PermissionError):
            await engine.signal("run-1", "go", start=(waiting,))
        stage.values["refuses"] = False
        with pytest.raises(RunNotFoundError):
            await engine.get("run-1").status()
        stage.values["forgets"] = True
        with pytest.raises(ConfigurationError, match=r"returned None from on_start of middleware.inner: end it with"):
            await engine.start(inner)
        stage.values["forgets"] = False
        stage.values["headers"] = "x" * 9_000
        with pytest.raises(ConfigurationError, match="headers"):
            await engine.start(inner)
        stage.values["headers"] = ""
        stage.values["steps"] = 1
        assert "unset!" == await (await engine.start(inner)).result()
        stage.values["steps"] = 2
        with pytest.raises(RunFailedError, match="step"):
            await (await engine.start(inner)).result()
        stage.values["workflow"] = True
        with pytest.raises(RunFailedError, match="workflow"):
            await (await engine.start(inner)).result()


class Journaling:
    """Calls a step around every workflow."""

    async def on_workflow(self, run: outlive.types.RunContext, call_next: Next) -> Any:
        stage.call(run.is_replaying)
        await tell()
        return await call_next()


async def test_middleware_around_a_workflow_is_replayed_with_it(tmp_path: Any) -> None:
    """Middleware around a workflow runs again in a replay, and knows that it is replayed."""
    url = f"sqlite:{tmp_path / 'a.db'}"
    async with TestEngine(url, middleware=[Journaling()]) as engine:
        await engine.start(waiting, id="run-1", headers={"tenant": "a"})
        await engine.settle()
    async with TestEngine(url, middleware=[Journaling()]) as engine:
        await engine.signal("run-1", "go")
        assert "a" == await engine.get("run-1").result()
    assert stage.calls[0] is False
    assert stage.calls[-1] is True


class Sync:
    """Not async."""

    def on_step(self, step: Any, call_next: Any) -> None: ...


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ([5], DefinitionError, "middleware 5 has no hook: define one of on_start, on_step, on_workflow"),
        ([outlive.middleware.Middleware()], DefinitionError, "has no hook"),
        ([Sync()], DefinitionError, r"its on_step cannot be called: write `async def on_step\(self"),
        ([Noting], DefinitionError, "give an object, not its class"),
        (Noting(), ArgumentTypeError, r"give a list, for example middleware=\[Tracing\(\)\]"),
    ],
)
def test_an_object_that_is_not_middleware_is_refused(bad: Any, kind: type[Exception], message: str) -> None:
    """An engine refuses an object that is not middleware, with what is wrong."""
    with pytest.raises(kind, match=message):
        outlive.Engine("memory:", middleware=bad)
