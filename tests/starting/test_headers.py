"""Headers of runs: journaled with the start, and inherited by all that a run starts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import outlive
from outlive.errors import ArgumentTypeError, InvalidArgumentError
from outlive.events import RunCreated
from outlive.testing import TestEngine
from tests.engine.inside import journal_of
from tests.engine.support import Place, events_of, in_time, stage

HEADERS = {"tenant": "a", "trace": "00-4bf9"}


def note(who: str, headers: dict[str, str]) -> None:
    """What the test looks at."""
    stage.call((who, headers.get("tenant")))


@outlive.step(name="headers.look")
async def look() -> None:
    """A step; what it does to its copy stays there."""
    note("step", outlive.current_step().headers)
    outlive.current_step().headers["tenant"] = "b"


@outlive.step(name="headers.look_at_row")
async def look_at_row(row: int) -> str:
    """One item of a batch."""
    return outlive.current_step().headers["tenant"]


@outlive.workflow(name="headers.inner")
async def inner() -> None:
    """A child, or detached."""
    note("inner", outlive.current_run().headers)
    await look()


@outlive.workflow(name="headers.outer")
async def outer(generation: int) -> None:
    """Everything that can inherit."""
    note("outer", outlive.current_run().headers)
    outlive.current_run().headers["tenant"] = "b"
    await look()
    await inner()
    await (await outlive.start(inner, detached=True)).result()
    if not generation:
        outlive.continue_as_new(1)


@outlive.workflow(name="headers.waiting")
async def waiting() -> str:
    """Started by a signal."""
    await outlive.wait_for_signal("go")
    return outlive.current_run().headers.get("tenant", "")


async def test_all_that_a_run_starts_has_its_headers(place: Place) -> None:
    """Steps, children, detached runs and the next generation; the journal has them once in each tree."""
    async with place.engine() as engine:
        run = await engine.start(outer, 0, id="run-1", headers=HEADERS)
        await in_time(run.result())
        assert {(who, "a") for who in ("outer", "step", "inner")} == set(stage.calls)
        assert 6 == stage.calls.count(("step", "a"))
        created = await events_of(engine.get("run-1"), RunCreated)
        assert [HEADERS, {}] == [event.headers for event in created]


async def test_batches_and_runs_that_signals_start_have_them() -> None:
    """Whatever starts a run can say them."""
    async with TestEngine() as engine:
        batch = await engine.start_batch(look_at_row, [1, 2], headers=HEADERS)
        assert ["a", "a"] == await batch.results()
        await engine.signal("run-1", "go", start=(waiting,), headers=HEADERS)
        assert "a" == await engine.get("run-1").result()


async def test_a_run_without_headers_writes_none() -> None:
    """Its journal is what it was."""
    async with TestEngine() as engine:
        run = await engine.start(inner)
        await run.result()
        assert b'"headers":' not in b"".join(map(msgspec.json.encode, await journal_of(run)))
    assert [("inner", None), ("step", None)] == stage.calls


async def test_people_see_headers_without_what_is_hidden() -> None:
    """By the names in `redact`."""
    async with TestEngine(redact=["trace"]) as engine:
        run = await engine.start(inner, headers=HEADERS)
        await run.result()
        (created,) = [each for each in await run.history() if each.type == "RunCreated"]
    assert {"tenant": "a", "trace": "[redacted]"} == created.data["headers"]


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (5, ArgumentTypeError, "give text by name, for example headers={'tenant': 'a'}"),
        ({"tenant": 5}, ArgumentTypeError, "give text by name"),
        ({"": "a"}, InvalidArgumentError, "give text of 1 to 200 characters"),
        ({"tenant": "a\0"}, InvalidArgumentError, "no store can keep a NUL"),
        ({str(number): "ä" * 500 for number in range(9)}, InvalidArgumentError, "they have 9,009 bytes, and 8,192 are"),
        ({str(number): "" for number in range(101)}, InvalidArgumentError, "give at most 100 of them"),
    ],
)
async def test_headers_are_text_and_not_too_long(bad: Any, kind: type[Exception], message: str) -> None:
    """Nothing is started."""
    async with TestEngine() as engine:
        with pytest.raises(kind, match=message):
            await engine.start(inner, headers=bad)
        with pytest.raises(kind, match=message):
            await engine.start_batch(look_at_row, [1], headers=bad)
        with pytest.raises(kind, match=message):
            await engine.signal("run-1", "go", start=(waiting,), headers=bad)
        assert [] == await engine.list()


async def test_a_signal_that_starts_nothing_has_no_headers() -> None:
    """They would be lost."""
    async with TestEngine() as engine:
        await engine.start(waiting, id="run-1")
        with pytest.raises(InvalidArgumentError, match=r"give start=\(workflow, ...\) too"):
            await engine.signal("run-1", "go", headers=HEADERS)
