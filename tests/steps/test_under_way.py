"""What runs now: the steps of a run that are under way, as its worker knows them and as other processes read them."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import outlive
from outlive import Retry
from outlive._kernel.model import Payload
from outlive._kernel.model.under_way import (
    BYTES_MAX,
    STEPS_MAX,
    STEPS_OF_TREE_MAX,
    UNDER_WAY_CELLS,
    StepNote,
    report_of,
)
from outlive._kernel.runtime.reporter import KEPT_SECONDS
from outlive._kernel.store.contract import Store
from outlive.codecs import Encryption
from outlive.types import StepUnderWay
from tests.engine.inside import crash, reporter_of, session_id_of, store_of
from tests.engine.support import Place, hold, in_time, stage, until

pytestmark = pytest.mark.any_store
LONG_SECONDS = 60


class BankDownError(Exception):
    """A bank does not answer."""


@outlive.step(retry=Retry(attempts=5, first=0, jitter=0))
async def charge_slowly(order: int, *, card: str = "none", note: str = "") -> str:
    if outlive.current_step().attempt == 1:
        raise BankDownError("no answer")
    outlive.current_step().heartbeat({"sent": True})
    await stage.gate("charge_slowly").pass_through()
    return f"{order} {card} {note}"


@outlive.workflow
async def buy_slowly(order: int, note: str = "") -> str:
    return await charge_slowly(order, card="47-11", note=note)


@outlive.workflow
async def hold_many(count: int) -> None:
    await asyncio.gather(*(hold("gate") for _ in range(count)))


class Leg(enum.Enum):
    """What the parcel of a test goes through."""

    PACK = "pack"
    SEND = "send"
    DONE = "done"


@dataclass
class Parcel:
    """What it carries."""

    cents: int = 0


parcel = outlive.Machine("under_way.parcel", Leg, data=Parcel, start=Leg.PACK, exits={Leg.DONE})


async def unpack_slowly(data: Parcel) -> None:
    """An undo that is under way for as long as the test wants."""
    await stage.gate("unpack_slowly").pass_through()


@parcel.state(Leg.PACK, undo=unpack_slowly)
async def pack_slowly(data: Parcel) -> Leg:
    """A state that is under way for as long as the test wants."""
    await stage.gate("pack_slowly").pass_through()
    return Leg.SEND


@parcel.state(Leg.SEND)
async def fail_to_send(data: Parcel) -> Leg:
    """Makes the machine undo what came before."""
    raise BankDownError("no answer")


@outlive.workflow
async def buy_by_child(order: int) -> str:
    return await buy_slowly(order)


async def reported(engine: outlive.Engine, place: Place) -> None:
    """Let the worker look after its steps have lasted for a while, and return when it has written what it sees."""
    place.clock.skip(seconds=LONG_SECONDS)
    reporter_of(engine).look()
    await written(engine)


async def written(engine: outlive.Engine) -> None:
    """Return when its worker is writing nothing."""

    async def is_so() -> bool:
        return reporter_of(engine).is_resting

    await until(is_so)


async def cells_of(store: Store) -> list[str]:
    """The cells in which workers say what is under way."""
    return [name for name in await store.examiner.list_cells(limit=1000) if name.startswith(UNDER_WAY_CELLS)]


@pytest.mark.every_store
async def test_the_worker_of_this_process_tells_at_once(engine: outlive.Engine) -> None:
    """Which step, which attempt, for how long, where, its signs of life, its arguments and its last failure."""
    run = await engine.start(buy_slowly, 7, id="o-1")
    await stage.gate("charge_slowly").reached()

    (step,) = await run.steps(arguments=True)

    assert (step.run_id, step.call, step.name, step.attempt, step.attempts_max) == (
        "o-1",
        "charge_slowly",
        "charge_slowly",
        2,
        5,
    )
    assert step.arguments == {"order": 7, "card": "47-11", "note": ""}
    assert step.heartbeat_at is not None
    assert step.heartbeat_at >= step.since
    assert (step.progress, step.last_failure.rpartition(".")[2]) == ({"sent": True}, "BankDownError: no answer")
    why = await run.why()
    assert why.startswith('it is in step charge_slowly(order=7, card="47-11", note=""), attempt 2 of 5, for 0 s on ')
    assert ", last heartbeat 0 s ago, last failure tests.steps.test_under_way.BankDownError: no answer" in why
    assert (await engine.steps("o-1"))[0].arguments is None


async def test_a_state_and_the_undo_of_a_state_are_steps_with_the_data_of_their_machine(engine: outlive.Engine) -> None:
    """A machine's own steps are given pieces, and say them by name too."""
    run = await engine.start(parcel, Parcel(7), id="p-1")
    await stage.gate("pack_slowly").reached()
    (state,) = await run.steps(arguments=True)
    reporter_of(engine).look()
    stage.gate("pack_slowly").open()
    await stage.gate("unpack_slowly").reached()
    (undo,) = await run.steps(arguments=True)
    stage.gate("unpack_slowly").open()

    assert state.arguments == undo.arguments == {"data": {"cents": 7}}


