"""The run rows are a fold of the journal: the same fold for the worker that writes and for `fsck`.

`Fold.apply` is given the events of one tree in order and answers which run rows an event changed. Most events of
a busy run change no row at all (a step that succeeds leaves its run running), which is why a run of n steps
writes n + O(1) rows. All changes of a status are in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.model import Run, RunStatus, child_id
from outlive._kernel.model.approval import OpenRequest
from outlive._kernel.model.run import HELD, IN_LINE, OUTSIDE
from outlive._kernel.model.under_way import interrupted_shown

STATUS: dict[type[Ending], RunStatus] = {
    journal.RunSucceeded: RunStatus.SUCCEEDED,
    journal.RunFailed: RunStatus.FAILED,
    journal.RunCancelled: RunStatus.CANCELLED,
    journal.RunTimedOut: RunStatus.TIMED_OUT,
    journal.RunContinued: RunStatus.CONTINUED,
}
"""How a run has ended, by the event that says so."""


class Fold(msgspec.Struct, eq=False):
    """The run rows of one tree after the events seen so far."""

    root_id: str
    runs: dict[int, Run] = {}
    events: int = 0
    frees_slot: bool = False
    """Whether the tree gives its slot in its queue back while it waits."""

    @property
    def root(self) -> Run:
        """The row of the root run."""
        return self.runs[0]

    def apply(self, event: AnyEvent) -> Run | None:
        """Take the next event; the row it changed, or None."""
        self.events += 1
        change = _CHANGES[type(event)]
        if change is None or (change is Fold._progress and not self.runs[0].attempts):
            return None
        return change(self, event)

    def _progress(self, event: AnyEvent) -> Run:
        """The run moves: the next take-over counts from zero again."""
        return self._set(0, event, attempts=0)

    def _create(self, event: journal.RunCreated) -> Run:
        number = event.run
        root = None if event.before else self.runs.get(0)
        assert (root is None) == (number == 0), "a journal begins with its root run"
        run = Run(
            id=child_id(self.root_id, number) if number else self.root_id,
            number=number,
            root_id=self.root_id,
            parent_id=child_id(self.root_id, event.parent) if root else (event.notify or None),
            workflow=event.workflow,
            version=event.version,
            nonce=event.nonce if root is None else root.nonce,
            status=RunStatus.RUNNING if event.worker or root else RunStatus.PENDING,
            # Children hang on their root: only roots are claimed, so only roots have a wake-up time.
            wake_at=(event.start_at or event.at) if root is None else None,
            owner=event.worker,
            epoch=1 if event.worker else 0,
            created_at=event.at,
            updated_at=event.at,
            timeout_at=event.timeout_at,
            timeout=None if event.worker or event.generation else event.timeout,
            begin_by=None if event.worker else event.begin_by or None,
            tags=event.tags,
            published=event.published,
            queue=event.queue,
            queue_key=event.queue_key,
            lead=event.lead,
            slots=event.slots,
            slot=_first_slot(event) if event.queue else OUTSIDE,
        )
        self.runs[number] = run
        if event.frees_slot:
            self.frees_slot = True
        return run

    def _restore(self, event: journal.SnapshotTaken) -> Run:
        self.runs = {}
        self._create(event.created)
        return self._set(
            0,
            event,
            timeout=None,
            begin_by=None,
            status=RunStatus.RUNNING,
            owner=event.worker,
            epoch=event.epoch,
            attempts=event.attempts,
            wake_at=event.wake_at,
            published=event.published,
            slot=HELD if event.created.queue else OUTSIDE,
        )

    def _claim(self, event: journal.RunClaimed) -> Run:
        run = self.runs[0]
        return self._set(
            0,
            event,
            timeout_at=run.timeout_at if run.timeout is None else event.at + run.timeout,
            timeout=None,
            begin_by=None if run.begin_by is None or event.at <= run.begin_by else run.begin_by,
            status=RunStatus.RUNNING,
            owner=event.worker,
            epoch=event.epoch,
            wake_at=event.at,
            waits=(),
            reason="",
            attempts=self.runs[0].attempts + event.interrupted,
            slot=HELD if self.runs[0].queue else OUTSIDE,
        )

    def _suspend(self, event: journal.RunSuspended) -> Run:
        slot = OUTSIDE if self.frees_slot or event.gives_way else self.runs[0].slot
        return self._let_go(event, RunStatus.WAITING, waits=event.waits, wake_at=event.wake_at, attempts=0, slot=slot)

    def _release(self, event: journal.RunReleased) -> Run:
        if event.reason:
            # Nothing was tried: neither is the next take-over the first one, nor has the run moved.
            return self._let_go(event, RunStatus.PENDING, wake_at=event.moved_at, reason=event.reason)
        attempts = self.runs[0].attempts + 1 if event.interrupted else 0
        return self._let_go(event, RunStatus.PENDING, wake_at=event.at, attempts=attempts)

    def _park(self, event: journal.RunParked) -> Run:
        return self._let_go(event, RunStatus.PARKED, wake_at=None, reason=event.reason, slot=OUTSIDE)

    def _resume(self, event: journal.RunResumed) -> Run:
        return self._set(0, event, reason="", attempts=0)

    def _retry(self, event: journal.RunRetried) -> Run:
        is_root = event.run == 0
        before = self.runs[event.run].approvals
        return self._set(
            event.run,
            event,
            approvals=before if event.approvals is None else event.approvals,
            status=RunStatus.PENDING if is_root else RunStatus.RUNNING,
            wake_at=event.at if is_root else None,
            finished_at=None,
            timeout_at=event.timeout_at,
            timeout=event.timeout if is_root else None,
            begin_by=None,
            reason="",
            result=None,
            failure=None,
            slot=IN_LINE if is_root and self.runs[0].queue else OUTSIDE,
        )

    def _fork(self, event: journal.RunForked) -> Run:
        return self._set(
            0,
            event,
            status=RunStatus.PENDING,
            wake_at=event.at,
            owner="",
            created_at=event.at,
            timeout_at=event.timeout_at,
            timeout=event.timeout,
            begin_by=None,
            reason="",
            slot=IN_LINE if self.runs[0].queue else OUTSIDE,
        )

    def _publish(self, event: journal.RunPublished) -> Run:
        return self._set(event.run, event, published=event.payload)

    def _change(self, event: journal.RunChanged) -> Run:
        run = self.runs[event.run]
        changes: dict[str, object] = {} if event.tags is None else {"tags": event.tags}
        if event.moves_deadline:
            changes["timeout_at"] = event.timeout_at
            if run.status is RunStatus.WAITING:  # A worker makes another timer of it.
                changes["wake_at"] = event.at
        return self._set(event.run, event, **changes)

    def _tag(self, event: journal.RunTagged) -> Run:
        return self._set(event.run, event, tags=event.tags)

    def _request(self, event: journal.ApprovalRequested) -> Run | None:
        if event.assignees is None:
            return None
        request = OpenRequest(event.call, event.assignees)
        return self._set(event.run, event, approvals=(*self.runs[event.run].approvals, request))

    def _escalate(self, event: journal.ApprovalEscalated) -> Run | None:
        if event.assignees is None:
            return None
        requests = self.runs[event.run].approvals
        return self._set(
            event.run,
            event,
            approvals=tuple(
                OpenRequest(request.call, event.assignees) if request.call == event.approval else request
                for request in requests
            ),
        )

    def _close_request(self, event: journal.ApprovalDecided | journal.ApprovalClosed) -> Run | None:
        requests = self.runs[event.run].approvals
        left = tuple(request for request in requests if request.call != event.approval)
        return self._set(event.run, event, approvals=left) if len(left) < len(requests) else None

    def _let_go(self, event: AnyEvent, status: RunStatus, **changes: object) -> Run:
        changes.setdefault("waits", ())
        return self._set(0, event, status=status, owner="", **changes)

    def _end(self, event: Ending) -> Run:
        run, succeeded = self.runs[event.run], type(event) is journal.RunSucceeded
        return self._set(
            event.run,
            event,
            status=STATUS[type(event)],
            owner="",
            wake_at=None,
            waits=(),
            approvals=(),
            attempts=0,
            slot=OUTSIDE,
            finished_at=event.at,
            result=getattr(event, "result", run.result),
            failure=getattr(event, "failure", run.failure),
            reason=run.reason if succeeded else reason_of_end(event, before=run.reason),
        )

    def _set(self, number: int, event: AnyEvent, **changes: object) -> Run:
        run = msgspec.structs.replace(self.runs[number], updated_at=event.at, **changes)
        self.runs[number] = run
        return run


def reason_of_end(event: Ending, *, before: str = "") -> str:
    """Why a run has ended, for people, with the steps that this has interrupted; `before` is what its row said."""
    reason: str = getattr(event, "reason", before)
    if isinstance(event, journal.RunCancelled | journal.RunTimedOut) and event.interrupted:
        return "; ".join(filter(None, (reason, interrupted_shown(event.interrupted, event.at, run=event.run))))
    return reason


def _first_slot(event: journal.RunCreated) -> int:
    if event.worker or event.has_slot:
        return HELD
    return OUTSIDE if event.start_at > event.at else IN_LINE


_CHANGES: dict[type, Callable[[Fold, Any], Run | None] | None] = {
    journal.RunCreated: Fold._create,
    journal.RunClaimed: Fold._claim,
    journal.RunSuspended: Fold._suspend,
    journal.RunReleased: Fold._release,
    journal.RunParked: Fold._park,
    journal.RunResumed: Fold._resume,
    journal.RunRetried: Fold._retry,
    journal.RunForked: Fold._fork,
    **dict.fromkeys(STATUS, Fold._end),
    journal.RunPublished: Fold._publish,
    journal.RunChanged: Fold._change,
    journal.RunTagged: Fold._tag,
    journal.SnapshotTaken: Fold._restore,
    journal.StepSucceeded: Fold._progress,
    journal.StepFailed: Fold._progress,
    journal.AttemptFailed: Fold._progress,
    # No progress: these are written before the code that they wake has done anything.
    journal.TimerFired: None,
    journal.SignalReceived: None,
    journal.AskReceived: None,
    journal.AskAnswered: None,
    journal.CancelRequested: None,
    journal.DetachedStarted: None,
    journal.DetachedEnded: None,
    journal.DetachedCancelled: None,
    journal.ApprovalRequested: Fold._request,
    journal.ApprovalEscalated: Fold._escalate,
    journal.ApprovalDecided: Fold._close_request,
    journal.ApprovalClosed: Fold._close_request,
    journal.MessageSetAside: None,
    journal.PromiseMade: None,
    journal.PatchTaken: None,
    journal.StateLeft: None,
    journal.StepDelayed: None,
    journal.StepProgressed: None,
    journal.StepIntended: None,
    journal.StepEndedLate: None,
}
assert set(_CHANGES) == set(get_args(AnyEvent)), "every event kind says what it does to the run rows"
