"""What a retry policy may say: which exceptions, which delay, for how long, and whose policy counts."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive import Retry
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.model.policy import NO_RETRY, is_last, named_seconds
from outlive._kernel.runtime.failures import StepRaised, is_retryable
from outlive._kernel.runtime.steps.next_attempt import next_attempt
from outlive.errors import ConfigurationError, ResourceError
from outlive.events import AttemptFailed, StepFailed
from outlive.testing import TestEngine, crash_everywhere
from tests.engine.inside import give_store, store_of
from tests.engine.support import events_of, stage

pytestmark = pytest.mark.any_store

SECOND = 1_000_000
EVENLY = Retry(attempts=None, first=10, delay="fixed", jitter=0)


class BusyError(Exception):
    """A service that says when it can be asked again."""

    def __init__(self, code: int, retry_after: Any = None) -> None:
        super().__init__(f"code {code}")
        self.code = code
        if retry_after is not None:
            self.retry_after = retry_after


async def gaps(run: outlive.types.RunHandle[Any]) -> list[float]:
    """Seconds between each failed attempt and the next one."""
    return [(event.retry_at - event.at) / SECOND for event in await events_of(run, AttemptFailed)]


@outlive.step(raises=(BusyError,))
async def policy_step(good: int, code: int, after: Any) -> int:
    """Fails until attempt `good`."""
    attempt = outlive.current_step().attempt
    stage.call(attempt)
    if attempt < good:
        raise BusyError(code, after)
    return attempt


POLICIES: dict[str, Retry] = {}


def _says_soon(error: BaseException, attempt: int) -> Any:
    return "soon"


@outlive.workflow
async def with_policy(policy: str, good: int, code: int = 503, after: Any = None) -> int:
    return await policy_step.options(retry=POLICIES[policy])(good, code, after)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Retry(attempts=6, first=2, jitter=0), [2, 4, 8, 16]),
        (Retry(attempts=6, first=2, cap=5, jitter=0), [2, 4, 5, 5]),
        (Retry(attempts=6, first=2, delay="linear", jitter=0), [2, 4, 6, 8]),
        (Retry(attempts=6, first=2, cap=5, delay="linear", jitter=0), [2, 4, 5, 5]),
        (Retry(attempts=6, first=2, delay="fixed", jitter=0), [2, 2, 2, 2]),
        (Retry(attempts=8, first=2, delay="fibonacci", jitter=0), [2, 2, 4, 6]),
        (Retry(attempts=8, first=2, cap=5, delay="fibonacci", jitter=0), [2, 2, 4, 5]),
        (Retry(attempts=6, cap=5, delay=lambda error, attempt: attempt * 100), [100, 200, 300, 400]),
        (Retry(attempts=6, delay=lambda error, attempt: timedelta(minutes=error.code)), [30180] * 4),
        (Retry(attempts=6, delay=lambda error, attempt: None if attempt < 4 else 7), [1, 2, 4, 7]),
        (Retry(attempts=6, delay=_says_soon), [1, 2, 4, 8]),
        (Retry(attempts=6, delay=lambda error, attempt: 1 / 0), [1, 2, 4, 8]),
    ],
)
async def test_a_delay_grows_as_the_policy_says(policy: Retry, expected: list[float]) -> None:
    """By a word, or by a function of the exception and the attempt; one that fails gets the usual delay. [FE-R1]"""
    POLICIES["growing"] = policy
    async with TestEngine() as engine:
        run = await engine.start(with_policy, "growing", 5)
        assert 5 == await run.result()
        assert expected == await gaps(run)


@pytest.mark.parametrize(
    ("after", "expected"), [(90, [90.0]), (timedelta(hours=1), [3600.0]), (0, [0.0]), (-1, [1.0]), ("soon", [1.0])]
)
async def test_an_exception_names_its_delay(after: Any, expected: list[float]) -> None:
    """`retry_after` counts as it is, beyond the cap too; one that is not a time is noted with the failure."""
    async with TestEngine() as engine:
        error = BusyError(429, after)
        command: Any = _Command()
        following = next_attempt(Retry(), error, command, at=0, first_at=0, spread=lambda: 0.0)
        assert expected == [(following.at or 0) / SECOND]
        assert ("which is neither a number" in following.note) == (after in (-1, "soon"))
        if isinstance(after, int):
            POLICIES["named"] = Retry(cap=30)
            run = await engine.start(with_policy, "named", 2, 429, after)
            assert 2 == await run.result()
            assert expected == await gaps(run)


class _Step:
    name = "asked"
    registered: tuple[type[Exception], ...] = ()


class _Command:
    """As much of a command as the policy looks at."""

    attempt = 1
    call = "asked"
    step = _Step()


@pytest.mark.parametrize("registered", [(), (BusyError,)])
def test_retry_policy_gets_a_process_error_as_the_workflow_would(registered: tuple[type[Exception], ...]) -> None:
    """A retry policy gets an error of a process as its class if that is registered, else as `StepFailedError`."""
    seen: list[BaseException] = []
    command: Any = _Command()
    command.step = _Step()
    command.step.registered = registered
    failure = failure_of(BusyError(429, 90))
    raised = StepRaised(failure, ["Exception"], is_final=False)

    def look(error: BaseException) -> bool:
        seen.append(error)
        return True

    policy = Retry(when=look)
    following = next_attempt(policy, raised, command, at=0, first_at=0, spread=lambda: 0.0)
    assert 90 * SECOND == following.at
    assert [BusyError if registered else outlive.errors.StepFailedError] == [type(error) for error in seen]


def test_a_resource_that_failed_is_judged_by_the_error_of_its_set_up() -> None:
    """A retry policy applies `on` and `when` to the error that the set-up of a resource raised, and not to
    ResourceError."""
    command: Any = _Command()
    failed = ResourceError("pool", "could not be set up")
    failed.__cause__ = BusyError(503, 90)
    policy = Retry(on=(BusyError,), when=lambda error: error.code == 503)
    assert 90 * SECOND == next_attempt(policy, failed, command, at=0, first_at=0, spread=lambda: 0.0).at


def test_a_named_delay_is_never_shorter() -> None:
    """The jitter of a delay that was named goes one way only."""
    for spread in (-1.0, 1.0):
        assert 12.0 == named_seconds(Retry(jitter=0.2), 10, spread)


async def test_a_predicate_decides_which_failures_are_retried() -> None:
    """`when` is asked with the exception itself, after `on`. [TS-R12]"""
    POLICIES["when"] = Retry(attempts=3, first=0, when=lambda error: error.code >= 500)
    async with TestEngine() as engine:
        assert 3 == await (await engine.start(with_policy, "when", 3, 503)).result()
        stage.clear()
        with pytest.raises(outlive.errors.RunFailedError, match="code 404"):
            await (await engine.start(with_policy, "when", 3, 404)).result()
        assert [1] == stage.calls


async def test_exceptions_in_not_on_are_not_retried() -> None:
    """A step is not tried again after an exception in `not_on`, also where `on` names a class above it."""
    POLICIES["except"] = Retry(attempts=3, first=0, on=(Exception,), not_on=(BusyError,))
    async with TestEngine() as engine:
        with pytest.raises(outlive.errors.RunFailedError, match="code 503"):
            await (await engine.start(with_policy, "except", 3)).result()
        assert [1] == stage.calls


@pytest.mark.parametrize("classes", [["tests.steps.test_retry_policy.BusyError", "Exception"], ["Exception"]])
def test_an_error_of_a_process_is_found_in_not_on_by_the_names_of_its_classes(classes: list[str]) -> None:
    """A process sends the names of the classes of its exception, and `not_on` is looked up among them."""
    raised = StepRaised(failure_of(BusyError(429, 90)), classes, is_final=False)

    assert is_retryable(raised, (Exception,), (BusyError,)) == (len(classes) == 1)


async def test_a_predicate_that_raises_costs_the_retry_and_says_so() -> None:
    """The step fails with its own exception, and with a note."""
    POLICIES["broken"] = Retry(attempts=3, first=0, when=lambda error: error.status > 500)
    async with TestEngine() as engine:
        run = await engine.start(with_policy, "broken", 3)
        with pytest.raises(outlive.errors.RunFailedError, match="code 503"):
            await run.result()
        (failed,) = await events_of(run, StepFailed)
        assert 1 == failed.attempt
        assert "Retry.when raised AttributeError" in failed.failure.notes[-1]


async def test_attempts_without_an_end() -> None:
    """`attempts=None` tries until it works."""
    POLICIES["endless"] = EVENLY
    async with TestEngine() as engine:
        assert 50 == await (await engine.start(with_policy, "endless", 50)).result()


async def test_the_time_since_the_first_attempt_is_limited() -> None:
    """`elapsed_max`: no attempt is planned for later, and the failure says why there is none."""
    POLICIES["limited"] = Retry(attempts=None, first=10, delay="fixed", jitter=0, elapsed_max=35)
    async with TestEngine() as engine:
        run = await engine.start(with_policy, "limited", 99)
        with pytest.raises(outlive.errors.RunFailedError, match="code 503"):
            await run.result()
        assert [1, 2, 3, 4] == stage.calls
        (failed,) = await events_of(run, StepFailed)
        assert "elapsed_max=35 s after the first" in failed.failure.notes[-1]
        began = {event.first_at for event in await events_of(run, AttemptFailed)}
        assert {failed.at - 30 * SECOND} == began


async def test_the_first_attempt_counts_from_its_beginning() -> None:
    """An attempt that takes long before it fails uses up the time."""
    async with TestEngine(patience_seconds=0.05) as engine:
        run = await engine.start(limited_and_slow)
        with pytest.raises(outlive.errors.RunFailedError, match="silent"):
            await run.result()
        (failed,) = await events_of(run, StepFailed)
        assert 1 == failed.attempt


@outlive.step(retry=Retry(attempts=None, first=1, elapsed_max=30))
async def takes_a_minute() -> None:
    begun = outlive.now()
    while outlive.now() - begun < timedelta(minutes=1):  # Time skips when the run beside it sleeps.
        await stage.gate("minute").pass_through()
    raise ConnectionError("silent")


@outlive.workflow
async def limited_and_slow() -> None:
    async def tick() -> None:
        await asyncio.sleep(61)
        await open_gate("minute")

    await asyncio.gather(takes_a_minute(), tick())


@outlive.step
async def open_gate(name: str) -> None:
    stage.gate(name).open()


async def test_the_limit_of_the_time_survives_crashes() -> None:
    """A worker that dies between two attempts starts the clock for none of them again."""
    POLICIES["dying"] = Retry(attempts=None, first=20, delay="fixed", jitter=0, elapsed_max=50)
    first = await TestEngine().__aenter__()
    run = await first.start(with_policy, "dying", 99, id="dying")
    await first.skip(seconds=25)
    assert [1, 2] == stage.calls
    first.abandon()
    async with _again(first) as second:
        with pytest.raises(outlive.errors.RunFailedError, match="code 503"):
            await second.get("dying").result()
        assert [1, 2, 3] == stage.calls
        assert 1 == len({event.first_at for event in await events_of(second.get(run.id), AttemptFailed)})


def _again(dead: TestEngine) -> TestEngine:
    """Another engine on the same store and clock."""
    engine = TestEngine(clock=dead.clock)
    give_store(engine, store_of(dead))
    return engine


# -- Whose policy ------------------------------------------------------------------------------------------------------


@outlive.step
async def step_without_policy() -> int:
    stage.call("plain")
    raise ConnectionError("never")


@outlive.step(retry=Retry(attempts=2, first=0))
async def step_with_policy() -> int:
    stage.call("own")
    raise ConnectionError("never")


@outlive.workflow
async def default_free(call: int | None = None) -> None:
    retry = None if call is None else Retry(attempts=call, first=0)
    for step in (step_without_policy, step_with_policy):
        with suppress(ConnectionError):
            await step.options(retry=retry)()


@outlive.workflow(retry=Retry(attempts=3, first=0))
async def default_three(call: int | None = None) -> None:
    await default_free.fn(call)


@outlive.workflow
async def default_inherits_nothing() -> None:
    await default_three()
    await default_free()


@pytest.mark.parametrize(
    ("workflow", "engine_attempts", "call", "expected"),
    [
        (default_free, None, None, (1, 2)),
        (default_free, 4, None, (4, 2)),
        (default_three, None, None, (3, 2)),
        (default_three, 4, None, (3, 2)),
        (default_three, 4, 5, (5, 5)),
        (default_three, 4, 1, (1, 1)),
        (default_inherits_nothing, None, None, (4, 4)),
    ],
)
async def test_the_nearest_policy_counts(
    workflow: Any, engine_attempts: int | None, call: int | None, expected: tuple[int, int]
) -> None:
    """Call before step before workflow before engine before one attempt. [TS-R12]"""
    retry = None if engine_attempts is None else Retry(attempts=engine_attempts, first=0)
    async with TestEngine(retry=retry) as engine:
        run = await (engine.start(workflow) if call is None else engine.start(workflow, call))
        await run.result()
    assert expected == (stage.count("plain"), stage.count("own"))


class Retried(enum.Enum):
    GO = "go"
    DONE = "done"


retried_machine = outlive.Machine(
    "retried_machine", Retried, start=Retried.GO, exits={Retried.DONE}, retry=Retry(attempts=3, first=0)
)


@retried_machine.state(Retried.GO)
async def go_retried(data: None) -> Retried:
    stage.call("state")
    if outlive.current_step().attempt < 3:
        raise ConnectionError("not yet")
    return Retried.DONE


async def test_a_machine_has_a_policy_for_its_states() -> None:
    """`Machine(retry=...)` is the default of its states."""
    async with TestEngine() as engine:
        assert Retried.DONE is (await (await engine.start(retried_machine)).result()).state
    assert 3 == stage.count("state")


async def test_items_of_a_batch_have_the_policy_of_the_engine() -> None:
    """A batch of a step has no workflow of the user around it."""
    async with TestEngine(retry=Retry(attempts=2, first=0)) as engine:
        batch = await engine.start_batch(item_that_fails_once, [1, 2])
        assert [1, 2] == [item.result async for item in batch.items()]


@outlive.step
async def item_that_fails_once(item: int) -> int:
    if outlive.current_step().attempt == 1:
        raise ConnectionError("once")
    return item


@outlive.workflow(retry=Retry(attempts=None, first=1, elapsed_max=3600))
async def retried_everywhere() -> int:
    return await policy_step(3, 500, None)


async def test_a_policy_survives_a_crash_at_every_commit() -> None:
    """No attempt is lost and none is made twice for the journal, wherever the worker dies."""
    await crash_everywhere(retried_everywhere, max_points=5)


# -- Mistakes ----------------------------------------------------------------------------------------------------------


async def _later(error: BaseException) -> bool:
    return True


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"attempts": 0}, "from 1 on, or None for no end"),
        ({"attempts": "3"}, "from 1 on, or None for no end"),
        ({"when": "5xx"}, "give a function"),
        ({"when": _later}, "give a plain function"),
        ({"delay": "slow"}, "exponential, linear, fixed, fibonacci"),
        ({"delay": 5}, "first=5, delay='fixed'"),
        ({"delay": _later}, "give a plain function"),
        ({"elapsed_max": 0}, "more than 0 seconds"),
        ({"elapsed_max": "soon"}, "as a number, a timedelta or text"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(wrong: dict[str, Any], advice: str) -> None:
    """Mistakes show where they are written, with what to write instead."""
    with pytest.raises(ConfigurationError, match="Retry") as caught:
        Retry(**wrong)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "give",
    [
        lambda: policy_step.options(retry=3),  # type: ignore[arg-type]
        lambda: outlive.workflow(retry=3)(default_free.fn),  # type: ignore[call-overload]
        lambda: outlive.Engine("memory:", retry=3),  # type: ignore[arg-type]
    ],
    ids=["step", "workflow", "Engine"],
)
def test_a_number_in_place_of_a_retry_policy_is_refused_everywhere(give: Callable[[], Any]) -> None:
    """`retry=3` is refused everywhere with `outlive.Retry(attempts=3)`."""
    with pytest.raises(TypeError, match=r"outlive.Retry\(attempts=3\)"):
        give()


def test_one_attempt_is_the_last_resort() -> None:
    """Nothing is retried without a policy."""
    assert is_last(NO_RETRY, 1)
    assert not is_last(EVENLY, 10**9)
