"""Machines that go on for ever: a snapshot takes the place of what their journals had, and no handler can tell."""

from __future__ import annotations

import asyncio
import enum
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import outlive
from outlive.errors import RunCancelledError, RunFailedError, RunTimedOutError
from outlive.errors.run import AskRefusedError
from outlive.events import RunCreated, SnapshotTaken, StepSucceeded
from outlive.machine import All, More, Pending
from outlive.testing import RecordingObserver, TestEngine, replay
from outlive.testing.fsck import check_store
from outlive.types import RunHandle
from tests.engine.inside import crash, journal_of, row_of, store_of
from tests.engine.support import Place, events_of, in_time, parks, stage, until, waits


class S(enum.Enum):
    """A circle, and a way out."""

    TURN = "turn"
    ASK = "ask"
    DONE = "done"


@dataclass
class Data:
    """How far it came."""

    turns: int = 0
    until: int = 0
    asks: int = 0
    log: list[Any] = field(default_factory=list)


def keep(what: str) -> None:
    """Count an effect by its idempotency key."""
    keys: Counter[str] = stage.values.setdefault("keys", Counter())
    keys[outlive.current_step().idempotency_key] += 1
    stage.call(what)


# -- Going round -------------------------------------------------------------------------------------------------------

wheel = outlive.Machine("snapshots.wheel", S, data=Data, start=S.TURN, exits=[S.DONE], snapshot_after=20)


@wheel.state(S.TURN)
async def turn(data: Data) -> S:
    """One of many."""
    keep(f"turn {data.turns}")
    data.turns += 1
    if data.turns == data.asks:
        return S.ASK
    return S.DONE if data.turns == data.until else S.TURN


@outlive.step(name="snapshots.note")
async def note(text: str) -> str:
    """A step in workflow code."""
    keep(text)
    return text


@outlive.workflow(name="snapshots.child")
async def child(text: str) -> str:
    """A run of its own in the tree."""
    return await note(f"child {text}")


@wheel.workflow(S.ASK)
async def ask(data: Data) -> S:
    """Everything that a run remembers besides its data."""
    data.log.append(await child(str(data.turns)))
    outlive.publish(turns=data.turns)
    if outlive.patched("louder"):
        data.log.append("loud")
    data.log.append(await outlive.wait_for_signal("answer", str))
    data.log.append(outlive.random())
    data.asks += 30
    return S.TURN


async def test_the_journal_of_an_endless_machine_stays_short(place: Place) -> None:
    """However far it goes; each effect happens once, and no key comes twice."""
    async with place.engine() as engine:
        run = await engine.start(wheel, Data(until=300))
        result = await in_time(run.result())

        events = await journal_of(run)
        assert result.data.turns == 300
        assert isinstance(events[0], SnapshotTaken)
        assert len(events) <= 23
        assert stage.calls == [f"turn {number}" for number in range(300)]
        assert set(stage.values["keys"].values()) == {1}
        assert len(stage.values["keys"]) == 300
        assert await check_store(store_of(engine)) == []


async def test_a_machine_goes_on_from_its_snapshot_in_another_process(place: Place) -> None:
    """Nothing that was done before runs again; signals, children's numbers, marks and what it shows are all there."""
    first = await place.engine().__aenter__()
    run = await first.start(wheel, Data(until=95, asks=30), id="wheel")
    await in_time(first.signal("wheel", "answer", "one"))
    await in_time(first.signal("wheel", "answer", "two"))

    async def asks_again() -> bool:
        return await run.published() == {"turns": 90}

    await until(asks_again)
    await waits(run)
    await crash(first)
    before = list(stage.calls)

    async with place.engine() as second:
        found = second.get("wheel")
        events = await journal_of(found)
        assert isinstance(events[0], SnapshotTaken)
        assert not any(isinstance(event, RunCreated) and event.run in (0, 1) for event in events)
        await in_time(second.signal("wheel", "answer", "three"))
        result = await in_time(found.result())

        assert stage.calls[: len(before)] == before
        assert set(stage.values["keys"].values()) == {1}
        assert [each for each in result.data.log if isinstance(each, str)] == [
            *("child 30", "loud", "one"),
            *("child 60", "loud", "two"),
            *("child 90", "loud", "three"),
        ]
        assert len({each for each in result.data.log if isinstance(each, float)}) == 3
        assert await found.published() == {"turns": 90}
        assert {each.id for each in await second.list()} - {"wheel~3"} == {"wheel"}
        assert await check_store(store_of(second)) == []


