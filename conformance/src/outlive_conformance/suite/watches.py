"""Watches: a tree that waits for the end of another one."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.journal.event import RunCancelled, RunContinued, RunFailed
from outlive._kernel.model import Failure, RunStatus
from outlive._kernel.store.contract import Ended, Message, MessageKind, Outcome, Store, Watch
from outlive_conformance.suite.builders import (
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
    send,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.starts import renamed


class WatchesConformance(Facet):
    """`watch_ends`, and what an end does to watches."""

    async def test_end_of_a_watched_run_is_a_message_to_the_watcher(self, store: Store) -> None:
        """With how it ended, under the key of the watch, and the watcher is due at once."""
        await hire(store, "worker-1")
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        await claim(store, "worker-1")
        await waiting.catch_up()
        await other.catch_up()
        await waiting.suspend()

        assert await watch(store, "other", "waiting") == {"other": RunStatus.RUNNING}
        assert await ends_of(store, waiting) == []
        await other.succeed({"cents": 12})

        expected = Ended("other", RunStatus.SUCCEEDED, result=value({"cents": 12}), workflow=WORKFLOW, version=1)
        assert await ends_of(store, waiting) == [("key-1", expected)]
        assert await claim(store, "worker-1") == ["waiting"]

    async def test_every_end_is_heard(self, store: Store) -> None:
        """With its failure, if it failed; by each watcher, once, in one commit with other changes too."""
        first, second, waiting = [await begin(store, name) for name in ("first", "second", "waiting")]
        third = await begin(store, "third")
        await watch(store, "first", "waiting", key="a")
        await watch(store, "second", "waiting", key="b")
        await watch(store, "second", "third", key="c")
        failure = Failure("app.Broken", "no \x00 way", traceback='File "a", line 1')
        now = store.now()
        outcomes = await store.commit(
            [
                first.change(RunFailed(at=now, failure=failure)),
                second.change(RunCancelled(at=now, reason="enough")),
            ]
        )

        assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.COMMITTED]
        failed = Ended("first", RunStatus.FAILED, failure=failure, workflow=WORKFLOW, version=1)
        cancelled = Ended("second", RunStatus.CANCELLED, workflow=WORKFLOW, version=1)
        assert sorted(await ends_of(store, waiting), key=str) == [("a", failed), ("b", cancelled)]
        assert await ends_of(store, third) == [("c", cancelled)]

    async def test_end_that_conflicts_is_not_heard(self, store: Store) -> None:
        """The watch is kept, for the end that commits; then it is gone."""
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        await watch(store, "other", "waiting")
        late = other.twin()
        await other.step()
        end = late.change(RunCancelled(at=store.now()))
        assert [outcome for outcome, _ in await store.commit([end])] == [Outcome.CONFLICT]
        assert await ends_of(store, waiting) == []

        await other.succeed()
        assert [key for key, _ in await ends_of(store, waiting)] == ["key-1"]

    async def test_watch_of_an_ended_or_unknown_run_is_not_kept(self, store: Store) -> None:
        """The answer says so; nor is one of a child."""
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        child_id = await other.spawn(1)
        assert {child_id: RunStatus.RUNNING} == await watch(store, child_id, "waiting")
        assert await watch(store, "missing", "waiting") == {}
        await other.succeed(run=1)
        await other.succeed()
        await begin(store, "missing")
        assert await watch(store, "other", "waiting") == {"other": RunStatus.SUCCEEDED}
        await (await follow(store, "missing")).succeed()

        assert await ends_of(store, waiting) == []

    async def test_second_watch_takes_the_place_of_the_first(self, store: Store) -> None:
        """A second watch of the same watcher replaces the first, also in one call; there is one message, with the later
        key."""
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        await watch(store, "other", "waiting", key="old")
        both = [Watch(run_id="other", watcher="waiting", key=key) for key in ("newer", "newest")]
        assert list(await store.watch_ends(both)) == ["other"]
        await other.succeed()

        assert [key for key, _ in await ends_of(store, waiting)] == ["newest"]

    async def test_watch_goes_on_with_the_id_of_a_run(self, store: Store) -> None:
        """A run that ends as continued is not over for its watchers."""
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        await watch(store, "other", "waiting")
        successor = replace(
            new_tree(store, "other", version=2), renames=await renamed(other, "other.1"), successor_of=other.journal
        )
        await other.write(RunContinued(at=store.now(), workflow=WORKFLOW, version=2), starts=[successor])
        assert await ends_of(store, waiting) == []

        await (await follow(store, "other")).succeed("at last")
        ((_, ended),) = await ends_of(store, waiting)
        assert (ended.run_id, ended.version, ended.result) == ("other", 2, value("at last"))

    async def test_end_is_heard_however_full_the_inbox_is(self, store: Store) -> None:
        """The end is heard, however full the inbox is, and a watcher that has ended, or never was, does not hinder
        it."""
        other, waiting, over = [await begin(store, name) for name in ("other", "waiting", "over")]
        for watcher in ("waiting", "over", "missing"):
            await watch(store, "other", watcher)
        await over.succeed()
        await send(store, *(message(store, "waiting") for _ in range(3)), inbox_messages_max=3)
        await other.succeed()

        assert [key for key, _ in await ends_of(store, waiting)] == ["key-1"]
        assert (await get_run(store, "other")).status is RunStatus.SUCCEEDED

    async def test_watched_run_may_end_in_the_change_that_messages_its_watcher(self, store: Store) -> None:
        """Both come, and the key of a watch is a key like any other."""
        other, waiting = await begin(store, "other"), await begin(store, "waiting")
        await watch(store, "other", "waiting", key="same")
        ended = Ended("other", RunStatus.SUCCEEDED)
        earlier = Message(run_id="waiting", kind=MessageKind.ENDED, at=store.now(), key="same", ended=ended)
        await other.succeed(messages=[earlier])

        assert await ends_of(store, waiting) == [("same", ended)]

    async def test_run_that_begins_and_ends_at_once_is_no_trouble(self, store: Store) -> None:
        """No watch can be of it."""
        waiting = await begin(store, "waiting")
        await begin(store, "other")
        await watch(store, "other", "waiting")
        quick = Writer(store, "quick")
        await quick.write(created(store, nonce=quick.nonce), RunCancelled(at=store.now()))

        assert await ends_of(store, waiting) == []

    async def test_watches_are_listed_in_pages(self, store: Store) -> None:
        """For one who carries a store over into another one."""
        for name in ("a", "b", "waiting"):
            await begin(store, name)
        await store.watch_ends([Watch(run_id=run, watcher="waiting", key=f"of-{run}") for run in ("b", "a")])

        listed = await store.examiner.list_watches(limit=10)

        assert [(it.run_id, it.watcher, it.key) for it in listed] == [
            ("a", "waiting", "of-a"),
            ("b", "waiting", "of-b"),
        ]
        assert await store.examiner.list_watches(limit=1) == listed[:1]
        assert await store.examiner.list_watches(after=("a", "waiting"), limit=10) == listed[1:]


async def watch(store: Store, run_id: str, watcher: str, *, key: str = "key-1") -> dict[str, RunStatus]:
    """Watch a run; the statuses that the answer shows."""
    runs = await store.watch_ends([Watch(run_id=run_id, watcher=watcher, key=key)])
    return {id: run.status for id, run in runs.items()}


async def ends_of(store: Store, writer: Writer) -> list[tuple[str, Ended]]:
    """The keys and the news of the messages about ends that wait for a tree."""
    inbox = (await store.read_inbox([writer.journal])).get(writer.journal, [])
    assert all(inbound.run == 0 for inbound in inbox)
    return [(inbound.key, inbound.ended) for inbound in inbox if inbound.ended is not None]
