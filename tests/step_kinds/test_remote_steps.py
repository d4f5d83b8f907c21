"""Remote steps: tasks in a queue, which programs outside claim with a lease. SF-T1 to SF-T6 and FB-G1 to FB-G6."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import outlive
from outlive.errors import ConfigurationError, InvalidArgumentError, StepFailedError, StepTimeoutError
from outlive.errors.program import NotInRunError
from outlive.errors.run import TaskEndedError, TaskLeaseLostError, TaskNotFoundError, TaskOutputError
from outlive.testing import TestEngine
from outlive.types import StepUnderWay, Task
from tests.engine.inside import store_of
from tests.engine.support import Place


@dataclass
class Image:
    """What is resized."""

    url: str


@dataclass
class Thumb:
    """What comes out of it."""

    width: int


class NoGpuError(Exception):
    """An error that the workflow knows."""


RETRY = outlive.Retry(attempts=3, first=10, jitter=0)
resize = outlive.remote_step("resize", input=Image, output=Thumb, queue="gpu", retry=RETRY, raises=(NoGpuError,))
crop = outlive.remote_step("crop", input=int, queue="cpu")
crop_any = outlive.remote_step("crop_any", queue="cpu")
crop_or_not = outlive.remote_step(
    "crop_or_not", queue="cpu", retry=outlive.Retry(first=0, not_on=(NoGpuError,)), raises=(NoGpuError,)
)


@outlive.workflow(name="remote.cropped_or_not")
async def cropped_or_not() -> None:
    await crop_or_not(1)


@outlive.workflow(name="remote.cropped_untyped")
async def cropped_untyped(number: int) -> Any:
    """Gives a remote step without a type what JSON does not have."""
    at = datetime(2026, 1, 2, tzinfo=UTC)
    return await crop_any({"box": (number, 2), "at": at, "raw": b"\0", "$": number, 7: [None]})


@outlive.workflow(name="remote.cropped_any")
async def cropped_any(value: Any) -> Any:
    """Gives a remote step without a type what it was given."""
    return await crop_any(value)


@outlive.workflow(name="remote.thumbnail")
async def thumbnail(url: str) -> int:
    """One remote step."""
    return (await resize(Image(url))).width


@outlive.workflow(name="remote.hurried")
async def hurried(url: str) -> str:
    """One that may take a minute."""
    try:
        return str((await resize.options(timeout=60, retry=outlive.Retry(attempts=1))(Image(url))).width)
    except StepTimeoutError as error:
        return str(error)


@outlive.workflow(name="remote.crops")
async def crops(numbers: list[int]) -> list[Any]:
    """Some side by side, of any type."""
    return list(await asyncio.gather(*(crop(number) for number in numbers)))


@outlive.workflow(name="remote.caught")
async def caught(url: str) -> str:
    """Says how it failed."""
    try:
        return str(await resize(Image(url)))
    except (StepFailedError, NoGpuError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    """An engine with a worker, in memory."""
    async with TestEngine() as engine:
        yield engine


async def claimed(engine: TestEngine, **options: Any) -> Task:
    """The next task of the queue."""
    await engine.settle()
    task = await engine.tasks.claim("gpu", ["resize"], **options)
    assert task is not None
    return task


async def test_a_task_is_claimed_and_completed(engine: TestEngine) -> None:
    """A remote worker claims a task and completes it, and `why` says before and after the claim for whom the run waits.
    [SF-T1 SF-T3 FB-G1]"""
    run = await engine.start(thumbnail, "a.png", id="t-1")
    await engine.settle()
    assert (await run.why()).startswith("it waits for a remote worker of queue gpu to claim step resize (task ")

    task = await claimed(engine, worker="gpu-1")

    assert (task.step, task.queue, task.input, task.claims, task.progress) == (
        "resize",
        "gpu",
        {"url": "a.png"},
        1,
        None,
    )
    assert task.output_schema is not None
    assert "remote worker of queue gpu, which has claimed step resize" in await run.why()
    assert await engine.get(task.id).why() == "worker remote gpu-1 runs it"
    await engine.tasks.complete(task.id, task.lease, {"width": 80})
    assert await run.result() == 80


async def test_tasks_come_in_order_from_the_queue_that_is_asked(engine: TestEngine) -> None:
    """An empty queue gives nothing when the wait is over, and a step that was not asked for stays.
    [SF-T2 SF-T4 SF-T5 SF-T6 FB-G2 FE-R8]
    """
    run = await engine.start(crops, [1, 2, 3])
    await engine.settle()
    before = engine.clock.now()

    assert await engine.tasks.claim("gpu", ["crop"], wait=5) is None
    assert await engine.tasks.claim("cpu", ["resize"]) is None

    assert engine.clock.now() - before >= 5_000_000
    tasks = [await engine.tasks.claim("cpu", ["crop", "resize"]) for _ in range(3)]
    assert [task.input for task in tasks if task] == [1, 2, 3]
    for task in tasks:
        assert task is not None
        await engine.tasks.complete(task.id, task.lease, {"$": [task.input, None, "x"]})
    assert await run.result() == [{"$": [number, None, "x"]} for number in (1, 2, 3)]


async def test_a_worker_gets_and_gives_plain_json(engine: TestEngine) -> None:
    """Nothing of how values without a type are stored; also for what looks like that itself."""
    run = await engine.start(cropped_untyped, 1)
    await engine.settle()
    task = await engine.tasks.claim("cpu", ["crop_any"], lease_seconds=10)
    assert task is not None
    assert task.input == {"box": [1, 2], "at": "2026-01-02T00:00:00Z", "raw": "AA==", "$": 1, "7": [None]}

    await engine.tasks.heartbeat(task.id, task.lease, progress={"$": 1, "x": {"$": ["tuple", []]}}, lease_seconds=10)

    assert await engine.get(task.id).published() == {"$": 1, "x": {"$": ["tuple", []]}}
    await engine.skip(seconds=11)
    again = await engine.tasks.claim("cpu", ["crop_any"])
    assert again is not None
    assert (again.input, again.progress) == (task.input, {"$": 1, "x": {"$": ["tuple", []]}})
    await engine.tasks.complete(again.id, again.lease, {"$": ["tuple", []]})
    assert await run.result() == {"$": ["tuple", []]}


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ({(1, 2): 3}, [[[1, 2], 3]]),
        ([math.inf, -math.inf], ["Infinity", "-Infinity"]),
        ({"x": math.nan}, {"x": "NaN"}),
    ],
)
async def test_task_input_that_json_cannot_express_has_a_public_form(
    engine: TestEngine, value: Any, public: Any
) -> None:
    """A task whose input JSON cannot express is claimed with its public form, for programs in any language."""
    run = await engine.start(cropped_any, value)
    await engine.settle()
    task = await engine.tasks.claim("cpu", ["crop_any"])
    assert task is not None
    assert task.input == public
    await engine.tasks.complete(task.id, task.lease, None)
    assert await run.result() is None


@pytest.mark.every_store
async def test_a_lease_that_has_run_out_gives_the_task_to_another(place: Place) -> None:
    """With the progress of the first one, whose answer is refused; on every store. [FB-G3 FB-G4 FB-G6]"""
    async with TestEngine(place.url) if place.url != "memory:" else TestEngine() as engine:
        run = await engine.start(thumbnail, "a.png")
        first = await claimed(engine, lease_seconds=10)
        await engine.skip(seconds=8)
        notice = await engine.tasks.heartbeat(first.id, first.lease, progress={"done": 0.4}, lease_seconds=10)
        await engine.skip(seconds=8)
        assert not notice.is_cancelled
        assert await engine.tasks.claim("gpu", ["resize"]) is None
        await engine.skip(seconds=3)
        assert "the lease of its remote worker has run out" in await engine.get(first.id).why()

        second = await claimed(engine)

        assert (second.id, second.claims, second.progress) == (first.id, 2, {"done": 0.4})
        with pytest.raises(TaskLeaseLostError, match="for another program now"):
            await engine.tasks.complete(first.id, first.lease, {"width": 1})
        with pytest.raises(TaskLeaseLostError):
            await engine.tasks.heartbeat(first.id, first.lease, progress={"done": 0.9})
        with pytest.raises(TaskLeaseLostError):
            await engine.tasks.fail(first.id, first.lease, "late")
        await engine.tasks.complete(second.id, second.lease, {"width": 2})
        with pytest.raises(TaskEndedError):
            await engine.tasks.complete(first.id, first.lease, {"width": 1})
        assert await run.result() == 2


async def test_end_under_the_lease_of_another_task_is_refused(engine: TestEngine) -> None:
    """A program that mixes up its tasks ends neither of them."""
    runs = [await engine.start(thumbnail, url) for url in ("a.png", "b.png")]
    tasks = [await claimed(engine), await claimed(engine)]
    wrong = [(tasks[0].id, tasks[1].lease), (tasks[1].id, tasks[0].lease), (tasks[0].id, "")]

    for task_id, lease in wrong:
        for end in (
            engine.tasks.complete(task_id, lease, {"width": 1}),
            engine.tasks.fail(task_id, lease, "no"),
            engine.tasks.heartbeat(task_id, lease),
        ):
            with pytest.raises(TaskLeaseLostError):
                await end

    for width, task in enumerate(tasks):
        await engine.tasks.complete(task.id, task.lease, {"width": width})
    with pytest.raises(TaskEndedError):
        await engine.tasks.complete(tasks[0].id, tasks[1].lease, {"width": 0})
    assert sorted([await run.result() for run in runs]) == [0, 1]


async def test_heartbeat_of_a_session_that_ends_meanwhile_is_refused(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is the program's when the heartbeat looks, and no longer when it renews the lease."""
    await engine.start(thumbnail, "a.png")
    task = await claimed(engine)
    store = store_of(engine)
    open_beat = store.open_beat

    class LateBeat:
        """Renews a lease after its session has ended, as that of a program that was lost does."""

        def __init__(self, session: str) -> None:
            self._session = session

        def renew(self, *, lease_seconds: float) -> bool:
            asyncio.run_coroutine_threadsafe(store.end_session(self._session), loop).result(10)
            return open_beat(self._session).renew(lease_seconds=lease_seconds)

        def close(self) -> None:
            """Nothing is open."""

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(store, "open_beat", LateBeat)

    with pytest.raises(TaskLeaseLostError):
        await engine.tasks.heartbeat(task.id, task.lease)


