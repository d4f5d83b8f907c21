"""Trees that go on as others: one ends, and its successor takes its id, its waiting messages and its message keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from outlive._kernel.journal.event import RunContinued
from outlive._kernel.model import RunFilter, RunStatus, definition_key
from outlive._kernel.store.contract import Answer, Change, Delivery, MessageKind, Outcome, Store
from outlive_conformance.suite.builders import (
    NONCE,
    WORKFLOW,
    Writer,
    begin,
    claim,
    created,
    follow,
    get_run,
    hire,
    message,
    new_tree,
    read_message_ids,
    read_names,
    see_everything,
    send,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.starts import renamed

SUCCESSOR = definition_key(WORKFLOW, 2)


class SuccessorsConformance(Facet):
    """`successor_of`, alone and among the `starts` of the change that ends the tree."""

    async def test_tree_ends_and_goes_on_in_one_change(self, store: Store) -> None:
        """The id is the successor's, and the ended tree is found by another one, with its children. [OL-H1]"""
        tree = await begin(store, version=1)
        await tree.spawn(1)
        await tree.succeed(run=1)

        assert await go_on(tree) is Outcome.COMMITTED

        found = await store.find_runs(["run-1", "run-1~1", "run-1.1", "run-1.1~1"])
        assert {run_id: run.version for run_id, run in found.items()} == {"run-1": 2, "run-1.1": 1, "run-1.1~1": 1}
        assert found["run-1.1"].journal == tree.journal != found["run-1"].journal
        assert {run.id for run in await store.list_runs(RunFilter(root_id="run-1.1"))} == {"run-1.1", "run-1.1~1"}
        assert [row[0] for row in await store.read_journal(found["run-1"].journal)] == [0]

    async def test_continued_tree_has_ended(self, store: Store) -> None:
        """Nothing follows in its journal, no worker claims it, and a message to it is refused. [OL-H2]"""
        await hire(store, "worker-1")
        tree = await begin(store)
        await go_on(tree)

        assert [run.id for run in await store.list_runs(RunFilter(statuses=(RunStatus.CONTINUED,)))] == ["run-1.1"]
        assert await send(store, message(store, "run-1.1")) == [Delivery.FINISHED]
        assert await claim(store, "worker-1", definitions=[SUCCESSOR]) == ["run-1"]
        tree.seq += 1
        assert await tree.try_write(stepped(store)) is Outcome.CONFLICT

    async def test_successor_has_the_messages_that_waited(self, store: Store) -> None:
        """They keep their order, before messages that come later, and the ended tree has them no more. [OL-H3]"""
        tree = await begin(store)
        await send(store, *(message(store, "run-1", name) for name in ("first", "second", "third")))
        first, *others = await read_message_ids(store, tree)

        await go_on(tree, consumed=[first])
        await send(store, message(store, "run-1", "fourth"))

        successor = await follow(store, "run-1")
        assert await read_names(store, successor) == ["second", "third", "fourth"]
        assert (await read_message_ids(store, successor))[:2] == others
        assert await read_names(store, tree) == []

    async def test_successor_consumes_what_it_took_over(self, store: Store) -> None:
        """Once: a message that was inherited is a message like any other. [OL-H3]"""
        tree = await begin(store)
        await send(store, message(store, "run-1", "first"), message(store, "run-1", "second"))
        await go_on(tree)
        successor = await follow(store, "run-1")

        first, _ = await read_message_ids(store, successor)
        await successor.step(consumed=[first])

        assert await read_names(store, successor) == ["second"]

    async def test_successor_knows_the_keys_of_messages(self, store: Store) -> None:
        """A successor knows the keys of waiting and of consumed messages; the ended tree says that it has ended.
        [OL-H4]"""
        tree = await begin(store)
        await send(store, message(store, "run-1", key="consumed"), message(store, "run-1", key="waiting"))
        first, _ = await read_message_ids(store, tree)
        await tree.step(consumed=[first])

        await go_on(tree)

        for key in ("consumed", "waiting"):
            assert await send(store, message(store, "run-1", key=key)) == [Delivery.DUPLICATE]
            assert await send(store, message(store, "run-1.1", key=key)) == [Delivery.FINISHED]
        assert await send(store, message(store, "run-1", key="new")) == [Delivery.ACCEPTED]

    async def test_run_that_lives_on_gets_signals_and_asks_that_wait(self, store: Store) -> None:
        """It gets them in their order. Requests of people and ends of other runs stay with the run before."""
        tree = await begin(store)
        kinds = (MessageKind.SIGNAL, MessageKind.CANCEL, MessageKind.ASK, MessageKind.RESUME)
        await send(store, *(message(store, "run-1", kind.value, kind=kind, key=f"k{kind.value}") for kind in kinds))
        await tree.succeed()

        assert await live_on(tree) is Outcome.COMMITTED

        assert await read_names(store, await follow(store, "run-1")) == ["signal", "ask"]
        assert await read_names(store, tree) == ["cancel", "resume"]

    async def test_run_that_lives_on_knows_keys_of_signals_and_of_answered_asks(self, store: Store) -> None:
        """An ask that the run before took and never answered is a new one, and so is every message of another kind."""
        tree = await begin(store)
        keys = ("run-1/go/taken", "@ask/run-1/sum/answered", "@ask/run-1/sum/open", "@cancel/0/1", "run-1/go/waiting")
        await send(store, *(message(store, "run-1", key=key) for key in keys))
        *taken, _ = await read_message_ids(store, tree)
        await tree.step(consumed=taken, answers=[Answer(key=keys[1], result=value(7))])
        await tree.succeed()

        await live_on(tree)

        known = [await send(store, message(store, "run-1", key=key)) for key in keys]
        accepted, duplicate = [Delivery.ACCEPTED], [Delivery.DUPLICATE]
        assert known == [duplicate, duplicate, accepted, accepted, duplicate]
        answers = await store.find_answers([("run-1", keys[1]), ("run-1.1", keys[1]), ("run-1.1", keys[2])])
        assert {asked: answer and answer.key for asked, answer in answers.items()} == {
            ("run-1", keys[1]): keys[1],
            ("run-1.1", keys[2]): None,
        }

    async def test_message_may_bring_the_run_that_lives_on(self, store: Store) -> None:
        """The run of a delivery takes the place of an ended run, and the message is for it. If two deliveries want
        that, one run begins, and the messages of both reach it."""
        tree = await begin(store)
        await tree.succeed()
        births = [await birth_after(tree, name) for name in ("run-1.1", "run-1.2")]

        first = await send(store, message(store, "run-1", "first", key="k"), start=births[0])
        second = await send(
            store, message(store, "run-1", "first", key="k"), message(store, "run-1", "second"), start=births[1]
        )

        assert (first, second) == ([Delivery.ACCEPTED], [Delivery.DUPLICATE, Delivery.ACCEPTED])
        assert await read_names(store, await follow(store, "run-1")) == ["first", "second"]
        found = await store.find_runs(["run-1.1", "run-1.2"])
        assert {run_id: run.journal for run_id, run in found.items()} == {"run-1.1": tree.journal}

    async def test_open_run_makes_no_room_for_a_run_that_lives_on(self, store: Store) -> None:
        """The message reaches the open run, which keeps its id and its keys."""
        tree = await begin(store)
        await send(store, message(store, "run-1", "first", key="k"))

        assert await send(store, message(store, "run-1", "second"), start=await birth_after(tree, "run-1.1")) == [
            Delivery.ACCEPTED
        ]

        assert await read_names(store, tree) == ["first", "second"]
        assert await send(store, message(store, "run-1", key="k")) == [Delivery.DUPLICATE]

    async def test_message_to_a_child_is_not_inherited(self, store: Store) -> None:
        """The successor has no such child. [OL-H5]"""
        tree = await begin(store)
        await tree.spawn(1)
        await send(store, message(store, "run-1~1", "to the child"), message(store, "run-1", "to the root"))
        await tree.succeed(run=1)

        await go_on(tree)

        assert await read_names(store, await follow(store, "run-1")) == ["to the root"]
        assert await read_names(store, tree) == ["to the child"]

    async def test_tree_that_has_not_ended_keeps_its_messages(self, store: Store) -> None:
        """Its successor is a tree like any other. [OL-H5]"""
        tree = await begin(store)
        await send(store, message(store, "run-1", "mine", key="k"))

        second = new_tree(store, "run-2")
        second.successor_of = tree.journal
        ((outcome, journal),) = await store.commit([second])

        assert outcome is Outcome.COMMITTED
        assert await read_names(store, tree) == ["mine"]
        assert await store.read_inbox([journal]) == {}
        assert await send(store, message(store, "run-1", key="k")) == [Delivery.DUPLICATE]
        assert await send(store, message(store, "run-2", key="k")) == [Delivery.ACCEPTED]

    async def test_inherited_messages_make_the_successor_due(self, store: Store) -> None:
        """Whatever its own wake-up says. [OL-H6]"""
        await hire(store, "worker-1")
        tree = await begin(store, worker="worker-1")
        await send(store, message(store, "run-1"))

        await go_on(tree, wake_at=None)

        assert (await get_run(store, "run-1")).wake_at == store.now()
        assert await claim(store, "worker-1", definitions=[SUCCESSOR]) == ["run-1"]

    async def test_successor_without_messages_sleeps_on(self, store: Store) -> None:
        """Nothing but messages changes its wake-up. [OL-H6]"""
        tree = await begin(store)

        await go_on(tree, wake_at=store.now() + 5)

        assert (await get_run(store, "run-1")).wake_at == store.now() + 5

    async def test_owner_of_the_successor_finds_its_messages(self, store: Store) -> None:
        """A worker that goes on with it at once hears of what waits. [OL-H6]"""
        await hire(store, "worker-1")
        tree = await begin(store, worker="worker-1")
        await send(store, message(store, "run-1"))

        await go_on(tree, worker="worker-1")

        assert await store.find_inboxes("worker-1") == [(await get_run(store, "run-1")).journal]

    @pytest.mark.parametrize("obstacle", ["the id is taken", "a new id is taken"])
    async def test_no_tree_ends_without_its_successor(self, store: Store, obstacle: str) -> None:
        """If the successor cannot be created, the change that ends the tree conflicts as a whole. [OL-H7]"""
        tree = await begin(store)
        await begin(store, "run-1.1")
        await send(store, message(store, "run-1"))
        before = await see_everything(store, tree), await get_run(store, "run-1.1")

        change = await continuation(tree)
        if obstacle == "the id is taken":
            change.starts[0].renames = []
        ((outcome, _),) = await store.commit([change])

        assert outcome is Outcome.CONFLICT
        assert (await see_everything(store, tree), await get_run(store, "run-1.1")) == before

    async def test_refused_change_has_no_successor(self, store: Store) -> None:
        """A worker that was too late neither ends the tree nor takes anything away from it. [OL-H7]"""
        tree = await begin(store)
        late = tree.twin()
        await send(store, message(store, "run-1", key="k"))
        await tree.step()
        before = await see_everything(store, tree)

        assert await go_on(late) is Outcome.CONFLICT

        assert await see_everything(store, tree) == before
        assert (await store.find_runs(["run-1", "run-1.1"])).keys() == {"run-1"}

    async def test_messages_of_the_last_change_go_to_the_successor(self, store: Store) -> None:
        """A tree that writes to its own id when it ends writes to the run that has it then. [OL-H8]"""
        tree = await begin(store)
        change = await continuation(tree)
        change.messages = [message(store, "run-1", "to myself")]

        await store.commit([change])

        assert await read_names(store, await follow(store, "run-1")) == ["to myself"]

    async def test_many_trees_go_on_at_once(self, store: Store) -> None:
        """In one commit with other changes, of which one conflicts. [OL-H9]"""
        trees = [await begin(store, f"run-{number}", version=1) for number in range(8)]
        await send(store, *(message(store, tree.run_id, tree.run_id) for tree in trees))
        late, other = trees[3].twin(), await begin(store, "other")
        await trees[3].step()
        writers = [late if tree is trees[3] else tree for tree in trees]

        changes = [await continuation(tree) for tree in writers]
        outcomes = await store.commit([*changes, other.change(stepped(store))])

        lost = [number for number, (outcome, _) in enumerate(outcomes) if outcome is Outcome.CONFLICT]
        assert lost == [3]
        for number, tree in enumerate(trees):
            run = await get_run(store, tree.run_id)
            assert run.version == (1 if number == 3 else 2)
            assert await read_names(store, await follow(store, run.id)) == [run.id]

    async def test_successors_have_successors(self, store: Store) -> None:
        """Each generation takes the id on, and what was sent to the first reaches the last. [OL-H9]"""
        await begin(store)
        await send(store, message(store, "run-1", "old", key="k"))

        for generation in range(1, 4):
            successor = await follow(store, "run-1")
            assert await go_on(successor, name=f"run-1.{generation}") is Outcome.COMMITTED

        assert await read_names(store, await follow(store, "run-1")) == ["old"]
        assert await send(store, message(store, "run-1", key="k")) == [Delivery.DUPLICATE]
        continued = await store.list_runs(RunFilter(statuses=(RunStatus.CONTINUED,)))
        assert {run.id for run in continued} == {"run-1.1", "run-1.2", "run-1.3"}

    async def test_parked_successor_is_woken_by_a_resume_alone(self, store: Store) -> None:
        """A message that was inherited wakes no run that it would not have woken. [OL-H6]"""
        tree = await begin(store)
        await send(store, message(store, "run-1"))
        change = await continuation(tree)
        (successor,) = change.starts
        successor.runs = [replace(successor.runs[0], status=RunStatus.PARKED, wake_at=None)]
        await store.commit([change])

        assert (await get_run(store, "run-1")).wake_at is None
        await send(store, message(store, "run-1", kind=MessageKind.RESUME))
        assert (await get_run(store, "run-1")).wake_at == store.now()

    async def test_successor_may_come_after_the_end(self, store: Store) -> None:
        """A change of its own that creates the successor of a tree that has ended before does the same. [OL-H10]"""
        tree = await begin(store, version=1)
        await send(store, message(store, "run-1", "late", key="k"))
        await tree.succeed()

        second = Writer(store, "run-1")
        change = second.change(created(store, version=2, nonce=NONCE), renames=await renamed(tree, "run-1.1"))
        change.successor_of = tree.journal
        ((outcome, _),) = await store.commit([change])

        assert outcome is Outcome.COMMITTED
        assert await read_names(store, await follow(store, "run-1")) == ["late"]
        assert await send(store, message(store, "run-1", key="k")) == [Delivery.DUPLICATE]

    async def test_rename_to_a_taken_id_conflicts(self, store: Store) -> None:
        """No run is pushed aside, and the ended run keeps its id. [OL-H11]"""
        ended, other = await begin(store, version=1), await begin(store, "other")
        await ended.succeed()
        before = await see_everything(store, ended), await see_everything(store, other)

        outcome = await Writer(store, "run-1").try_write(
            created(store, version=2), renames=await renamed(ended, "other")
        )

        assert outcome is Outcome.CONFLICT
        assert (await see_everything(store, ended), await see_everything(store, other)) == before