async def test_a_snapshot_keeps_signals_that_were_not_taken() -> None:
    """In their order, also signals that no state asks for."""
    async with TestEngine() as engine:
        run = await engine.start(wheel, Data(until=61, asks=50), id="wheel")
        for text in ("first", "second"):
            await run.signal("answer", text)
        await run.signal("other", 1)
        result = await run.result()

        (snapshot,) = await events_of(run, SnapshotTaken)
        assert result.data.log[2] == "first"
        assert [(each.name, bytes(each.payload.v)) for each in snapshot.signals] == [  # type: ignore[arg-type]
            ("answer", b'"second"'),
            ("other", b"1"),
        ]


async def test_a_snapshot_keeps_asks_that_have_no_answer() -> None:
    """No state serves them, and their senders hear of the end of the run."""
    async with TestEngine() as engine:
        run = await engine.start(wheel, Data(until=61), id="wheel")
        with pytest.raises(AskRefusedError):
            await run.ask("turn", 7, key="k")

        snapshots = await events_of(run, SnapshotTaken)
        assert [(each.name, each.key) for each in snapshots[-1].asks] == [("turn", "k")]


# -- In the middle of a state ------------------------------------------------------------------------------------------


class Long(enum.Enum):
    """States that are many steps."""

    WALK = "walk"
    POLL = "poll"
    READ = "read"
    PACK = "pack"
    REST = "rest"
    COUNT = "count"
    DONE = "done"


long = outlive.Machine("snapshots.long", Long, data=Data, start=Long.WALK, exits=[Long.DONE], snapshot_after=5)


@long.stepped(Long.WALK)
async def walk(data: Data, cursor: int | None) -> More[int] | Long:
    """With a cursor."""
    keep(f"walk {cursor}")
    here = (cursor or 0) + 1
    return More(here) if here < 12 else Long.POLL


@long.poll(Long.POLL)
async def poll(data: Data) -> Pending | Long:
    """With pauses."""
    keep(f"poll {data.turns}")
    data.turns += 1
    return Pending(timedelta(hours=1)) if data.turns < 12 else Long.READ


async def lines(data: Data, cursor: int | None) -> AsyncGenerator[tuple[int, str], None]:
    """Behind the cursor."""
    for number in range(0 if cursor is None else cursor + 1, 24):
        yield number, f"line {number}"


async def parse(line: str) -> str:
    """As it is."""
    return line


async def write(data: Data, window: list[str]) -> None:
    """Two lines."""
    keep(f"write {window}")


async def wrap(data: Data) -> str:
    """A branch."""
    keep("wrap")
    return "wrapped"


def merge(data: Data, results: dict[str, Any]) -> None:
    """What the branches gave."""
    data.log.append(results["wrap"])


async def load(data: Data) -> list[int]:
    """A batch."""
    return [1, 2, 3, 4]


async def process(item: int) -> int:
    """An item."""
    keep(f"item {item}")
    return item * 2


async def finish(data: Data, results: list[int]) -> Long:
    """Round and round."""
    data.log.append(results)
    data.asks += 1
    return Long.PACK if data.asks < 3 else Long.DONE


long.stream(Long.READ, source=lines, process=parse, flush=write, then=Long.PACK, items=2)
long.split(Long.PACK, [wrap], join=All(then=Long.REST), merge=merge)
long.timer(Long.REST, timedelta(hours=8), then=Long.COUNT)
long.batch(Long.COUNT, load=load, process=process, finish=finish)


async def test_states_that_never_end_are_put_into_snapshots_too() -> None:
    """Cursors, polls, streams, splits, timers, batches: each goes on where it was."""
    async with TestEngine() as engine:
        run = await engine.start(long, Data())
        result = await run.result()

        assert result.data.log == ["wrapped", [2, 4, 6, 8]] * 3
        assert [call for call in stage.calls if call.startswith("walk")] == [
            "walk None",
            *(f"walk {n}" for n in range(1, 12)),
        ]
        assert [call for call in stage.calls if call.startswith("poll")] == [f"poll {n}" for n in range(12)]
        assert sum(call.startswith("write") for call in stage.calls) == 12
        assert set(stage.values["keys"].values()) == {1}
        assert len(await journal_of(run)) <= 12
        assert isinstance((await journal_of(run))[0], SnapshotTaken)