@pytest.mark.every_store
async def test_another_process_reads_which_steps_last(place: Place) -> None:
    """A process without a worker reads it in the store, until the step has ended."""
    async with place.engine(name="w1") as engine, place.engine(worker=False) as other:
        run = await engine.start(buy_slowly, 7, id="o-1")
        await stage.gate("charge_slowly").reached()
        assert await other.get("o-1").steps() == []
        assert await other.get("o-1").why() == "worker w1 runs it"

        await reported(engine, place)

        (step,) = await other.get("o-1").steps(arguments=True)
        assert (step.name, step.attempt, step.attempts_max, step.worker) == ("charge_slowly", 2, 5, "w1")
        assert (step.arguments["order"], step.progress) == (7, {"sent": True})
        why = await other.get("o-1").why()
        assert (
            'in step charge_slowly(order=7, card="47-11", note=""), attempt 2 of 5, for 1 min on w1, last heartbeat'
            in why
        )
        stage.gate("charge_slowly").open()
        await in_time(run.result())
        reporter_of(engine).look()
        await written(engine)
        assert await cells_of(store_of(engine)) == []


async def test_short_steps_are_not_written(place: Place) -> None:
    """A look finds nothing that has lasted, and the worker does not look again when nothing is under way."""
    async with place.engine() as engine:
        run = await engine.start(hold_many, 3)
        await stage.gate("gate").reached()
        reporter_of(engine).look()
        await written(engine)
        assert await cells_of(store_of(engine)) == []
        assert reporter_of(engine).alarm is not None
        stage.gate("gate").open()
        await in_time(run.result())
        alarm = reporter_of(engine).alarm
        reporter_of(engine).look()
        assert reporter_of(engine).alarm is None
        assert alarm is not None
        alarm.cancel()


@pytest.mark.parametrize("codecs", [[], [Encryption({"k1": bytes(32)}, "k1")]])
async def test_a_report_of_steps_is_written_again_only_when_it_has_changed(place: Place, codecs: Any) -> None:
    """The report of a step that hangs is written once, and not again while nothing has changed."""
    async with place.engine(codecs=codecs) as engine:
        await engine.start(hold_many, 1)
        await stage.gate("gate").reached()
        await reported(engine, place)
        (cell,) = await cells_of(store_of(engine))
        first = await store_of(engine).read_cell(cell)
        await reported(engine, place)
        assert await store_of(engine).read_cell(cell) == first
        stage.gate("gate").open()


async def test_a_worker_leaves_large_values_out(place: Place) -> None:
    """Another process does not read them; the worker itself knows them."""
    async with place.engine(name="w1") as engine, place.engine(worker=False) as other:
        await engine.start(buy_slowly, 7, "x" * 5_000, id="large")
        await stage.gate("charge_slowly").reached()
        await reported(engine, place)
        (large,) = await other.get("large").steps(arguments=True)
        assert large.arguments is None
        (large,) = await engine.get("large").steps(arguments=True)
        assert len(large.arguments["note"]) == 5_000
        stage.gate("charge_slowly").open()


@pytest.mark.every_store
async def test_a_run_with_many_steps_leaves_room_for_those_of_other_runs(place: Place) -> None:
    """Its oldest ones are named and the others counted, so that a step which hangs is found beside them."""
    many = 200
    async with place.engine(name="w1") as engine, place.engine(worker=False) as other:
        await engine.start(hold_many, many, id="many")
        for _ in range(many):
            await stage.gate("gate").reached()
        await engine.start(buy_slowly, 7, id="o-1")
        await stage.gate("charge_slowly").reached()
        await reported(engine, place)
        assert "it is in step charge_slowly(order=7" in await other.get("o-1").why()
        assert len(await other.get("many").steps()) == STEPS_OF_TREE_MAX
        assert len(await engine.get("many").steps()) == many
        for one in (engine, other):
            assert f"and {many - 3} more" in await one.get("many").why()
        stage.gate("gate").open()
        stage.gate("charge_slowly").open()


def test_a_report_is_bounded() -> None:
    """However many trees a worker moves: the oldest steps stay, and so much of their values."""
    notes = [
        StepNote(root=f"r{number}", call="s", name="s", since_at=number, arguments=Payload(v=msgspec.Raw(b"1" * 1_000)))
        for number in range(STEPS_MAX + 10)
    ]

    report = report_of(notes, at=0).within_limits()

    assert [note.root for note in report.steps] == [f"r{number}" for number in range(STEPS_MAX)]
    assert sum(note.arguments is not None for note in report.steps) == BYTES_MAX // 1_000
    assert sum(report.unnamed.values()) == 10


