"""Run rows: created once, replaced whole, found by id; and what one commit of many changes means."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.journal.event import RunFailed, RunPublished
from outlive._kernel.model import Failure, Run, RunStatus
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive_conformance.suite.builders import (
    Writer,
    begin,
    created,
    get_run,
    new_tree,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.samples import fullest


class RunsConformance(Facet):
    """`commit`, as far as it creates and changes runs, `find_run` and `find_runs`."""

    # -- Rows ----------------------------------------------------------------------------------------------

    async def test_created_run_is_found(self, store: Store) -> None:
        """The row is the fold of the journal, and names the handle of its journal. [SF-M1 FB-S1]"""
        tree = await begin(store)

        assert await store.find_run("run-1") == replace(tree.fold.root, journal=tree.journal)

    async def test_unknown_run_is_not_found(self, store: Store) -> None:
        """There is no such run, and that is not an error. [SF-M3]"""
        assert await store.find_run("unknown") is None

    async def test_id_is_taken_once(self, store: Store) -> None:
        """Creating a run that exists conflicts and leaves the first one as it is. [SF-M2 TS-S1]"""
        tree = await begin(store, input=value("first"))
        before = await store.read_journal(tree.journal)

        outcome = await Writer(store, "run-1").try_write(created(store, input=value("second"), version=2))

        assert outcome is Outcome.CONFLICT
        assert await store.read_journal(tree.journal) == before
        assert (await get_run(store, "run-1")).version == 1

    async def test_id_stays_taken_when_the_run_has_ended(self, store: Store) -> None:
        """An ended run is still a run."""
        tree = await begin(store)
        await tree.succeed()

        assert await Writer(store, "run-1").try_write(created(store)) is Outcome.CONFLICT

    async def test_child_does_not_take_the_id_of_another_run(self, store: Store) -> None:
        """The change that would create it conflicts, and the run that has the id stays as it is."""
        tree, other = await begin(store), await begin(store, "run-1~1", version=2)
        before = await get_run(store, "run-1~1")

        assert await tree.try_write(created(store, run=1, call="child")) is Outcome.CONFLICT

        assert await get_run(store, "run-1~1") == before
        assert await store.find_run(other.run_id) == before
        assert len(await store.read_journal(tree.journal)) == 1

    async def test_every_field_of_a_row_comes_back(self, store: Store) -> None:
        """A row is what its writer made it, whatever it is made of."""
        row: Run = replace(
            fullest(Run), id="run-1", root_id="run-1", number=0, nonce=2**64 - 1, status=RunStatus.RUNNING, slot=2
        )
        change = new_tree(store, "run-1")
        ((_, journal),) = await store.commit([Change(journal=0, after=-1, rows=change.rows, runs=[row])])

        assert await store.find_run("run-1") == replace(row, journal=journal)

    async def test_changed_row_takes_the_place_of_the_former(self, store: Store) -> None:
        """A status that changed with an event is seen with it. [SF-M4 FB-S1]"""
        tree = await begin(store)
        await tree.step()
        assert (await get_run(store, "run-1")).status is RunStatus.PENDING

        await tree.succeed({"total": 7})

        run = await get_run(store, "run-1")
        assert run == replace(tree.fold.root, journal=tree.journal)
        assert (run.status, run.result) == (RunStatus.SUCCEEDED, value({"total": 7}))

    async def test_what_a_run_publishes_stays_in_its_row(self, store: Store) -> None:
        """The last word counts, of each run for itself, also after the end. [OL-P1]"""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        for stage in ("picking", "packing"):
            await tree.write(RunPublished(at=store.now(), payload=value({"stage": stage})))
        await tree.write(RunPublished(at=store.now(), run=1, payload=value({"stage": "child's"})))
        await tree.step()
        await tree.succeed(run=1)
        await tree.succeed()

        found = await store.find_runs(["run-1", child_id])
        assert found["run-1"].published == value({"stage": "packing"})
        assert found[child_id].published == value({"stage": "child's"})

    async def test_run_that_has_not_ended_has_no_outcome(self, store: Store) -> None:
        """Neither a result nor a failure nor an end, also after a first step. [SF-M18]"""
        tree = await begin(store)
        await tree.step()

        run = await get_run(store, "run-1")

        assert (run.result, run.failure, run.finished_at) == (None, None, None)

    async def test_failed_run_keeps_its_failure(self, store: Store) -> None:
        """Type, message, arguments, attributes, cause, notes and traceback come back. [SF-M20]"""
        failure: Failure = fullest(Failure)
        tree = await begin(store)
        await tree.write(RunFailed(at=store.now(), failure=failure))

        run = await get_run(store, "run-1")

        assert (run.status, run.failure) == (RunStatus.FAILED, failure)

    async def test_child_keeps_the_ids_of_its_root_and_its_parent(self, store: Store) -> None:
        """A child is a run of its own, in the journal of its root. [SF-M8]"""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        grandchild_id = await tree.spawn(2, parent=1)

        child, grandchild = await get_run(store, child_id), await get_run(store, grandchild_id)

        assert (child.root_id, child.parent_id, child.journal) == ("run-1", "run-1", tree.journal)
        assert (grandchild.root_id, grandchild.parent_id) == ("run-1", child_id)

    async def test_many_runs_are_found_at_once(self, store: Store) -> None:
        """Roots and children, however many; unknown ids are left out."""
        wanted = [f"run-{number}" for number in range(1, 1_200)]
        tree = await begin(store, "run-0")
        child_id = await tree.spawn(1)
        await store.commit([new_tree(store, run_id) for run_id in wanted])

        found = await store.find_runs([*wanted, child_id, "unknown"])

        assert found.keys() == {*wanted, child_id}
        assert all(run.id == run_id for run_id, run in found.items())
        assert await store.find_runs([]) == {}

    # -- Many changes --------------------------------------------------------------------------------------

    async def test_outcomes_come_in_the_order_of_the_changes(self, store: Store) -> None:
        """Each change is answered with its outcome and the handle of its journal, a new one if it made it."""
        old = await begin(store, "old")

        outcomes = await store.commit([new_tree(store, "new-1"), old.change(stepped(store)), new_tree(store, "new-2")])

        first, second = await get_run(store, "new-1"), await get_run(store, "new-2")
        assert outcomes == [(Outcome.COMMITTED, journal) for journal in (first.journal, old.journal, second.journal)]
        assert len({first.journal, old.journal, second.journal}) == 3
        assert await store.commit([]) == []

    async def test_conflict_of_one_change_leaves_the_others(self, store: Store) -> None:
        """A change that conflicts is left out, those before and after it commit."""
        tree, second = await begin(store, "run-1"), await begin(store, "run-2")
        late = second.twin()
        await second.step()

        outcomes = await store.commit(
            [
                tree.change(stepped(store)),
                late.change(stepped(store)),
                new_tree(store, "run-1"),
                new_tree(store, "run-3"),
            ]
        )

        assert [outcome for outcome, _ in outcomes] == [
            Outcome.COMMITTED,
            Outcome.CONFLICT,
            Outcome.CONFLICT,
            Outcome.COMMITTED,
        ]
        assert len(await store.read_journal(tree.journal)) == 2
        assert len(await store.read_journal(second.journal)) == 2
        assert await store.find_run("run-3") is not None

    async def test_id_is_taken_once_in_one_commit(self, store: Store) -> None:
        """The first of two changes creates the run, if both have the same id."""
        twice = [new_tree(store, "run-1", version=1), new_tree(store, "run-1", version=2)]

        outcomes = await store.commit(twice)

        assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.CONFLICT]
        assert (await get_run(store, "run-1")).version == 1

    async def test_large_batch_commits(self, store: Store) -> None:
        """One commit takes as many changes as an engine may collect."""
        outcomes = await store.commit([new_tree(store, f"run-{number}") for number in range(2_000)])

        assert {outcome for outcome, _ in outcomes} == {Outcome.COMMITTED}
        assert len({journal for _, journal in outcomes}) == 2_000

    async def test_change_is_copied_when_it_is_committed(self, store: Store) -> None:
        """A writer that changes the lists of a change afterwards does not reach the store."""
        tree = await begin(store)
        change = tree.change(stepped(store))
        await store.commit([change])
        rows = await store.read_journal(tree.journal)

        change.rows.clear()
        change.runs.clear()

        assert await store.read_journal(tree.journal) == rows