async def test_the_first_end_counts(engine: TestEngine) -> None:
    """A task that is completed twice with the same lease accepts the repetition; a failure or a heartbeat after it
    raises TaskEndedError."""
    run = await engine.start(thumbnail, "a.png")
    task = await claimed(engine)

    for _ in range(2):
        await engine.tasks.complete(task.id, task.lease, {"width": 3})

    with pytest.raises(TaskEndedError, match="has ended before as succeeded"):
        await engine.tasks.fail(task.id, task.lease, "too late")
    with pytest.raises(TaskEndedError):
        await engine.tasks.heartbeat(task.id, task.lease)
    assert await run.result() == 3


async def test_many_ends_at_once_are_one(engine: TestEngine) -> None:
    """With heartbeats among them."""
    run = await engine.start(thumbnail, "a.png")
    task = await claimed(engine)
    verbs = [engine.tasks.complete(task.id, task.lease, {"width": width}) for width in (1, 2)]
    verbs += [engine.tasks.fail(task.id, task.lease, "no")]
    beats = [engine.tasks.heartbeat(task.id, task.lease, progress={"n": number}) for number in range(2)]

    answers = await asyncio.gather(*beats, *verbs, return_exceptions=True)

    refused = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(isinstance(answer, TaskEndedError) for answer in refused)
    assert await run.result() in (1, 2)


