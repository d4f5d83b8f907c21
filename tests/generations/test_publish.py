"""Publishing: what a run shows of itself, from its workflow or from a step."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

import outlive
from outlive.errors import PayloadTooLargeError, RunFailedError
from outlive.errors.program import NotInRunError
from outlive.events import RunPublished
from outlive.limits import Limits
from tests.engine.inside import crash, row_of
from tests.engine.support import Place, events_of, hold, in_time, note, stage, until, waits

pytestmark = pytest.mark.any_store

WHEN = datetime(2026, 11, 15, tzinfo=UTC)


class Reversed:
    """A payload codec that anybody can see through."""

    name = "reversed"

    def encode(self, data: bytes) -> bytes:
        """Back to front."""
        return data[::-1]

    def decode(self, data: bytes) -> bytes:
        """And back."""
        return data[::-1]


@outlive.workflow
async def shows_stages() -> str:
    outlive.publish(stage="packing", progress=0.4)
    await hold("packing")
    outlive.publish(stage="sent", price=Decimal("9.50"), at=WHEN, parts=(1, 2))
    return await outlive.wait_for_signal("go", str)


@outlive.step
async def tells_from_inside(times: int) -> None:
    for time in range(times):
        outlive.publish(row=time)
    outlive.publish(last="word")


@outlive.step
def tells_on_thread() -> None:
    outlive.publish(thread=True)


@outlive.workflow
async def lets_steps_tell(times: int) -> None:
    outlive.publish(who="workflow")
    await asyncio.gather(tells_from_inside(times), tells_on_thread())
    outlive.publish(after="steps")


@outlive.workflow
async def changes_nothing() -> None:
    for _ in range(5):
        outlive.publish(same=[1, 2])
        await note("turn")


@outlive.workflow
async def changes_what_it_published() -> None:
    seen = [1]
    outlive.publish(seen=seen)
    seen.append(2)
    await note("between")
    outlive.publish(other=1)


@outlive.workflow
async def shows_as_child(name: str) -> None:
    outlive.publish(name=name)


@outlive.workflow
async def has_children() -> None:
    outlive.publish(name="parent")
    await asyncio.gather(shows_as_child("a"), shows_as_child("b"))


@outlive.workflow
async def shows_something_odd() -> None:
    outlive.publish(odd=object())


@outlive.step
async def shows_too_much(size: int) -> str:
    try:
        if size:
            outlive.publish(text="x" * size)
    except PayloadTooLargeError as error:
        return error.what
    return "it went"


@outlive.workflow
async def lets_step_show_too_much(size: int) -> str:
    return await shows_too_much(size)


@outlive.workflow
async def shows_much(size: int) -> None:
    outlive.publish(text="x" * size)


async def test_fields_are_readable_while_it_runs_and_merge_with_those_before(engine: outlive.Engine) -> None:
    """Values come back exactly, as a step's result without annotation would."""
    run = await engine.start(shows_stages)
    await stage.gate("packing").reached()

    assert await run.published() == {"stage": "packing", "progress": 0.4}

    stage.gate("packing").open()
    await waits(run)

    shown = {"stage": "sent", "progress": 0.4, "price": Decimal("9.50"), "at": WHEN, "parts": (1, 2)}
    assert await engine.get(run.id).published() == shown
    await run.signal("go", "done")
    await in_time(run.result())
    assert await run.published() == shown


async def test_published_values_survive_a_crash_and_are_merged(place: Place) -> None:
    """The next worker has the values that the lost one published, and later ones are merged with them. [TS-R3]"""
    doomed = await place.engine().__aenter__()
    run = await doomed.start(shows_stages, id="r")
    await stage.gate("packing").reached()
    await crash(doomed)
    stage.clear()

    async with place.engine() as engine:
        stage.gate("packing").open()
        run = engine.get("r")
        await waits(run)
        assert (await run.published())["progress"] == 0.4
        assert len(await events_of(run, RunPublished)) == 2


async def test_a_run_that_shows_nothing_reads_as_an_empty_object(engine: outlive.Engine) -> None:
    """A reader need not ask first whether there is anything."""
    run = await engine.start(lets_step_show_too_much, 0)

    assert await run.published() == {}
    await in_time(run.result())


async def test_publishing_the_same_again_costs_nothing(engine: outlive.Engine) -> None:
    """A loop that says the same thing five times writes it once."""
    run = await engine.start(changes_nothing)

    await in_time(run.result())

    assert len(await events_of(run, RunPublished)) == 1


