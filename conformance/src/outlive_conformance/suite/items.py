"""Items: the outcomes of a batch run, each recorded once and read by index."""

from __future__ import annotations

from outlive._kernel.model import Failure
from outlive._kernel.store.contract import PAGE_SIZE_MAX, ItemResult, Outcome, Store
from outlive_conformance.suite.builders import LARGE_BYTES, begin, stepped, value
from outlive_conformance.suite.facet import Facet


class ItemsConformance(Facet):
    """The `items` of a change, and `read_items`."""

    async def test_result_of_an_item_comes_back(self, store: Store) -> None:
        """One item is recorded and read. [SF-M13]"""
        tree = await begin(store)
        await tree.step(items=[item(0, "first")])

        assert await store.read_items("run-1") == [item(0, "first")]

    async def test_items_are_recorded_one_by_one(self, store: Store) -> None:
        """Each change brings the items it has, and leaves the others alone. [SF-M14]"""
        tree = await begin(store)
        await tree.step(items=[item(0, "a")])
        await tree.step(items=[item(1, "b"), item(2, "c")])

        assert await store.read_items("run-1") == [item(0, "a"), item(1, "b"), item(2, "c")]

    async def test_items_come_by_index(self, store: Store) -> None:
        """In whatever order they were recorded, they are read in the order of their index. [SF-M15]"""
        tree = await begin(store)
        await tree.step(items=[item(11), item(2)])
        await tree.step(items=[item(10), item(0), item(1)])

        assert await read_indexes(store, "run-1") == [0, 1, 2, 10, 11]

    async def test_items_are_read_in_pages(self, store: Store) -> None:
        """`after` names the last index of the page before, `limit` the size of a page."""
        tree = await begin(store)
        await tree.step(items=[item(index) for index in range(5)])

        assert await read_indexes(store, "run-1", limit=2) == [0, 1]
        assert await read_indexes(store, "run-1", after=1, limit=2) == [2, 3]
        assert await read_indexes(store, "run-1", after=3, limit=2) == [4]
        assert await read_indexes(store, "run-1", after=4, limit=2) == []

    async def test_page_has_a_full_measure_of_items(self, store: Store) -> None:
        """Without a limit a reader gets `PAGE_SIZE_MAX` items and goes on from there."""
        tree = await begin(store)
        await tree.step(items=[item(index) for index in range(PAGE_SIZE_MAX + 1)])

        assert await read_indexes(store, "run-1") == list(range(PAGE_SIZE_MAX))
        assert await read_indexes(store, "run-1", after=PAGE_SIZE_MAX - 1) == [PAGE_SIZE_MAX]

    async def test_item_is_recorded_once(self, store: Store) -> None:
        """A second outcome for the same item changes nothing, and the change around it commits."""
        tree = await begin(store)
        await tree.step(items=[item(0, "first")])

        outcome = await tree.try_write(stepped(store), items=[item(0, "second"), item(1, "other")])

        assert outcome is Outcome.COMMITTED
        assert await store.read_items("run-1") == [item(0, "first"), item(1, "other")]

    async def test_items_belong_to_a_run(self, store: Store) -> None:
        """Two runs of one tree, and two trees, number their items independently."""
        tree, second = await begin(store), await begin(store, "run-2")
        child_id = await tree.spawn(1)
        await tree.step(items=[item(0, "root"), item(0, "child", run=1)])
        await second.step(items=[item(0, "elsewhere")])

        assert await store.read_items("run-1") == [item(0, "root")]
        assert await store.read_items(child_id) == [item(0, "child", run=1)]
        assert await store.read_items("run-2") == [item(0, "elsewhere")]

    async def test_failed_item_keeps_its_failure(self, store: Store) -> None:
        """An item has a result or a failure, and each comes back whole."""
        failed = ItemResult(run=0, index=0, failure=Failure("app.Broken", "no", ["no"], {"code": 7}))
        tree = await begin(store)
        await tree.step(items=[failed])

        assert await store.read_items("run-1") == [failed]

    async def test_large_item_is_not_truncated(self, store: Store) -> None:
        """More than 2 MB come back whole."""
        large = item(0, "x" * LARGE_BYTES)
        tree = await begin(store)
        await tree.step(items=[large])

        assert await store.read_items("run-1") == [large]

    async def test_run_without_items_has_none(self, store: Store) -> None:
        """Neither a run without a batch nor an unknown run is an error."""
        await begin(store)

        assert await store.read_items("run-1") == []
        assert await store.read_items("unknown") == []

    async def test_item_of_a_refused_change_is_not_kept(self, store: Store) -> None:
        """A conflict leaves no item behind."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step()

        await late.try_write(stepped(store), items=[item(0)])

        assert await store.read_items("run-1") == []


def item(index: int, result: str = "done", *, run: int = 0) -> ItemResult:
    """An item that succeeded."""
    return ItemResult(run=run, index=index, result=value(result))


async def read_indexes(store: Store, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[int]:
    """The indexes of a page of items."""
    return [each.index for each in await store.read_items(run_id, after=after, limit=limit)]
