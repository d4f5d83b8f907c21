"""How a step is called when the lease is not certain: it waits before it begins, and begins when it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.replay.command import StepOptions
from outlive._kernel.runtime import lease_deadline
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.steps.caller import StepCaller
from outlive.errors import StepTimeoutError
from outlive.limits import Limits
from tests.engine.hand_clock import HandClock
from tests.engine.support import in_time


class Lanes:
    """Threads that call at once."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, fn: Callable[[], Any], late: Any = None) -> Any:
        """Count it."""
        self.calls += 1
        return fn()


class Scene:
    """A caller, and a lease that the test has in its hands."""

    def __init__(self) -> None:
        self.clock, self.lanes = HandClock(), Lanes()
        self.trust = LeaseDeadline(self.clock.monotonic)
        self.hold_lease()
        unused: Any = None
        environment: Any = SimpleNamespace(
            clock=self.clock, counters=unused, limits=Limits(), resources=self, on_step=()
        )
        self.caller = StepCaller(environment, committer=unused, lease=self.trust, reports=unused)
        lanes: Any = self.lanes
        self.caller.threads = lanes
        self.called: list[str] = []

    async def get(self, wanted: Callable[[], Any]) -> dict[str, Any]:
        """The resources of an attempt: what its test gives."""
        given: dict[str, Any] = await wanted()
        return given

    def hold_lease(self) -> None:
        """It is certain."""
        self.trust.until = self.clock.at + 10

    def lose_lease(self) -> None:
        """It is not certain any more: this very instant is the first one without it."""
        self.trust.until = self.clock.at

    def attempt(self, fn: Callable[..., Any], *, is_async: bool, resources: Any = None, timeout: Any = None) -> Any:
        """An attempt of a step without arguments."""
        signature = SimpleNamespace(decode=lambda arguments: ([], {}))
        step = SimpleNamespace(
            name="press", fn=fn, is_async=is_async, kind=None, signature=signature, resources=resources
        )
        options = StepOptions(timeout_seconds=timeout)
        command = SimpleNamespace(step=step, options=options, arguments=b"", call="press")
        return SimpleNamespace(
            command=command,
            given={},
            has_begun=False,
            is_timed_out=False,
            beat=lambda: None,
            late=None,
            on_late=None,
        )

    async def until_begun(self, doing: Any) -> Any:
        """What comes of it when the lease is held again; nothing begins before."""
        waiting = asyncio.ensure_future(doing)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        assert [] == self.called
        self.hold_lease()
        return await in_time(waiting)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Of one test."""
    monkeypatch.setattr(lease_deadline, "LOOK_AGAIN_SECONDS", 0.001)
    return Scene()


async def test_thread_that_is_free_when_the_lease_is_uncertain_is_left_alone(scene: Scene) -> None:
    """It is asked once, and once more when the lease is certain: the step has begun only then."""
    scene.lose_lease()
    attempt = scene.attempt(lambda: scene.called.append("press"), is_async=False)
    calls: list[int] = []
    asyncio.get_running_loop().call_later(0.005, lambda: calls.append(scene.lanes.calls))
    await scene.until_begun(scene.caller.call(attempt))
    assert ["press"] == scene.called
    assert [1] == calls
    assert 2 == scene.lanes.calls
    assert attempt.has_begun


async def test_lease_that_was_lost_while_a_resource_was_set_up_is_waited_for(scene: Scene) -> None:
    """The function begins with what it wants when the lease is certain."""

    async def get() -> dict[str, Any]:
        scene.lose_lease()
        return {"ink": "black"}

    attempt = scene.attempt(lambda: None, is_async=False, resources=get)
    await scene.until_begun(scene.caller.get_resources(attempt))
    assert {"ink": "black"} == attempt.given
    assert not attempt.has_begun


async def test_undo_inside_an_attempt_waits_for_the_lease_and_gets_its_resources(scene: Scene) -> None:
    """The step before it may have taken long."""
    scene.lose_lease()

    async def get() -> dict[str, Any]:
        return {"ink": "black"}

    async def undo(*, ink: str) -> None:
        scene.called.append(ink)

    attempt = scene.attempt(undo, is_async=True, resources=get)
    await scene.until_begun(scene.caller.call_undo(attempt, undo))
    assert ["black"] == scene.called


async def test_undo_without_resources_waits_for_the_lease_too(scene: Scene) -> None:
    """Others may have taken the run over."""
    scene.lose_lease()
    attempt = scene.attempt(lambda: scene.called.append("undone"), is_async=False)
    await scene.until_begun(scene.caller.call_undo(attempt, attempt.command.step.fn))
    assert ["undone"] == scene.called


@pytest.mark.parametrize("raises", [False, True])
async def test_step_that_returns_or_raises_behind_its_time_has_timed_out(scene: Scene, *, raises: bool) -> None:
    """It swallowed its cancellation; what it says then is not heard."""

    async def press() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if raises:
                raise ConnectionError("the line was cut") from None
        return "late"

    attempt = scene.attempt(press, is_async=True, timeout=0.005)
    with pytest.raises(StepTimeoutError) as late:
        await in_time(scene.caller.call(attempt))
    assert attempt.is_timed_out
    assert (ConnectionError if raises else TimeoutError) is type(late.value.__cause__)


async def test_step_that_ends_in_time_returns_its_result_or_raises_its_error(scene: Scene) -> None:
    """A step that ends within its timeout returns its own result or raises its own error."""

    async def press() -> str:
        return "pressed"

    async def fail() -> str:
        raise ConnectionError("the line was cut")

    assert "pressed" == await scene.caller.call(scene.attempt(press, is_async=True, timeout=20))
    attempt = scene.attempt(fail, is_async=True, timeout=20)
    with pytest.raises(ConnectionError):
        await scene.caller.call(attempt)
    assert (False, True) == (attempt.is_timed_out, attempt.has_begun)
