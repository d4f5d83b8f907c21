"""Waiting for runs that end elsewhere: a store that fails, or one bad run, must not leave the others waiting."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import outlive
from outlive._kernel.client import waiters
from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import Store
from outlive.errors import RunNotFoundError
from outlive.errors.store import CorruptJournalError
from tests.engine.faults import FaultyStore
from tests.engine.support import Place, in_time, until, waits


@outlive.workflow
async def awaited() -> str:
    said: str = await outlive.wait_for_signal("go", str)
    return said


class Shelf:
    """A store that has the runs that the test puts there, and rings for none."""

    def __init__(self) -> None:
        self.runs: dict[str, Any] = {}

    def follow(self, ring: object) -> bool:
        """It cannot."""
        return False

    async def find_runs(self, run_ids: list[str]) -> dict[str, Any]:
        """The runs of these ids that exist."""
        return {run_id: self.runs[run_id] for run_id in run_ids if run_id in self.runs}


def open_run(run_id: str) -> Any:
    """A root run that goes on."""
    return SimpleNamespace(id=run_id, root_id=run_id, number=0, status=RunStatus.RUNNING, hold=None)


async def test_run_that_has_gone_is_missed_at_the_second_look() -> None:
    """At the first one the worker of this process may be about to announce how it ended."""
    shelf: Any = Shelf()
    shelf.runs["run-1"] = open_run("run-1")
    callers = waiters.Waiters(shelf, pause=asyncio.Event().wait, pause_seconds=1000)  # type: ignore[arg-type]
    with callers.waiting("run-1") as end:
        for _ in range(3):
            await callers.poll_once()
        shelf.runs.clear()
        await callers.poll_once()
        assert not end.done()
        await callers.poll_once()
        with pytest.raises(RunNotFoundError):
            await in_time(end)
    callers.close()


async def test_run_that_was_never_there_may_be_on_its_way() -> None:
    """It moves in this process: its caller waits until it comes, and gets its end."""
    shelf: Any = Shelf()
    callers = waiters.Waiters(shelf, pause=asyncio.Event().wait, pause_seconds=1000)  # type: ignore[arg-type]
    callers.moves = {"run-1"}.__contains__
    with callers.waiting("run-1") as end:
        for _ in range(3):
            await callers.poll_once()
        assert not end.done()
        shelf.runs["run-1"] = open_run("run-1")
        shelf.runs["run-1"].status = RunStatus.SUCCEEDED
        await callers.poll_once()
        assert await in_time(end) is shelf.runs["run-1"]
    callers.close()


async def test_run_that_comes_back_is_not_missed() -> None:
    """One look without an answer about it is forgotten when the next one finds it."""
    shelf: Any = Shelf()
    there = {"run-1": open_run("run-1")}
    callers = waiters.Waiters(shelf, pause=asyncio.Event().wait, pause_seconds=1000)  # type: ignore[arg-type]
    with callers.waiting("run-1") as end:
        for runs in (there, {}, there, {}):
            shelf.runs = runs
            await callers.poll_once()
        assert not end.done()
    callers.close()


class OneBadRow(FaultyStore):
    """A store in which the row of one run cannot be read any more."""

    bad_id = ""

    async def _do(self, name: str, *args: object, **kwargs: object) -> object:
        asked = args[0] if args else ()
        if self.bad_id and name in {"find_run", "find_runs"} and self.bad_id in ([asked, *_listed(asked)]):
            self.calls["refused"] += 1
            raise CorruptJournalError(self.bad_id, 0, "another checksum")
        return await super()._do(name, *args, **kwargs)


def _listed(asked: object) -> list[object]:
    return list(asked) if isinstance(asked, list | tuple) else []


async def test_a_failed_look_does_not_end_the_wait(place: Place) -> None:
    """A caller that waits for a result goes on waiting after a look at the store has raised, and gets the result."""
    stores: list[FaultyStore] = []

    def wrap(store: Store) -> FaultyStore:
        stores.append(FaultyStore(store))
        return stores[-1]

    async with place.engine() as worker, place.engine(worker=False, wrap=wrap) as client:
        run = await client.start(awaited, id="run-1")
        stores[0].skip["find_runs"] = 1
        stores[0].before["find_runs"].extend([RuntimeError("a bug in a driver")] * 2)
        waiting = asyncio.create_task(run.result())

        async def has_failed() -> bool:
            return not stores[0].before["find_runs"]

        await until(has_failed)
        await worker.signal("run-1", "go", "on")

        assert await in_time(waiting) == "on"


async def test_a_row_that_cannot_be_read_fails_its_own_waiters_only(place: Place) -> None:
    """One bad run hurts only itself."""
    stores: list[OneBadRow] = []

    def wrap(store: Store) -> OneBadRow:
        stores.append(OneBadRow(store))
        return stores[-1]

    async with place.engine() as worker, place.engine(worker=False, wrap=wrap) as client:
        runs = [await client.start(awaited, id=f"run-{number}") for number in range(3)]
        waiting = [asyncio.create_task(run.result()) for run in runs]
        await asyncio.sleep(0)
        stores[0].bad_id = "run-1"

        with pytest.raises(CorruptJournalError, match="another checksum"):
            await in_time(waiting[1])
        for number in (0, 2):
            await worker.signal(f"run-{number}", "go", f"on {number}")
        assert [await in_time(waiting[number]) for number in (0, 2)] == ["on 0", "on 2"]


async def test_many_callers_that_wait_at_once_ask_the_store_together(place: Place) -> None:
    """A hundred callers of `result` for runs of another process ask two questions, not a hundred."""
    stores: list[FaultyStore] = []

    def wrap(store: Store) -> FaultyStore:
        stores.append(FaultyStore(store))
        return stores[-1]

    async with place.engine(worker=False, wrap=wrap) as client:
        runs = [await client.start(awaited) for _ in range(100)]
        before = stores[0].calls["find_run"], stores[0].calls["find_runs"]
        slow = stores[0].gates["find_run"] = asyncio.Event()

        looking = asyncio.gather(*(run.info() for run in runs))
        await in_time(stores[0].waiting["find_run"].wait())
        slow.set()

        assert [run.id for run in await in_time(looking)] == [run.id for run in runs]
        assert (stores[0].calls["find_run"], stores[0].calls["find_runs"]) == (before[0] + 1, before[1] + 1)


HOUR = 3600
rung = pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)


@outlive.step(transaction=True)
async def awaited_credit(tx: Any) -> str:
    return "credited"


@outlive.workflow
async def awaited_crediting() -> str:
    await outlive.wait_for_signal("go", str)
    return await awaited_credit()


@outlive.workflow
async def awaited_nonsense() -> object:
    await outlive.wait_for_signal("go", str)
    return object()


@rung
@pytest.mark.every_store
async def test_end_in_another_process_is_heard(place: Place) -> None:
    """A process that polls once in an hour learns at once of a result, also of one that the transaction of a step
    commits."""
    async with place.engine() as worker, place.engine(worker=False, poll_seconds=HOUR) as client:
        runs = [await client.start(workflow) for workflow in (awaited, awaited_crediting)]
        waiting = [asyncio.create_task(run.result()) for run in runs]
        for run in runs:
            await waits(run)
            await worker.signal(run.id, "go", "on")

        assert [await in_time(task) for task in waiting] == ["on", "credited"]


@rung
@pytest.mark.every_store
async def test_run_that_parks_or_is_cancelled_in_another_process_is_heard(place: Place) -> None:
    """Callers wait for these too; no worker has the run that is cancelled before it begins."""
    async with place.engine() as worker, place.engine(worker=False, poll_seconds=HOUR) as client:
        run = await client.start(awaited_nonsense)
        parking = asyncio.create_task(run.result())
        await waits(run)
        await worker.signal(run.id, "go", "on")
        with pytest.raises(outlive.errors.RunParkedError):
            await in_time(parking)

    async with place.engine(worker=False) as other, place.engine(worker=False, poll_seconds=HOUR) as client:
        run_id = (await client.start(awaited, id="never-begun")).id
        waiting = asyncio.create_task(client.get(run_id).result())
        await asyncio.sleep(0)
        await other.cancel(run_id)
        with pytest.raises(outlive.errors.RunCancelledError):
            await in_time(waiting)


@rung
async def test_more_ends_than_one_look_takes_are_all_heard(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look that is rung for takes the rest in its next turns."""
    monkeypatch.setattr(waiters, "POLLED_MAX", 3)
    async with place.engine() as worker, place.engine(worker=False, poll_seconds=HOUR) as client:
        runs = [await client.start(awaited, id=f"run-{number}") for number in range(20)]
        waiting = [asyncio.create_task(run.result()) for run in runs]
        await asyncio.gather(*(waits(run) for run in runs))
        await asyncio.gather(*(worker.signal(run.id, "go", run.id) for run in runs))

        assert [await in_time(task) for task in waiting] == [run.id for run in runs]
