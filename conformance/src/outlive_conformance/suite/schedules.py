"""Schedules: what is due, and changes by compare-and-swap with the runs that they start."""

from __future__ import annotations

import asyncio

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive._kernel.store.schedules import ScheduleChange, ScheduleRow
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, claim, get_run, hire, new_tree
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.factory import StoreFactory


class SchedulesConformance(Facet):
    """`ScheduleTable`."""

    async def test_schedule_comes_back_as_it_was_written(self, store: Store, other: Store) -> None:
        """Bytes for bytes, for every store on the place; unknown names are left out."""
        data = bytes(range(256))
        assert await put(store, "digest", data=data, next_at=7) == Outcome.COMMITTED
        assert await put(store, "never", next_at=None) == Outcome.COMMITTED

        rows = await other.find_schedules(["never", "digest", "unknown"])
        assert rows == {
            "digest": ScheduleRow("digest", 7, 1, data),
            "never": ScheduleRow("never", None, 1, b"data"),
        }

    async def test_due_schedules_come_earliest_first(self, store: Store, clock: ManualClock) -> None:
        """At most as many as are asked for; one without a next look never comes. [TS-S12]"""
        now = clock.now()
        await put(store, "second", next_at=now)
        await put(store, "first", next_at=now - 1)
        await put(store, "later", next_at=now + 2 * MICROSECONDS)
        await put(store, "soon", next_at=now + MICROSECONDS)
        await put(store, "never", next_at=None)

        due = await store.find_due_schedules(limit=10)
        assert ([row.name for row in due.rows], due.now_at, due.next_at) == (
            ["first", "second"],
            now,
            now + MICROSECONDS,
        )
        few = await store.find_due_schedules(limit=1)
        assert ([row.name for row in few.rows], few.next_at) == (["first"], now + MICROSECONDS)

    async def test_nothing_is_due_in_an_empty_store(self, store: Store, clock: ManualClock) -> None:
        """Nothing is due in an empty store, and nothing will be."""
        due = await store.find_due_schedules(limit=10)

        assert (due.rows, due.now_at, due.next_at) == ([], clock.now(), None)

    async def test_schedules_are_listed_by_name(self, store: Store) -> None:
        """A page begins behind the last name of the page before it."""
        for name in ("b", "c", "a", "Z"):
            await put(store, name)

        assert [row.name for row in await store.list_schedules(limit=3)] == ["Z", "a", "b"]
        assert [row.name for row in await store.list_schedules(after="b", limit=3)] == ["c"]
        assert await store.list_schedules(after="c", limit=3) == []

    async def test_change_starts_its_runs(self, store: Store) -> None:
        """Both are there, and the run is due. [TS-S10]"""
        await hire(store, "worker-1")
        await put(store, "digest")
        start = new_tree(store, "digest-1")
        assert await put(store, "digest", revision=1, data=b"new", next_at=5, starts=[start]) == Outcome.COMMITTED

        assert (await store.find_schedules(["digest"]))["digest"] == ScheduleRow("digest", 5, 2, b"new")
        assert await claim(store, "worker-1") == ["digest-1"]

    async def test_change_of_another_revision_conflicts_and_starts_nothing(self, store: Store) -> None:
        """It does not touch the others of the call. [TS-S11]"""
        for name in ("first", "second"):
            await put(store, name)
        await put(store, "second", revision=1, data=b"moved on")
        outcomes = await store.change_schedules(
            [
                change("second", revision=1, starts=[new_tree(store, "stale")]),
                change("first", revision=1, data=b"new", starts=[new_tree(store, "fresh")]),
                change("unknown", revision=1, starts=[new_tree(store, "nowhere")]),
            ]
        )

        assert outcomes == [Outcome.CONFLICT, Outcome.COMMITTED, Outcome.CONFLICT]
        assert list(await store.find_runs(["stale", "fresh", "nowhere"])) == ["fresh"]
        rows = await store.find_schedules(["first", "second", "unknown"])
        assert {name: row.data for name, row in rows.items()} == {"first": b"new", "second": b"moved on"}

    async def test_schedule_that_is_there_cannot_be_created(self, store: Store) -> None:
        """The existing schedule stays."""
        await put(store, "digest", data=b"old")

        assert await put(store, "digest", data=b"new", starts=[new_tree(store, "late")]) == Outcome.CONFLICT
        assert (await store.find_schedules(["digest"]))["digest"].data == b"old"
        assert await store.find_run("late") is None

    async def test_run_whose_id_is_taken_is_left_as_it_is(self, store: Store) -> None:
        """The schedule moves on all the same, with its other runs."""
        await begin(store, "digest-1", tags={"who": "a user"})
        await put(store, "digest")
        starts = [new_tree(store, "digest-1"), new_tree(store, "digest-2")]

        assert await put(store, "digest", revision=1, starts=starts) == Outcome.COMMITTED
        assert (await get_run(store, "digest-1")).tags == {"who": "a user"}
        assert await store.find_run("digest-2") is not None

    async def test_deleted_schedule_is_gone(self, store: Store, clock: ManualClock) -> None:
        """A writer that knew it conflicts, also when another one of the name was made meanwhile."""
        await put(store, "digest", next_at=clock.now())
        assert await put(store, "digest", revision=7, data=None) == Outcome.CONFLICT
        assert await put(store, "digest", revision=1, data=None) == Outcome.COMMITTED
        assert (await store.find_due_schedules(limit=1)).rows == []
        assert await put(store, "digest", next_revision=99) == Outcome.COMMITTED

        assert await put(store, "digest", revision=1, starts=[new_tree(store, "late")]) == Outcome.CONFLICT
        assert await store.find_run("late") is None

    async def test_one_of_many_workers_starts_a_tick(self, store: Store, factory: StoreFactory) -> None:
        """All of them want to at the same instant. [TS-S10]"""
        names = [f"schedule-{number}" for number in range(20)]
        for name in names:
            await put(store, name)
        workers = [await factory.open() for _ in range(3)]

        async def tick(worker: Store) -> list[Outcome]:
            return await worker.change_schedules(
                [change(name, revision=1, starts=[new_tree(worker, f"{name}-run")]) for name in names]
            )

        outcomes = await asyncio.gather(*map(tick, workers))
        for worker in workers:
            await worker.close()

        assert [[*each].count(Outcome.COMMITTED) for each in zip(*outcomes, strict=True)] == [1] * len(names)
        assert len(await store.find_runs([f"{name}-run" for name in names])) == len(names)


def change(
    name: str,
    *,
    revision: int = 0,
    next_revision: int | None = None,
    data: bytes | None = b"data",
    next_at: int | None = None,
    starts: list[Change] | None = None,
) -> ScheduleChange:
    """A change from one revision to the next."""
    return ScheduleChange(
        name=name,
        revision=revision,
        next_revision=revision + 1 if next_revision is None else next_revision,
        next_at=next_at,
        data=data,
        starts=starts or [],
    )


async def put(
    store: Store,
    name: str,
    *,
    revision: int = 0,
    next_revision: int | None = None,
    data: bytes | None = b"data",
    next_at: int | None = None,
    starts: list[Change] | None = None,
) -> Outcome:
    """Change one schedule."""
    wanted = change(name, revision=revision, next_revision=next_revision, data=data, next_at=next_at, starts=starts)
    (outcome,) = await store.change_schedules([wanted])
    return outcome
