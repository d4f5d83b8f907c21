"""Runs that leave one store and go on in another one, and whole stores that do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive._features.moving import tree_file
from outlive._features.moving.moving import move_store
from outlive._kernel.store.contract import Action, Store
from outlive.errors import OutliveError, RunExistsError
from outlive.errors.store import HistoryFormatError
from outlive.testing.fsck import check_store
from tests.engine.faults import FaultyStore
from tests.engine.inside import crash, store_of
from tests.engine.support import Place, in_time, note, stage, turns_of_the_loop, waits


@outlive.workflow
async def moved_child(name: str) -> str:
    """A run in the tree of another one."""
    return await note(f"{name} child")


@outlive.workflow
async def moved_order(name: str) -> list[str]:
    """Does something, waits, and does something else."""
    done = [await note(f"{name} before"), await moved_child(name)]
    outlive.publish(stage="waiting")
    await outlive.emit("lines", "one")
    first = await outlive.wait_for_signal("go", str)
    second = await outlive.wait_for_signal("go", str)
    await outlive.emit("lines", "two")
    return [*done, first, second, await note(f"{name} after")]


@outlive.step
async def moved_item(number: int) -> str:
    """One item of a batch."""
    return f"{number}" * 50_000


@outlive.workflow
async def moved_waiter(run_id: str) -> Any:
    """Waits for a run of another tree."""
    return await outlive.get(run_id).result()


@outlive.step(limit=outlive.limits.RateLimit("moved", outlive.limits.TokenBucket(1 / 86_400), shared=True))
async def moved_limited() -> int:
    """May be called once a day."""
    return 1


@outlive.workflow
async def moved_by_limit() -> int:
    """Calls a step that has a limit."""
    return await moved_limited()


@outlive.workflow(queue=outlive.Queue("moved", concurrency=1))
async def moved_in_line() -> str:
    """One at a time."""
    return await outlive.wait_for_signal("go", str)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Place:
    """Another store."""
    return Place(tmp_path / "elsewhere.db")


@pytest.mark.every_store
async def test_run_in_flight_goes_on_in_another_store(place: Place, elsewhere: Place) -> None:
    """An imported run repeats no completed step, takes the signals that wait for it in the new store, and knows the
    keys that it has seen."""
    async with place.engine() as engine:
        run = await engine.start(moved_order, "a", id="run-1", tags={"shop": "north"})
        await waits(run)
        await run.signal("go", "x", key="k1")
        await waits(run)
        text = await engine.export("run-1")
        await run.cancel()

    async with elsewhere.engine() as engine:
        run = await engine.import_run(text)
        assert [found.id for found in await engine.list(tags={"shop": "north"})] == ["run-1"]
        assert await run.published() == {"stage": "waiting"}
        await run.signal("go", "again", key="k1")
        await run.signal("go", "y", key="k2")
        assert ["a before", "a child", "x", "y", "a after"] == await in_time(run.result())
        assert ["one", "two"] == [line async for line in run.stream("lines")]
    assert ["a before", "a child", "a after"] == stage.calls
    assert [] == await problems_of(elsewhere)


async def test_buffered_signal_comes_along(place: Place, elsewhere: Place) -> None:
    """Accepted is durable, wherever the run goes."""
    async with place.engine(worker=False) as engine:
        await engine.start(moved_order, "a", id="run-1")
        await engine.signal("run-1", "go", "x")
        await engine.signal("run-1", "go", "y")
        text = await engine.export("run-1")

    async with elsewhere.engine() as engine:
        run = await engine.import_run(text)
        assert ["a before", "a child", "x", "y", "a after"] == await in_time(run.result())


async def test_run_of_a_killed_worker_goes_on_in_another_store(place: Place, elsewhere: Place) -> None:
    """A run that is exported while its worker is dead is an orphan in the other store, and goes on there."""
    engine = await place.engine().__aenter__()
    await waits(await engine.start(moved_order, "a", id="run-1"))
    await engine.signal("run-1", "go", "x")
    await crash(engine)
    async with place.engine(worker=False) as client:
        text = await client.export("run-1")

    async with elsewhere.engine() as engine:
        run = await engine.import_run(text)
        await run.signal("go", "y")
        assert ["a before", "a child", "x", "y", "a after"] == await in_time(run.result())
    assert [] == await problems_of(elsewhere)


async def test_ended_run_keeps_its_outcome_and_may_have_another_id(place: Place, elsewhere: Place) -> None:
    """Its children are renamed with it; the same id twice is refused."""
    async with place.engine() as engine:
        run = await engine.start(moved_order, "a", id="run-1")
        await run.signal("go", "x")
        await run.signal("go", "y")
        await in_time(run.result())
        text = await engine.export("run-1")

    async with elsewhere.engine() as engine:
        copy = await engine.import_run(text, id="copy")
        assert ["a before", "a child", "x", "y", "a after"] == await copy.result()
        assert ["copy", "copy~1"] == sorted(found.id for found in await engine.list())
        with pytest.raises(RunExistsError, match="copy"):
            await engine.import_run(text, id="copy")
        with pytest.raises(outlive.errors.OutliveError, match="id"):
            await engine.import_run(text, id="")
    assert [] == await problems_of(elsewhere)


async def test_batch_comes_with_its_results_and_its_blobs(place: Place, elsewhere: Place) -> None:
    """Those are not part of the journal's rows. Its chunks are trees of their own."""
    async with place.engine() as engine:
        batch = await engine.start_batch(moved_item, range(3), id="many")
        wanted = await in_time(batch.results())
        texts = [await engine.export(run.id) for run in await engine.list(internal=True) if run.number == 0]

    async with elsewhere.engine() as engine:
        for text in texts:
            await engine.import_run(text)
        assert wanted == await in_time(engine.batches.get("many").results())
    assert [] == await problems_of(elsewhere)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("moved_order", "moved_orders", "checksum"),
        ('"rest":2', '"rest":1', "lines"),
        ('{"tree":{"key"', '{"tree":{"door"', "cannot be read"),
        ('"run_id":"run-1","kind":"signal"', '"run_id":"run-2","kind":"signal"', "run-1 is not whole"),
    ],
    ids=["event", "head", "line", "message"],
)
async def test_file_that_was_changed_is_refused_and_nothing_is_written(
    place: Place, elsewhere: Place, before: str, after: str, said: str
) -> None:
    """The error says where it is wrong, or what does not fit."""
    async with place.engine(worker=False) as engine:
        await engine.start(moved_order, "a", id="run-1")
        await engine.signal("run-1", "go", "x", key="k")
        text = await engine.export("run-1")
    assert before in text

    async with elsewhere.engine() as engine:
        with pytest.raises(OutliveError, match=said):
            await engine.import_run(text.replace(before, after))
        assert [] == await engine.list()


