"""Journals that forget: a snapshot stands for all before it, and nothing can be written where something was."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.journal.event import RunSucceeded, RunSuspended, SnapshotTaken
from outlive._kernel.model import RunFilter, RunStatus, Wait
from outlive._kernel.model.wait import WaitKind
from outlive._kernel.store.contract import Forgotten, ItemResult, Outcome, Store
from outlive_conformance.suite.builders import (
    NONCE,
    Writer,
    begin,
    claim,
    created,
    get_run,
    hire,
    message,
    new_tree,
    read_message_ids,
    send,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet


class ForgettingConformance(Facet):
    """`forgets`, and what guards a journal that does."""

    async def test_events_before_a_snapshot_are_gone(self, store: Store) -> None:
        """The journal begins with it, and goes on behind it. [OL-F1 FE-P2]"""
        tree = await begin(store)
        await tree.step("a", "b", "c")

        await forget(tree)
        await tree.step("d")

        assert [row[0] for row in await store.read_journal(tree.journal)] == [4, 5]
        assert [row[0] for row in await store.read_journal(tree.journal, after=1)] == [4, 5]
        assert [row[0] for row in await store.read_journal(tree.journal, after=4)] == [5]
        assert [row[0] for row in (await store.read_journals([tree.journal]))[tree.journal]] == [4, 5]

    async def test_events_of_the_same_change_before_the_snapshot_are_gone(self, store: Store) -> None:
        """Events that led to the snapshot are in it and go; events behind it stay. [OL-F2]"""
        tree = await begin(store)

        first, last = stepped(store, "a"), stepped(store, "b")
        await tree.write(first, snapshot(tree, events=2), last, forgets=Forgotten(2, 1))

        assert [row[0] for row in await store.read_journal(tree.journal)] == [2, 3]

    async def test_forgetting_again_leaves_the_last_snapshot(self, store: Store) -> None:
        """However often it is done, there is one. [OL-F3 SF-C3]"""
        tree = await begin(store)
        for _ in range(3):
            await tree.step("a", "b")
            await forget(tree)

        assert [row[0] for row in await store.read_journal(tree.journal)] == [9]

    async def test_first_event_can_be_written_again(self, store: Store, other: Store) -> None:
        """The one before it goes, the run has another wake-up, and a claim of the old one conflicts. [OL-F16]"""
        await hire(store, "w1")
        tree = await begin(store, start_at=store.now() + 60_000_000)
        stale = [tree.twin(other)]
        begins_at = store.now() + 30_000_000
        for seq in (1, 2):
            again = created(store, nonce=NONCE, start_at=begins_at, before=seq)
            change = replace(tree.change(again, forgets=Forgotten(seq, 0)), is_guarded=True)
            assert [outcome for outcome, _ in await store.commit([change])] == [Outcome.COMMITTED]
            await tree.catch_up()
            stale.append(tree.twin(other))

        for writer in stale[:-1]:
            assert await writer.try_write(stepped(store, "late")) is Outcome.CONFLICT
        assert [row[0] for row in await store.read_journal(tree.journal)] == [2]
        assert (await get_run(store, "run-1")).wake_at == begins_at
        assert await claim(store, "w1") == []

    async def test_other_journals_forget_nothing(self, store: Store) -> None:
        """Other journals forget nothing, also if they are written in the same call. [OL-F4]"""
        tree, other = await begin(store), await begin(store, "run-2")
        await tree.spawn(1)
        await other.spawn(1)
        changes = [tree.change(stepped(store, "a")), other.change(stepped(store, "a"))]
        changes[0] = tree.change(snapshot(tree), forgets=Forgotten(2, 2))

        assert [outcome for outcome, _ in await store.commit(changes)] == [Outcome.COMMITTED] * 2

        assert [row[0] for row in await store.read_journal(other.journal)] == [0, 1, 2]
        assert set(await store.find_runs(["run-1~1", "run-2~1"])) == {"run-2~1"}

    async def test_writer_whose_last_event_is_forgotten_conflicts(self, store: Store, other: Store) -> None:
        """However long it was paused, and wherever it stands: nothing of it is written. [OL-F5]"""
        tree = await begin(store)
        stale = [tree.twin(other)]
        for call in ("a", "b"):
            await tree.step(call)
            stale.append(tree.twin(other))
        await forget(tree)
        await tree.step("c")

        for writer in stale:
            guarded = replace(writer.change(stepped(store, "late")), is_guarded=True)
            assert [outcome for outcome, _ in await other.commit([guarded])] == [Outcome.CONFLICT]
            assert await writer.try_write(stepped(store, "late")) is Outcome.CONFLICT
            assert await writer.try_write(RunSucceeded(at=store.now(), result=value(1))) is Outcome.CONFLICT
        assert [row[0] for row in await store.read_journal(tree.journal)] == [3, 4]

    async def test_guarded_changes_are_changes_like_others(self, store: Store) -> None:
        """Alone, in a batch with others, twice for one tree, and one that conflicts. [OL-F6]"""
        tree, other = await begin(store), await begin(store, "run-2")
        stale = tree.twin()
        first = replace(tree.change(stepped(store, "a")), is_guarded=True)
        await store.commit([first])
        await tree.catch_up()

        second = replace(tree.change(stepped(store, "b")), is_guarded=True)
        late = replace(stale.change(stepped(store, "late")), is_guarded=True)
        fresh = replace(new_tree(store, "run-3"), is_guarded=True)
        outcomes = await store.commit([second, other.change(stepped(store, "a")), fresh, late])

        assert [outcome for outcome, _ in outcomes] == [*[Outcome.COMMITTED] * 3, Outcome.CONFLICT]
        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1, 2]

    async def test_ended_children_are_gone_with_their_items(self, store: Store) -> None:
        """Ended children before the named number go with their items; children that came later stay, and so does
        everything else. [OL-F7]"""
        tree = await begin(store, tags={"of": "root"})
        for number in (1, 2):
            await tree.spawn(number)
            item = ItemResult(run=number, index=0, result=value(number))
            await tree.step(f"item-{number}", items=[item])
            await tree.succeed(run=number)
        await tree.write(created(store, run=3, call="child-3", tags={"of": "child"}))
        await tree.write(created(store, run=4, call="child-4", tags={"of": "child"}))

        await forget(tree, below=4)

        found = await store.find_runs(["run-1", *(f"run-1~{number}" for number in range(1, 5))])
        assert set(found) == {"run-1", "run-1~4"}
        assert await store.read_items("run-1~1") == []
        assert {run.id for run in await store.list_runs(RunFilter(root_id="run-1"))} == {"run-1", "run-1~4"}
        assert [run.id for run in await store.list_runs(RunFilter(tags={"of": "child"}))] == ["run-1~4"]
        assert [run.id for run in await store.list_runs(RunFilter(tags={"of": "root"}))] == ["run-1"]

    async def test_what_the_same_change_says_of_a_forgotten_child_is_gone(self, store: Store) -> None:
        """A child may end in the very change that forgets it. [OL-F8]"""
        tree = await begin(store)
        await tree.spawn(1)
        ended = RunSucceeded(at=store.now(), run=1, result=value(1))
        item = ItemResult(run=1, index=0, result=value(1))

        await tree.write(ended, snapshot(tree, events=3), items=[item], forgets=Forgotten(3, 2))

        assert await store.find_run("run-1~1") is None
        assert await store.read_items("run-1~1") == []
        assert [row[0] for row in await store.read_journal(tree.journal)] == [3]

    async def test_messages_and_their_keys_are_kept(self, store: Store) -> None:
        """An accepted message is not forgotten, and its key neither. [OL-F9]"""
        tree = await begin(store)
        await send(store, message(store, "run-1", key="k"))

        await forget(tree)

        assert len(await read_message_ids(store, tree)) == 1
        again = await send(store, message(store, "run-1", key="k"))
        assert [delivery.value for delivery in again] == ["duplicate"]

    async def test_messages_for_children_that_are_gone_are_gone(self, store: Store) -> None:
        """They came when their run had ended, and nothing is left to read them. [OL-F13]"""
        tree = await begin(store)
        for number in (1, 2):
            await tree.spawn(number)
        await send(store, *(message(store, run_id) for run_id in ("run-1~1", "run-1", "run-1~2")))
        await tree.succeed(run=1)

        await forget(tree, below=2)

        assert [message.run for message in (await store.read_inbox([tree.journal]))[tree.journal]] == [0, 2]

    async def test_tree_that_forgot_is_claimed_behind_its_snapshot(self, store: Store) -> None:
        """With the next seq and the next epoch. [OL-F10]"""
        await hire(store, "worker-1")
        tree = await begin(store)
        await tree.step("a", "b")
        await forget(tree)
        await tree.release()

        assert await claim(store, "worker-1") == ["run-1"]

        run = await get_run(store, "run-1")
        assert (run.status, run.owner, run.epoch) == (RunStatus.RUNNING, "worker-1", 1)
        assert [row[0] for row in await store.read_journal(tree.journal)] == [3, 4, 5]

    async def test_conflicting_change_forgets_nothing(self, store: Store) -> None:
        """All of a change happens or nothing. [OL-F11]"""
        tree = await begin(store)
        await tree.spawn(1)
        stale = tree.twin()
        await tree.step("a")

        assert await stale.try_write(snapshot(stale), forgets=Forgotten(2, 2)) is Outcome.CONFLICT

        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1, 2]
        assert await store.find_run("run-1~1") is not None

    async def test_each_change_of_a_call_forgets_what_it_says(self, store: Store) -> None:
        """Each change forgets its own rows, also when a later change of the same tree says less. [OL-F14]"""
        tree = await begin(store)
        await tree.spawn(1)
        await tree.succeed(run=1)
        first = tree.change(snapshot(tree), forgets=Forgotten(3, 2))
        later = tree.twin()
        later.seq += 1
        second = later.change(snapshot(later), forgets=Forgotten(4, 1))

        assert [outcome for outcome, _ in await store.commit([first, second])] == [Outcome.COMMITTED] * 2

        assert await store.find_run("run-1~1") is None
        assert [row[0] for row in await store.read_journal(tree.journal)] == [4]

    async def test_message_that_goes_wakes_no_run(self, store: Store) -> None:
        """It waited when the tree was let go of, and would never be read. [OL-F15]"""
        tree = await begin(store)
        await tree.spawn(1)
        await send(store, message(store, "run-1~1"))
        await tree.succeed(run=1)
        suspended = RunSuspended(at=store.now(), waits=(Wait(WaitKind.SIGNAL, "go"),))

        await tree.write(snapshot(tree), suspended, forgets=Forgotten(tree.seq + 1, 2))

        assert (await get_run(store, "run-1")).wake_at is None
        assert await store.read_inbox([tree.journal]) == {}

    async def test_change_of_nothing_but_rows_forgets(self, store: Store) -> None:
        """The quickest way to write must not be too quick. [OL-F16]"""
        tree = await begin(store)
        await tree.step("a", "b")

        await store.commit([replace(tree.change(snapshot(tree), forgets=Forgotten(3, 1)), runs=[])])

        assert [row[0] for row in await store.read_journal(tree.journal)] == [3]

    async def test_tree_that_forgot_can_end(self, store: Store) -> None:
        """A tree that forgot can end, and nothing can follow then. [OL-F12]"""
        tree = await begin(store)
        await forget(tree)
        await tree.succeed()

        assert (await get_run(store, "run-1")).status is RunStatus.SUCCEEDED
        assert await tree.try_write(stepped(store, "late")) is Outcome.CONFLICT


def snapshot(tree: Writer, *, events: int | None = None) -> SnapshotTaken:
    """The event that stands for all that a tree has so far."""
    root = tree.fold.root
    return SnapshotTaken(
        at=tree.store.now(),
        created=created(tree.store, nonce=tree.nonce, tags=root.tags),
        events=tree.seq + 1 if events is None else events,
        worker=root.owner,
        epoch=root.epoch,
        payload=value({"state": "A"}),
        wake_at=root.wake_at,
    )


async def forget(tree: Writer, *, below: int = 1) -> None:
    """Take a snapshot of a tree, and forget what it stands for."""
    await tree.write(snapshot(tree), forgets=Forgotten(tree.seq + 1, below))
