"""The run rows are a fold of the journal: every change of a status is in one table, and most events change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.fold import Fold
from outlive._kernel.model import Run, RunStatus, Wait, WaitKind
from outlive.events import (
    ApprovalClosed,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    AskAnswered,
    AskReceived,
    AttemptFailed,
    CancelRequested,
    DetachedCancelled,
    DetachedEnded,
    DetachedStarted,
    MessageSetAside,
    PatchTaken,
    PromiseMade,
    RunCancelled,
    RunChanged,
    RunClaimed,
    RunContinued,
    RunCreated,
    RunFailed,
    RunForked,
    RunParked,
    RunPublished,
    RunReleased,
    RunResumed,
    RunRetried,
    RunSucceeded,
    RunSuspended,
    RunTagged,
    RunTimedOut,
    SignalReceived,
    SnapshotTaken,
    StateLeft,
    StepDelayed,
    StepEndedLate,
    StepFailed,
    StepIntended,
    StepProgressed,
    StepSucceeded,
    TimerFired,
)
from tests.journal.events import FAILURE, KINDS, NONCE, events_of, json_payload
from tests.journal.values import QUICK

ONE = json_payload(b"1")
WAITS = (Wait(kind=WaitKind.SIGNAL, name="go"),)


def created(**changes: Any) -> RunCreated:
    """How a journal begins."""
    fields: dict[str, Any] = {"at": 10, "workflow": "order", "version": 2, "input": ONE, "nonce": NONCE, **changes}
    return RunCreated(**fields)


def child(number: int = 1, parent: int = 0) -> RunCreated:
    """A run inside the tree."""
    return RunCreated(at=20, run=number, parent=parent, call="sub", workflow="sub", version=1, input=ONE)


def fold(*events: AnyEvent) -> Fold:
    """The rows after these events."""
    rows = Fold("r")
    for event in events:
        rows.apply(event)
    return rows


# -- How a row begins -----------------------------------------------------------------------------------------


def test_a_new_run_waits_for_a_worker() -> None:
    """A new run is due at once and has no owner."""
    root = fold(created(tags={"a": "b"}, timeout_at=99)).root

    assert (root.id, root.number, root.root_id, root.parent_id) == ("r", 0, "r", None)
    assert (root.status, root.wake_at, root.owner, root.epoch) == (RunStatus.PENDING, 10, "", 0)
    assert (root.workflow, root.version, root.nonce, root.tags, root.timeout_at) == ("order", 2, NONCE, {"a": "b"}, 99)
    assert (root.created_at, root.updated_at, root.finished_at) == (10, 10, None)


def test_a_run_that_is_created_and_claimed_at_once_is_running() -> None:
    """One event for both: the first epoch is its creator's."""
    root = fold(created(worker="w")).root

    assert (root.status, root.owner, root.epoch, root.attempts) == (RunStatus.RUNNING, "w", 1, 0)


QUEUED = created(queue="emails", queue_key="a", lead=5)
CLAIMED = RunClaimed(at=20, worker="w", epoch=1)
SUSPENDED = RunSuspended(at=30, waits=(), wake_at=40)
SLOTS: dict[str, tuple[int, tuple[AnyEvent, ...]]] = {
    "without a queue": (0, (created(), CLAIMED)),
    "a start": (1, (QUEUED,)),
    "a start in the past": (1, (created(queue="emails", start_at=9),)),
    "a start in the future": (0, (created(queue="emails", start_at=11),)),
    "the next generation": (2, (created(queue="emails", has_slot=True),)),
    "a claim": (2, (QUEUED, CLAIMED)),
    "suspended": (2, (QUEUED, CLAIMED, SUSPENDED)),
    "suspended and gives it back": (0, (created(queue="emails", frees_slot=True), CLAIMED, SUSPENDED)),
    "released": (2, (QUEUED, CLAIMED, RunReleased(at=30))),
    "parked": (0, (QUEUED, CLAIMED, RunParked(at=30, reason="x"))),
    "ended": (0, (QUEUED, CLAIMED, RunSucceeded(at=30, result=ONE))),
    "cancelled in line": (0, (QUEUED, RunCancelled(at=30))),
    "retried": (1, (QUEUED, CLAIMED, RunFailed(at=30, failure=FAILURE), RunRetried(at=40))),
    "forked": (1, (QUEUED, CLAIMED, RunForked(at=40, origin="o", events=2, seed=1))),
}