async def test_a_failed_attempt_is_made_again_after_its_delay(engine: TestEngine) -> None:
    """A failed task comes back as a new task after the delay of the step's policy, or after the delay that the worker
    asks for."""
    run = await engine.start(thumbnail, "a.png")
    first = await claimed(engine)
    await engine.tasks.fail(first.id, first.lease, "out of memory", type="CudaError")
    await engine.settle()
    assert await engine.tasks.claim("gpu", ["resize"]) is None
    await engine.skip(seconds=10)
    second = await claimed(engine)
    await engine.tasks.fail(second.id, second.lease, "hot", retry_after=100)
    await engine.skip(seconds=99)
    assert await engine.tasks.claim("gpu", ["resize"]) is None
    await engine.skip(seconds=2)
    third = await claimed(engine)
    await engine.tasks.complete(third.id, third.lease, {"width": 4})

    assert await run.result() == 4
    assert len({first.id, second.id, third.id}) == 3


async def test_errors_reach_the_workflow(engine: TestEngine) -> None:
    """The failure of a task reaches the workflow as `StepFailedError`, or as a class listed in `raises`; a builtin
    class named by the worker is only text."""
    found: list[Any] = []
    for kind in ("SystemExit", f"{NoGpuError.__module__}.NoGpuError"):
        run = await engine.start(caught, "a.png")
        task = await claimed(engine)
        await engine.tasks.fail(task.id, task.lease, "no gpu", type=kind, retryable=False)
        found.append(await run.result())

    assert found == ["StepFailedError: resize: SystemExit: no gpu", "NoGpuError: no gpu"]


