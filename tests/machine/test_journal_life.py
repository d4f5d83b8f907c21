"""What may happen to the journal of a machine: it is old, it is damaged, its store goes away, its code moves on."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._kernel.journal.codec import Row, open_journal
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.history import read_history
from outlive._kernel.store.contract import Store
from outlive.events import StepSucceeded
from tests.engine.faults import FaultyStore, faulty, unavailable, unknown
from tests.engine.inside import crash
from tests.engine.support import Place, events_of, in_time, parks, registry_of, stage, until_calls, waits
from tests.golden.machine_stories import Label, Parcel, parcel
from tests.machine.journals import put_run

GOLDEN = Path(__file__).parents[1] / "golden"


class S(enum.Enum):
    """A booking, something that needs the world, an end."""

    BOOK = "book"
    WORK = "work"
    DONE = "done"


@dataclass
class Data:
    """What they carry."""

    seen: list[str] = field(default_factory=list)


def release(data: Data) -> None:
    """The undo of BOOK."""
    stage.call("undo BOOK")


async def book(data: Data) -> S:
    """The first."""
    stage.call("BOOK")
    return S.WORK


def machine(name: str, **options: Any) -> outlive.Machine[S, Data]:
    """A machine that lacks WORK."""
    made = outlive.Machine(f"journal.{name}", S, data=Data, start=S.BOOK, exits=[S.DONE], **options)
    made.state(S.BOOK, undo=release)(book)
    return made


# -- Old journals ------------------------------------------------------------------------------------------------------


def golden_parcel() -> list[AnyEvent]:
    """The history of a machine of the first release, up to the wait for the world."""
    path = GOLDEN / "parcel.jsonl"
    history = read_history(path.read_text("utf-8"), source=str(path))
    return open_journal(history.rows, nonce=history.head.nonce, run_id=history.head.root_id)[:3]


async def test_a_machine_of_an_old_release_goes_on(place: Place) -> None:
    """Its journal is golden: written once, never changed, read by every release. [CA-X6]"""
    await put_run(place, parcel, Label("ann"), golden_parcel())
    async with place.engine() as engine:
        run = engine.get("run-1")
        await run.signal("stamps", 2)

        assert await in_time(run.result()) == outlive.machine.MachineResult(Parcel.DELIVERED, Label("ann", 3))
        assert 1 == len(await events_of(run, StepSucceeded)), "what was packed is not packed again"


# -- Damage ------------------------------------------------------------------------------------------------------------

waiting = machine("waiting")


@waiting.workflow(S.WORK)
async def waiting_work(data: Data) -> S:
    """For the world."""
    await outlive.wait_for_signal("go")
    return S.DONE


class ShuffledStore(FaultyStore):
    """A store that gives journals in the wrong order."""

    async def read_journals(self, journals: list[int]) -> dict[int, list[Row]]:
        """Backwards."""
        return {journal: rows[::-1] for journal, rows in (await self.inner.read_journals(journals)).items()}


async def test_rows_out_of_order_are_damage_and_nothing_runs(place: Place) -> None:
    """A store keeps them in order. One that does not is not believed: the run is parked, and can go on. [CA-U6]"""

    def shuffled(store: Store) -> Any:
        return ShuffledStore(store)

    async with place.engine() as first:
        await waits(await first.start(waiting, Data(), id="run-1"))
    async with place.engine(wrap=shuffled) as second:
        await second.signal("run-1", "go")
        reason = await parks(second.get("run-1"))
    assert "run-1" in reason
    assert stage.calls == ["BOOK"]

    async with place.engine() as third:
        await third.resume("run-1")
        assert (await in_time(third.get("run-1").result())).state is S.DONE
    assert stage.calls == ["BOOK"]


# -- A store that goes away --------------------------------------------------------------------------------------------

working = machine("working")


@working.state(S.WORK)
async def working_work(data: Data) -> S:
    """Until the test lets it."""
    stage.call("WORK")
    await stage.gate("WORK").pass_through()
    return S.DONE


@pytest.mark.parametrize("is_unknown", [False, True])
async def test_a_transition_that_cannot_be_written_is_not_a_failure(place: Place, *, is_unknown: bool) -> None:
    """Cano rolls back; here the row is written when the store is back, and nothing is undone. [CA-U12]"""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(working, Data())
        await stage.gate("WORK").reached()
        fault = unknown if is_unknown else unavailable
        (stores[0].after if is_unknown else stores[0].before)["commit"] += [fault(), fault()]
        stage.gate("WORK").open()

        assert (await in_time(run.result())).state is S.DONE
        assert 2 == len(await events_of(run, StepSucceeded))
    assert stage.calls == ["BOOK", "WORK"]


class Ends(outlive.machine.Observer):
    """Hears of ends."""

    def ended(self, fact: outlive.machine.EndFact) -> None:
        """Once."""
        stage.call(f"ended {fact.state}")


heard = machine("heard")
heard.state(S.WORK)(working_work)
heard.observe(Ends())


async def test_an_end_whose_write_had_no_answer_is_the_end_and_observers_hear_it_once(place: Place) -> None:
    """Cano tells an observer when it cannot clear the rows of a run that has ended. Here the end is the last write, and
    nothing is cleared. [CA-U18]"""
    stores: list[FaultyStore] = []
    async with place.engine(wrap=faulty(stores)) as engine:
        run = await engine.start(heard, Data())
        await stage.gate("WORK").reached()
        stores[0].after["commit"] += [unknown()]
        stage.gate("WORK").open()

        assert (await in_time(run.result())).state is S.DONE
        await until_calls("BOOK", "WORK", "ended DONE")
    assert stage.calls == ["BOOK", "WORK", "ended DONE"]


failing = outlive.Machine("journal.failing", S, data=Data, start=S.BOOK, exits=[S.DONE])


@failing.state(S.BOOK)
async def failing_book(data: Data) -> S:
    """Nothing to undo."""
    stage.call("BOOK")
    await stage.gate("BOOK").pass_through()
    return S.WORK


@failing.state(S.WORK)
async def failing_work(data: Data) -> S:
    """As often as it is called."""
    stage.call("WORK")
    return S.DONE


async def test_a_machine_with_nothing_to_undo_outlives_a_store_that_is_away(place: Place) -> None:
    """Its worker stops before the store is back: the journal has what it had, and another one goes on."""
    stores: list[FaultyStore] = []
    first = await place.engine(wrap=faulty(stores), grace_seconds=0).__aenter__()
    await first.start(failing, Data(), id="run-1")
    await stage.gate("BOOK").reached()
    stores[0].is_down = True
    stage.gate("BOOK").open()
    await crash(first)

    async with place.engine() as second:
        assert (await in_time(second.get("run-1").result())).state is S.DONE
    assert stage.calls == ["BOOK", "BOOK", "WORK"]


# -- Code that moves on ------------------------------------------------------------------------------------------------

newer = machine("moving", version=2)


@newer.workflow(S.WORK)
async def newer_work(data: Data) -> S:
    """The code of today."""
    await outlive.wait_for_signal("end")
    data.seen.append("version 2")
    return S.DONE


older = machine("moving", version=1)


@older.workflow(S.WORK)
async def older_work(data: Data) -> S:
    """Goes on as the next version, in a journal of its own."""
    await outlive.wait_for_signal("go")
    data.seen.append("version 1")
    outlive.continue_as_new(data, workflow=newer)


async def test_a_machine_can_go_on_as_its_next_version(place: Place) -> None:
    """Each generation has one version; a worker that has only the last version goes on with it. [CA-U8]"""
    async with place.engine(registry=registry_of(older, newer)) as first:
        run = await first.start(older, Data(), id="run-1")
        await waits(run)
        await first.signal("run-1", "go")
        await until_calls("BOOK", "BOOK")
        await waits(run)

    async with place.engine(registry=registry_of(newer)) as second:
        assert (await second.get("run-1").info()).version == 2
        await second.signal("run-1", "end")
        assert (await in_time(second.get("run-1").result())).data.seen == ["version 1", "version 2"]
    assert stage.calls == ["BOOK", "BOOK"]