@pytest.mark.parametrize("story", SLOTS)
def test_the_journal_says_where_a_run_is_in_its_queue(story: str) -> None:
    """0 outside, 1 in line, 2 with a slot."""
    slot, events = SLOTS[story]
    root = fold(*events).root

    assert root.slot == slot
    assert root.queue == ("" if story == "without a queue" else "emails")


def test_a_snapshot_of_a_queued_run_has_its_slot() -> None:
    """A snapshot of a queued run has its slot, and the run gives it back when it waits if it was started so."""
    rows = fold(snapshot(created(queue="emails", frees_slot=True)))
    assert rows.root.slot == 2

    rows.apply(SUSPENDED)

    assert rows.root.slot == 0


def test_a_run_that_is_to_begin_later_is_due_then() -> None:
    """With a queue and without one."""
    assert [fold(created(start_at=50, queue=queue)).root.wake_at for queue in ("", "emails")] == [50, 50]


def test_a_child_hangs_on_its_root() -> None:
    """It has no owner and no time of its own, but an id, a parent and the nonce of the tree."""
    rows = fold(created(worker="w"), child(1), child(2, parent=1))

    assert [(run.id, run.parent_id) for run in rows.runs.values()] == [("r", None), ("r~1", "r"), ("r~2", "r~1")]
    for run in (rows.runs[1], rows.runs[2]):
        assert (run.status, run.owner, run.wake_at, run.nonce, run.root_id) == (RunStatus.RUNNING, "", None, NONCE, "r")


def test_a_detached_run_knows_who_wants_to_hear_of_its_end() -> None:
    """Its parent is a run of another tree."""
    assert fold(created(notify="other")).root.parent_id == "other"


def snapshot(first: RunCreated, **fields: Any) -> SnapshotTaken:
    """A snapshot of a tree that began so."""
    known: dict[str, Any] = {"events": 7, "worker": "w", "epoch": 1, "wake_at": 10} | fields
    return SnapshotTaken(at=30, created=first, payload=ONE, **known)


def test_rows_are_the_same_behind_a_snapshot_and_from_it_on() -> None:
    """A reader of what is left knows as much of the root; the children are gone."""
    first = created(worker="w", timeout_at=99, tags={"a": "b"}, notify="other")
    lived = fold(first, child(), RunSucceeded(at=20, run=1, result=ONE), RunPublished(at=25, payload=ONE))
    event = snapshot(first, published=ONE)

    lived.apply(event)

    assert lived.runs == fold(event).runs
    assert list(lived.runs) == [0]
    root = lived.root
    assert (root.created_at, root.parent_id, root.published, root.tags) == (10, "other", ONE, {"a": "b"})


# -- The table ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """What an event does to the row of the root: (status, owner, wake_at, waits, attempts, reason)."""

    event: AnyEvent
    expected: tuple[RunStatus, str, int | None, tuple[Wait, ...], int, str] | None


BEFORE: dict[str, tuple[AnyEvent, ...]] = {
    "pending": (created(),),
    "running": (created(worker="w"),),
    "taken over": (created(worker="w"), RunClaimed(at=20, worker="v", epoch=2, interrupted=True)),
    "waiting": (created(worker="w"), RunSuspended(at=20, waits=WAITS, wake_at=50)),
    "released": (created(worker="w"), RunReleased(at=20)),
    "declined": (created(worker="w"), RunReleased(at=20, reason="newer", moved_at=5)),
    "parked": (created(worker="w"), RunParked(at=20, reason="why")),
    "cancelled": (created(worker="w"), RunCancelled(at=20, reason="no")),
}
PENDING, RUNNING, WAITING, PARKED = RunStatus.PENDING, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.PARKED