async def test_a_published_list_does_not_change_with_the_workflows_list(engine: outlive.Engine) -> None:
    """A list that grows after it was published stays published as it was."""
    run = await engine.start(changes_what_it_published)

    await in_time(run.result())

    assert await run.published() == {"seen": [1], "other": 1}


async def test_steps_publish_from_the_loop_and_from_threads(engine: outlive.Engine) -> None:
    """All of them speak for their run."""
    run = await engine.start(lets_steps_tell, 3)

    await in_time(run.result())

    shown = {"who": "workflow", "row": 2, "last": "word", "thread": True, "after": "steps"}
    assert await run.published() == shown


async def test_a_chatty_step_does_not_flood_the_journal(engine: outlive.Engine) -> None:
    """Ten thousand words come to a handful of events, and the last word is among them."""
    run = await engine.start(lets_steps_tell, 10_000)

    await in_time(run.result())

    assert (await run.published())["row"] == 9_999
    assert (await run.published())["last"] == "word"
    assert len(await events_of(run, RunPublished)) < 20


async def test_each_run_of_a_tree_shows_its_own(engine: outlive.Engine) -> None:
    """A child does not speak for its parent."""
    run = await engine.start(has_children, id="tree")

    await in_time(run.result())

    assert [await engine.get(each).published() for each in ("tree", "tree~1", "tree~2")] == [
        {"name": "parent"},
        {"name": "a"},
        {"name": "b"},
    ]


async def test_published_values_go_through_the_payload_codecs(place: Place) -> None:
    """Nothing of them is readable in the store."""
    async with place.engine(codecs=[Reversed()]) as engine:
        run = await engine.start(changes_what_it_published)
        await in_time(run.result())

        payload = (await row_of(run)).published
        assert payload is not None
        assert payload.via == ("reversed",)
        assert await run.published() == {"seen": [1], "other": 1}


async def test_a_large_publication_becomes_a_blob(engine: outlive.Engine) -> None:
    """A large published value is stored as a blob and comes back whole."""
    run = await engine.start(shows_much, 100_000)

    await in_time(run.result())

    payload = (await row_of(run)).published
    assert payload is not None
    assert payload.blob
    assert await run.published() == {"text": "x" * 100_000}


async def test_a_value_without_a_stored_form_is_refused_where_it_is_published(engine: outlive.Engine) -> None:
    """The workflow gets the error, as for the arguments of a step."""
    run = await engine.start(shows_something_odd)

    with pytest.raises(RunFailedError, match=r"what is published cannot be stored: at \$\.odd"):
        await in_time(run.result())


async def test_publishing_too_much_raises_in_the_step(place: Place) -> None:
    """A step that publishes too much gets the error, and its run goes on."""
    async with place.engine(limits=Limits(payload_bytes_max=50_000)) as engine:
        run = await engine.start(lets_step_show_too_much, 60_000)

        assert "publishes" in await in_time(run.result())


def test_publishing_outside_a_run_is_refused() -> None:
    """There is no run to speak for."""
    with pytest.raises(NotInRunError, match="publish"):
        outlive.publish(stage="nowhere")


async def test_a_dropped_run_publishes_nothing(place: Place) -> None:
    """A `finally` block that runs because the run leaves memory says nothing."""
    async with place.engine() as engine:
        run = await engine.start(publishes_at_the_end)
        await waits(run)
    async with place.engine() as engine:
        assert await engine.get(run.id).published() == {}


@outlive.workflow
async def publishes_at_the_end() -> Any:
    try:
        return await outlive.wait_for_signal("never")
    finally:
        outlive.publish(left=True)


@outlive.step
async def tells_the_same_again() -> None:
    outlive.publish(row=1)
    await stage.gate("published").pass_through()
    outlive.publish(row=1)
    await stage.gate("again").pass_through()


@outlive.workflow
async def lets_a_step_repeat_itself() -> None:
    await tells_the_same_again()


async def test_a_published_value_that_is_repeated_is_not_written_again(
    engine: outlive.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """A step may publish the same value as often as it likes, and it is written once."""
    run = await engine.start(lets_a_step_repeat_itself)
    await stage.gate("published").reached()

    async def is_shown() -> bool:
        return await run.published() == {"row": 1}

    await until(is_shown)
    stage.gate("published").open()
    await stage.gate("again").reached()
    stage.gate("again").open()
    await in_time(run.result())
    assert 1 == len(await events_of(run, RunPublished))
    assert [] == caplog.records
