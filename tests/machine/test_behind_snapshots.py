"""Who has lived through a snapshot and who begins with it are in the same place: what one does, the other repeats."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field

import pytest

import outlive
from outlive._kernel.journal.codec import Row, seal
from outlive._kernel.journal.event import Event
from outlive._kernel.runtime.tree import live as live_trees
from outlive.errors import RunFailedError, RunNotFoundError
from outlive.events import RunCreated, SnapshotTaken
from outlive.testing import TestEngine
from tests.engine.inside import crash, journal_of
from tests.engine.support import Place, in_time, parks, stage, until, waits

pytestmark = pytest.mark.any_store


class S(enum.Enum):
    """A snapshot stands between any two of these."""

    FIRST = "first"
    LAST = "last"
    DONE = "done"


@dataclass
class Data:
    """What it has seen."""

    log: list[str] = field(default_factory=list)


@outlive.step(name="behind.note")
async def note(text: str) -> str:
    """A fact that a replay must ask for in the same words."""
    stage.call(text)
    return text


# -- The order of tasks ------------------------------------------------------------------------------------------------

fans = outlive.Machine("behind.fans", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=3)


@fans.workflow(S.FIRST)
async def open_fan(data: Data) -> S:
    """Tasks that are over before the snapshot."""
    await asyncio.gather(note("a"), note("b"), note("c"))
    return S.LAST


@fans.workflow(S.LAST)
async def walk_through_fan(data: Data) -> S:
    """Tasks behind it, in the order of a set."""
    tasks = [asyncio.create_task(note(text)) for text in "wxyz"]
    done, _ = await asyncio.wait(tasks)
    for task in done:
        data.log.append(await note(f"after {task.result()}"))
    await outlive.wait_for_signal("go", bool)
    return S.DONE


async def crash_behind_snapshot(place: Place, machine: outlive.Machine[S, Data], *, id: str) -> None:
    """One life of a machine that waits for a signal when its journal begins with a snapshot."""
    engine = await place.engine().__aenter__()
    run = await engine.start(machine, Data(), id=id)
    await waits(run)
    assert isinstance((await journal_of(run))[0], SnapshotTaken)
    await crash(engine)


async def test_sets_of_tasks_have_the_same_order_behind_a_snapshot(place: Place) -> None:
    """However many tasks there were before it."""
    await crash_behind_snapshot(place, fans, id="fans")

    async with place.engine() as second:
        found = second.get("fans")
        await found.signal("go", True)
        result = await in_time(found.result())

        assert result.data.log == [f"after {text}" for text in "wxyz"]


# -- The clock ---------------------------------------------------------------------------------------------------------

clocks = outlive.Machine("behind.clocks", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=3)


@clocks.workflow(S.FIRST)
async def wait(data: Data) -> S:
    """On a machine whose clock is ahead."""
    await note("ahead")
    await outlive.wait_for_signal("go", bool)
    return S.LAST


@clocks.workflow(S.LAST)
async def look_at_clock(data: Data) -> S:
    """On others."""
    data.log.append(await note(str(outlive.now())))
    await outlive.wait_for_signal("go", bool)
    return S.DONE


async def test_the_clock_of_a_run_does_not_go_back_at_a_snapshot(place: Place) -> None:
    """The clock of the worker that takes it may be behind that of the one before."""
    place.clock.skip(seconds=3_600)
    engine = await place.engine().__aenter__()
    run = await engine.start(clocks, Data(), id="clocks")
    await waits(run)
    await crash(engine)
    place.clock.skip(seconds=-3_600)
    engine = await place.engine().__aenter__()
    run = engine.get("clocks")
    await run.signal("go", True)

    async def has_looked() -> bool:
        return len(stage.calls) == 2

    await until(has_looked)
    await waits(run)
    assert isinstance((await journal_of(run))[0], SnapshotTaken)
    await crash(engine)

    async with place.engine() as last:
        found = last.get("clocks")
        await found.signal("go", True)
        result = await in_time(found.result())

        assert len(result.data.log) == 1


# -- Detached runs -----------------------------------------------------------------------------------------------------


class Ask(enum.Enum):
    """Something, and the same again."""

    FIRST = "first"
    TURN = "turn"
    LAST = "last"
    DONE = "done"


asks = outlive.Machine("behind.asks", Ask, data=Data, start=Ask.FIRST, exits=[Ask.DONE], snapshot_after=3)


@outlive.workflow(name="behind.job")
async def job() -> str:
    """A tree of its own."""
    return await note("job")


@asks.workflow(Ask.FIRST)
async def start_job(data: Data) -> Ask:
    """And hear of its end."""
    child = await outlive.start(job, detached=True, id="job")
    data.log.append(await child.result())
    return Ask.TURN


@asks.state(Ask.TURN)
async def turn(data: Data) -> Ask:
    """Until a snapshot has been taken."""
    data.log.append("turn")
    return Ask.TURN if len(data.log) < 6 else Ask.LAST


@asks.workflow(Ask.LAST)
async def ask_again(data: Data) -> Ask:
    """The run is there, and has ended long ago."""
    child = await outlive.start(job, detached=True, id="job")
    data.log.append(await child.result())
    return Ask.DONE


async def test_a_detached_run_that_sent_its_end_before_a_snapshot_sends_it_again(place: Place) -> None:
    """A caller that asks again gets the same answer again."""
    async with place.engine() as engine:
        run = await engine.start(asks, Data(), id="asks")
        result = await in_time(run.result())

        assert isinstance((await journal_of(run))[0], SnapshotTaken)
        assert result.data.log == ["job", *["turn"] * 5, "job"]
        assert stage.calls == ["job"]


# -- Who waits for a child ---------------------------------------------------------------------------------------------

parents = outlive.Machine("behind.parents", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=3)


@outlive.workflow(name="behind.child")
async def child_of_machine() -> str:
    """Ends in the very change that forgets it."""
    return await outlive.wait_for_signal("end", str)


@parents.workflow(S.FIRST)
async def have_child(data: Data) -> S:
    """And go on as soon as it has ended."""
    data.log.append(await child_of_machine())
    return S.LAST


@parents.workflow(S.LAST)
async def be_alone(data: Data) -> S:
    """Behind the snapshot."""
    await outlive.wait_for_signal("go", bool)
    return S.DONE


async def test_a_client_that_waits_for_a_child_gets_its_end_when_a_snapshot_puts_it_away(place: Place) -> None:
    """In the process that moves it; it is counted too."""
    async with place.engine() as engine:
        run = await engine.start(parents, Data(), id="parents")
        await waits(run)
        waiting = asyncio.create_task(engine.get("parents~1").result())
        await asyncio.sleep(0)
        await engine.signal("parents~1", "end", "well")

        assert await in_time(waiting) == "well"
        assert isinstance((await journal_of(run))[0], SnapshotTaken)
        assert engine.counters.runs_ended == 1
        await run.cancel()


async def test_waiting_for_a_run_that_has_gone_raises(place: Place) -> None:
    """Another process has put it away between two looks at the store."""
    async with place.engine() as engine, place.engine(worker=False) as onlooker:
        run = await engine.start(parents, Data(), id="parents")
        await waits(run)
        waiting = asyncio.create_task(onlooker.get("parents~1").result())
        await asyncio.sleep(0)
        await engine.signal("parents~1", "end", "well")

        with pytest.raises(RunNotFoundError, match="parents~1"):
            await in_time(waiting)
        await run.cancel()


# -- Undos -------------------------------------------------------------------------------------------------------------


@outlive.step(name="behind.unbook")
async def unbook(text: str) -> None:
    """Goes well the third time."""
    stage.call("unbook")
    if stage.calls.count("unbook") < stage.values.get("bad unbooks", 2) + 1:
        raise ConnectionError("not yet")


@outlive.step(name="behind.book", undo=unbook.options(retry=outlive.Retry(attempts=3, first=0.001)))
async def book(text: str) -> str:
    """Undone with more patience than an undo has by itself."""
    return text


books = outlive.Machine("behind.books", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=2)


@books.workflow(S.FIRST)
async def book_twice(data: Data) -> S:
    """Once by itself and once in a task."""
    await asyncio.gather(book("a"))
    await book("b")
    return S.LAST


@books.workflow(S.LAST)
async def regret(data: Data) -> S:
    """Behind the snapshot."""
    await outlive.wait_for_signal("go", bool)
    raise ValueError("regretted")


async def test_an_undo_behind_a_snapshot_has_the_options_of_its_step(place: Place) -> None:
    """An undo behind a snapshot is attempted as often as its step declared."""
    await crash_behind_snapshot(place, books, id="books")

    async with place.engine() as second:
        found = second.get("books")
        await found.signal("go", True)
        with pytest.raises(RunFailedError, match="regretted"):
            await in_time(found.result())

    assert stage.calls == ["unbook"] * 4


own = outlive.Machine("behind.own", S, data=Data, start=S.FIRST, exits=[S.DONE], snapshot_after=2)


@own.workflow(S.FIRST)
async def book_with_patience(data: Data) -> S:
    """The undo of this one call is tried more often, and at once."""
    await book("a")
    await book.options(undo=unbook.options(retry=outlive.Retry(attempts=5, first=0.001), timeout=7))("b")
    return S.LAST


own.workflow(S.LAST)(regret)


async def test_an_undo_behind_a_snapshot_has_the_options_of_its_call(place: Place) -> None:
    """An undo behind a snapshot has the options of its own call, and the undo of another call does not have them."""
    stage.values["bad unbooks"] = 4
    first = await place.engine().__aenter__()
    run = await first.start(own, Data(), id="own")
    await waits(run)
    taken = (await journal_of(run))[0]
    assert isinstance(taken, SnapshotTaken)
    assert bytes(taken.payload.v).count(b'"effort":[5,') == 1  # type: ignore[arg-type]
    await crash(first)

    async with place.engine() as second:
        found = second.get("own")
        await found.signal("go", True)
        with pytest.raises(RunFailedError, match="regretted"):
            await in_time(found.result())

    assert stage.calls == ["unbook"] * 6


class Round(enum.Enum):
    """Something to undo, again and again."""

    BOOK = "book"
    DONE = "done"


rounds = outlive.Machine("behind.rounds", Round, data=Data, start=Round.BOOK, exits=[Round.DONE], snapshot_after=4)


@rounds.workflow(Round.BOOK)
async def book_again(data: Data) -> Round:
    """Two events each time."""
    data.log.append(await book("again"))
    return Round.BOOK if len(data.log) < 100 else Round.DONE


async def test_a_snapshot_that_is_not_possible_is_not_tried_at_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot that is not possible is tried only now and then, because each try is dearer the more undos are
    owed."""
    tries: list[str] = []
    monkeypatch.setattr(rounds.plan, "find_undo", lambda name, call: tries.append(call))
    async with TestEngine() as engine:
        run = await engine.start(rounds, Data())
        await run.result()

        assert not isinstance((await journal_of(run))[0], SnapshotTaken)
        assert 2 <= len(tries) <= 10


# -- Trouble -----------------------------------------------------------------------------------------------------------


async def test_nothing_is_forgotten_for_a_snapshot_that_cannot_be_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong: the run is parked with its whole journal, and goes on from there."""

    def break_down(event: Event, *, salt: int, seq: int) -> Row:
        if isinstance(event, SnapshotTaken):
            raise MemoryError("no room for it")
        return seal(event, salt=salt, seq=seq)

    monkeypatch.setattr(live_trees, "seal", break_down)
    async with place.engine() as engine:
        run = await engine.start(rounds, Data(), id="rounds")
        assert "no room for it" in await parks(run)
        assert isinstance((await journal_of(run))[0], RunCreated)
        monkeypatch.undo()
        await run.resume()
        result = await in_time(run.result())

        assert len(result.data.log) == 100