async def test_every_kind_of_state_goes_on_from_a_snapshot(place: Place) -> None:
    """A process that dies whenever the machine waits, and eight hours until the next one comes."""
    engine = await place.engine().__aenter__()
    await engine.start(long, Data(), id="long")
    waited = 0
    while await rests(engine.get("long"), epoch=waited + 1):
        await crash(engine)
        waited += 1
        place.clock.skip(seconds=8 * 3_600)
        engine = await place.engine().__aenter__()
    result = await in_time(engine.get("long").result())

    assert waited == 14
    assert result.data.log == ["wrapped", [2, 4, 6, 8]] * 3
    assert set(stage.values["keys"].values()) == {1}
    await engine.__aexit__(None, None, None)


async def rests(run: RunHandle[Any], *, epoch: int) -> bool:
    """Return when a run that was claimed so often waits, or has ended; whether it waits."""

    async def is_still() -> bool:
        info = await row_of(run)
        return info.epoch == epoch and not info.owner

    await until(is_still)
    return await run.status() == "waiting"


# -- What is owed ------------------------------------------------------------------------------------------------------


class Debt(enum.Enum):
    """Something to undo at every turn."""

    TAKE = "take"
    BOOK = "book"
    DECIDE = "decide"
    DONE = "done"


def give_back(data: Data) -> None:
    """As the state left it."""
    stage.call(f"undo take {data.turns}")


@outlive.step(name="snapshots.unbook")
async def unbook(number: int) -> None:
    """By a step."""
    stage.call(f"undo book {number}")


@outlive.step(name="snapshots.book", undo=unbook)
async def book(number: int) -> int:
    """Booked by workflow code."""
    return number


debt = outlive.Machine("snapshots.debt", Debt, data=Data, start=Debt.TAKE, exits=[Debt.DONE], snapshot_after=4)


@debt.state(Debt.TAKE, undo=give_back)
async def take(data: Data) -> Debt:
    """Undone by a function."""
    data.turns += 1
    return Debt.BOOK


@debt.workflow(Debt.BOOK)
async def book_it(data: Data) -> Debt:
    """Undone by a step."""
    await book(data.turns)
    return Debt.TAKE if data.turns < data.until else Debt.DECIDE


@debt.workflow(Debt.DECIDE)
async def decide(data: Data) -> Debt:
    """A person decides, by a signal."""
    if not await outlive.wait_for_signal("well", bool):
        raise ValueError("not well")
    return Debt.DONE


UNDONE = [f"undo {what} {number}" for number in (6, 5, 4, 3, 2, 1) for what in ("book", "take")]


@pytest.mark.parametrize("how", ["fails", "is cancelled", "is late"])
async def test_a_state_before_a_snapshot_is_undone_after_it(place: Place, how: str) -> None:
    """A machine that fails, is cancelled or times out after a snapshot undoes the states before it, in another
    process."""
    first = await place.engine().__aenter__()
    run = await first.start(debt, Data(until=6), id="debt", timeout=3_600)
    await waits(run)
    assert isinstance((await journal_of(run))[0], SnapshotTaken)
    await crash(first)

    async with place.engine() as second:
        found = second.get("debt")
        if how == "fails":
            await found.signal("well", False)
        elif how == "is cancelled":
            await found.cancel()
        else:
            place.clock.skip(seconds=3_601)
            await second.signal("debt", "nothing", 0)
        with pytest.raises((RunFailedError, RunCancelledError, RunTimedOutError)):
            await in_time(found.result())

    assert [call for call in stage.calls if call.startswith("undo")] == UNDONE


async def test_a_machine_that_ends_well_after_a_snapshot_undoes_nothing() -> None:
    """A machine that comes to an exit after a snapshot undoes nothing."""
    async with TestEngine() as engine:
        run = await engine.start(debt, Data(until=6))
        await run.signal("well", True)
        await run.result()

    assert stage.calls == []


