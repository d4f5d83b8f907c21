"""The eyes of a checker: everything that lies in a store, as it lies there, and repairs that touch no journal."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import ItemResult, MessageKind, Store
from outlive._kernel.store.examine import Repair, TreeRows
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import Writer, begin, claim, get_run, hire, message, send, value
from outlive_conformance.suite.facet import Facet


class ExamineConformance(Facet):
    """`Store.examiner`."""

    # -- Looking -------------------------------------------------------------------------------------------

    async def test_database_of_a_sound_store_has_no_faults(self, store: Store) -> None:
        """Neither an empty one nor one in use."""
        assert await store.examiner.check_database() == []
        await begin(store, tags={"shop": "north"})
        assert await store.examiner.check_database() == []

    async def test_journals_are_listed_in_pages(self, store: Store) -> None:
        """Ascending, each once, from where the last page ended."""
        assert await store.examiner.list_journals(limit=10) == []
        journals = [(await begin(store, f"run-{number}")).journal for number in range(5)]

        assert await store.examiner.list_journals(limit=10) == sorted(journals)
        assert await store.examiner.list_journals(limit=2) == sorted(journals)[:2]
        assert await store.examiner.list_journals(after=sorted(journals)[1], limit=2) == sorted(journals)[2:4]

    async def test_tree_is_seen_with_everything_that_hangs_on_it(self, store: Store) -> None:
        """Rows, the end of the journal, inbox, items and keys."""
        tree = await begin(store, tags={"shop": "north"})
        await tree.spawn(1)
        await tree.step("a", items=[ItemResult(run=0, index=index, result=value(index)) for index in (3, 4)])
        await send(store, message(store, "run-1", key="k"), message(store, "run-1~1"))

        found = await look(store, tree)

        assert [(row.number, row.id) for row in found.runs] == [(0, "run-1"), (1, "run-1~1")]
        assert [await get_run(store, "run-1"), await get_run(store, "run-1~1")] == [row.run for row in found.runs]
        assert ({tree.journal}, {"run-1"}) == ({row.journal for row in found.runs}, {it.root_id for it in found.runs})
        assert (tree.journal, 2, 3, ()) == (found.journal, found.tail, found.count, found.lasts)
        assert [
            (message.run, message.kind, message.key, message.is_remembered and bool(message.key))
            for message in found.inbox
        ] == [
            (0, "signal", "k", True),
            (1, "signal", "", False),
        ]
        assert [(it.run, it.count, it.first, it.last) for it in found.items] == [(0, 2, 3, 4)]
        assert found.keys == ("k",)
        assert {()} == {row.untagged for row in found.runs}

    async def test_end_of_a_tree_is_marked(self, store: Store) -> None:
        """The mark is what keeps others from writing behind it."""
        tree = await begin(store)
        await tree.succeed()

        assert (await look(store, tree)).lasts == ((1, 1),)

    async def test_many_trees_come_in_the_order_in_which_they_were_asked_for(self, store: Store) -> None:
        """Trees come in the order of the question, and a journal that does not exist comes as an empty tree."""
        first, second = await begin(store, "run-1"), await begin(store, "run-2")

        found = await store.examiner.examine([second.journal, 1_000_000, first.journal])

        assert [second.journal, 1_000_000, first.journal] == [it.journal for it in found]
        assert TreeRows(journal=1_000_000) == found[1]

    # -- Repairing -----------------------------------------------------------------------------------------

    async def test_repair_writes_rows_again(self, store: Store) -> None:
        """A repair writes rows that exist, and rows that do not; events stay as they are."""
        tree = await begin(store, tags={"shop": "north"})
        await tree.spawn(1)
        rows = await store.read_journal(tree.journal)
        (root, child) = (await look(store, tree)).runs
        assert root.run is not None
        assert child.run is not None
        wrong = replace(root.run, status=RunStatus.PARKED, reason="planted", epoch=9)
        assert await store.examiner.repair(repair_of(tree, (root.key, wrong), removed=(child.key,)))
        assert (await get_run(store, "run-1")).reason == "planted"
        assert await store.find_run("run-1~1") is None

        assert await store.examiner.repair(repair_of(tree, (root.key, tree.fold.root), (None, tree.fold.runs[1])))

        assert [root.run, child.run] == [it.run for it in (await look(store, tree)).runs]
        assert rows == await store.read_journal(tree.journal)
        assert [it.untagged for it in (await look(store, tree)).runs] == [()] * 2

    async def test_repair_of_a_journal_that_has_gone_on_changes_nothing(self, store: Store, other: Store) -> None:
        """A repair of a journal that has gone on changes nothing: the journal that it was made from is out of date."""
        tree = await begin(store)
        (root,) = (await look(store, tree)).runs
        repair = repair_of(tree, (root.key, replace(tree.fold.root, reason="stale")))
        await tree.twin(other).step()

        assert not await store.examiner.repair(repair)
        assert (await get_run(store, "run-1")).reason == ""

    async def test_repair_that_needs_the_id_of_another_tree_changes_nothing(self, store: Store) -> None:
        """An id is one run's."""
        tree = await begin(store, "run-1")
        await begin(store, "run-2")
        (root,) = (await look(store, tree)).runs

        assert not await store.examiner.repair(repair_of(tree, (root.key, replace(tree.fold.root, id="run-2"))))
        assert (await get_run(store, "run-1")).journal == tree.journal

    async def test_repaired_tree_with_messages_is_due(self, store: Store, clock: ManualClock) -> None:
        """A repaired tree with messages is due, as every released tree: no wake-up is lost."""
        await hire(store, "anvil")
        tree = await begin(store, worker="anvil")
        await tree.suspend()
        await send(store, message(store, "run-1"))
        (root,) = (await look(store, tree)).runs
        clock.advance(seconds=1)

        assert await store.examiner.repair(repair_of(tree, (root.key, tree.fold.root)))

        assert await claim(store, "anvil") == ["run-1"]

    async def test_repair_can_wake_a_tree(self, store: Store) -> None:
        """One that waits for something that is there already; a parked one stays parked."""
        await hire(store, "anvil")
        tree = await begin(store, "run-1", worker="anvil")
        await tree.suspend()
        parked = await begin(store, "run-2", worker="anvil")
        await parked.park()

        assert await store.examiner.repair(replace(repair_of(tree), wake=True))
        assert await store.examiner.repair(replace(repair_of(parked), wake=True))

        assert await claim(store, "anvil") == ["run-1"]

    async def test_resume_in_the_inbox_makes_a_repaired_tree_due(self, store: Store) -> None:
        """A parked one only that."""
        await hire(store, "anvil")
        tree = await begin(store, worker="anvil")
        await tree.park()
        await send(store, message(store, "run-1"))
        (root,) = (await look(store, tree)).runs
        assert await store.examiner.repair(repair_of(tree, (root.key, tree.fold.root)))
        assert await claim(store, "anvil") == []
        await send(store, message(store, "run-1", kind=MessageKind.RESUME))

        assert await store.examiner.repair(repair_of(tree, (root.key, tree.fold.root)))

        assert await claim(store, "anvil") == ["run-1"]


async def look(store: Store, tree: Writer) -> TreeRows:
    """The rows of one tree in the store."""
    (found,) = await store.examiner.examine([tree.journal])
    return found


def repair_of(tree: Writer, *runs: tuple[int | None, Run], removed: tuple[int, ...] = ()) -> Repair:
    """A repair that follows from all that the writer knows."""
    return Repair(journal=tree.journal, after=tree.seq, runs=runs, removed=removed)