TABLE: dict[tuple[str, str], Change] = {
    ("pending", "claimed"): Change(RunClaimed(at=30, worker="v", epoch=1), (RUNNING, "v", 30, (), 0, "")),
    ("waiting", "claimed"): Change(RunClaimed(at=30, worker="v", epoch=2), (RUNNING, "v", 30, (), 0, "")),
    ("released", "claimed"): Change(RunClaimed(at=30, worker="v", epoch=2), (RUNNING, "v", 30, (), 0, "")),
    ("parked", "claimed"): Change(RunClaimed(at=30, worker="v", epoch=2), (RUNNING, "v", 30, (), 0, "")),
    ("running", "taken over"): Change(
        RunClaimed(at=30, worker="v", epoch=2, interrupted=True), (RUNNING, "v", 30, (), 1, "")
    ),
    ("taken over", "taken over again"): Change(
        RunClaimed(at=30, worker="u", epoch=3, interrupted=True), (RUNNING, "u", 30, (), 2, "")
    ),
    ("running", "suspended"): Change(RunSuspended(at=30, waits=WAITS, wake_at=70), (WAITING, "", 70, WAITS, 0, "")),
    ("taken over", "suspended"): Change(RunSuspended(at=30, waits=WAITS), (WAITING, "", None, WAITS, 0, "")),
    ("running", "released"): Change(RunReleased(at=30), (PENDING, "", 30, (), 0, "")),
    ("taken over", "released"): Change(RunReleased(at=30), (PENDING, "", 30, (), 0, "")),
    ("running", "declined"): Change(RunReleased(at=30, reason="newer", moved_at=5), (PENDING, "", 5, (), 0, "newer")),
    ("taken over", "declined"): Change(
        RunReleased(at=30, reason="newer", moved_at=5), (PENDING, "", 5, (), 1, "newer")
    ),
    ("declined", "claimed"): Change(RunClaimed(at=30, worker="v", epoch=2), (RUNNING, "v", 30, (), 0, "")),
    ("running", "parked"): Change(RunParked(at=30, reason="broken"), (PARKED, "", None, (), 0, "broken")),
    ("taken over", "parked"): Change(RunParked(at=30, reason="broken"), (PARKED, "", None, (), 1, "broken")),
    ("taken over", "resumed"): Change(RunResumed(at=30), (RUNNING, "v", 20, (), 0, "")),
    ("cancelled", "retried"): Change(RunRetried(at=30, undone=(1,), timeout_at=90), (PENDING, "", 30, (), 0, "")),
    ("running", "forked"): Change(
        RunForked(at=30, origin="o", events=1, seed=7, timeout_at=90), (PENDING, "", 30, (), 0, "")
    ),
    ("taken over", "step succeeded"): Change(StepSucceeded(at=30, call="a", result=ONE), (RUNNING, "v", 20, (), 0, "")),
    ("taken over", "step failed"): Change(StepFailed(at=30, call="a", failure=FAILURE), (RUNNING, "v", 20, (), 0, "")),
    ("taken over", "attempt failed"): Change(
        AttemptFailed(at=30, call="a", failure=FAILURE, attempt=1, retry_at=40), (RUNNING, "v", 20, (), 0, "")
    ),
    ("running", "succeeded"): Change(RunSucceeded(at=30, result=ONE), (RunStatus.SUCCEEDED, "", None, (), 0, "")),
    ("running", "failed"): Change(RunFailed(at=30, failure=FAILURE), (RunStatus.FAILED, "", None, (), 0, "")),
    ("running", "cancelled"): Change(RunCancelled(at=30, reason="no"), (RunStatus.CANCELLED, "", None, (), 0, "no")),
    ("running", "timed out"): Change(RunTimedOut(at=30), (RunStatus.TIMED_OUT, "", None, (), 0, "")),
    ("running", "continued"): Change(
        RunContinued(at=30, workflow="order", version=3), (RunStatus.CONTINUED, "", None, (), 0, "")
    ),
    ("running", "published"): Change(RunPublished(at=30, payload=ONE), (RUNNING, "w", 10, (), 0, "")),
    ("running", "tagged"): Change(RunTagged(at=30, call="@tags", tags={"a": "b"}), (RUNNING, "w", 10, (), 0, "")),
    ("running", "changed"): Change(
        RunChanged(at=30, tags={"a": "b"}, moves_deadline=True, timeout_at=50), (RUNNING, "w", 10, (), 0, "")
    ),
    ("running", "put into a snapshot"): Change(snapshot(created(worker="w")), (RUNNING, "w", 10, (), 0, "")),
    ("taken over", "put into a snapshot"): Change(
        snapshot(created(worker="w"), worker="v", epoch=2, wake_at=20, attempts=1), (RUNNING, "v", 20, (), 1, "")
    ),
    ("taken over", "succeeded"): Change(RunSucceeded(at=30, result=ONE), (RunStatus.SUCCEEDED, "", None, (), 0, "")),
}

