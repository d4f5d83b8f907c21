"""Trees that are read as a whole, and written as a whole into another store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from outlive._features.fsck.checker import check_store
from outlive._features.moving.tree_copy import TreeCopy, read_copy, write_copy
from outlive._kernel.model import RunStatus
from outlive._kernel.store.contract import Delivery, ItemResult, Store
from outlive.errors import RunExistsError
from outlive_conformance.suite.answers import answer
from outlive_conformance.suite.builders import Writer, begin, blob, claim, get_run, hire, message, send, value
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.forgetting import forget
from outlive_conformance.suite.streams import line, read, said


class CopiesConformance(Facet):
    """New journals of many rows, the `keys` of a change, and what a checker sees of streams."""

    async def test_copy_of_a_tree_has_everything_that_hangs_on_it(self, store: Store) -> None:
        """Children, items, messages, keys with their answers, streams and blobs."""
        tree = await begin(store, tags={"shop": "north"})
        await tree.spawn(1)
        await send(store, message(store, "run-1", key="asked"), message(store, "run-1", key="consumed"))
        consumed = [message.id for message in (await store.read_inbox([tree.journal]))[tree.journal]]
        data = blob(b"x" * 100)
        await tree.step(
            "a",
            consumed=consumed,
            answers=[answer("asked", 7)],
            items=[ItemResult(run=0, index=index, result=value(index)) for index in range(3)],
            streams=[said(line("hello", count=2, number=5))],
            blobs=[data],
        )
        await send(store, message(store, "run-1~1", key="waiting"), message(store, "run-1", "plain"))

        copy = await read_whole(store, tree)
        await write_copy(store, copy, root_id="copy")

        found = await follow_copy(store)
        again = await read_whole(store, found)
        assert [run.id for run in again.runs] == ["copy", "copy~1"]
        assert plain(again) == plain(copy)
        assert [(message.run_id, message.key) for message in again.messages] == [("copy~1", "waiting"), ("copy", "")]
        assert await read(store, "copy") == (b"hello", 2)
        assert await store.find_answers([("copy", "asked")]) == {("copy", "asked"): answer("asked", 7)}
        assert await send(store, message(store, "copy", key="consumed")) == [Delivery.DUPLICATE]

    async def test_copied_tree_goes_on(self, store: Store) -> None:
        """The next event follows the last one that was copied, and a workflow repeats no line that was copied."""
        await hire(store, "worker-1")
        tree = await begin(store)
        await tree.step("a", streams=[said(line("a", number=3))])
        await write_copy(store, await read_whole(store, tree), root_id="copy")
        found = await follow_copy(store)

        assert sorted(await claim(store, "worker-1")) == ["copy", "run-1"]
        await found.catch_up()
        await found.step("b", streams=[said(line("a", number=3), line("b", number=4))])

        assert await read(store, "copy") == (b"ab", 2)
        assert (await get_run(store, "copy")).status is RunStatus.RUNNING

    async def test_journal_that_has_forgotten_can_be_copied(self, store: Store) -> None:
        """It begins with a snapshot, at any seq."""
        tree = await begin(store)
        await tree.step("a", "b")
        await forget(tree)
        await tree.step("c")

        await write_copy(store, await read_whole(store, tree), root_id="copy")

        found = await follow_copy(store)
        assert [row[0] for row in await store.read_journal(found.journal)] == [3, 4]
        await found.catch_up()
        await found.step("d")

    async def test_ended_tree_stays_ended(self, store: Store) -> None:
        """Nothing can follow its last event, and no message reaches it."""
        tree = await begin(store)
        await tree.succeed(7)

        await write_copy(store, await read_whole(store, tree), root_id="copy")

        assert (await get_run(store, "copy")).result == value(7)
        assert await send(store, message(store, "copy")) == [Delivery.FINISHED]
        assert await check_store(store) == []

    async def test_copy_under_a_taken_id_is_refused(self, store: Store) -> None:
        """A copy under a taken id is refused, and nothing of it is written."""
        tree = await begin(store)
        await send(store, message(store, "run-1", key="k"))
        await begin(store, "taken")

        with pytest.raises(RunExistsError):
            await write_copy(store, await read_whole(store, tree), root_id="taken")

        assert await send(store, message(store, "taken", key="k")) == [Delivery.ACCEPTED]
        assert await check_store(store) == []


async def read_whole(store: Store, tree: Writer) -> TreeCopy:
    """The copy of a tree that no other writer moves."""
    copy = await read_copy(store, tree.journal)
    assert copy is not None
    return copy


async def follow_copy(store: Store) -> Writer:
    """The writer of the copied tree."""
    writer = Writer(store, "copy")
    writer.journal = (await get_run(store, "copy")).journal
    await writer.catch_up()
    return writer


def plain(copy: TreeCopy) -> TreeCopy:
    """A copy without its ids."""
    return replace(copy, runs=[], messages=[replace(message, run_id="") for message in copy.messages])
