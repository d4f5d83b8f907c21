"""Steps apart: nothing of one step, not even how it dies, reaches another one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import outlive
from outlive.events import StepFailed
from outlive.limits import Limits
from tests.engine.inside import journal_of
from tests.engine.support import Place, events_of, in_time, note, stage
from tests.interrupts import keyboard, press_ctrl_c

pytestmark = pytest.mark.any_store

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="unset")


class bare_runner:  # noqa: N801
    """A loop on which Python's own handler of Ctrl-C stays."""

    def __enter__(self) -> Any:
        self._loop = asyncio.new_event_loop()
        return self

    def run(self, work: Any) -> Any:
        """Run it to its end."""
        return self._loop.run_until_complete(work)

    def __exit__(self, *_: object) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()


class HaltError(BaseException):
    """Not an `Exception`, as some frameworks have for control flow."""


@outlive.step
async def set_tenant(name: str) -> str:
    before = TENANT.get()
    TENANT.set(name)
    await asyncio.sleep(0)
    return f"{before} {TENANT.get()}"


@outlive.step
def set_tenant_on_thread(name: str) -> str:
    before = TENANT.get()
    TENANT.set(name)
    return f"{before} {TENANT.get()}"


@outlive.step
async def halt() -> None:
    raise HaltError("enough")


@outlive.step
def halt_on_thread() -> None:
    raise HaltError("enough")


@outlive.step
async def leave_task_behind() -> str:
    me = outlive.current_step().idempotency_key

    async def linger() -> None:
        await stage.gate("linger").pass_through()
        stage.call(outlive.current_step().idempotency_key == me)

    stage.values["task"] = asyncio.create_task(linger())
    return "left"


@outlive.step
async def call_a_step() -> str:
    return await note("inner") + await isolated_noted()


@outlive.step
async def own_timeout() -> str:
    try:
        async with asyncio.timeout(0.005):
            await asyncio.Event().wait()
    except TimeoutError:
        return "timed out"
    return "went on"


@outlive.step
async def swallow_cancellation() -> None:
    await stage.gate("begun").pass_through()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stage.call("swallowed")


@outlive.step
async def pass_cancellation_on() -> None:
    await stage.gate("begun").pass_through()
    await asyncio.Event().wait()


@outlive.step
async def cancel_itself() -> None:
    await stage.gate("begun").pass_through()
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


@outlive.step
async def count_cancellations() -> int:
    task = asyncio.current_task()
    assert task is not None
    await asyncio.sleep(0)
    return task.cancelling()


@outlive.step
async def interrupt_everything() -> None:
    stage.call("interrupt")
    if stage.count("interrupt") == 1:
        press_ctrl_c()
        press_ctrl_c()


@outlive.step
async def interrupt_without_a_signal() -> None:
    raise KeyboardInterrupt


@outlive.step
def interrupt_on_thread() -> None:
    raise KeyboardInterrupt


@outlive.workflow
async def isolated_ends(kind: str) -> None:
    steps = {"swallowed": swallow_cancellation, "passed on": pass_cancellation_on, "of its own": cancel_itself}
    await steps[kind]()


@outlive.workflow
async def isolated_counting() -> int:
    return await count_cancellations()


@outlive.workflow
async def isolated_interrupting(kind: str) -> str:
    steps = {"person": interrupt_everything, "code": interrupt_without_a_signal, "thread": interrupt_on_thread}
    await steps[kind]()
    return "went on"


@outlive.workflow
async def isolated_noted() -> str:
    return await note("from a workflow")


@outlive.workflow
async def isolated_tenants(names: list[str]) -> list[str]:
    seen = [await set_tenant(name) for name in names]
    seen += [await set_tenant_on_thread(name) for name in names]
    return seen + list(await asyncio.gather(*[set_tenant(name) for name in names]))


@outlive.workflow
async def isolated_halt(on_thread: bool) -> str:  # noqa: FBT001
    try:
        await (halt_on_thread() if on_thread else halt())
    except outlive.errors.StepFailedError as error:
        return error.type_name
    return "went on"


@outlive.workflow
async def isolated_left_behind() -> list[str]:
    return [await leave_task_behind(), await note("after")]


@outlive.workflow
async def isolated_steps_in_steps() -> str:
    return await call_a_step()


@outlive.workflow
async def isolated_timeout(times: int) -> list[str]:
    return [await own_timeout() for _ in range(times)] + [await note("after")]


async def test_context_variables_of_a_step_stay_its_own(engine: outlive.Engine) -> None:
    """Steps that run one after the other in one task, or on one thread, do not see each other's context."""
    TENANT.set("the host's")
    runs = [await engine.start(isolated_tenants, [f"{number}a", f"{number}b"]) for number in range(3)]

    for number, run in enumerate(runs):
        seen = await in_time(run.result())
        assert [f"{number}a", f"{number}b"] * 3 == [line.rsplit(" ", 1)[1] for line in seen]
        assert 1 == len({line.rsplit(" ", 1)[0] for line in seen})


