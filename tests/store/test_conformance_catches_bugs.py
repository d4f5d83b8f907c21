"""A suite that never failed proves nothing: each planted defect must be found, by the test that is meant to find it."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.model import Run, RunFilter
from outlive._kernel.store.contract import Change, Claim, Claims, Delivery, InboxMessage, Message, Outcome
from outlive._kernel.store.memory import MemoryStore, Tree
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class AppendsAnywhere(Defective):
    """Ignores `after`."""

    found_by = "test_append_behind_the_end_conflicts"

    def _find_writable(self, change: Change) -> Tree | None:
        return self._state.trees.get(change.journal) or super()._find_writable(change)


class AppendsBehindAnyRow(Defective):
    """Looks at the seq of the last row, and not at whose row it is."""

    found_by = "test_append_behind_another_row_with_the_same_seq_conflicts"

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        return super()._find_writable(replace(change, prior=tree.rows[-1][2] if tree else None))


class AppendsAfterTheEnd(Defective):
    """Looks at the seq only."""

    found_by = "test_append_after_the_end_of_the_tree_conflicts"

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        return tree if tree and len(tree.rows) == change.after + 1 else super()._find_writable(change)


class LeavesHalfOfALoser(Defective):
    """Writes what has no seq before it looks at the seq."""

    found_by = "test_zombie_commits_nothing"

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        self._state.blobs.update({blob.id: blob.data for blob in change.blobs})
        return super()._commit(change)


class StartsForALoser(Defective):
    """Starts trees whether the change commits or not."""

    found_by = "test_tree_of_a_refused_change_is_not_started"

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        outcome = super()._commit(change)
        for start in change.starts:
            super()._commit(start)
        return outcome


class GivesUpAtTheFirstConflict(Defective):
    """Does not isolate the changes of one commit."""

    found_by = "test_conflict_of_one_change_leaves_the_others"

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        outcomes: list[tuple[Outcome, int]] = []
        for change in changes:
            has_lost = any(outcome is Outcome.CONFLICT for outcome, _ in outcomes)
            outcomes.append((Outcome.CONFLICT, change.journal) if has_lost else self._commit(change))
        return outcomes


class RenamesBeforeItJudges(Defective):
    """Gives an ended run another id for a change that is refused then."""

    found_by = "test_refused_change_renames_nothing"

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        for run in self._list_renames(change):
            self._put_run(self._state.trees[run.journal], run)
        return super()._commit(change)


class TidiesBodies(Defective):
    """Takes a body for text."""

    found_by = "test_rows_come_back_byte_for_byte"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        tree.rows = [(*row[:3], row[3].decode(errors="replace").encode()) for row in tree.rows]


class TruncatesBlobs(Defective):
    """Has a limit that it does not tell."""

    found_by = "test_large_blob_is_not_truncated"

    async def get_blobs(self, ids: Sequence[str]) -> dict[str, bytes]:
        return {id: data[: 2 * 1024 * 1024] for id, data in (await super().get_blobs(ids)).items()}


class OverwritesItems(Defective):
    """The last outcome of an item wins."""

    found_by = "test_item_is_recorded_once"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        tree.items.update({(item.run, item.index): item for item in change.items})


class KeepsConsumedMessages(Defective):
    """Loses the mark that a message was consumed."""

    found_by = "test_consumed_message_is_gone"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, replace(change, consumed=[]))


class ForgetsKeys(Defective):
    """Knows only the keys of messages that wait."""

    found_by = "test_key_is_remembered_after_its_message_was_consumed"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        tree.keys = {message.key for message in tree.inbox.values() if message.key}


class TakesOneMessageTooMany(Defective):
    """Compares with `>` where `>=` is meant."""

    found_by = "test_inbox_takes_messages_up_to_its_limit"

    def _deliver(self, message: Message, *, inbox_messages_max: int) -> Delivery:
        return super()._deliver(message, inbox_messages_max=inbox_messages_max + 1)


class AnswersLastInFirstOut(Defective):
    """Reads the inbox backwards."""

    found_by = "test_messages_wait_in_the_order_of_their_arrival"

    async def read_inbox(self, journals: Sequence[int]) -> dict[int, list[InboxMessage]]:
        return {journal: inbox[::-1] for journal, inbox in (await super().read_inbox(journals)).items()}


class DeliversSilently(Defective):
    """Stores a message and does not wake its run."""

    found_by = "test_message_wakes_a_run_that_waits"

    def _accept(self, tree: Tree, number: int, message: Message) -> None:
        root = tree.root
        super()._accept(tree, number, message)
        self._put_run(tree, root)


class SleepsOverMessages(Defective):
    """Lets a run go to sleep over a message that its owner has not seen."""

    found_by = "test_message_that_came_while_the_run_was_let_go_wakes_it"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        for run in change.runs:
            self._put_run(tree, run)


class WakesParkedRuns(Defective):
    """Takes any message for a RESUME."""

    found_by = "test_signal_does_not_wake_a_parked_run"

    def _wake_for_inbox(self, tree: Tree) -> None:
        if tree.inbox and not tree.root.status.is_terminal:
            self._put_run(tree, replace(tree.root, wake_at=self.now()))


class KeepsTheEpoch(Defective):
    """Claims without raising the epoch."""

    found_by = "test_epoch_rises_with_every_claim"

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        tree.runs[0] = replace(tree.root, epoch=max(0, tree.root.epoch - 1))
        return super()._claim(tree, worker_id, now)


class ClaimsSilently(Defective):
    """Changes the owner and writes no event, so that a zombie is not fenced."""

    found_by = "test_zombie_commits_nothing"

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        rows = list(tree.rows)
        claim = super()._claim(tree, worker_id, now)
        tree.rows = rows
        return claim


class ClaimsTwice(Defective):
    """Takes runs from workers that are alive."""

    found_by = "test_run_of_a_living_worker_is_not_claimed"

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        ours = [tree for tree in self._state.active.values() if tree.root.definition in definitions]
        return sorted((tree.root.wake_at, tree.journal, tree) for tree in ours if tree.root.wake_at is not None)


class ClaimsForeignRuns(Defective):
    """Does not ask what the worker can run."""

    found_by = "test_worker_claims_what_it_can_run"

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        return super()._list_claimable([tree.root.definition for tree in self._state.active.values()], stale_seconds)


class ClaimsBeforeTime(Defective):
    """Rounds wake-ups down to the second."""

    found_by = "test_sleeping_run_is_due_at_its_wake_up"

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        found = super()._list_claimable(definitions, stale_seconds)
        return [(wake_at - 1_000_000, journal, tree) for wake_at, journal, tree in found]


class AbandonsOrphans(Defective):
    """Claims only runs without an owner."""

    found_by = "test_run_of_a_dead_worker_is_taken_over"

    def _list_claimable(self, definitions: Sequence[str], stale_seconds: float = 0) -> list[tuple[int, int, Tree]]:
        return [found for found in super()._list_claimable(definitions, stale_seconds) if not found[2].root.owner]


class HidesInterruptions(Defective):
    """Counts no attempt when a worker died."""

    found_by = "test_run_of_an_unknown_worker_is_taken_over"

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        tree.runs[0] = replace(tree.root, owner="")
        return super()._claim(tree, worker_id, now)


class LetsTheDeadClaim(Defective):
    """Does not ask whether the worker is alive."""

    found_by = "test_worker_that_is_not_alive_claims_nothing"

    async def claim_runs(self, worker_id: str, definitions: Sequence[str], *, limit: int, **options: Any) -> Claims:
        due = [tree for wake_at, _, tree in self._list_claimable(definitions) if wake_at <= self.now()]
        return Claims([self._claim(tree, worker_id, self.now()) for tree in due[:limit]], None)


class TakesEveryOrphan(Defective):
    """Takes as many orphans as there are."""

    found_by = "test_no_more_orphans_are_claimed_than_are_wanted"

    async def claim_runs(
        self, worker_id: str, definitions: Sequence[str], *, orphans_max: int | None = None, **options: Any
    ) -> Claims:
        return await super().claim_runs(worker_id, definitions, **options)


class LetsOrphansStarveOthers(Defective):
    """Looks at the first runs of the line only, and takes no others for the orphans that it leaves there."""

    found_by = "test_orphans_that_are_left_keep_no_run_waiting"

    async def claim_runs(
        self, worker_id: str, definitions: Sequence[str], *, limit: int, orphans_max: int | None = None, **options: Any
    ) -> Claims:
        found = self._list_claimable(definitions)[:limit]
        free = sum(not tree.root.owner for _, _, tree in found)
        most = limit if orphans_max is None else free + orphans_max
        return await super().claim_runs(
            worker_id, definitions, limit=min(limit, most), orphans_max=orphans_max, **options
        )


class TakesFreshOrphans(Defective):
    """Does not wait until an orphan is stale."""

    found_by = "test_orphan_is_left_alone_until_it_is_stale"

    def _is_lost(self, worker_id: str, stale_seconds: float) -> bool:
        return super()._is_lost(worker_id, 0)


class WakesForOrphansItMayNotTake(Defective):
    """Counts orphans beyond the limit as what is next."""

    found_by = "test_orphans_beyond_the_limit_are_no_reason_to_come_back"

    async def claim_runs(
        self, worker_id: str, definitions: Sequence[str], *, orphans_max: int | None = None, **options: Any
    ) -> Claims:
        claims = await super().claim_runs(worker_id, definitions, orphans_max=orphans_max, **options)
        found = self._list_claimable(definitions)
        return replace(claims, next_wake_at=found[0][0] if found else None)


class HidesOrphans(Defective):
    """Does not say which claims were interrupted."""

    found_by = "test_claim_says_whether_it_is_of_an_orphan"

    def _claim(self, tree: Tree, worker_id: str, now: int) -> Claim:
        return replace(super()._claim(tree, worker_id, now), interrupted=False)


class RevivesTheRetired(Defective):
    """A beat brings back a session that has ended."""

    found_by = "test_beat_of_a_retired_session_is_refused"

    def extend_lease(self, worker_id: str, lease_seconds: float, *, renewed: int) -> int | None:
        self._state.retired.discard(worker_id)
        return super().extend_lease(worker_id, lease_seconds, renewed=renewed)


class TrustsAnyStore(Defective):
    """Renews a lease whatever the store remembers of it."""

    found_by = "test_beat_notices_that_the_store_has_gone_back"

    def extend_lease(self, worker_id: str, lease_seconds: float, *, renewed: int) -> int | None:
        return super().extend_lease(worker_id, lease_seconds, renewed=min(renewed, 0))


class ListsOldestFirst(Defective):
    """Orders the wrong way round."""

    found_by = "test_newest_run_comes_first"

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        **options: Any,
    ) -> list[Run]:
        return (await super().list_runs(filter, **options))[::-1]


def test_sound_store_passes() -> None:
    """A store without a defect passes the suite in which the defects below are found. [FE-P15]"""
    assert find_failures(MemoryFactory) == set()


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
