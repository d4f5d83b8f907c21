"""Runs that a workflow starts with what `engine.start` takes: in a queue, later, by a name, under a taken id."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive._kernel.client.definitions import Describer
from outlive.errors import ArgumentTypeError, ConfigurationError, RunFailedError
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash import Survivor
from tests.engine.inside import journal_of, store_of
from tests.engine.support import in_time, registry_of, stage

pytestmark = pytest.mark.any_store
mills = outlive.Queue("started.mills", concurrency=5, priorities=True)


@outlive.workflow
async def started_part(number: int, *, note: str = "") -> str:
    stage.call(f"part {number}")
    headers = outlive.current_run().headers
    return f"{number}{note} {' '.join(f'{name}={headers[name]}' for name in sorted(headers))}".strip()


@outlive.workflow
async def started_waits(number: int) -> int:
    await outlive.wait_for_signal("go")
    return number


@outlive.workflow
async def started_whole(number: int, options: dict[str, Any]) -> Any:
    run = await outlive.start(started_part, number, detached=True, **options)
    return [run.id, await run.result()]


@outlive.workflow
async def started_in_a_queue() -> str:
    run = await outlive.start(
        started_part.bind(7, note="!"), detached=True, queue=mills, key="ann", priority=2, delay=timedelta(days=1)
    )
    said: str = await run.result()
    return said


@outlive.workflow
async def started_by_name(arguments: dict[str, Any]) -> str:
    run = await outlive.start("started_part", arguments, detached=True, id="named", tags={"by": "name"})
    said: str = await run.result()
    return said


@outlive.workflow
async def started_over(on_conflict: str) -> int:
    """Starts a run under an id that may be taken, and lets it go on."""
    run = await outlive.start(started_waits, 2, detached=True, id="taken", on_conflict=on_conflict)  # type: ignore[call-overload]
    await outlive.signal(run.id, "go")
    number: int = await run.result()
    return number


async def test_a_run_has_its_place_in_a_queue_and_begins_later() -> None:
    """A workflow waits, durably, for a run that waits for its turn."""
    async with TestEngine() as engine:
        run = await engine.start(started_in_a_queue)
        assert await run.result() == "7!"
        (part,) = await engine.list(workflow="started_part")
        assert (part.queue, part.queue_key) == ("started.mills", "ann")
        assert part.updated_at - part.created_at > timedelta(hours=23)


async def test_headers_are_those_of_the_run_and_those_given(engine: outlive.Engine) -> None:
    """The given ones count where both have a name."""
    run = await engine.start(
        started_whole, 1, {"headers": {"who": "part", "more": "1"}}, headers={"who": "whole", "tenant": "a"}
    )
    _, result = await in_time(run.result())
    assert result == "1 more=1 tenant=a who=part"


async def test_an_id_is_made_of_the_call_unless_given(engine: outlive.Engine) -> None:
    """Another start with an id gives the same run, as for a start outside."""
    made, _ = await in_time((await engine.start(started_whole, 1, {"queue": "started.mills"})).result())
    given = [await in_time((await engine.start(started_whole, n, {"id": "part", "delay": 0})).result()) for n in (2, 3)]

    assert made.startswith("started_part-")
    assert given == [["part", "2"]] * 2
    assert stage.calls == ["part 1", "part 2"]


async def test_a_workflow_is_started_by_its_name(engine: outlive.Engine) -> None:
    """Its code may be elsewhere; arguments are checked by what workers have described."""
    await Describer(store_of(engine), registry_of(started_part)).describe()
    run = await engine.start(started_by_name, {"number": 5, "note": "?"})
    assert await in_time(run.result()) == "5?"
    assert (await engine.get("named").info()).tags == {"by": "name"}

    wrong = await engine.start(started_by_name, {"number": "five"})
    with pytest.raises(RunFailedError, match=r"number"):
        await in_time(wrong.result())


@pytest.mark.parametrize(
    ("on_conflict", "number"),
    [("attach", 1), ("attach_open", 1), ("reject", 0), ("reject_open", 0), ("replace", 2), ("cancel_open", 2)],
)
async def test_an_id_that_is_taken_is_settled_as_for_a_start_outside(
    engine: outlive.Engine, on_conflict: str, number: int
) -> None:
    """The error reaches the workflow as itself."""
    await engine.start(started_waits, 1, id="taken")
    run = await engine.start(started_over, on_conflict)
    if number:
        assert await in_time(run.result()) == number
    else:
        with pytest.raises(RunFailedError, match="RunExistsError: run 'taken' exists already"):
            await in_time(run.result())


@pytest.mark.parametrize("on_conflict", ["reject", "reject_open", "attach_open", "replace", "cancel_open"])
async def test_a_start_survives_every_crash(on_conflict: str) -> None:
    """A worker that died between the start and its own journal starts once more, and the store knows the run that it
    has started already: none is started twice."""

    async def check(survivor: Survivor) -> None:
        runs = await survivor.engine.list(workflow="started_waits")
        assert [(run.id, run.status) for run in runs] == [("taken", "succeeded")]

    report = await crash_everywhere(started_over, on_conflict, check=check)
    assert report.result == 2
    assert report.points == report.points_found


@outlive.workflow
async def started_wrongly(options: dict[str, Any]) -> None:
    await outlive.start(started_part, 1, **options)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"queue": "started.mills"}, ConfigurationError, "queue= is for a run of its own"),
        ({"key": "a", "delay": 1}, ConfigurationError, "delay=, key= is for a run of its own"),
        ({"detached": True, "note": "x"}, ArgumentTypeError, r"outlive\.start\(started_part\.bind\(note='x'\)\)"),
    ],
)
async def test_options_for_runs_of_their_own_are_refused_for_children(
    engine: outlive.Engine, options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    """A child runs with its parent; and an option that there is not is named."""
    run = await engine.start(started_wrongly, options)
    with pytest.raises(RunFailedError, match=f"{kind.__name__}: .*{text}"):
        await in_time(run.result())


async def test_the_journal_of_a_plain_start_is_as_before(engine: outlive.Engine) -> None:
    """Without such options the run is created with the journal of its starter, in one transaction."""
    run = await engine.start(started_whole, 1, {"tags": {"a": "b"}})
    await in_time(run.result())
    kinds = [type(event).__name__ for event in await journal_of(run)]
    assert "DetachedStarted" in kinds
    assert "StepSucceeded" not in kinds