@pytest.mark.parametrize("on_thread", [False, True])
async def test_a_step_may_raise_anything(engine: outlive.Engine, *, on_thread: bool) -> None:
    """An exception that is no `Exception` is a failure like others; no run is left stuck."""
    run = await engine.start(isolated_halt, on_thread)

    assert (await in_time(run.result())).endswith("HaltError")
    assert "from a workflow" == await in_time((await engine.start(isolated_noted)).result())


async def test_a_task_that_a_step_leaves_behind_belongs_to_that_step(engine: outlive.Engine) -> None:
    """It goes on by itself, in the context of its step, and holds no other step up."""
    run = await engine.start(isolated_left_behind)

    assert ["left", "after"] == await in_time(run.result())
    stage.gate("linger").open()
    await in_time(stage.values["task"])
    assert ["after", True] == stage.calls


async def test_a_step_called_in_a_step_is_a_plain_function(engine: outlive.Engine) -> None:
    """Steps and workflows inside a step are part of that step."""
    run = await engine.start(isolated_steps_in_steps)

    assert "innerfrom a workflow" == await in_time(run.result())
    events: list[Any] = [type(event).__name__ for event in await journal_of(run)]
    assert ["RunCreated", "StepSucceeded", "RunSucceeded"] == events


async def test_a_timeout_inside_a_step_is_the_step_s_own(engine: outlive.Engine) -> None:
    """asyncio's own timeout works in a step as anywhere, and does not cancel the steps that follow."""
    run = await engine.start(isolated_timeout, 3)

    assert ["timed out"] * 3 + ["after"] == await in_time(run.result())


@outlive.step
async def stop_iterating() -> None:
    next(iter(()))


@outlive.step
def stop_iterating_on_thread() -> None:
    next(iter(()))


@outlive.workflow
async def isolated_stop(on_thread: bool) -> str:  # noqa: FBT001
    try:
        await (stop_iterating_on_thread() if on_thread else stop_iterating())
    except RuntimeError as error:
        return str(error)
    return "went on"


@pytest.mark.parametrize("on_thread", [False, True])
async def test_a_step_that_lets_stop_iteration_escape_has_failed(engine: outlive.Engine, *, on_thread: bool) -> None:
    """Python would take it for the end of a coroutine; here it is a failure that says what it was."""
    run = await engine.start(isolated_stop, on_thread)

    assert "raised StopIteration" in await in_time(run.result())


@pytest.mark.parametrize("kind", ["swallowed", "passed on", "of its own"])
@pytest.mark.parametrize("place", ["memory"], indirect=True)
async def test_cancellation_of_one_step_is_not_seen_by_the_next_one(place: Place, kind: str) -> None:
    """The next step runs in a task that was not cancelled: `asyncio.timeout` and task groups look at that."""
    async with place.engine(limits=Limits(steps_running_max=1)) as engine:
        first = await engine.start(isolated_ends, kind)
        await stage.gate("begun").reached()
        following = [await engine.start(isolated_counting) for _ in range(2)]
        stage.gate("begun").open()
        if kind != "of its own":
            await first.cancel(reason="a test says so")

        assert [0, 0] == [await in_time(run.result()) for run in following]


@pytest.mark.parametrize("new_runner", [asyncio.Runner, bare_runner], ids=["asyncio", "bare"])
def test_ctrl_c_in_a_step_ends_the_program_and_not_the_step(new_runner: Callable[[], Any]) -> None:
    """A person at the keyboard wants the process to end; the next process does the step again."""
    place = Place(None)

    async def start() -> None:
        async with place.engine() as engine:
            await in_time((await engine.start(isolated_interrupting, "person", id="run-1")).result())

    async def go_on() -> None:
        async with place.engine() as engine:
            assert "went on" == await in_time(engine.get("run-1").result())
            assert [] == await events_of(engine.get("run-1"), StepFailed)

    with keyboard():
        with pytest.raises(KeyboardInterrupt), new_runner() as runner:
            runner.run(start())
        asyncio.run(go_on())

    assert 2 == stage.count("interrupt")


@pytest.mark.parametrize("kind", ["code", "thread"])
async def test_interrupt_that_no_signal_caused_is_the_failure_of_its_step(engine: outlive.Engine, kind: str) -> None:
    """No person wants the process to end, which has other runs."""
    with keyboard(), pytest.raises(outlive.errors.RunFailedError, match="KeyboardInterrupt"):
        await in_time((await engine.start(isolated_interrupting, kind)).result())

    assert await in_time((await engine.start(isolated_counting)).result()) == 0