async def continuation(
    tree: Writer,
    *,
    name: str = "",
    consumed: list[int] | None = None,
    answers: list[Answer] | None = None,
    wake_at: int | None = -1,
    worker: str = "",
) -> Change:
    """The change that ends a tree and starts its successor under its id; from then on the tree is called `name`."""
    store = tree.store
    successor = new_tree(store, tree.run_id, version=2, worker=worker)
    if wake_at != -1:
        successor.runs = [replace(successor.runs[0], status=RunStatus.WAITING, wake_at=wake_at)]
    successor.renames = await renamed(tree, name or f"{tree.run_id}.1")
    successor.successor_of = tree.journal
    end = RunContinued(at=store.now(), workflow=WORKFLOW, version=2)
    return tree.change(end, starts=[successor], consumed=consumed or [], answers=answers or [])


async def go_on(tree: Writer, **options: object) -> Outcome:
    """End a tree and start its successor."""
    ((outcome, _),) = await tree.store.commit([await continuation(tree, **options)])  # type: ignore[arg-type]
    return outcome


async def birth_after(tree: Writer, name: str) -> Change:
    """The change that begins another run under the id of this one, which gets another name."""
    birth = new_tree(tree.store, tree.run_id, version=2)
    birth.renames = await renamed(tree, name)
    birth.successor_of, birth.lives_on = tree.journal, True
    return birth


async def live_on(tree: Writer) -> Outcome:
    """Begin another run under the id of an ended one."""
    ((outcome, _),) = await tree.store.commit([await birth_after(tree, f"{tree.run_id}.1")])
    return outcome