async def test_a_task_that_fails_with_an_error_in_not_on_does_not_come_back(engine: TestEngine) -> None:
    """A task that failed with an error in `not_on` of its step fails the step at its first attempt."""
    run = await engine.start(cropped_or_not)
    await engine.settle()
    task = await engine.tasks.claim("cpu", ["crop_or_not"])
    assert task is not None
    await engine.tasks.fail(task.id, task.lease, "no gpu", type=f"{NoGpuError.__module__}.NoGpuError")
    with pytest.raises(outlive.errors.RunFailedError, match="no gpu"):
        await run.result()


async def test_a_task_that_takes_too_long_is_cancelled(engine: TestEngine) -> None:
    """Its worker hears of it with the next heartbeat; a task that none has claimed is given to none."""
    run = await engine.start(hurried, "a.png")
    task = await claimed(engine, lease_seconds=1000)
    await engine.skip(seconds=61)
    assert await run.result() == "step resize did not end within its timeout of 60 s"

    notice = await engine.tasks.heartbeat(task.id, task.lease)
    assert notice.is_cancelled
    await engine.tasks.fail(task.id, task.lease, "stopped")
    await engine.tasks.fail(task.id, task.lease, "stopped")
    assert await engine.get(task.id).status() == "cancelled"

    other = await engine.start(hurried, "b.png")
    await engine.skip(seconds=61)
    assert (await other.result()).startswith("step resize did not end")
    assert await engine.tasks.claim("gpu", ["resize"]) is None
    assert await engine.count(queue="gpu", status="cancelled") == 2


async def test_cancelling_the_run_cancels_the_task(engine: TestEngine) -> None:
    """A cancelled run cancels its task, and a task that a person cancels fails its run."""
    run = await engine.start(thumbnail, "a.png")
    task = await claimed(engine)
    await run.cancel(reason="not wanted")
    await engine.settle()
    assert await run.status() == "cancelled"
    assert (await engine.tasks.heartbeat(task.id, task.lease)).is_cancelled

    other = await engine.start(thumbnail, "b.png")
    second = await claimed(engine)
    await engine.cancel(second.id, reason="by hand")
    assert (await engine.tasks.heartbeat(second.id, second.lease)).reason == "by hand"
    await engine.tasks.fail(second.id, second.lease, "as you like")
    with pytest.raises(outlive.errors.RunFailedError, match="was cancelled"):
        await other.result()


async def test_an_output_that_does_not_fit_is_refused_and_the_task_goes_on(engine: TestEngine) -> None:
    """Before it can do harm to the workflow."""
    run = await engine.start(thumbnail, "a.png")
    task = await claimed(engine)

    with pytest.raises(TaskOutputError, match="output of type Thumb"):
        await engine.tasks.complete(task.id, task.lease, {"width": "wide"})

    await engine.tasks.complete(task.id, task.lease, {"width": 5})
    assert await run.result() == 5