QUIET: list[AnyEvent] = [
    StepSucceeded(at=30, call="a", result=ONE),
    StepFailed(at=30, call="a", failure=FAILURE),
    AttemptFailed(at=30, call="a", failure=FAILURE, attempt=1, retry_at=40),
    StepDelayed(at=30, call="a", until_at=40, by="rate limit bank"),
    StepProgressed(at=30, call="a", progress=ONE),
    StepIntended(at=30, call="a"),
    StepEndedLate(at=30, call="a", result=ONE),
    TimerFired(at=30, call="@timer"),
    SignalReceived(at=30, name="go", payload=ONE),
    AskReceived(at=30, name="add", payload=ONE, key="k"),
    AskAnswered(at=30, call="@answer", name="add", key="k", payload=ONE),
    ApprovalRequested(at=30, call="@approval/a", name="a", payload=ONE),
    ApprovalEscalated(at=30, call="@escalation", approval="@approval/a", payload=ONE),
    ApprovalDecided(at=30, approval="@approval/a", payload=ONE),
    ApprovalClosed(at=30, call="@closing", approval="@approval/a"),
    MessageSetAside(at=30, call="@set_aside/7", name="go", message="7", reason="it is odd"),
    PromiseMade(at=30, call="@promise", payload=ONE),
    CancelRequested(at=30),
    DetachedStarted(at=30, call="b", run_id="x"),
    DetachedEnded(at=30, run_id="x", status=RunStatus.SUCCEEDED, result=ONE),
    DetachedCancelled(at=30, call="@cancel", run_id="x"),
    PatchTaken(at=30, call="@patch/x"),
    StateLeft(at=30, call="@state/m.A", payload=ONE),
]


@pytest.mark.parametrize(("before", "what"), TABLE)
def test_an_event_gives_a_run_its_next_state(before: str, what: str) -> None:
    """Each event in the table gives a run in each starting state the status, owner, wake time, waits, attempts and
    reason beside it."""
    rows = fold(*BEFORE[before])
    change = TABLE[before, what]

    changed = rows.apply(change.event)

    assert changed is rows.root
    root = rows.root
    assert (root.status, root.owner, root.wake_at, root.waits, root.attempts, root.reason) == change.expected
    assert root.updated_at == 30
    assert root.finished_at == (30 if root.status.is_terminal else None)


@pytest.mark.parametrize("event", QUIET, ids=lambda event: type(event).__name__)
def test_most_events_change_no_row(event: AnyEvent) -> None:
    """An event that a busy run records all the time changes no run row."""
    rows = fold(created(worker="w"))
    before = rows.root

    assert rows.apply(event) is None
    assert rows.root is before


PROGRESS = (StepSucceeded, StepFailed, AttemptFailed)
"""The code that the last worker did not survive has come to an end."""
NO_PROGRESS: list[AnyEvent] = [
    *(event for event in QUIET if not isinstance(event, PROGRESS)),
    RunPublished(at=30, payload=ONE),
    child(),
]