@pytest.mark.parametrize("what", ["run", "workflow"])
async def test_a_pause_does_not_hide_the_step_that_still_runs(engine: outlive.Engine, what: str) -> None:
    """It lets the step end, so that a step that hangs keeps the run from being paused."""
    run = await engine.start(buy_slowly, 7, id="o-1")
    await stage.gate("charge_slowly").reached()
    await (run.pause(by="ann") if what == "run" else engine.pause(workflow="buy_slowly", by="ann"))

    why = await run.why()

    assert "paused by ann" in why
    assert "; now it is in step charge_slowly(order=7, " in why
    stage.gate("charge_slowly").open()


async def test_a_child_has_its_own_steps_and_its_root_those_of_the_tree(engine: outlive.Engine) -> None:
    """A sentence about the root says in which run of the tree a step is."""
    run = await engine.start(buy_by_child, 7, id="p")
    await stage.gate("charge_slowly").reached()
    (step,) = await run.steps()
    assert step.run_id == "p~1"
    assert (await engine.get("p~1").steps()) == [step]
    assert (await run.why()).endswith(", in run p~1")
    assert ", in run" not in await engine.get("p~1").why()
    stage.gate("charge_slowly").open()


async def test_a_report_of_steps_hides_redacted_arguments(place: Place) -> None:
    """A redacted argument of a step under way is hidden among its arguments and in `why`."""
    async with place.engine(redact=["card"]) as engine:
        run = await engine.start(buy_slowly, 7)
        await stage.gate("charge_slowly").reached()
        (step,) = await run.steps(arguments=True)
        assert step.arguments["card"] == "[redacted]"
        assert "47-11" not in await run.why()
        stage.gate("charge_slowly").open()


async def test_the_last_failure_is_hidden_where_the_journal_cannot_be_read(place: Place) -> None:
    """Which of its words repeat an argument that people may not see cannot be known then."""

    async def damaged(*args: Any, **options: Any) -> Any:
        raise outlive.errors.OutliveError("a row is damaged")

    async with place.engine(redact=["card"]) as engine:
        run = await engine.start(buy_slowly, 7)
        await stage.gate("charge_slowly").reached()
        store_of(engine).read_journal = damaged  # type: ignore[method-assign]
        (step,) = await run.steps()
        del store_of(engine).read_journal
        assert step.last_failure == "[redacted]"
        stage.gate("charge_slowly").open()


async def test_a_report_of_steps_is_encrypted(place: Place) -> None:
    """The arguments and the progress of a step under way are encrypted in the store, and read by another engine with
    the key."""
    codecs: Any = [Encryption({"k1": bytes(32)}, "k1", required=True)]
    async with place.engine(codecs=codecs) as engine, place.engine(worker=False, codecs=codecs) as other:
        await engine.start(buy_slowly, 7, id="o-1")
        await stage.gate("charge_slowly").reached()
        await reported(engine, place)
        (cell,) = await cells_of(store_of(engine))
        data = await store_of(engine).read_cell(cell)
        assert data is not None
        assert b"47-11" not in data
        assert b'"sent"' not in data  # In quotes: base64 has none, and so never by chance.
        (step,) = await other.get("o-1").steps(arguments=True)
        assert (step.arguments["card"], step.progress) == ("47-11", {"sent": True})
        stage.gate("charge_slowly").open()


@pytest.mark.every_store
async def test_a_worker_that_died_has_said_what_it_was_in(place: Place) -> None:
    """Until another one takes the run over; and the cell of a session that is gone is removed some day."""
    engine = place.engine(name="w1")
    await engine.__aenter__()
    run = await engine.start(buy_slowly, 7, id="o-1")
    await stage.gate("charge_slowly").reached()
    await reported(engine, place)
    assert await run.steps() != []
    session = session_id_of(engine)
    await crash(engine)
    async with place.engine(worker=False) as other:
        why = await other.get("o-1").why()
        assert why.startswith("its worker w1 is gone, when it was in step charge_slowly(order=7"), why
        assert await cells_of(store_of(other)) == [UNDER_WAY_CELLS + session]
    place.clock.skip(seconds=2 * KEPT_SECONDS)
    async with place.engine(name="w2") as engine:
        await stage.gate("charge_slowly").reached()
        await reported(engine, place)
        assert await cells_of(store_of(engine)) == [UNDER_WAY_CELLS + session_id_of(engine)]
        stage.gate("charge_slowly").open()


def test_a_step_says_of_itself_what_a_person_asks_first() -> None:
    """The largest unit that fits, and nothing that is not known."""
    from datetime import UTC, datetime, timedelta

    now = datetime(2026, 1, 1, tzinfo=UTC)
    step = StepUnderWay(
        run_id="r",
        call="charge_slowly",
        name="charge_slowly",
        attempt=1,
        attempts_max=1,
        since=now - timedelta(minutes=28),
        worker="w1",
    )
    assert step.describe(now) == "charge_slowly, for 28 min on w1"