async def test_a_task_that_loses_its_workers_again_and_again_fails(engine: TestEngine) -> None:
    """A task whose lease runs out too often fails, and its step is tried again with a new task."""
    run = await engine.start(caught, "a.png")
    task = await claimed(engine, lease_seconds=1)
    attempts = engine.limits.attempts_max
    for _ in range(attempts):
        await engine.skip(seconds=2)
        assert await engine.tasks.claim("gpu", ["resize"], lease_seconds=1) is not None
    await engine.skip(seconds=2)

    assert await engine.tasks.claim("gpu", ["resize"]) is None

    assert await engine.get(task.id).status() == "failed"
    await engine.skip(seconds=10)
    second = await claimed(engine)
    await engine.tasks.fail(second.id, second.lease, "enough", retryable=False)
    assert await run.result() == "StepFailedError: resize: RemoteError: enough"


async def test_a_caller_that_has_gone_leaves_its_task_to_others(engine: TestEngine) -> None:
    """At once, whether or not its claim was written; a claim whose answer is lost ends with its lease."""
    waiting = asyncio.ensure_future(engine.tasks.claim("gpu", ["resize"], wait=200))
    await engine.settle()
    waiting.cancel()
    await asyncio.wait([waiting])
    run = await engine.start(thumbnail, "a.png")

    task = await claimed(engine)

    await engine.tasks.complete(task.id, task.lease, {"width": 6})
    assert await run.result() == 6


async def test_the_worker_of_the_workflow_may_die_meanwhile(place: Place) -> None:
    """A run that waits for a task has no owner, and the end of the task is a message in the same transaction."""
    if place.url == "memory:":
        return
    async with TestEngine(place.url) as engine:
        await engine.start(thumbnail, "a.png", id="t-1")
        task = await claimed(engine, lease_seconds=1000)
        engine.abandon()
    async with TestEngine(place.url, worker=False) as people:
        await people.tasks.complete(task.id, task.lease, {"width": 7})
    async with TestEngine(place.url) as engine:
        assert await engine.get("t-1").result() == 7


async def test_mistakes_are_refused_at_once(engine: TestEngine) -> None:
    """By name, and before anything is put into a queue."""
    with pytest.raises(NotInRunError, match="its code is in another program"):
        _ = resize(Image("a.png"))
    with pytest.raises(InvalidArgumentError, match="queue"):
        outlive.remote_step("x", queue="a,b")
    with pytest.raises(ConfigurationError, match="cannot be described as JSON"):
        outlive.remote_step("x", output=asyncio.Future, queue="gpu")
    with pytest.raises(ConfigurationError, match="give the names"):
        await engine.tasks.claim("gpu", [])
    with pytest.raises(InvalidArgumentError, match="lease_seconds"):
        await engine.tasks.claim("gpu", ["resize"], lease_seconds=0)
    run = await engine.start(thumbnail, "a.png", id="t-1")
    for task_id in ("none", run.id):
        with pytest.raises(TaskNotFoundError):
            await engine.tasks.complete(task_id, "lease", 1)
    assert repr(resize) == "<remote step resize of queue gpu>"


async def test_task_that_a_program_works_on_is_a_step_under_way(engine: TestEngine) -> None:
    """For the run that waits for it, with its claim, its last sign of life and, if asked for, its input. Before the
    claim and after the end there is none."""
    run = await engine.start(thumbnail, "a.png", id="t-1")
    await engine.settle()
    assert await run.steps() == []
    task = await claimed(engine, worker="gpu-1")

    (plain,) = await run.steps()
    (whole,) = await run.steps(arguments=True)
    assert plain == StepUnderWay(
        run_id="t-1",
        call=task.id,
        name="resize",
        attempt=1,
        attempts_max=None,
        since=plain.since,
        worker="remote gpu-1",
        task=task.id,
    )
    assert msgspec.structs.replace(whole, arguments=None) == plain
    assert whole.arguments == {"input": {"url": "a.png"}}

    await engine.skip(seconds=30)
    await engine.tasks.heartbeat(task.id, task.lease, progress={"done": 1})
    (beating,) = await run.steps()
    assert beating.heartbeat_at is not None
    assert (beating.heartbeat_at - beating.since).total_seconds() == 30
    assert (beating.since, beating.progress) == (plain.since, {"done": 1})
    await engine.tasks.complete(task.id, task.lease, {"width": 80})
    assert await run.steps() == []
