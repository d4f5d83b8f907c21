"""Appending to a journal is compare-and-swap: exactly one writer wins, and a loser leaves nothing."""

from __future__ import annotations

import asyncio

from outlive._kernel.journal.codec import salt_of, seal
from outlive._kernel.journal.event import RunFailed, RunReleased
from outlive._kernel.model import Failure
from outlive._kernel.store.contract import Outcome, Store
from outlive_conformance.suite.builders import (
    DEFINITION,
    begin,
    blob,
    hire,
    message,
    new_tree,
    read_events,
    read_message_ids,
    see_everything,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class JournalConformance(Facet):
    """`commit`, as far as it appends."""

    async def test_events_come_back_in_the_order_they_were_appended(self, store: Store) -> None:
        """Seqs rise by one from 0, whatever number of events a change has. [SF-J1 SF-J3 SF-M16 TS-S14]"""
        tree = await begin(store)
        await tree.step("a")
        await tree.step("b", "c", "d")
        await tree.step("e")

        rows = await store.read_journal(tree.journal)
        calls = [getattr(event, "call", None) for event in await read_events(tree)]

        assert [row[0] for row in rows] == [0, 1, 2, 3, 4, 5]
        assert calls == ["", "a", "b", "c", "d", "e"]

    async def test_append_behind_the_end_conflicts(self, store: Store) -> None:
        """A writer that does not know the last event writes nothing over it. [TS-S2 TS-S15 FE-P1]"""
        tree = await begin(store)
        late = tree.twin()
        await tree.step("first")
        rows = await store.read_journal(tree.journal)

        outcome = await late.try_write(stepped(store, "second"))

        assert outcome is Outcome.CONFLICT
        assert await store.read_journal(tree.journal) == rows

    async def test_append_far_behind_the_end_conflicts(self, store: Store) -> None:
        """A change that would end beyond the last event does not overwrite the events before it."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step("a", "b")
        rows = await store.read_journal(tree.journal)

        outcome = await late.try_write(*(stepped(store, call) for call in "vwxyz"))

        assert outcome is Outcome.CONFLICT
        assert await store.read_journal(tree.journal) == rows

    async def test_append_beyond_the_end_conflicts(self, store: Store) -> None:
        """Skipping ahead would leave a gap, so rows out of order are refused and not sorted later. [TS-R13]"""
        tree = await begin(store)
        early = tree.twin()
        early.seq += 1

        outcome = await early.try_write(stepped(store))

        assert outcome is Outcome.CONFLICT
        assert len(await store.read_journal(tree.journal)) == 1

    async def test_append_behind_another_row_with_the_same_seq_conflicts(self, store: Store) -> None:
        """A store that went back has other events at the seqs that a writer knows, and takes nothing behind them."""
        tree = await begin(store)
        ghost = tree.twin()
        await tree.step("what the store has now")
        forgotten = seal(stepped(store, "what it has forgotten"), salt=salt_of(tree.nonce), seq=1)
        ghost.seq += 1
        rows = await store.read_journal(tree.journal)
        changes = [
            ghost.change(stepped(store, "later")),
            ghost.change(RunFailed(at=store.now(), failure=Failure("builtins.ValueError"))),
        ]
        for change in changes:
            change.prior = forgotten[2]

        outcomes = [await store.commit([change]) for change in changes]

        assert outcomes == [[(Outcome.CONFLICT, tree.journal)]] * 2
        assert await store.read_journal(tree.journal) == rows
        changes[0].prior = rows[-1][2]
        assert await store.commit(changes[:1]) == [(Outcome.COMMITTED, tree.journal)]

    async def test_append_that_names_no_row_conflicts(self, store: Store) -> None:
        """A change that follows a row proves that its writer has seen that row."""
        tree = await begin(store)
        plain = tree.change(stepped(store))
        ending = tree.change(RunFailed(at=store.now(), failure=Failure("builtins.ValueError")))
        plain.prior = ending.prior = None

        outcomes = [await store.commit([change]) for change in (plain, ending)]

        assert outcomes == [[(Outcome.CONFLICT, tree.journal)]] * 2
        assert len(await store.read_journal(tree.journal)) == 1

    async def test_second_change_behind_another_row_conflicts(self, store: Store) -> None:
        """Within one commit too, a change builds on the very row that it names."""
        tree = await begin(store)
        first = tree.change(stepped(store, "a"))
        ahead = tree.twin()
        ahead.seq += 1
        second = ahead.change(stepped(store, "b"))
        second.prior = first.rows[-1][2] ^ 1

        outcomes = await store.commit([first, second])

        assert outcomes == [(Outcome.COMMITTED, tree.journal), (Outcome.CONFLICT, tree.journal)]
        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1]

    async def test_claim_names_its_row_and_the_one_before(self, store: Store) -> None:
        """So that the owner's next change names it, and a tree in memory is known to be the claimed tree."""
        tree = await begin(store)
        await tree.write(RunReleased(at=store.now()))
        await hire(store, "w")

        (claim,) = (await store.claim_runs("w", [DEFINITION], limit=1)).claims

        assert [row[2] for row in await store.read_journal(tree.journal)][-2:] == [claim.prior, claim.crc]

    async def test_append_to_an_unknown_journal_conflicts(self, store: Store) -> None:
        """A handle that no commit gave out ends nowhere."""
        tree = await begin(store)
        lost = tree.twin()
        lost.journal += 1_000

        outcome = await lost.try_write(stepped(store))

        assert outcome is Outcome.CONFLICT
        assert await store.read_journal(lost.journal) == []

    async def test_append_after_the_end_of_the_tree_conflicts(self, store: Store) -> None:
        """The end of the root run is the last event, also for a writer that knows it."""
        tree = await begin(store)
        await tree.succeed()
        before = await see_everything(store, tree)

        outcome = await tree.try_write(RunReleased(at=store.now()))

        assert outcome is Outcome.CONFLICT
        assert await see_everything(store, tree) == before

    async def test_end_of_a_child_does_not_end_the_tree(self, store: Store) -> None:
        """The root goes on after a child has ended."""
        tree = await begin(store)
        await tree.spawn(1)
        await tree.succeed(run=1)

        assert await tree.try_write(stepped(store)) is Outcome.COMMITTED

    async def test_conflict_gives_back_the_handle_that_was_asked_for(self, store: Store) -> None:
        """The answer to a refused append names its journal."""
        tree = await begin(store)
        late = tree.twin()
        await tree.step()

        assert await store.commit([late.change(stepped(store))]) == [(Outcome.CONFLICT, tree.journal)]

    async def test_conflict_leaves_nothing_at_all(self, store: Store) -> None:
        """Neither event, row, consumed message, blob, start nor message of a refused change exists."""
        tree, friend = await begin(store), await begin(store, "friend")
        late = tree.twin()
        await tree.step()
        await send(store, message(store, "run-1"))
        waiting = await read_message_ids(store, tree)
        before = await see_everything(store, tree)

        outcome = await late.try_write(
            RunFailed(at=store.now(), failure=Failure("builtins.ValueError")),
            consumed=waiting,
            blobs=[blob(b"never")],
            starts=[new_tree(store, "never")],
            messages=[message(store, "friend")],
        )

        assert outcome is Outcome.CONFLICT
        assert await see_everything(store, tree) == before
        assert await store.read_inbox([friend.journal]) == {}
        assert await store.get_blobs([blob(b"never").id]) == {}
        assert await store.find_run("never") is None

    async def test_two_changes_of_one_tree_commit_in_order(self, store: Store) -> None:
        """Within one commit the second change may build on the first."""
        tree = await begin(store)
        first = tree.change(stepped(store, "a"))
        ahead = tree.twin()
        ahead.seq += 1
        second = ahead.change(stepped(store, "b"))

        outcomes = await store.commit([first, second])

        assert outcomes == [(Outcome.COMMITTED, tree.journal)] * 2
        assert [row[0] for row in await store.read_journal(tree.journal)] == [0, 1, 2]

    async def test_many_tasks_append_through_one_store(self, store: Store) -> None:
        """Concurrent commits of one process do not get in each other's way."""
        trees = [await begin(store, f"run-{number}") for number in range(20)]

        await asyncio.gather(*(tree.step(tree.run_id) for tree in trees))
        await asyncio.gather(*(tree.step("next", "last") for tree in trees))

        for tree in trees:
            calls = [getattr(event, "call", None) for event in await read_events(tree)]
            assert calls == ["", tree.run_id, "next", "last"]

    async def test_one_of_many_tasks_wins_a_seq(self, store: Store, other: Store) -> None:
        """Exactly one of several writers with the same knowledge commits, on whatever store."""
        tree = await begin(store)
        writers = [tree.twin(there) for there in (store, other) * 4]

        outcomes = await asyncio.gather(*(writer.try_write(stepped(store)) for writer in writers))

        assert outcomes.count(Outcome.COMMITTED) == 1
        assert len(await store.read_journal(tree.journal)) == 2
