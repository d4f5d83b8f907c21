"""Deleting: trees that ended long ago, what hangs on them, and blobs that no row names."""

from __future__ import annotations

from outlive._features.fsck.checker import check_store
from outlive._kernel.journal.event import RunRetried
from outlive._kernel.journal.stream import Source, seal_items, seal_source
from outlive._kernel.model import Payload, RunFilter, Wait
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.model.wait import WaitKind
from outlive._kernel.store.contract import Answer, Delivery, ItemResult, MessageKind, Outcome, Store, Watch
from outlive._kernel.store.deleting import BLOB_GRACE
from outlive._kernel.store.streams import StreamLine, StreamLines
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    Writer,
    begin,
    blob,
    created,
    message,
    new_tree,
    read_message_ids,
    send,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet

GRACE_SECONDS = BLOB_GRACE / MICROSECONDS


class DeletingConformance(Facet):
    """`delete_trees`, and the collection of blobs."""

    async def test_tree_that_ended_goes_with_all_that_hangs_on_it(self, store: Store, clock: ManualClock) -> None:
        """No verb finds anything of it, a checker neither; its ids are free, and another tree is as it was. [S31]"""
        tree, other = await full_tree(store, "run-1"), await full_tree(store, "run-2")
        await store.watch_ends([Watch(run_id="run-3", watcher="run-1", key="k")])
        clock.advance(seconds=1)

        assert await store.delete_trees([tree.journal], ended_before=store.now()) == [tree.journal]

        assert await store.find_runs(["run-1", "run-1~1"]) == {}
        assert await store.read_journals([tree.journal]) == {}
        assert await store.read_items("run-1~1") == []
        assert await store.read_stream("run-1", "said") == []
        assert await store.find_answers([("run-1", "ask")]) == {}
        assert await send(store, message(store, "run-1", key="ask")) == [Delivery.UNKNOWN_RUN]
        assert [run.id for run in await store.list_runs(RunFilter(tags={"of": "all"}))] == ["run-2"]
        (left,) = await store.examiner.examine([tree.journal])
        assert (left.count, left.runs, left.keys, left.items, left.streams, left.inbox) == (0, (), (), (), (), ())
        assert tree.journal not in await store.examiner.list_journals(limit=100)
        assert await store.examiner.list_watches(limit=10) == []
        assert await store.find_answers([("run-2", "ask")]) == {("run-2", "ask"): Answer(key="ask", result=value(1))}
        assert [problem for problem in await check_store(store) if problem.journal in (0, tree.journal)] == []
        assert (await store.commit([new_tree(store, "run-1")]))[0][0] is Outcome.COMMITTED
        assert len(await store.read_journal(other.journal)) == other.seq + 1

    async def test_handle_of_a_deleted_tree_never_comes_back(
        self, store: Store, other: Store, clock: ManualClock
    ) -> None:
        """A writer that was asleep conflicts, and a run that takes the id has another handle."""
        tree = await begin(store)
        stale = tree.twin(other)
        await tree.succeed()
        clock.advance(seconds=1)
        await store.delete_trees([tree.journal], ended_before=store.now())

        assert await stale.try_write(stepped(store, "late")) is Outcome.CONFLICT
        again = await begin(store)
        assert again.journal != tree.journal
        assert await stale.try_write(stepped(store, "late")) is Outcome.CONFLICT
        retried = tree.change(RunRetried(at=store.now(), run=0))
        retried.reopens = True
        assert (await store.commit([retried]))[0][0] is Outcome.CONFLICT

    async def test_open_and_recent_trees_stay(self, store: Store, clock: ManualClock) -> None:
        """Parked trees stay, and one that ended at the very instant; a journal that does not exist is not an error."""
        running, parked, ended = await begin(store, "run-1"), await begin(store, "run-2"), await begin(store, "run-3")
        await parked.park()
        clock.advance(seconds=1)
        await ended.succeed()
        journals = [running.journal, parked.journal, ended.journal, 10**9]

        assert await store.delete_trees(journals, ended_before=store.now()) == []
        clock.advance(seconds=1)
        assert await store.delete_trees(journals, ended_before=store.now()) == [ended.journal]
        assert await store.delete_trees(journals, ended_before=store.now()) == []
        assert await store.delete_trees([], ended_before=store.now()) == []
        assert set(await store.find_runs(["run-1", "run-2", "run-3"])) == {"run-1", "run-2"}

    async def test_tree_stays_while_its_starter_is_open(self, store: Store, clock: ManualClock) -> None:
        """The run that started it detached, root or child; when that has ended, it goes."""
        starter = await begin(store, "run-1")
        child = await starter.spawn(1)
        started = [await begin(store, "run-2", notify="run-1"), await begin(store, "run-3", notify=child)]
        for tree in started:
            await tree.succeed()
        clock.advance(seconds=1)
        journals = [tree.journal for tree in started]

        assert await store.delete_trees(journals, ended_before=store.now()) == []
        await starter.succeed(run=1)
        await starter.succeed()
        assert sorted(await store.delete_trees(journals, ended_before=store.now())) == sorted(journals)

    async def test_next_generation_of_its_starter_does_not_keep_a_tree(self, store: Store, clock: ManualClock) -> None:
        """It was born later, under the same id, and is another run."""
        started = await begin(store, "run-2", notify="run-1")
        await started.succeed()
        clock.advance(seconds=1)
        await begin(store, "run-1")

        assert await store.delete_trees([started.journal], ended_before=store.now()) == [started.journal]

    async def test_tree_stays_while_a_run_that_it_started_is_open(self, store: Store, clock: ManualClock) -> None:
        """Which will send it its end; whichever run of the tree started it."""
        starter = await begin(store, "run-1")
        child = await starter.spawn(1)
        started = await begin(store, "run-2", notify=child)
        await starter.succeed(run=1)
        await starter.succeed()
        clock.advance(seconds=1)

        assert await store.delete_trees([starter.journal], ended_before=store.now()) == []
        await started.succeed()
        assert await store.delete_trees([starter.journal], ended_before=store.now()) == [starter.journal]

    async def test_tree_stays_while_an_open_run_waits_for_it(self, store: Store, clock: ManualClock) -> None:
        """It has the message, and has not read it; root or child."""
        tree = await begin(store, "run-1")
        child = await tree.spawn(1)
        await tree.succeed(run=1)
        await tree.succeed()
        waiting = await begin(store, "run-2")
        await waiting.suspend(waits=(Wait(WaitKind.CHILD, child),))
        clock.advance(seconds=1)

        assert await store.delete_trees([tree.journal], ended_before=store.now()) == []
        await waiting.step()
        await waiting.succeed()
        assert await store.delete_trees([tree.journal], ended_before=store.now()) == [tree.journal]

    async def test_two_callers_share_the_trees(self, store: Store, other: Store, clock: ManualClock) -> None:
        """A tree that one caller deletes is not named by the other one."""
        trees = [await begin(store, f"run-{number}") for number in range(6)]
        for tree in trees:
            await tree.succeed()
        clock.advance(seconds=1)
        journals = [tree.journal for tree in trees]

        first = await store.delete_trees(journals[:4], ended_before=store.now())
        second = await other.delete_trees(journals[2:], ended_before=store.now())

        assert (sorted(first), sorted(second)) == (journals[:4], journals[4:])

    async def test_giving_back_room_changes_nothing_that_is_seen(self, store: Store, clock: ManualClock) -> None:
        """However often; it comes to an end."""
        kept, tree = await full_tree(store, "run-1"), await begin(store, "run-2")
        await tree.step(blobs=[blob(b"x" * 4_000_000)])
        await tree.succeed()
        clock.advance(seconds=1)
        await store.delete_trees([tree.journal], ended_before=store.now())
        clock.advance(seconds=2 * GRACE_SECONDS)
        assert await store.delete_blobs(kept_before=store.now() - BLOB_GRACE, limit=10) == 1
        before = await store.read_journal(kept.journal)

        while await store.give_back():
            pass

        assert await store.read_journal(kept.journal) == before
        assert [problem for problem in await check_store(store) if problem.journal != kept.journal] == []

    async def test_references_of_all_rows_are_found(self, store: Store) -> None:
        """The references of events, messages with what they tell, answers, items and streams are found, in pages of any
        size."""
        blobs = {name: blob(name.encode()) for name in ("event", "mail", "answer", "item", "stream", "lost")}
        tree = await begin(store, input=Payload(blob=blobs["event"].id))
        await send(store, message(store, "run-1", key="a", payload=Payload(blob=blobs["mail"].id)))
        await send(store, message(store, "run-1", kind=MessageKind.ASK, key="ask"))
        items = [ItemResult(run=0, index=0, result=Payload(blob=blobs["item"].id))]
        said = lines_of(Payload(blob=blobs["stream"].id))
        answers = [Answer(key="ask", result=Payload(blob=blobs["answer"].id))]
        await tree.step(items=items, streams=[said], answers=answers, blobs=list(blobs.values()))

        for limit in (1, 2, 1000):
            assert await all_references(store, limit=limit) == {blobs[name].id for name in blobs if name != "lost"}

    async def test_blobs_of_which_nothing_was_said_for_long_are_deleted(self, store: Store, clock: ManualClock) -> None:
        """Blobs stay that were put again, that are said to be in use, or that are not asked for."""
        blobs = {name: blob(name.encode()) for name in ("lost", "again", "sent", "used", "late")}
        await begin(store)
        await store.put_blobs([blobs[name] for name in ("lost", "again", "sent", "used")])
        clock.advance(seconds=2 * GRACE_SECONDS)
        await store.put_blobs([blobs["late"]])
        await store.put_blobs([blobs["again"]])
        await send(store, message(store, "run-1", payload=Payload(blob=blobs["sent"].id), blobs=(blobs["sent"],)))
        await store.keep_blobs([blobs["used"].id, blob(b"never there").id])
        before = store.now() - BLOB_GRACE

        assert await store.delete_blobs(kept_before=before, limit=10) == 1
        assert await store.delete_blobs(kept_before=before, limit=10) == 0

        left = await store.get_blobs([it.id for it in blobs.values()])
        assert left.keys() == {it.id for it in blobs.values()} - {blobs["lost"].id}

    async def test_so_many_blobs_are_deleted_at_once(self, store: Store, clock: ManualClock) -> None:
        """Fewer mean that all are gone."""
        await store.put_blobs([blob(b"%d" % number) for number in range(5)])
        clock.advance(seconds=1)

        deleted = [await store.delete_blobs(kept_before=store.now(), limit=2) for _ in range(4)]

        assert deleted == [2, 2, 1, 0]

    async def test_deleted_tree_leaves_its_blobs_remembered(self, store: Store, clock: ManualClock) -> None:
        """A copy of its references may lie where a collector has been already."""
        blobs = [blob(b"an event"), blob(b"an item")]
        tree = await begin(store, input=Payload(blob=blobs[0].id))
        await tree.step(blobs=blobs, items=[ItemResult(run=0, index=0, result=Payload(blob=blobs[1].id))])
        await tree.succeed()
        clock.advance(seconds=2 * GRACE_SECONDS)
        began_at = store.now()
        await store.delete_trees([tree.journal], ended_before=store.now())

        assert await store.delete_blobs(kept_before=began_at - BLOB_GRACE, limit=10) == 0
        clock.advance(seconds=2 * GRACE_SECONDS)
        assert await store.delete_blobs(kept_before=store.now() - BLOB_GRACE, limit=10) == 2


def lines_of(payload: Payload) -> StreamLines:
    """One line of a stream of the root."""
    body = seal_items(payload)
    head = seal_source(Source("", 0, 0))
    return StreamLines(run=0, name="said", lines=(StreamLine(body, 1, head, len(body), number=1),))


async def full_tree(store: Store, run_id: str) -> Writer:
    """A tree that has ended, with some of everything."""
    tree = await begin(store, run_id, tags={"of": "all"})
    await tree.write(created(store, run=1, call="child-1", tags={"of": "child"}))
    await send(store, message(store, run_id, kind=MessageKind.ASK, key="ask"), message(store, run_id, key="late"))
    asked = (await read_message_ids(store, tree))[0]
    items = [ItemResult(run=1, index=0, result=value(1))]
    said = lines_of(value(["hello"]))
    await tree.step(consumed=[asked], answers=[Answer(key="ask", result=value(1))], items=items, streams=[said])
    await tree.succeed(run=1)
    await tree.succeed()
    return tree


async def all_references(store: Store, *, limit: int) -> set[str]:
    """The references that a collector finds."""
    found = await store.find_references(limit=limit)
    ids = found.ids
    while found.next is not None:
        found = await store.find_references(after=found.next, limit=limit)
        ids |= found.ids
    return ids
