"""Messages between trees and workers: what a change consumes and sends, starts by message, and who has some."""

from __future__ import annotations

from outlive._kernel.store.contract import Delivery, MessageKind, Outcome, Store
from outlive_conformance.suite.builders import (
    begin,
    claim,
    get_run,
    hire,
    message,
    new_tree,
    read_message_ids,
    read_names,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class MessagesConformance(Facet):
    """`consumed` and `messages` of a change, `deliver` with `start`, and `find_inboxes`."""

    # -- Consumed and sent ---------------------------------------------------------------------------------

    async def test_consumed_message_is_gone(self, store: Store) -> None:
        """A message that a change made a fact does not wait any more; messages that it did not name still wait."""
        tree = await begin(store)
        await send(store, *(message(store, "run-1", name) for name in "abc"))
        first, _, last = await read_message_ids(store, tree)

        await tree.step(consumed=[first, last])

        assert await read_names(store, tree) == ["b"]

    async def test_message_is_not_consumed_by_a_refused_change(self, store: Store) -> None:
        """It waits for the writer that wins."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step()
        await send(store, message(store, "run-1"))

        await late.try_write(stepped(store), consumed=await read_message_ids(store, tree))

        assert await read_names(store, tree) == ["go"]

    async def test_message_of_a_change_is_accepted_with_it(self, store: Store) -> None:
        """One tree speaks to another in the transaction of its own event, and wakes it."""
        tree, friend = await begin(store), await begin(store, "friend")
        await friend.suspend()
        await hire(store, "worker-a")

        await tree.succeed(messages=[message(store, "friend", "hello", kind=MessageKind.ENDED)])

        assert await read_names(store, friend) == ["hello"]
        assert "friend" in await claim(store, "worker-a")

    async def test_message_of_a_refused_change_is_not_sent(self, store: Store) -> None:
        """A loser says nothing to anyone."""
        tree, friend = await begin(store), await begin(store, "friend")
        late = tree.twin()
        await tree.step()

        await late.try_write(stepped(store), messages=[message(store, "friend")])

        assert await read_names(store, friend) == []

    async def test_outcome_of_a_message_does_not_matter_to_its_change(self, store: Store) -> None:
        """The change commits, whether the other run is unknown, has ended or heard it before."""
        tree, friend, ended = [await begin(store, run_id) for run_id in ("run-1", "friend", "ended")]
        await ended.succeed()
        await send(store, message(store, "friend", "first", key="k"))

        outcome = await tree.try_write(
            stepped(store),
            messages=[
                message(store, "unknown"),
                message(store, "ended"),
                message(store, "friend", "again", key="k"),
                message(store, "friend", "second"),
            ],
        )

        assert outcome is Outcome.COMMITTED
        assert await read_names(store, friend) == ["first", "second"]
        assert await store.read_inbox([ended.journal]) == {}

    async def test_change_may_send_to_the_tree_that_it_starts(self, store: Store) -> None:
        """Both exist if and only if the change does."""
        tree = await begin(store)

        await tree.step(starts=[new_tree(store, "second")], messages=[message(store, "second")])

        second = await get_run(store, "second")
        assert (await store.read_inbox([second.journal])).keys() == {second.journal}

    # -- Started by a message ------------------------------------------------------------------------------

    async def test_delivery_starts_the_tree_it_is_for(self, store: Store) -> None:
        """The run is created first, so the message finds it."""
        answers = await send(store, message(store, "run-1"), start=new_tree(store, "run-1"))

        run = await get_run(store, "run-1")
        assert answers == [Delivery.ACCEPTED]
        assert len(await store.read_journal(run.journal)) == 1
        assert (await store.read_inbox([run.journal])).keys() == {run.journal}

    async def test_delivery_leaves_a_taken_id_as_it_is(self, store: Store) -> None:
        """The run that has the id gets the message."""
        tree = await begin(store, version=1)

        answers = await send(store, message(store, "run-1"), start=new_tree(store, "run-1", version=2))

        assert answers == [Delivery.ACCEPTED]
        assert (await get_run(store, "run-1")).version == 1
        assert await read_names(store, tree) == ["go"]

    async def test_delivery_starts_the_trees_of_all_its_messages(self, store: Store) -> None:
        """A run that has one of the ids stays as it is, and only the message of an unknown run is refused."""
        tree = await begin(store, "there")
        trees = [new_tree(store, run_id) for run_id in ("run-1", "there", "run-2")]

        answers = await send(
            store, *(message(store, run_id) for run_id in ("run-2", "none", "there", "run-1")), starts=trees
        )

        accepted = Delivery.ACCEPTED
        assert answers == [accepted, Delivery.UNKNOWN_RUN, accepted, accepted]
        assert await read_names(store, tree) == ["go"]
        for run_id in ("run-1", "run-2"):
            run = await get_run(store, run_id)
            assert (await store.read_inbox([run.journal])).keys() == {run.journal}

    async def test_delivery_starts_one_tree_of_two_with_one_id(self, store: Store) -> None:
        """The first one; the messages of both reach it."""
        trees = [new_tree(store, "run-1", version=version) for version in (1, 2)]

        answers = await send(store, message(store, "run-1"), message(store, "run-1"), starts=trees)

        assert answers == [Delivery.ACCEPTED] * 2
        assert (await get_run(store, "run-1")).version == 1

    async def test_delivery_does_not_start_an_ended_run_again(self, store: Store) -> None:
        """Its id is taken, and an ended run takes no message."""
        tree = await begin(store)
        await tree.succeed()

        answers = await send(store, message(store, "run-1"), start=new_tree(store, "run-1"))

        assert answers == [Delivery.FINISHED]
        assert len(await store.read_journal(tree.journal)) == 2

    # -- Whose inbox has messages --------------------------------------------------------------------------

    async def test_worker_finds_the_trees_of_its_own_whose_inboxes_have_messages(self, store: Store) -> None:
        """It finds neither trees without inbox, nor trees that another worker owns, or no worker."""
        await hire(store, "worker-a")
        mine = await begin(store, "mine", worker="worker-a")
        await begin(store, "mine-silent", worker="worker-a")
        await begin(store, "theirs", worker="worker-b")
        await begin(store, "unowned")
        assert await store.find_inboxes("worker-a") == []

        await send(store, *(message(store, run_id) for run_id in ("mine", "mine", "theirs", "unowned")))

        assert await store.find_inboxes("worker-a") == [mine.journal]
        assert await store.find_inboxes("unknown") == []

    async def test_consumed_messages_is_not_found_again(self, store: Store) -> None:
        """Only a message that waits is found."""
        tree = await begin(store, worker="worker-a")
        await send(store, message(store, "run-1"))
        await tree.step(consumed=await read_message_ids(store, tree))

        assert await store.find_inboxes("worker-a") == []
