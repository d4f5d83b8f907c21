"""Listing runs: filters that narrow, newest first, in pages."""

from __future__ import annotations

from typing import Any

import pytest

from outlive._kernel.model import RunFilter, RunStatus
from outlive._kernel.store.contract import PAGE_SIZE_MAX, Delivery, Store
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, claim, hire, message, new_tree, send
from outlive_conformance.suite.facet import Facet


class QueriesConformance(Facet):
    """`list_runs`."""

    async def test_empty_store_has_no_runs(self, store: Store) -> None:
        """Nothing is listed, and nothing can be claimed. [SF-M5 SF-J7]"""
        await hire(store, "worker-a")

        assert await list_ids(store) == []
        assert await list_ids(store, roots_only=True) == []
        assert await claim(store, "worker-a") == []

    @pytest.mark.parametrize("run_id", ["no\0body", "", "unknown'; --", "\U0001f600"])
    async def test_ids_that_no_run_can_have_are_unknown(self, store: Store, run_id: str) -> None:
        """A caller that asks for one hears so, and a tree that sends a message to one goes on."""
        tree = await begin(store)

        assert await store.find_run(run_id) is None
        assert await store.read_items(run_id) == []
        assert await store.get_blobs([run_id]) == {}
        for field in ("root_id", "parent_id", "workflow"):
            assert await list_ids(store, **{field: run_id}) == []
        assert await store.list_runs(RunFilter(), before=(0, run_id)) == []
        assert await send(store, message(store, run_id)) == [Delivery.UNKNOWN_RUN]
        await tree.step(messages=[message(store, run_id)])

    async def test_runs_are_listed_by_status(self, store: Store) -> None:
        """One status, several, or all. [SF-M6 FB-S4]"""
        await begin(store, "pending")
        await (await begin(store, "waiting")).suspend()
        await (await begin(store, "parked")).park()
        await (await begin(store, "done")).succeed()

        assert await list_ids(store, statuses=(RunStatus.PARKED,)) == ["parked"]
        assert await list_ids(store, statuses=(RunStatus.SUCCEEDED, RunStatus.WAITING)) == ["waiting", "done"]
        assert await list_ids(store, statuses=(RunStatus.FAILED,)) == []
        assert len(await list_ids(store)) == 4

    async def test_runs_are_listed_by_workflow_and_status(self, store: Store) -> None:
        """Every field of a filter narrows. [TS-S13]"""
        await begin(store, "greet-1")
        await (await begin(store, "greet-2", version=2)).succeed()
        await (await begin(store, "order-1", workflow="order")).succeed()

        assert await list_ids(store, workflow="greet") == ["greet-2", "greet-1"]
        assert await list_ids(store, workflow="greet", statuses=(RunStatus.SUCCEEDED,)) == ["greet-2"]
        assert await list_ids(store, workflow="unknown") == []

    async def test_whole_tree_is_listed_by_its_root(self, store: Store) -> None:
        """Root, children and their children, and no run of another tree. [SF-M9 SF-M11]"""
        await plant_trees(store)

        assert await list_ids(store, root_id="tree") == ["tree~3", "tree~2", "tree~1", "tree"]
        assert await list_ids(store, root_id="lone") == ["lone"]
        assert await list_ids(store, root_id="tree~1") == []

    async def test_direct_children_are_listed_by_their_parent(self, store: Store) -> None:
        """Neither the parent nor grandchildren. [SF-M10]"""
        await plant_trees(store)

        assert await list_ids(store, parent_id="tree") == ["tree~3", "tree~1"]
        assert await list_ids(store, parent_id="tree~1") == ["tree~2"]
        assert await list_ids(store, parent_id="lone") == []

    async def test_detached_run_is_a_child_and_a_root(self, store: Store) -> None:
        """It hangs on the run that started it, and has a tree of its own."""
        await begin(store, "first")
        await begin(store, "detached", notify="first")

        assert await list_ids(store, parent_id="first") == ["detached"]
        assert await list_ids(store, root_id="first") == ["first"]
        assert await list_ids(store, roots_only=True) == ["first", "detached"]

    async def test_roots_are_listed_alone(self, store: Store) -> None:
        """Every tree shows once, whatever its status. [SF-M12 SF-J8]"""
        await plant_trees(store)
        await (await begin(store, "ended")).succeed()

        assert await list_ids(store, roots_only=True) == ["tree", "lone", "ended"]

    async def test_runs_are_listed_by_owner(self, store: Store) -> None:
        """The runs of one worker are listed, and the runs of none."""
        await begin(store, "mine", worker="worker-a")
        await begin(store, "theirs", worker="worker-b")
        await begin(store, "unowned")

        assert await list_ids(store, owner="worker-a") == ["mine"]
        assert await list_ids(store, owner="") == ["unowned"]
        assert await list_ids(store, owner="unknown") == []

    async def test_runs_are_listed_by_tags(self, store: Store) -> None:
        """A run passes that has all of the tags with these values, and maybe others."""
        await begin(store, "both", tags={"team": "a", "città": "Forlì"})
        await begin(store, "one", tags={"team": "a"})
        await begin(store, "other", tags={"team": "b"})
        await begin(store, "none")

        assert await list_ids(store, tags={"team": "a"}) == ["one", "both"]
        assert await list_ids(store, tags={"team": "a", "città": "Forlì"}) == ["both"]
        assert await list_ids(store, tags={"team": "c"}) == []
        assert await list_ids(store, tags={"te": "a"}) == []

    @pytest.mark.parametrize("strange", ["it's", 'a "b"', "50%", "a_b", "a.b", "$", "\\", "☃", "a' OR 1=1 --"])
    async def test_strange_text_is_only_text(self, store: Store, strange: str) -> None:
        """Quotes, wild cards and paths in a tag or a name mean nothing."""
        await begin(store, "strange", workflow=strange, tags={strange: strange})
        await begin(store, "plain", workflow="a-b", tags={"a-b": "a-b", "50x": "50x"})

        assert await list_ids(store, tags={strange: strange}) == ["strange"]
        assert await list_ids(store, workflow=strange) == ["strange"]

    # -- Order and pages -----------------------------------------------------------------------------------

    async def test_newest_run_comes_first(self, store: Store, clock: ManualClock) -> None:
        """Ordered by the instant of creation, and by id among runs of one instant."""
        await begin(store, "b-old")
        clock.advance(seconds=1)
        for run_id in ("a-2", "a-10", "a-1"):
            await begin(store, run_id)
        clock.advance(seconds=1)
        await begin(store, "a-new")

        assert await list_ids(store) == ["a-new", "a-2", "a-10", "a-1", "b-old"]

    async def test_listing_ends_at_the_limit(self, store: Store, clock: ManualClock) -> None:
        """The newest runs fit. [SF-M7]"""
        for number in range(4):
            await begin(store, f"run-{number}")
            clock.advance(seconds=1)

        assert [run.id for run in await store.list_runs(RunFilter(), limit=2)] == ["run-3", "run-2"]
        assert len(await store.list_runs(RunFilter(), limit=4)) == 4
        assert len(await store.list_runs(RunFilter(), limit=5)) == 4

    async def test_next_page_holds_what_was_created_before(self, store: Store, clock: ManualClock) -> None:
        """`before` leaves out that run and newer ones, and filters go on to hold."""
        for number in range(5):
            await begin(store, f"run-{number}", workflow="odd" if number % 2 else "even")
            clock.advance(seconds=1)
        middle = (await store.list_runs(RunFilter(), limit=3))[-1]

        rest = await store.list_runs(RunFilter(), before=(middle.created_at, middle.id))
        even = await store.list_runs(RunFilter(workflow="even"), before=(middle.created_at, middle.id))

        assert middle.id == "run-2"
        assert [run.id for run in rest] == ["run-1", "run-0"]
        assert [run.id for run in even] == ["run-0"]

    async def test_pages_lose_no_run_of_one_instant(self, store: Store) -> None:
        """Runs that were created in the same microsecond may lie on two pages: each is on exactly one."""
        runs = sorted((f"run-{number}" for number in range(7)), reverse=True)
        for run_id in runs:
            await begin(store, run_id)

        found, before = [], None
        while page := await store.list_runs(RunFilter(), limit=3, before=before):
            found += [run.id for run in page]
            before = page[-1].created_at, page[-1].id

        assert found == runs

    async def test_page_has_a_measure(self, store: Store) -> None:
        """A listing without a limit gives 100 runs, and the largest page `PAGE_SIZE_MAX`."""
        await store.commit([new_tree(store, f"run-{number:04}") for number in range(PAGE_SIZE_MAX + 1)])

        page = await store.list_runs(RunFilter(), limit=PAGE_SIZE_MAX)

        assert [run.id for run in page] == [f"run-{number:04}" for number in range(PAGE_SIZE_MAX, 0, -1)]
        assert len(await store.list_runs(RunFilter())) == 100


async def list_ids(store: Store, **fields: Any) -> list[str]:
    """The ids of the runs that pass the filter."""
    return [run.id for run in await store.list_runs(RunFilter(**fields))]


async def plant_trees(store: Store) -> None:
    """A tree with two children and a grandchild, and a tree with one run."""
    tree = await begin(store, "tree")
    await tree.spawn(1)
    await tree.spawn(2, parent=1)
    await tree.spawn(3)
    await begin(store, "lone")
