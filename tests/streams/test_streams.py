"""Streams: what a run emits reaches readers in order and once, whatever is called again, replayed or lost."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

import outlive
from outlive._kernel.client import streams
from outlive._kernel.runtime.tree import emitter
from outlive.errors import (
    ArgumentTypeError,
    EngineClosedError,
    PayloadTooLargeError,
    RunFailedError,
    RunNotFoundError,
    RunParkedError,
    UnreadableError,
    UnserialisableError,
)
from outlive.errors.program import NotInRunError
from outlive.errors.store import StreamFullError
from outlive.limits import Limits
from outlive.testing import TestEngine, crash_everywhere
from outlive.testing.crash.everywhere import POINTS_MAX
from outlive.testing.crash.report import Survivor
from outlive.types import RunHandle
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import crash, go_silent, store_of, worker_of
from tests.engine.support import Place, hold, in_time, note, parks, stage, until, waits

pytestmark = pytest.mark.any_store


class StreamedMood(enum.Enum):
    """How a word is meant."""

    CALM = "calm"


@dataclass
class StreamedWord:
    """A word of a reply."""

    text: str
    mood: StreamedMood = StreamedMood.CALM


@outlive.step
async def streams_words(*words: str) -> int:
    for word in words:
        await outlive.emit("words", word)
    return len(words)


@outlive.step
def streams_on_thread(count: int) -> int:
    for number in range(count):
        outlive.emit("words", number)
    return count


@outlive.workflow
async def streams_from_everywhere() -> str:
    await outlive.emit("words", "begin")
    await streams_words("a", "b")
    await outlive.emit("words", "middle")
    await streams_on_thread(3)
    await outlive.emit("log", "other")
    await outlive.emit("words", ("end", 1))
    return "done"


@outlive.workflow
async def streams_and_holds() -> None:
    await outlive.emit("words", "first")
    await hold("gate")
    await outlive.emit("words", "second")


@outlive.workflow
async def streams_and_waits() -> str:
    await outlive.emit("words", "waits")
    got = await outlive.wait_for_signal("go", str)
    await outlive.emit("words", got)
    return await outlive.wait_for_signal("again", str)


async def test_items_come_in_order_with_their_places(engine: outlive.Engine) -> None:
    """From the workflow, from async and from sync steps; values come back exactly."""
    run = await engine.start(streams_from_everywhere)

    items = await read(run, positions=True)

    assert [item.value for item in items] == ["begin", "a", "b", "middle", 0, 1, 2, ("end", 1)]
    assert [item.position for item in items] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [item.call for item in items] == ["", *["streams_words"] * 2, "", *["streams_on_thread"] * 3, ""]
    assert await read(run, "log") == ["other"]
    assert await read(run, "none") == []
    assert await run.result() == "done"


async def test_reader_goes_on_behind_a_position(engine: outlive.Engine) -> None:
    """Wherever the chunks begin, and also behind the end."""
    run = await engine.start(streams_from_everywhere)
    whole = await read(run)

    for after in range(len(whole) + 2):
        assert await read(run, after=after) == whole[after:]


async def test_reader_is_woken_while_the_run_goes_on(engine: outlive.Engine) -> None:
    """It has the first item before the second one is emitted, and ends with the run. [FE-O4]"""
    run = await engine.start(streams_and_holds)
    reader = run.stream("words")

    assert await in_time(anext(reader)) == "first"
    stage.gate("gate").open()

    assert [item async for item in reader] == ["second"]


async def test_end_that_comes_while_a_reader_is_busy_is_not_missed(
    engine: outlive.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rings before the last items are read, and never again."""
    monkeypatch.setattr(streams, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(streams, "RUNG_LOOK_SECONDS", 3600)
    run = await engine.start(streams_and_holds)
    reader = run.stream("words")
    assert await in_time(anext(reader)) == "first"
    stage.gate("gate").open()
    await in_time(run.result())

    assert await in_time(collect(reader)) == ["second"]
    assert await read(run) == ["first", "second"]


@pytest.mark.every_store
async def test_reader_in_another_process_reads_along(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine of its own, which has no worker, and hears of it from the store; in memory it looks now and then."""
    monkeypatch.setattr(streams, "RUNG_LOOK_SECONDS", 3600)
    async with place.engine() as engine, place.engine(worker=False) as client:
        run = await engine.start(streams_and_holds)
        reader, watcher = client.get(run.id).stream("words"), client.get(run.id).watch()

        assert await in_time(anext(reader)) == "first"
        waiting = asyncio.create_task(collect(reader))
        watching = asyncio.create_task(collect(watcher))
        stage.gate("gate").open()

        assert await in_time(waiting) == ["second"]
        assert await in_time(watching) == []


@pytest.mark.every_store
async def test_an_item_written_during_the_first_look_is_not_missed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader gets the items that were written while its first look at the store was ending."""
    monkeypatch.setattr(streams, "RUNG_LOOK_SECONDS", 3600)
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(worker=False, wrap=faulty(stores)) as client:
        run = await engine.start(streams_and_holds)
        reader = client.get(run.id).stream("words")
        assert await in_time(anext(reader)) == "first"
        looks = stores[0].follow_plan

        async def look_late(name: str, verb: Callable[[], Awaitable[Any]]) -> Any:
            found = await looks(name, verb)
            if name == "find_run":
                stage.gate("gate").open()
                await run.result()
            return found

        monkeypatch.setattr(stores[0], "follow_plan", look_late)

        assert await in_time(collect(reader)) == ["second"]


@outlive.step(retry=outlive.Retry(attempts=3, first=0, jitter=0))
async def streams_until_it_works() -> None:
    attempt = outlive.current_step().attempt
    await outlive.emit("words", f"try {attempt}")
    if attempt < 3:
        raise ValueError("not yet")


@outlive.workflow
async def lets_a_step_fail_twice() -> None:
    await streams_until_it_works()


async def test_items_of_a_failed_attempt_are_marked(engine: outlive.Engine) -> None:
    """They stay, and a reader can tell them from those of the attempt that counts."""
    run = await engine.start(lets_a_step_fail_twice)

    items = await read(run, positions=True)

    assert [(item.value, item.attempt) for item in items] == [("try 1", 1), ("try 2", 2), ("try 3", 3)]
    assert {item.call for item in items} == {"streams_until_it_works"}


# -- Once ----------------------------------------------------------------------------------------------------


async def test_replay_emits_nothing(place: Place) -> None:
    """A workflow whose worker was lost does not emit its earlier items again, and goes on behind them."""
    doomed = await place.engine().__aenter__()
    run = await doomed.start(streams_and_waits, id="r")
    await run.signal("go", "gone on")
    await until_read(run, "waits", "gone on")
    await waits(run)
    await crash(doomed)

    async with place.engine() as engine:
        await engine.signal("r", "again", "done")
        assert await in_time(engine.get("r").result()) == "done"
        assert await read(engine.get("r")) == ["waits", "gone on"]


async def test_run_that_a_client_started_emits_when_it_is_claimed(place: Place) -> None:
    """At once, although nothing of it is written then; and once, although its worker is lost before anything is."""
    async with place.engine(worker=False) as client:
        await client.start(streams_and_holds, id="r")
    doomed = await place.engine().__aenter__()
    await until_read(doomed.get("r"), "first")
    await stage.gate("gate").reached()
    await crash(doomed)
    stage.clear()

    async with place.engine() as engine:
        await stage.gate("gate").reached()
        stage.gate("gate").open()
        assert await read(engine.get("r")) == ["first", "second"]


async def test_items_of_a_claim_are_not_lost_with_the_append(place: Place) -> None:
    """A worker that dies before it could append them leaves them to the next one."""
    stores: list[FaultyStore] = []
    async with place.engine(worker=False) as client:
        await client.start(streams_and_holds, id="r")
    doomed = await place.engine(wrap=faulty(stores)).__aenter__()
    stores[0].gates["append_streams"] = asyncio.Event()
    await stage.gate("gate").reached()
    await crash(doomed)
    stage.clear()

    async with place.engine() as engine:
        await stage.gate("gate").reached()
        await until_read(engine.get("r"), "first")
        stage.gate("gate").open()
        assert await read(engine.get("r")) == ["first", "second"]


@pytest.mark.parametrize("points", [5, pytest.param(POINTS_MAX, marks=pytest.mark.slow)])
async def test_items_of_a_workflow_survive_every_crash(points: int) -> None:
    """Whatever is written when the process dies: each is there once, in order, and those of the step at least once."""

    async def check(survivor: Survivor) -> None:
        items = await read(survivor.run, positions=True)
        own = [item.value for item in items if not item.call]
        assert own == ["begin", "middle", ("end", 1)]
        steps = [item for item in items if item.call == "streams_words"]
        assert [item.value for item in steps if item.epoch == steps[-1].epoch] == ["a", "b"]
        assert items.index(steps[0]) > 0

    report = await crash_everywhere(streams_from_everywhere, check=check, max_points=points)

    assert any(write.startswith("items of words") for write in report.writes)


@outlive.workflow
async def streams_and_parks() -> str:
    await outlive.emit("words", "a")
    got = await outlive.wait_for_signal("go", str)
    await outlive.emit("words", got)
    await outlive.emit("words", "x" * 3_000)
    return "done"


async def test_parked_run_says_nothing_twice(place: Place) -> None:
    """It stopped in the middle of what one event led to; what it had emitted by then is there, and the rest follows."""
    async with place.engine(limits=Limits(payload_bytes_max=2_000, payload_inline_bytes_max=2_000)) as engine:
        run = await engine.start(streams_and_parks, id="r")
        await run.signal("go", "b")
        assert "items of a stream has 3,004 bytes" in await parks(run)
        with pytest.raises(RunParkedError):
            await read(run)
        assert await read(run, until=2) == ["a", "b"]

    async with place.engine() as engine:
        await engine.resume("r")
        assert await in_time(engine.get("r").result()) == "done"
        assert await read(engine.get("r")) == ["a", "b", "x" * 3_000]


async def test_answer_that_is_lost_writes_nothing_twice(place: Place) -> None:
    """The store is away, then writes without an answer: the append is repeated until it is confirmed."""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        stores[0].before["append_streams"].append(unavailable())
        stores[0].after["append_streams"].append(unknown())
        run = await engine.start(streams_from_everywhere)

        assert await read(run) == ["begin", "a", "b", "middle", 0, 1, 2, ("end", 1)]


@outlive.step
async def streams_when_allowed() -> None:
    await outlive.emit("words", outlive.current_step().epoch)
    await stage.gate(f"epoch {outlive.current_step().epoch}").pass_through()
    await outlive.emit("words", "late" if outlive.current_step().epoch == 1 else "right")


@outlive.workflow
async def lets_a_step_stream() -> None:
    await streams_when_allowed()


async def test_worker_that_lost_the_run_emits_nothing_more(place: Place) -> None:
    """Its step runs on, and what it emits is refused; the step of the new owner says it again with its epoch."""
    async with place.engine(grace_seconds=0) as first:
        run = await first.start(lets_a_step_stream, id="r")
        await stage.gate("epoch 1").reached()
        await until_read(run, 1)
        await go_silent(store_of(first), worker_of(first).id)
        async with place.engine() as second:
            await stage.gate("epoch 2").reached()
            await until_read(second.get("r"), 1, 2)
            stage.gate("epoch 1").open()
            stage.gate("epoch 2").open()

            items = await read(second.get("r"), positions=True)
            assert [(item.value, item.epoch) for item in items] == [(1, 1), (2, 2), ("right", 2)]


@outlive.workflow
async def streams_in_generations(left: int) -> str:
    await outlive.emit("words", left)
    await note("turn")
    if left:
        outlive.continue_as_new(left - 1)
    return "done"


async def test_stream_goes_on_with_the_next_generation(engine: outlive.Engine) -> None:
    """Under the same id and at the next position; a reader notices nothing."""
    run = await engine.start(streams_in_generations, 3)

    assert [(item.position, item.value) for item in await read(run, positions=True)] == [(1, 3), (2, 2), (3, 1), (4, 0)]


# -- How much ------------------------------------------------------------------------------------------------


@outlive.step
async def streams_many(count: int) -> int:
    for number in range(count):
        await outlive.emit("words", number)
        stage.values["emitted"] = number + 1
    return count


@outlive.workflow
async def lets_a_step_stream_many(count: int) -> int:
    return await streams_many(count)


async def test_full_buffer_makes_the_step_wait(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is never further ahead of the store than its buffer, and loses nothing."""
    monkeypatch.setattr(emitter, "ITEMS_MAX", 10)
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        gate = stores[0].gates["append_streams"] = asyncio.Event()
        run = await engine.start(lets_a_step_stream_many, 100)
        await in_time(stores[0].waiting["append_streams"].wait())
        await asyncio.sleep(0)
        assert stage.values["emitted"] <= 20

        gate.set()
        assert await read(run) == list(range(100))


@outlive.step
async def streams_too_much(count: int, size: int) -> str:
    try:
        for _ in range(count):
            await outlive.emit("words", "x" * size)
            await asyncio.sleep(0)
    except PayloadTooLargeError as error:
        return error.what
    return "it went"


@outlive.workflow
async def lets_a_step_stream_too_much(count: int, size: int) -> str:
    return await streams_too_much(count, size)


@outlive.workflow
async def streams_too_many_itself(count: int) -> None:
    for number in range(count):
        await outlive.emit("words", number)


async def test_step_that_emits_too_much_fails(place: Place) -> None:
    """With an error that names the limits; an item that is too large is refused at once."""
    limits = Limits(stream_items_max=10, payload_bytes_max=1_000, payload_inline_bytes_max=500)
    async with place.engine(limits=limits) as engine:
        with pytest.raises(RunFailedError) as failed:
            await in_time((await engine.start(lets_a_step_stream_too_much, 11, 1)).result())
        assert isinstance(failed.value.__cause__, StreamFullError)
        assert "stream_items_max 10" in str(failed.value)
        assert await in_time((await engine.start(lets_a_step_stream_too_much, 10, 1)).result()) == "it went"

        large = await engine.start(lets_a_step_stream_too_much, 1, 1_000)
        assert await in_time(large.result()) == "an item of stream 'words'"


async def test_workflow_that_emits_too_much_is_parked(place: Place) -> None:
    """It cannot depend on what there is room for; with a higher limit it goes on, and says nothing twice."""
    async with place.engine(limits=Limits(stream_items_max=3)) as engine:
        run = await engine.start(streams_too_many_itself, 5, id="r")
        assert "stream_items_max 3" in await parks(run)

    async with place.engine() as engine:
        await engine.resume("r")
        assert await read(engine.get("r")) == [0, 1, 2, 3, 4]


class StreamCodec:
    """A payload codec that is easy to see through."""

    name = "backwards"

    def encode(self, data: bytes, *, context: bytes) -> bytes:
        """Back to front, with its owner."""
        return data[::-1] + context

    def decode(self, data: bytes, *, context: bytes) -> bytes:
        """And back."""
        assert data.endswith(context)
        return data[: -len(context)][::-1]


@outlive.workflow
async def streams_large_and_small() -> None:
    await outlive.emit("words", "x" * 5_000)
    await streams_words("small", "y" * 5_000)


async def test_items_go_through_codecs_and_large_ones_become_blobs(place: Place) -> None:
    """Items of a stream, small and large, are unreadable in the store without their codec."""
    async with place.engine(codecs=[StreamCodec()], limits=Limits(payload_inline_bytes_max=1_000)) as engine:
        run = await engine.start(streams_large_and_small)

        assert await read(run) == ["x" * 5_000, "small", "y" * 5_000]
        chunks = await store_of(engine).read_stream(run.id, "words")
        assert not any(b"small" in chunk.body for chunk in chunks)
    async with place.engine(worker=False) as plain:
        with pytest.raises(UnreadableError, match="backwards"):
            await read(plain.get(run.id))


# -- Values --------------------------------------------------------------------------------------------------


@outlive.step
async def streams_models() -> None:
    await outlive.emit("words", StreamedWord("hello"))
    await outlive.emit("words", {"mood": StreamedMood.CALM, "words": [StreamedWord("a")], "token": "s3cret"})


@outlive.workflow
async def lets_a_step_stream_models() -> None:
    await streams_models()
    outlive.publish(word=StreamedWord("done"), mood=StreamedMood.CALM, gone=1)
    await note("between")
    outlive.publish(gone=outlive.types.REMOVED, never=outlive.types.REMOVED)


async def test_models_and_enums_are_read_as_plain_values_or_as_their_type(place: Place) -> None:
    """Without a type a model is an object and an enum its value; redacted fields are hidden from people."""
    async with place.engine(redact=["token"]) as engine:
        run = await engine.start(lets_a_step_stream_models)

        plain = {"text": "hello", "mood": "calm"}
        mixed = {"mood": "calm", "words": [{"text": "a", "mood": "calm"}], "token": "s3cret"}
        assert await read(run) == [plain, mixed]
        assert await in_time(anext(run.stream("words", StreamedWord))) == StreamedWord("hello")
        with pytest.raises(UnreadableError, match="StreamedWord"):
            await read(run, kind=StreamedWord)
        assert (await read(run, redacted=True))[1]["token"] == "[redacted]"
        assert await run.published() == {"word": {"text": "done", "mood": "calm"}, "mood": "calm"}


@outlive.step
async def publishes_and_removes() -> None:
    outlive.publish(stage="packing", left=StreamedMood.CALM)
    outlive.publish(stage=outlive.types.REMOVED)


@outlive.workflow
async def publishes_in_stages() -> None:
    outlive.publish(stage="a")
    await hold("gate")
    outlive.publish(stage="b")
    await publishes_and_removes()


async def test_watch_yields_each_change_of_what_is_published(engine: outlive.Engine) -> None:
    """A watcher gets the published values of now, then each change, and ends with the run."""
    run = await engine.start(publishes_in_stages)
    watcher = run.watch()

    assert await in_time(anext(watcher)) == {"stage": "a"}
    stage.gate("gate").open()
    rest = await in_time(collect(watcher))

    assert rest[-1] == {"left": "calm"}
    assert await run.published() == {"left": "calm"}


# -- Bad input, and ends -------------------------------------------------------------------------------------


@outlive.workflow
async def streams_something_odd() -> str:
    try:
        await outlive.emit("words", object())
    except UnserialisableError as error:
        return error.what
    return "it went"


async def test_an_item_that_cannot_be_stored_is_refused(engine: outlive.Engine) -> None:
    """An item without a stored form is refused where it is emitted, and the run and its stream go on."""
    run = await engine.start(streams_something_odd)

    assert await in_time(run.result()) == "an item of stream 'words'"
    assert await read(run) == []
    with pytest.raises(NotInRunError, match="emit"):
        outlive.emit("words", 1)
    with pytest.raises(ArgumentTypeError):
        outlive.emit(7, 1)  # type: ignore[arg-type]


async def test_reader_says_what_is_wrong(engine: outlive.Engine) -> None:
    """An unknown run, a position that is none, and a parked run are errors, not silence."""
    run = await engine.start(streams_and_waits)

    for wrong in (engine.get("unknown").stream("words"), engine.get("unknown").watch()):
        with pytest.raises(RunNotFoundError):
            await anext(wrong)
    with pytest.raises(ArgumentTypeError, match="after"):
        await anext(run.stream("words", after="1"))  # type: ignore[call-overload]


async def test_reader_of_an_engine_that_stops_gets_an_error(place: Place) -> None:
    """It does not wait for ever."""
    async with place.engine() as engine:
        run = await engine.start(streams_and_waits)
        waiting = [asyncio.create_task(collect(it)) for it in (run.stream("words", after=1), run.watch())]
        await waits(run)
        await asyncio.sleep(0)

    for task in waiting:
        with pytest.raises(EngineClosedError):
            await in_time(task)


async def test_reader_waits_for_a_store_that_is_away(place: Place) -> None:
    """A reader of a stream waits while the store is away, and then gets every item."""
    stores: list[FaultyStore] = []
    async with place.engine() as engine, place.engine(wrap=faulty(stores), worker=False) as client:
        run = await engine.start(streams_from_everywhere)
        await in_time(run.result())
        stores[0].before["read_stream"].append(unavailable())

        assert len(await read(client.get(run.id))) == 8


# -- Other doors ---------------------------------------------------------------------------------------------


@outlive.workflow
async def streams_for_days(days: int) -> None:
    for day in range(days):
        await outlive.emit("days", day)
        await asyncio.sleep(86_400)


async def test_reader_in_a_test_skips_time() -> None:
    """Days pass while it waits for the next item."""
    async with TestEngine() as engine:
        run = await engine.start(streams_for_days, 5)

        assert await read(run, "days") == [0, 1, 2, 3, 4]


def test_sync_engine_reads_streams_as_plain_iterators() -> None:
    """The sync engine reads streams and published values as plain iterators."""
    with outlive.Engine("memory:").sync as engine:
        run = engine.start(streams_from_everywhere)

        assert list(run.stream("words", after=5)) == [1, 2, ("end", 1)]
        assert [item.position for item in run.stream("words", after=6, positions=True)] == [7, 8]
        assert list(run.watch()) == []


# -- Reading -------------------------------------------------------------------------------------------------


async def collect(items: AsyncIterator[Any]) -> list[Any]:
    """Everything that comes."""
    return [item async for item in items]


async def read(run: RunHandle[Any], name: str = "words", *, until: int = 0, **options: Any) -> list[Any]:
    """A stream to its end, or so many items of it."""
    found: list[Any] = []
    async with asyncio.timeout(20):
        async for item in run.stream(name, **options):
            found.append(item)
            if len(found) == until:
                break
    return found


async def until_read(run: RunHandle[Any], *items: Any) -> None:
    """Return when a stream has these items."""

    async def has_them() -> bool:
        return await read(run, until=len(items)) == list(items)

    await until(has_them)
