"""Outcomes of steps: results, failures, attempts, progress."""

from __future__ import annotations

import asyncio
import errno

import pytest

from outlive import Retry, now
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.replay.command import RunStep
from outlive._kernel.replay.feeding import feed
from outlive.errors import StepFailedError
from outlive.events import StepFailed, StepProgressed, StepSucceeded
from tests.replay.define import SECOND, START_AT, Code, created, plain, step, workflow
from tests.replay.driver import live
from tests.replay.life import assert_replays, fed


class OutOfStock(Exception):
    """An error of the user's own."""

    def __init__(self, item: str, *, left: int) -> None:
        self.item, self.left = item, left
        super().__init__(f"{left} {item} left")


@step(retry=Retry(attempts=3, first=10, factor=3, cap=100))
async def flaky(n: int) -> int:
    """Work that is tried three times."""
    return n


@step(raises=(OutOfStock,))
async def reserve(item: str) -> str:
    """Work whose error is registered."""
    return item


@workflow()
async def retried() -> int:
    """One call of a flaky step."""
    return await flaky(7)


def test_a_failed_attempt_asks_for_the_next_one_later() -> None:
    """A failed attempt brings the command back with the number of the next attempt and the time at which it may
    begin."""
    life = live(retried, outcomes={"flaky": [ValueError("one"), ValueError("two"), 42]}, crash_at=range(100))

    asked = [command for command in life.all_asked if command[0] == "step"]
    assert [command[6:8] for command in asked] == [(1, 0), (2, START_AT + 10 * SECOND), (3, START_AT + 40 * SECOND)]
    assert life.kinds == ["RunCreated", "AttemptFailed", "AttemptFailed", "StepSucceeded", "RunSucceeded"]
    assert life.result == 42
    assert_replays(life)


def test_a_spent_budget_fails_the_step() -> None:
    """After the last attempt the workflow gets the error, a builtin one as itself."""
    life = live(retried, outcomes={"flaky": [OSError(errno.ENOENT, "gone")]})

    assert life.kinds.count("AttemptFailed") == 2
    assert life.failure == "FileNotFoundError: [Errno 2] gone"
    assert_replays(life)


@workflow()
async def cancelled_between_attempts() -> str:
    """A step that is given up while it waits for its next attempt."""
    try:
        async with asyncio.timeout(5):
            await flaky(1)
    except TimeoutError:
        return "gave up"
    return "done"


def test_a_step_can_be_given_up_between_attempts() -> None:
    """The timeout is over before the back-off: the step is cancelled and no attempt comes back."""
    life = live(cancelled_between_attempts, outcomes={"flaky": [ValueError("no")]}, crash_at=range(100))

    assert life.result == "gave up"
    assert ("cancel step", 0, "flaky") in life.all_asked
    assert_replays(life)


@workflow()
async def registered() -> list[str]:
    """One error that is registered, one that is not."""
    seen = []
    try:
        await reserve("shoes")
    except OutOfStock as error:
        seen.append(f"{error.left} {error.item}")
    try:
        await flaky(1)
    except StepFailedError as error:
        seen.append(f"{error.step} {error.type_name.rpartition('.')[2]} {error.attributes} {error.attempts}")
    return seen


def test_a_registered_error_reaches_the_workflow_as_itself() -> None:
    """Any other error that is not builtin comes as StepFailedError, with the same facts on it."""
    error = OutOfStock("shoes", left=3)
    life = live(registered, outcomes={"reserve": [error], "flaky": [error]}, crash_at=range(100))

    assert life.result == ["3 shoes", "flaky OutOfStock {'item': 'shoes', 'left': 3} 3"]
    assert_replays(life)


@pytest.mark.parametrize("error", [StopIteration("dry"), StopAsyncIteration("dry"), KeyError("k"), GeneratorExit("x")])
def test_every_builtin_error_can_come_out_of_a_step(error: BaseException) -> None:
    """A builtin error of a step reaches the workflow even if it has a meaning for Python, such as StopIteration, which
    a future refuses."""
    with fed(Code(retried), [created(retried)]) as execution:
        (command,) = execution.outstanding()
        assert isinstance(command, RunStep)
        failed = StepFailed(at=START_AT, call="flaky", failure=failure_of(error), digest=command.digest)

        (end,) = feed(execution, failed)

    assert "failed" in str(end)


def test_progress_is_given_to_the_next_attempt() -> None:
    """A command has the last progress that its step saved, also after a replay."""
    with fed(Code(retried), [created(retried)]) as execution:
        for saved in (1, 2):
            assert feed(execution, StepProgressed(at=START_AT, call="flaky", progress=plain(saved))) == []
        (command,) = execution.outstanding()

    assert isinstance(command, RunStep)
    assert command.progress == b"2"


@workflow()
async def clock() -> list[str]:
    """The time, before and after a step."""
    before = now()
    await flaky(1)
    return [before.isoformat(), now().isoformat()]


def test_the_clock_of_a_run_never_goes_back() -> None:
    """An event of a worker whose clock is behind does not turn the run's clock back."""
    with fed(Code(clock), [created(clock)]) as execution:
        (command,) = execution.outstanding()
        assert isinstance(command, RunStep)
        late = StepSucceeded(at=START_AT - 5 * SECOND, call="flaky", result=plain(1), digest=command.digest)

        (end,) = feed(execution, late)

    assert end.result == b'["2023-11-14T22:13:20+00:00","2023-11-14T22:13:20+00:00"]'  # type: ignore[union-attr]
