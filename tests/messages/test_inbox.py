"""Messages that a run has not read: no worker has taken them out of its inbox, or its code has not asked for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import outlive
from outlive.testing import TestEngine
from outlive.types import UnreadMessage
from tests.engine.inside import journal_of
from tests.engine.support import until, waits

HOLD: dict[str, asyncio.Event] = {}


@outlive.step
async def hold_for_inbox() -> None:
    await HOLD["end"].wait()


@outlive.workflow
async def choosy_reader(work: str = "") -> list[str]:
    """Reads `first` and then `second`, whatever else comes."""
    found = [await outlive.wait_for_signal("first", str)]
    if work:
        await hold_for_inbox()
    found.append(await outlive.wait_for_signal("second", str))
    await outlive.wait_for_signal("end")
    return found


@outlive.workflow
async def parent_of_a_reader() -> None:
    """Has a child that reads."""
    await choosy_reader()


@outlive.workflow
async def answers_later() -> None:
    """Serves asks after a signal."""
    await outlive.wait_for_signal("go")
    async for ask in outlive.asks("add", int):
        ask.reply(ask.body + 1)


@outlive.workflow
async def goes_on_with_its_inbox(generation: int) -> None:
    """Each generation hands on what it has not read."""
    await outlive.wait_for_signal("go")
    outlive.continue_as_new(generation + 1)


async def buffered(run: Any, count: int) -> list[UnreadMessage]:
    """The messages of a run, when it is suspended and so many of them are buffered."""
    found: list[UnreadMessage] = []

    async def are_there() -> bool:
        found[:] = await run.inbox(limit=200)
        return [it.state for it in found] == ["buffered"] * count

    await until(are_there)
    return found


def facts(found: list[UnreadMessage]) -> list[tuple[str, str, str, Any]]:
    """What is compared."""
    return [(it.kind, it.name, it.state, it.value) for it in found]


@pytest.mark.every_store
async def test_signals_that_the_code_has_not_asked_for_are_buffered_until_it_does(engine: Any) -> None:
    """The list has every signal that waits, oldest first, with its key; reading one takes it out of the list."""
    run = await engine.start(choosy_reader, id="run-1")
    await waits(run)
    assert await run.inbox() == []

    for name, key in (("second", "evt-1"), ("other", None), ("second", None)):
        await run.signal(name, f"{name} {key}", key=key)

    found = await buffered(run, 3)
    assert facts(found) == [
        ("signal", "second", "buffered", "second evt-1"),
        ("signal", "other", "buffered", "other None"),
        ("signal", "second", "buffered", "second None"),
    ]
    assert [it.key for it in found] == ["evt-1", "", ""]
    assert {it.run_id for it in found} == {"run-1"}
    assert found[0].at <= found[1].at
    assert facts(await engine.inbox.list("run-1", limit=1)) == facts(found[:1])

    await run.signal("first", "1")
    assert [it.value for it in await buffered(run, 2)] == ["other None", "second None"]

    await run.signal("end")
    assert await run.result() == ["1", "second evt-1"]


async def test_messages_to_a_run_that_no_worker_takes_lie_in_the_inbox(engine: Any) -> None:
    """A paused run gets them when it goes on; what it had not read before is still known."""
    run = await engine.start(choosy_reader, id="run-1")
    await run.signal("second", "early")
    await buffered(run, 1)
    await engine.pause("run-1")
    await run.signal("first", "late", key="k")

    assert facts(await run.inbox()) == [
        ("signal", "second", "taken", "early"),
        ("signal", "first", "inbox", "late"),
    ]


async def test_a_message_to_a_child_is_shown_for_the_child_and_for_its_root() -> None:
    """Each with the id of the run that it is for."""
    async with TestEngine() as engine:
        root = await engine.start(parent_of_a_reader, id="root")
        await engine.settle()
        await engine.signal("root~1", "second", "for the child")
        await engine.signal("root", "second", "for the root")
        await engine.settle()

        assert [(it.run_id, it.value) for it in await engine.inbox.list("root~1")] == [("root~1", "for the child")]
        assert [it.run_id for it in await root.inbox()] == ["root~1", "root"]


async def test_a_run_that_a_worker_has_may_have_read_what_it_got() -> None:
    """The journal does not say what code reads, so such messages have a state of their own."""
    HOLD["end"] = asyncio.Event()
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(choosy_reader, "work", id="run-1")
        await run.signal("first", "1")
        await run.until("running")
        await run.signal("second", "2")

        async def has_second() -> bool:
            return "second" in {it.name for it in await run.inbox() if it.state == "taken"}

        await until(has_second)
        assert {it.state for it in await run.inbox()} == {"taken"}
        HOLD["end"].set()
        await run.signal("end")
        assert await run.result() == ["1", "2"]


async def test_an_ask_without_an_answer_is_unread() -> None:
    """With its key and its body, until the run answers it."""

    async with TestEngine() as engine:
        run = await engine.start(answers_later, id="run-1")
        asking = asyncio.ensure_future(run.ask("add", 1, key="a-1"))
        await engine.settle()
        (found,) = await run.inbox()
        assert (found.kind, found.name, found.key, found.state, found.value) == ("ask", "add", "a-1", "buffered", 1)
        assert repr(found) == "<UnreadMessage ask add to run-1: buffered>"
        await run.signal("go")
        assert await asking == 2
        await engine.settle()
        assert await run.inbox() == []


async def test_a_suspension_names_a_bounded_number_of_signals(engine: Any) -> None:
    """A run that is sent ten thousand signals that it never reads does not write all of them down at each wait."""
    run = await engine.start(choosy_reader, id="run-1")
    await engine.signal_many([("run-1", "other", number) for number in range(300)])
    assert [it.value for it in await buffered(run, 200)] == list(range(200))
    suspended = [event for event in await journal_of(engine, "run-1") if isinstance(event, outlive.events.RunSuspended)]
    assert len(suspended[-1].unread) == 200


async def test_messages_are_known_after_a_journal_was_compacted_or_its_run_goes_on_as_a_new_one() -> None:
    """The signals of a snapshot, and the signals that a generation hands on, have other places in the journal."""

    async with TestEngine() as engine:
        run = await engine.start(goes_on_with_its_inbox, 0, id="run-1")
        await run.signal("kept", "a")
        await run.signal("go")
        await engine.settle()
        assert facts(await run.inbox()) == [("signal", "kept", "buffered", "a")]
