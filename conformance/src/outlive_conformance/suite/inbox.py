"""The inbox: accepted means durable, early means buffered, consumed means once."""

from __future__ import annotations

import pytest

from outlive._kernel.model import Failure, RunStatus
from outlive._kernel.model.bounds import Bounds
from outlive._kernel.store.contract import Delivery, Ended, InboxMessage, Message, MessageKind, Store
from outlive_conformance.suite.builders import (
    LARGE_BYTES,
    WORKFLOW,
    begin,
    message,
    new_tree,
    read_message_ids,
    read_names,
    send,
    value,
)
from outlive_conformance.suite.facet import Facet


class InboxConformance(Facet):
    """`deliver`, `read_inbox`, `find_inboxes`, and what a change consumes and sends."""

    # -- Accepted ------------------------------------------------------------------------------------------

    async def test_message_waits_in_the_inbox_as_it_was_sent(self, store: Store) -> None:
        """Kind, name, key, payload and instant come back, with the number of the run it is for."""
        tree = await begin(store)
        sent = message(store, "run-1", "paid", key="k", payload=value({"amount": 7}))

        assert await send(store, sent) == [Delivery.ACCEPTED]

        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        assert inbound == InboxMessage(
            id=inbound.id,
            run=0,
            kind=MessageKind.SIGNAL,
            at=sent.at,
            name="paid",
            key="k",
            payload=value({"amount": 7}),
        )

    @pytest.mark.parametrize("kind", list(MessageKind), ids=[kind.value for kind in MessageKind])
    async def test_every_kind_of_message_comes_through(self, store: Store, kind: MessageKind) -> None:
        """Whatever the world says keeps its kind, and the end of a detached run says how it ended."""
        tree = await begin(store)
        ended = Ended("other", RunStatus.FAILED, value(None), Failure("app.Broken", "no"))

        await send(store, message(store, "run-1", kind=kind, ended=ended))

        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        assert (inbound.kind, inbound.ended) == (kind, ended)

    async def test_message_that_is_not_waited_for_is_kept(self, store: Store) -> None:
        """A name that the run did not ask for yet is not a reason to refuse. [TS-S8]"""
        tree = await begin(store)
        await tree.suspend()

        assert await send(store, message(store, "run-1", "unheard-of")) == [Delivery.ACCEPTED]
        assert await read_names(store, tree) == ["unheard-of"]

    async def test_messages_wait_in_the_order_of_their_arrival(self, store: Store, other: Store) -> None:
        """First in, first out, within one delivery and from one to the next, from whichever sender."""
        tree = await begin(store)
        await send(store, message(store, "run-1", "a"), message(store, "run-1", "b"))
        await send(other, message(other, "run-1", "c"))
        await send(store, message(store, "run-1", "d"))

        ids = await read_message_ids(store, tree)

        assert await read_names(store, tree) == ["a", "b", "c", "d"]
        assert ids == sorted(set(ids))

    async def test_large_message_is_not_truncated(self, store: Store) -> None:
        """More than 2 MB come back whole."""
        tree = await begin(store)
        payload = value("x" * LARGE_BYTES)

        await send(store, message(store, "run-1", payload=payload))

        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        assert inbound.payload == payload

    async def test_inboxes_of_many_trees_are_read_at_once(self, store: Store) -> None:
        """Each tree has its own messages; a tree without any, or unknown, is left out."""
        first, second, silent = [await begin(store, run_id) for run_id in ("first", "second", "silent")]
        await send(store, message(store, "second", "b"), message(store, "first", "a"))

        inbox = await store.read_inbox([first.journal, second.journal, silent.journal, 1_000])

        assert inbox.keys() == {first.journal, second.journal}
        assert await read_names(store, first) == ["a"]
        assert await read_names(store, second) == ["b"]
        assert await store.read_inbox([]) == {}

    async def test_child_is_addressed_by_its_own_id(self, store: Store) -> None:
        """Its messages lie in the inbox of the tree and carry its number."""
        tree = await begin(store)
        child_id = await tree.spawn(3)

        assert await send(store, message(store, child_id)) == [Delivery.ACCEPTED]

        (inbound,) = (await store.read_inbox([tree.journal]))[tree.journal]
        assert inbound.run == 3

    # -- Refused -------------------------------------------------------------------------------------------

    async def test_unknown_run_gets_no_message(self, store: Store) -> None:
        """The sender learns that there is no such run."""
        assert await send(store, message(store, "unknown")) == [Delivery.UNKNOWN_RUN]

    async def test_a_tree_of_a_workflow_that_the_sender_may_not_know_of_is_unknown(self, store: Store) -> None:
        """Nothing is stored, no child of it is reached, and no key of it shows, also if a start finds its id taken."""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await send(store, message(store, "run-1", "theirs", key="k"))
        hidden = Bounds(frozenset({"another", "a third"}))
        tries = [
            message(store, run_id, "a", key=key, bounds=hidden)
            for run_id, key in (("run-1", ""), ("run-1", "k"), (child_id, ""))
        ]

        assert await send(store, *tries) == [Delivery.UNKNOWN_RUN] * 3
        assert await send(store, tries[0], start=new_tree(store, "run-1")) == [Delivery.UNKNOWN_RUN]

        assert await read_names(store, tree) == ["theirs"]

    async def test_a_tree_of_a_workflow_that_the_sender_may_know_of_is_reached(self, store: Store) -> None:
        """Whichever of its workflows it is; a child by the workflow of its root."""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        known = Bounds(frozenset({WORKFLOW, "another"}))
        sent = [message(store, run_id, bounds=known) for run_id in ("run-1", child_id)]

        assert await send(store, *sent) == [Delivery.ACCEPTED] * 2

    async def test_a_tree_without_the_tags_that_the_sender_may_know_of_is_unknown(self, store: Store) -> None:
        """All of them, with these values; whatever tags a child has."""
        tree = await begin(store, tags={"tenant": "a", "\0": "☃"})
        bare = await begin(store, "run-2")
        child_id = await tree.spawn(1)

        def sent(run_id: str, tags: dict[str, str]) -> Message:
            return message(store, run_id, bounds=Bounds(tags=tags))

        right = [{"tenant": "a"}, {"\0": "☃", "tenant": "a"}]
        wrong = [{"tenant": "b"}, {"tenant": "a", "more": ""}, {"a": "tenant"}, {"tenant": ""}]
        assert await send(store, *[sent("run-1", tags) for tags in wrong]) == [Delivery.UNKNOWN_RUN] * 4
        assert await send(store, sent(child_id, wrong[0])) == [Delivery.UNKNOWN_RUN]
        assert await send(store, sent("run-2", right[0])) == [Delivery.UNKNOWN_RUN]
        assert await read_names(store, tree) == await read_names(store, bare) == []

        assert await send(store, *[sent("run-1", tags) for tags in right]) == [Delivery.ACCEPTED] * 2
        assert await send(store, sent(child_id, right[0])) == [Delivery.ACCEPTED]

    async def test_ended_run_takes_no_message(self, store: Store) -> None:
        """Neither a root nor a child that has ended, and nothing is stored."""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await tree.succeed(run=1)
        assert await send(store, message(store, child_id)) == [Delivery.FINISHED]

        await tree.succeed()

        assert await send(store, message(store, "run-1")) == [Delivery.FINISHED]
        assert await store.read_inbox([tree.journal]) == {}

    async def test_inbox_takes_messages_up_to_its_limit(self, store: Store) -> None:
        """The last message that fits is accepted, the next one is refused, and others have room."""
        tree, _ = await begin(store), await begin(store, "roomy")
        first, last, extra = (message(store, "run-1", name) for name in ("first", "last", "extra"))

        assert await send(store, first, inbox_messages_max=2) == [Delivery.ACCEPTED]
        assert await send(store, last, inbox_messages_max=2) == [Delivery.ACCEPTED]
        assert await send(store, extra, inbox_messages_max=2) == [Delivery.FULL]
        assert await send(store, message(store, "roomy"), inbox_messages_max=2) == [Delivery.ACCEPTED]
        assert await read_names(store, tree) == ["first", "last"]

    async def test_consumed_messages_make_room(self, store: Store) -> None:
        """Only messages that wait count against the limit."""
        tree = await begin(store)
        await send(store, message(store, "run-1"), inbox_messages_max=1)
        await tree.step(consumed=await read_message_ids(store, tree))

        assert await send(store, message(store, "run-1"), inbox_messages_max=1) == [Delivery.ACCEPTED]

    async def test_messages_are_judged_one_by_one(self, store: Store) -> None:
        """A refused message does not touch the others of the delivery, and earlier ones count."""
        tree, ended = await begin(store), await begin(store, "ended")
        await ended.succeed()

        answers = await send(
            store,
            message(store, "run-1", "a", key="k"),
            message(store, "unknown"),
            message(store, "run-1", "b", key="k"),
            message(store, "ended"),
            message(store, "run-1", "c"),
            message(store, "run-1", "d"),
            inbox_messages_max=2,
        )

        assert answers == [
            Delivery.ACCEPTED,
            Delivery.UNKNOWN_RUN,
            Delivery.DUPLICATE,
            Delivery.FINISHED,
            Delivery.ACCEPTED,
            Delivery.FULL,
        ]
        assert await read_names(store, tree) == ["a", "c"]
        assert await send(store) == []

    # -- Keys ----------------------------------------------------------------------------------------------

    async def test_same_key_is_one_message(self, store: Store) -> None:
        """A sender that repeats itself, a signal or an approval, is heard once. [TS-S7 TS-S9 FB-S3]"""
        tree = await begin(store)

        assert await send(store, message(store, "run-1", "first", key="k")) == [Delivery.ACCEPTED]
        assert await send(store, message(store, "run-1", "again", key="k")) == [Delivery.DUPLICATE]
        assert await read_names(store, tree) == ["first"]

    async def test_key_is_remembered_after_its_message_was_consumed(self, store: Store) -> None:
        """A late repetition is still a repetition. [FB-S3]"""
        tree = await begin(store)
        await send(store, message(store, "run-1", key="k"))
        await tree.step(consumed=await read_message_ids(store, tree))

        assert await send(store, message(store, "run-1", key="k")) == [Delivery.DUPLICATE]
        assert await read_names(store, tree) == []

    async def test_key_counts_in_its_whole_tree_and_nowhere_else(self, store: Store) -> None:
        """Root and child share their keys, another tree has its own."""
        tree = await begin(store)
        child_id = await tree.spawn(1)
        await begin(store, "run-2")

        assert await send(store, message(store, "run-1", key="k")) == [Delivery.ACCEPTED]
        assert await send(store, message(store, child_id, key="k")) == [Delivery.DUPLICATE]
        assert await send(store, message(store, "run-2", key="k")) == [Delivery.ACCEPTED]

    async def test_messages_without_a_key_are_never_the_same(self, store: Store) -> None:
        """An empty key says nothing."""
        tree = await begin(store)

        assert await send(store, *[message(store, "run-1")] * 3) == [Delivery.ACCEPTED] * 3
        assert len(await read_names(store, tree)) == 3

    async def test_key_of_a_refused_message_is_not_remembered(self, store: Store) -> None:
        """Only what was accepted can be a duplicate later."""
        tree = await begin(store)
        await send(store, message(store, "run-1", "filler"))
        assert await send(store, message(store, "run-1", key="k"), inbox_messages_max=1) == [Delivery.FULL]
        await tree.step(consumed=await read_message_ids(store, tree))

        assert await send(store, message(store, "run-1", key="k"), inbox_messages_max=1) == [Delivery.ACCEPTED]
