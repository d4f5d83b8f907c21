"""A step that is started as a run of its own: an id, a queue, retries and a result, for a step alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.client.definitions import Describer
from outlive.cli import main
from outlive.errors import (
    DefinitionError,
    RunExistsError,
    RunFailedError,
    StepInterruptedError,
    WrongArgumentsError,
)
from outlive.errors.program import UnknownWorkflowError
from outlive.testing import TestEngine, crash_everywhere
from tests.cli.serving import served
from tests.engine.inside import crash, store_of
from tests.engine.support import Place, in_time, registry_of, stage

pytestmark = pytest.mark.any_store
mails = outlive.Queue("steps.mails", concurrency=1)


class DeclinedError(Exception):
    """What the bank says."""


@outlive.step(retry=outlive.Retry(attempts=3, first=1, on=(ConnectionError,)), raises=(DeclinedError,))
async def alone_charge(cents: int, *, note: str = "") -> str:
    """Fails twice, and for good if the card is declined."""
    stage.call(f"charge {cents}")
    if note == "declined":
        raise DeclinedError(cents)
    if note == "away" and outlive.current_step().attempt < 3:
        raise ConnectionError
    return f"{cents} {note}".strip()


@outlive.step(by_name=True)
def alone_double(number: int) -> int:
    return 2 * number


@outlive.step(once=True)
async def alone_once() -> str:
    await stage.gate("sent").pass_through()
    return "sent"


@outlive.resource
async def alone_ledger() -> AsyncIterator[list[str]]:
    yield ["ledger"]


@outlive.step
async def alone_booked(what: str, ledger: list[str] = outlive.use(alone_ledger)) -> str:
    return f"{what} in {ledger[0]}"


@outlive.workflow
async def alone_parent(cents: int) -> list[str]:
    child = await outlive.start(alone_charge, cents)
    other = await outlive.start(alone_charge, cents + 1, detached=True, id="charge-other")
    return [await child.result(), await other.result()]


async def test_a_step_is_a_run_of_its_own(engine: outlive.Engine) -> None:
    """It has an id, tags and headers, is listed under the name of the step, and its result is that of the step."""
    run = await engine.start(alone_charge, 5, id="charge-1", tags={"shop": "a"})
    again = await engine.start(alone_charge, 7, id="charge-1")

    assert [await in_time(it.result()) for it in (run, again)] == ["5", "5"]
    (found,) = await engine.list(workflow="alone_charge", tags={"shop": "a"})
    assert (found.id, found.workflow, found.version, found.status) == ("charge-1", "alone_charge", 0, "succeeded")
    assert stage.calls == ["charge 5"]
    with pytest.raises(RunExistsError):
        await engine.start(alone_double, 7, id="charge-1")


async def test_arguments_are_bound_and_checked(engine: outlive.Engine) -> None:
    """Arguments by name are bound before, and arguments that do not fit are refused at the start."""
    run = await engine.start(alone_charge.bind(5, note="now"))

    assert await in_time(run.result()) == "5 now"
    assert await in_time((await engine.start(alone_booked, "a")).result()) == "a in ledger"
    start: Any = engine.start
    with pytest.raises(WrongArgumentsError):
        await start(alone_charge)


async def test_attempts_are_those_of_the_step() -> None:
    """Its own policy says when a failed attempt is tried again; what it raises for good is the cause of the failure."""
    async with TestEngine() as engine:
        run = await engine.start(alone_charge.bind(5, note="away"))
        assert await run.result() == "5 away"
        assert stage.calls == ["charge 5"] * 3
        declined = await engine.start(alone_charge.bind(6, note="declined"))
        with pytest.raises(RunFailedError) as caught:
            await declined.result()
        assert isinstance(caught.value.__cause__, DeclinedError)


async def test_a_failed_step_is_retried_and_forked(engine: outlive.Engine) -> None:
    """The verbs for runs work as for every run."""
    run = await engine.start(alone_charge.bind(6, note="declined"))
    with pytest.raises(RunFailedError):
        await in_time(run.result())
    stage.calls.clear()
    await run.retry()
    with pytest.raises(RunFailedError):
        await in_time(run.result())
    assert stage.calls == ["charge 6"]

    fork = await engine.fork(run.id, input={"cents": 7, "note": "other"})
    assert await in_time(fork.result()) == "7 other"


async def test_steps_wait_in_a_queue(engine: outlive.Engine) -> None:
    """With a key and a delay, as other runs."""
    first, *others = await engine.start_many([(alone_charge, number) for number in range(3)], queue=mails, key="ann")
    later = await engine.start(alone_charge, 9, delay=timedelta(days=1))

    assert [await in_time(run.result()) for run in (first, *others)] == ["0", "1", "2"]
    info = await first.info()
    assert (info.queue, info.queue_key) == ("steps.mails", "ann")
    assert await later.status() == "pending"
    await later.cancel()


async def test_another_worker_runs_it(place: Place) -> None:
    """A program without a worker starts it, and the worker that has the step takes it."""
    async with place.engine(worker=False) as client:
        run = await client.start(alone_charge, 5)
    async with place.engine() as worker:
        assert await in_time(worker.get(run.id).result()) == "5"


async def test_a_workflow_starts_steps_as_runs(engine: outlive.Engine) -> None:
    """A step is a child of its tree, or a run of its own when it is started detached."""
    assert await in_time((await engine.start(alone_parent, 1)).result()) == ["1", "2"]
    assert (await engine.get("charge-other").info()).workflow == "alone_charge"


async def test_a_step_survives_every_crash() -> None:
    """It is called again after a crash in the middle, and never after its result is durable."""
    report = await crash_everywhere(alone_charge.bind(5, note="away"))

    assert report.result == "5 away"
    assert report.points == report.points_found > 2


async def test_a_step_that_is_called_once_is_not_called_again(place: Place) -> None:
    """Its run fails if the call was interrupted, as a step in a workflow would."""
    async with place.engine() as engine:
        run = await engine.start(alone_once)
        await stage.gate("sent").reached()
        await crash(engine)
    async with place.engine() as engine:
        with pytest.raises(RunFailedError) as caught:
            await in_time(engine.get(run.id).result())
        assert isinstance(caught.value.__cause__, StepInterruptedError)


class Gateway:
    @outlive.step
    async def alone_pay(self, cents: int) -> int:
        return cents


@outlive.step(name="alone_parent")
async def alone_shadowed() -> None:
    """Has the name of a workflow."""


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Gateway().alone_pay, "is a method"),
        (alone_charge.options(timeout=1), r"options\(...\) are for one call"),
        (alone_shadowed, "a workflow has this name too"),
    ],
)
async def test_a_step_that_no_worker_would_find_is_refused(engine: outlive.Engine, step: Any, text: str) -> None:
    """A worker knows the step by its name only."""
    with pytest.raises(DefinitionError, match=text):
        await engine.start(step)
    assert await engine.count() == 0


async def test_only_steps_that_say_so_are_started_by_name(engine: outlive.Engine) -> None:
    """A step may count on its workflow for checks: programs without its code may start it if it says `by_name=True`."""
    await Describer(store_of(engine), registry_of(alone_parent, alone_charge, alone_double)).describe()

    assert await in_time((await engine.start("alone_double", {"number": 4})).result()) == 8
    with pytest.raises(UnknownWorkflowError):
        await engine.start("alone_charge", {"cents": 4})
    listed = {it.name: it.version for it in await engine.workflows.list()}
    assert "alone_charge" not in listed
    assert listed["alone_double"] == 0


async def test_a_connection_and_a_command_start_it(tmp_path: Path) -> None:
    """Both start a step that says `by_name=True` in the way in which they start a workflow."""
    async with TestEngine() as engine:
        await Describer(store_of(engine), registry_of(alone_double)).describe()
        async with served(engine) as url, outlive.connect(url) as remote:
            run = await remote.start(alone_double, 5, id="double-5")
            assert await run.result() == 10
            args = ["runs", "start", "alone_double", "[6]", "--id", "double-6", "--server", url]
            done = await asyncio.to_thread(CliRunner().invoke, main, args)
            assert done.exit_code == 0, done.output
            assert await engine.get("double-6").result() == 12


async def test_a_schedule_starts_it() -> None:
    """A step is scheduled as a workflow is."""
    async with TestEngine() as engine:
        await Describer(store_of(engine), registry_of(alone_double)).describe()
        await engine.schedules.set("doubles", outlive.every(minutes=1, args={"number": 3}), alone_double)
        run = await engine.schedules.trigger("doubles")

        assert await run.result() == 6
