"""Trees that come with a change: started by another tree, or in the place of an ended run."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.model import Run, RunFilter, child_id
from outlive._kernel.store.contract import Change, Delivery, Outcome, Store
from outlive_conformance.suite.builders import (
    NONCE,
    Writer,
    begin,
    created,
    follow,
    get_run,
    message,
    new_tree,
    read_names,
    see_everything,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class StartsConformance(Facet):
    """The `starts` and `renames` of a change."""

    # -- Trees that a change starts ------------------------------------------------------------------------

    async def test_started_tree_exists_with_the_change(self, store: Store) -> None:
        """A change that commits creates the trees it starts, and the trees that they start."""
        tree = await begin(store)
        second = new_tree(store, "second")
        second.starts = [new_tree(store, "third")]

        await tree.step(starts=[second])

        found = await store.find_runs(["second", "third"])
        assert found.keys() == {"second", "third"}
        assert len({tree.journal, *(run.journal for run in found.values())}) == 3
        assert [row[0] for row in await store.read_journal(found["third"].journal)] == [0]

    async def test_tree_of_a_refused_change_is_not_started(self, store: Store) -> None:
        """A change that conflicts starts nothing."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step()

        await late.try_write(stepped(store), starts=[new_tree(store, "never")])

        assert await store.find_run("never") is None

    async def test_start_of_a_taken_id_leaves_it_as_it_is(self, store: Store) -> None:
        """The run that has the id stays, and the change commits all the same."""
        tree = await begin(store)
        await begin(store, "taken", version=1)
        before = await get_run(store, "taken")
        second = new_tree(store, "taken", version=2)
        second.starts = [new_tree(store, "never")]

        outcome = await tree.try_write(stepped(store), starts=[second, new_tree(store, "free")])

        assert outcome is Outcome.COMMITTED
        assert await store.find_run("taken") == before
        assert (await store.find_runs(["never", "free"])).keys() == {"free"}

    async def test_taken_id_is_a_conflict_also_beside_another_one(self, store: Store) -> None:
        """Whatever else of a commit conflicts: a new tree whose id is taken writes nothing, starts nothing and sends
        nothing, and each of the others has its own answer."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step()
        await begin(store, "taken")
        taken = new_tree(store, "taken")
        taken.starts, taken.messages = [new_tree(store, "never")], [message(store, "run-1")]

        outcomes = await store.commit([late.change(stepped(store)), taken, new_tree(store, "free")])

        conflict = Outcome.CONFLICT
        assert [outcome for outcome, _ in outcomes] == [conflict, conflict, Outcome.COMMITTED]
        assert (await store.find_runs(["never", "free"])).keys() == {"free"}
        assert await read_names(store, tree) == []

    # -- Other ids -----------------------------------------------------------------------------------------

    async def test_ended_run_makes_room_for_a_new_one(self, store: Store) -> None:
        """One change gives an ended tree, root and children, other ids and creates a run with the former one."""
        tree = await begin(store, version=1)
        await tree.spawn(1)
        await tree.succeed(run=1)
        await tree.succeed()
        second = Writer(store, "run-1")

        await second.write(created(store, version=2, nonce=NONCE), renames=await renamed(tree, "run-1.1"))

        found = await store.find_runs(["run-1", "run-1~1", "run-1.1", "run-1.1~1"])
        assert {run_id: (run.version, run.journal) for run_id, run in found.items()} == {
            "run-1": (2, second.journal),
            "run-1.1": (1, tree.journal),
            "run-1.1~1": (1, tree.journal),
        }
        assert {run.id for run in await store.list_runs(RunFilter(root_id="run-1.1"))} == {"run-1.1", "run-1.1~1"}
        assert await second.spawn(1) == "run-1~1"

    async def test_started_tree_may_take_the_id_of_an_ended_run(self, store: Store) -> None:
        """Whether a change or a message starts it."""
        starter = await begin(store, "starter")
        for run_id in ("by-change", "by-message"):
            await (await begin(store, run_id, version=1)).succeed()
        by_change = await successor(store, "by-change")
        by_message = await successor(store, "by-message")

        await starter.step(starts=[by_change])
        answers = await send(store, message(store, "by-message"), start=by_message)

        found = await store.find_runs(["by-change", "by-change.1", "by-message", "by-message.1"])
        versions = {run_id: run.version for run_id, run in found.items()}
        assert versions == {"by-change": 2, "by-change.1": 1, "by-message": 2, "by-message.1": 1}
        assert answers == [Delivery.ACCEPTED]

    async def test_run_that_has_not_ended_keeps_its_id(self, store: Store) -> None:
        """It does not make room, so the run that would take its id conflicts."""
        tree = await begin(store, version=1)
        before = await see_everything(store, tree)

        outcome = await Writer(store, "run-1").try_write(
            created(store, version=2), renames=await renamed(tree, "run-1.1")
        )

        assert outcome is Outcome.CONFLICT
        assert await see_everything(store, tree) == before
        assert await store.find_run("run-1.1") is None

    async def test_refused_change_renames_nothing(self, store: Store) -> None:
        """An ended run keeps its id when the change that would take it away conflicts."""
        tree, ended = await begin(store), await begin(store, "ended")
        late = tree.twin()
        await tree.step()
        await ended.succeed()

        outcome = await late.try_write(stepped(store), renames=await renamed(ended, "ended.1"))

        assert outcome is Outcome.CONFLICT
        assert (await store.find_runs(["ended", "ended.1"])).keys() == {"ended"}


async def renamed(tree: Writer, new_id: str) -> list[Run]:
    """The rows of a whole tree as they are when its root has another id."""
    runs = [await get_run(tree.store, run.id) for run in tree.fold.runs.values()]
    ids = {run.id: child_id(new_id, run.number) for run in runs}
    return [
        replace(run, id=ids[run.id], root_id=new_id, parent_id=ids.get(run.parent_id or "", run.parent_id))
        for run in runs
    ]


async def successor(store: Store, run_id: str) -> Change:
    """The change that creates a run in the place of an ended one."""
    change = new_tree(store, run_id, version=2)
    change.renames = await renamed(await follow(store, run_id), f"{run_id}.1")
    return change