async def test_an_undo_that_the_code_no_longer_has_parks_the_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name; code that has it goes on, and undoes everything."""
    first = await place.engine().__aenter__()
    run = await first.start(debt, Data(until=6), id="debt")
    await waits(run)
    await crash(first)
    kind = debt.plan.kinds["TAKE"]
    undo = kind.undo

    async with place.engine() as second:
        found = second.get("debt")
        monkeypatch.setattr(kind, "undo", None)
        await found.signal("well", False)
        assert "would undo" in await parks(found)
        monkeypatch.setattr(kind, "undo", undo)
        await found.resume()
        with pytest.raises(RunFailedError, match="not well"):
            await in_time(found.result())

    assert [call for call in stage.calls if call.startswith("undo")] == UNDONE


# -- Observers ---------------------------------------------------------------------------------------------------------

heard = outlive.Machine("snapshots.heard", S, data=Data, start=S.TURN, exits=[S.DONE], snapshot_after=5)
recorder = RecordingObserver()
heard.observe(recorder)


@heard.state(S.TURN)
async def turn_and_be_heard(data: Data) -> S:
    """Gives observers something to hear."""
    data.turns += 1
    return S.ASK if data.turns % 8 == 0 else S.TURN


@heard.workflow(S.ASK)
async def ask_and_be_heard(data: Data) -> S:
    """A place to crash."""
    await outlive.wait_for_signal("answer", str)
    return S.DONE if data.turns == 16 else S.TURN


async def test_observers_hear_of_each_state_once_over_snapshots(place: Place) -> None:
    """Observers hear of each state once over snapshots, even if another process goes on from one."""
    recorder.clear()
    first = await place.engine().__aenter__()
    await waits(await first.start(heard, Data(), id="heard"))

    async def has_asked() -> bool:
        return "ASK" in recorder.states("heard")

    await until(has_asked)  # Observers hear of a change a moment after it is durable.
    await crash(first)
    async with place.engine() as second:
        run = second.get("heard")
        assert isinstance((await journal_of(run))[0], SnapshotTaken)
        await run.signal("answer", "go")
        await run.signal("answer", "go")
        await in_time(run.result())

    assert recorder.states("heard") == [*["TURN"] * 8, "ASK", *["TURN"] * 8, "ASK", "DONE"]
    assert [fact.state for fact in recorder.facts("attempt_succeeded", "heard")] == ["TURN"] * 16


# -- Looking at it -----------------------------------------------------------------------------------------------------


async def test_a_journal_with_a_snapshot_is_exported_and_replayed(tmp_path: Any) -> None:
    """A journal with a snapshot is exported and replayed, and its history hides the redacted fields of the snapshot."""
    async with TestEngine(redact=["until"]) as engine:
        run = await engine.start(wheel, Data(until=50, asks=45))
        await run.signal("until", "secret")
        await waits(run)
        path = tmp_path / "wheel.jsonl"
        path.write_text(await engine.export(run.id))
        shown = await engine.history(run.id)

    assert replay(path) == [path]
    first = shown[0]
    assert first.type == "SnapshotTaken"
    assert "secret" not in str(first.data)
    assert "[redacted]" in str(first.data["created"]["input"])


async def test_a_run_with_a_snapshot_can_be_replaced(place: Place) -> None:
    """Its tree takes another name, and a new one begins."""
    async with place.engine() as engine:
        run = await engine.start(wheel, Data(until=100, asks=50), id="wheel")
        await waits(run)
        again = await engine.start(wheel, Data(until=2), id="wheel", on_conflict="replace")

        assert (await in_time(again.result())).data.turns == 2
        assert {each.id for each in await engine.list(roots_only=True)} == {"wheel", "wheel~old1"}


async def test_settings_may_change_while_a_run_is_open(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that is longer than the new limit replays, and is put into a snapshot at the next turn."""
    monkeypatch.setattr(wheel.plan, "snapshot_after", None)
    first = await place.engine().__aenter__()
    run = await first.start(wheel, Data(until=75, asks=50), id="wheel")
    await waits(run)
    assert len(await events_of(run, StepSucceeded)) == 51
    await crash(first)
    monkeypatch.setattr(wheel.plan, "snapshot_after", 10)

    async with place.engine() as second:
        found = second.get("wheel")
        await found.signal("answer", "go")
        result = await in_time(found.result())

        assert result.data.turns == 75
        assert len(await journal_of(found)) <= 14
        assert set(stage.values["keys"].values()) == {1}


def test_a_limit_that_makes_no_sense_is_refused() -> None:
    """Before anything runs."""
    with pytest.raises(outlive.errors.DefinitionError, match=r"snapshot_after=0 .*or None to keep all events"):
        outlive.Machine("snapshots.none", S, data=Data, start=S.TURN, exits=[S.DONE], snapshot_after=0)


async def test_a_machine_with_something_under_way_takes_no_snapshot() -> None:
    """A child is not alone in its tree: its journal is that of its parent."""
    async with TestEngine() as engine:
        run = await engine.start(parent)
        await run.result()

        assert await events_of(run, SnapshotTaken) == []
        assert len(await events_of(run, StepSucceeded)) == 100


@outlive.workflow(name="snapshots.parent")
async def parent() -> int:
    """A machine as a child."""
    results = await asyncio.gather(wheel(Data(until=50)), wheel(Data(until=50)))
    return sum(result.data.turns for result in results)