@pytest.mark.parametrize("event", NO_PROGRESS, ids=lambda event: type(event).__name__)
def test_only_a_step_that_ended_is_progress(event: AnyEvent) -> None:
    """An event other than the end of a step does not set the count of interruptions back."""
    rows = fold(*BEFORE["taken over"])

    rows.apply(event)

    assert rows.root.attempts == 1


def test_every_kind_of_event_is_in_these_tables() -> None:
    """A new kind says here what it does."""
    seen = {type(event) for event in QUIET} | {type(change.event) for change in TABLE.values()} | {RunCreated}

    assert seen == set(KINDS)


def test_a_retried_run_has_no_end() -> None:
    """Neither have its children; a deadline is the new one."""
    rows = fold(created(worker="w", timeout_at=50), child(), RunFailed(at=20, run=1, failure=FAILURE))
    rows.apply(RunFailed(at=20, failure=FAILURE))

    for event in (RunRetried(at=30, timeout_at=70), RunRetried(at=30, run=1)):
        rows.apply(event)

    for run, status in ((rows.root, PENDING), (rows.runs[1], RUNNING)):
        assert (run.status, run.finished_at, run.failure, run.result) == (status, None, None, None)
    assert (rows.root.timeout_at, rows.runs[1].timeout_at) == (70, None)


def test_the_claim_is_the_fence() -> None:
    """Owner and epoch change together."""
    root = fold(created(worker="w"), RunClaimed(at=20, worker="v", epoch=7, interrupted=True)).root

    assert (root.owner, root.epoch) == ("v", 7)


@pytest.mark.parametrize(
    ("end", "check"),
    [
        (RunSucceeded(at=30, run=1, result=ONE), lambda run: run.result == ONE),
        (RunFailed(at=30, run=1, failure=FAILURE), lambda run: run.failure == FAILURE),
        (RunCancelled(at=30, run=1, reason="no"), lambda run: run.reason == "no"),
        (RunTimedOut(at=30, run=1), lambda run: run.status is RunStatus.TIMED_OUT),
    ],
    ids=["succeeded", "failed", "cancelled", "timed out"],
)
def test_the_end_of_a_child_is_in_its_own_row(end: AnyEvent, check: Callable[[Run], bool]) -> None:
    """Its root goes on."""
    rows = fold(created(worker="w"), child())
    root = rows.root

    changed = rows.apply(end)

    assert changed is rows.runs[1]
    assert changed.status.is_terminal
    assert changed.finished_at == 30
    assert check(changed)
    assert rows.root is root


def test_a_journal_begins_with_its_root() -> None:
    """Anything else is a bug of ours."""
    with pytest.raises(AssertionError):
        Fold("r").apply(child())
    with pytest.raises(AssertionError):
        fold(created(), created())


# -- Any journal ----------------------------------------------------------------------------------------------

TREE = (created(worker="w"), child(1), child(2, parent=1))
LATER = st.one_of(*(events_of(kind) for kind in KINDS if kind not in (RunCreated, SnapshotTaken)))


def in_the_tree(event: Any, run: int) -> AnyEvent:
    """The event, of a run that exists."""
    changed: AnyEvent = msgspec.structs.replace(event, run=run)
    return changed


@QUICK
@given(st.lists(st.builds(in_the_tree, LATER, st.integers(0, 2)), max_size=12))
def test_the_fold_of_every_prefix_is_stable(events: list[AnyEvent]) -> None:
    """A row is changed by the event that says so and by no other; folding again gives the same rows."""
    journal = [*TREE, *events]
    rows = Fold("r")
    for length, event in enumerate(journal, start=1):
        before = dict(rows.runs)
        changed = rows.apply(event)
        after = dict(rows.runs)
        touched = {number for number in after if after[number] is not before.get(number)}
        assert touched == (set() if changed is None else {changed.number})
        assert fold(*journal[:length]).runs == after
        assert rows.events == length