async def test_run_that_moves_too_fast_is_exported_for_replay_only(
    place: Place, elsewhere: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal is always whole; to import it, it has to stand still."""

    async def never(store: Store, journal: int) -> None:
        del store, journal

    monkeypatch.setattr(tree_file, "read_copy", never)
    async with place.engine(worker=False) as engine:
        await engine.start(moved_order, "a", id="run-1")
        text = await engine.export("run-1")

    async with elsewhere.engine() as engine:
        with pytest.raises(HistoryFormatError, match="only the journal"):
            await engine.import_run(text)


# -- Whole stores --------------------------------------------------------------------------------------------------


async def move(place: Place, target: Place, *, to: str = "sqlite:elsewhere.db", source: Any = None) -> list[str]:
    """What a move says."""
    lines: list[str] = []
    old, new = source or place.store(), target.store()
    await old.open()
    await new.open()
    try:
        await move_store(old, new, to=to, said=lines.append)
    finally:
        await old.close()
        await new.close()
    return lines


@pytest.mark.every_store
async def test_whole_store_goes_on_elsewhere(place: Place, elsewhere: Place) -> None:
    """Runs in flight, ended ones, one that waits for another one, checkpoints and pauses; a second move changes
    nothing. A worker that is started on the store that was left runs nothing, and `why` says so. [FE-P14]"""
    async with place.engine() as engine:
        run = await engine.start(moved_order, "a", id="run-1")
        waiter = await engine.start(moved_waiter, "run-1", id="waiter")
        ended = await engine.start(moved_child, "b", id="ended")
        await in_time(ended.result())
        await waits(run)
        await waits(waiter)
        await engine.checkpoints.append("program", outlive.checkpoints.Checkpoint(1, "A", "task"))
        await engine.pause(workflow="moved_child", by="ann", reason="stocktaking")
        await engine.start(moved_child, "c", id="paused")
        await engine.schedules.set("nightly", outlive.every(days=1), moved_by_limit)
        await engine.schedules.pause("nightly", by="ann", reason="stocktaking")
        await store_of(engine).append_audit([Action(actor="ann", verb="look")])
        audited = [row.hash for row in await store_of(engine).read_audit(limit=9)]

    said = await move(place, elsewhere)
    assert said == await move(place, elsewhere)

    assert said[1].startswith("4 trees with 5 runs and ")
    assert [said[0], *said[2:]] == [
        "1 pauses",
        "1 watches, 1 checkpoints, 1 schedules, 1 audit rows",
        "checked: the other store is whole",
        "the store that was left is paused: moved to sqlite:elsewhere.db",
    ]
    async with place.engine() as engine:
        await engine.signal("run-1", "go", "lost")
        why = "its workflow is paused by outlive move: moved to sqlite:elsewhere.db"
        assert (await engine.get("run-1").why()).startswith(why)
        await engine.start(moved_waiter, "ended", id="too-late")
        assert (await engine.get("too-late").why()).startswith(why)
        assert "its workflow is paused by ann: stocktaking" in await engine.get("paused").why()
    async with elsewhere.engine() as engine:
        await engine.signal("run-1", "go", "x")
        await engine.signal("run-1", "go", "y")
        wanted = ["a before", "a child", "x", "y", "a after"]
        assert wanted == await in_time(engine.get("run-1").result())
        assert wanted == await in_time(engine.get("waiter").result())
        assert "b child" == await engine.get("ended").result()
        assert audited == [row.hash for row in await store_of(engine).read_audit(limit=9)]
        assert "it is paused by ann: stocktaking" in (await engine.schedules.get("nightly")).why
        assert (await engine.get("paused").why()).startswith("its workflow is paused by ann: stocktaking")
        await engine.resume(workflow="moved_child")
        assert "c child" == await in_time(engine.get("paused").result())
    assert [] == await problems_of(elsewhere)


async def test_store_that_was_paused_as_a_whole_is_paused_in_the_other_one(place: Place, elsewhere: Place) -> None:
    """A pause of everything that a person made comes along with a move, even if the target of an earlier move was
    lost."""
    async with place.engine(worker=False) as engine:
        await engine.start(moved_child, "a", id="run-1")
        await engine.pause(all=True, by="ann", reason="stocktaking")
    await move(place, Place(None))
    await move(place, elsewhere)

    async with elsewhere.engine() as engine:
        assert (await engine.get("run-1").why()).startswith("its workflow is paused by ann: stocktaking")
        await engine.resume(all=True)
        assert "a child" == await in_time(engine.get("run-1").result())


async def test_pauses_of_the_other_store_stay(place: Place, elsewhere: Place) -> None:
    """One that both stores have is that of the other store."""
    async with place.engine(worker=False) as engine:
        await engine.pause(workflow="moved_child", by="ann", reason="here")
    async with elsewhere.engine(worker=False) as engine:
        await engine.pause(workflow="moved_child", by="bob", reason="there")
    await move(place, elsewhere)

    async with elsewhere.engine() as engine:
        run = await engine.start(moved_child, "a")
        assert (await run.why()).startswith("its workflow is paused by bob: there")


async def test_call_that_a_limit_has_counted_counts_in_the_other_store(place: Place, elsewhere: Place) -> None:
    """A limit may be one of a day, and the provider counts on."""
    async with place.engine() as engine:
        assert 1 == await in_time((await engine.start(moved_by_limit)).result())
    await move(place, elsewhere)

    async with elsewhere.engine() as engine:
        run = await engine.start(moved_by_limit)
        await waits(run)
        assert "it waits for rate limit moved" in await run.why()


async def test_slots_and_lines_of_queues_come_along(place: Place, elsewhere: Place) -> None:
    """The run that has the slot keeps it, and the next one follows when it has ended."""
    async with place.engine() as engine:
        first = await engine.start(moved_in_line, id="first")
        await waits(first)
        await engine.start(moved_in_line, id="second")
    await move(place, elsewhere)

    async with elsewhere.engine() as engine:
        await engine.signal("second", "go", "2")
        await turns_of_the_loop(50)
        assert not (await engine.get("second").info()).has_ended
        await engine.signal("first", "go", "1")
        assert ["1", "2"] == [await in_time(engine.get(run_id).result()) for run_id in ("first", "second")]
    assert [] == await problems_of(elsewhere)


async def test_store_is_moved_to_one_place(place: Place, elsewhere: Place) -> None:
    """Its runs would go on in two, or in none: neither from a store that was moved elsewhere, nor into it."""
    async with place.engine(worker=False) as engine:
        await engine.start(moved_child, "a", id="run-1")
    await move(place, elsewhere)

    with pytest.raises(OutliveError, match=r"moved to sqlite:elsewhere\.db"):
        await move(place, Place(None), to="sqlite:third.db")
    with pytest.raises(OutliveError, match=r"moved to sqlite:elsewhere\.db"):
        await move(elsewhere, place, to="sqlite:first.db")
    async with place.engine(worker=False) as engine:
        await engine.resume(all=True)
    await move(place, Place(None), to="sqlite:third.db")


async def test_store_with_a_live_worker_is_not_moved(place: Place, elsewhere: Place) -> None:
    """It would run on behind the move."""
    async with place.engine():
        with pytest.raises(OutliveError, match="alive on the store to be moved"):
            await move(place, elsewhere)


async def test_run_that_says_something_else_in_the_other_store_is_left_there(place: Place, elsewhere: Place) -> None:
    """The move says which one, and overwrites nothing."""
    async with elsewhere.engine(worker=False) as engine:
        await engine.start(moved_child, "other", id="run-1")
    async with place.engine(worker=False) as engine:
        await engine.start(moved_order, "a", id="run-1")

    with pytest.raises(OutliveError, match="run-1 is in the other store and says something else"):
        await move(place, elsewhere)

    async with place.engine() as engine:  # The store that was not left is not paused.
        run = await engine.start(moved_child, "b")
        assert "b child" == await in_time(run.result())


async def test_store_with_a_worker_that_started_during_the_move_is_not_left(place: Place, elsewhere: Place) -> None:
    """A move fails when a worker starts on the old store meanwhile, and that worker is not paused."""
    source = FaultyStore(place.store())
    source.gates["change_cell"] = asyncio.Event()
    moving = asyncio.ensure_future(move(place, elsewhere, source=source))
    await in_time(source.waiting["change_cell"].wait())

    async with place.engine() as engine:
        source.gates["change_cell"].set()
        with pytest.raises(OutliveError, match="alive on the store to be moved"):
            await moving
        run = await engine.start(moved_child, "a")
        assert "a child" == await in_time(run.result())


async def problems_of(place: Place) -> list[str]:
    """What fsck finds wrong."""
    store = place.store()
    await store.open()
    try:
        return [str(problem) for problem in await check_store(store)]
    finally:
        await store.close()
