"""The errors of a client about runs, and about the people who decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outlive.errors.advice import Advice
from outlive.errors.base import (
    ConflictError,
    DamagedError,
    LimitError,
    MisuseError,
    NotFoundError,
    OutliveError,
    UnfitValueError,
)
from outlive.errors.program import shown


class RunNotFoundError(NotFoundError):
    """No run has this id."""

    def __init__(self, run_id: str, advice: str = "start it first") -> None:
        self.run_id = run_id
        self._advice = (Advice("list", effect="shows the runs of the store"),)
        super().__init__(
            f"no run has id {run_id!r} in this store; look at the id and the URL of the store, or {advice}"
        )


class RunExistsError(ConflictError):
    """A run with this id was started before: the start said on_conflict="reject", or it is a run of something else."""

    def __init__(self, run_id: str, status: str, advice: str = "use another id, or `attach` to get that run") -> None:
        self.run_id, self.status = run_id, status
        super().__init__(f"run {run_id!r} exists already ({status}); {advice}")


class StartsRefusedError(ConflictError):
    """Some of many runs were not started, as their ids are taken; the others were.

    Carries the `ids` of all of them in order, and the error of each that was `refused`, by its place.
    """

    def __init__(self, ids: Sequence[str], refused: Mapping[int, OutliveError]) -> None:
        self.ids, self.refused = tuple(ids), dict(refused)
        first = next(iter(self.refused))
        others = len(self.ids) - len(self.refused)
        super().__init__(
            f"{len(self.refused)} of {len(self.ids)} runs were not started"
            f"{f', the other {others} were' if others else ''}; starts[{first}]: {self.refused[first].summary}"
        )


class SignalsRefusedError(ConflictError):
    """Some of many signals were not sent, as their runs are not there, have ended or are full; the others were.

    Carries how many `count` all of them are, and the error of each that was `refused`, by its place.
    """

    def __init__(self, count: int, refused: Mapping[int, OutliveError]) -> None:
        self.count, self.refused = count, dict(refused)
        first = next(iter(self.refused))
        others = count - len(self.refused)
        super().__init__(
            f"{len(self.refused)} of {count} signals were not sent"
            f"{f', the other {others} were' if others else ''}; signals[{first}]: {self.refused[first].summary}"
        )


class RunFinishedError(ConflictError):
    """The run has ended: it takes no more messages, and nothing that was waited for can come."""

    def __init__(self, run_id: str, status: str, advice: str = "and takes no more messages; start a new run") -> None:
        self.run_id, self.status = run_id, status
        super().__init__(f"run {run_id!r} has ended ({status}) {advice}")


class AskRefusedError(RunFinishedError):
    """The run has ended, and did not answer."""

    def __init__(self, run_id: str, name: str, key: str, status: str) -> None:
        super().__init__(run_id, status)
        self.name, self.key = name, key
        self.args = (
            f"run {run_id!r} has ended ({status}) without an answer to ask {name!r} (key {key!r}); there will be none: "
            f"start a new run and ask that",
        )


class AskFailedError(OutliveError):
    """The answer is an error: the run gave it, its validator refused the ask, or the body could not be read. The
    exception itself is the cause."""

    def __init__(self, run_id: str, name: str, key: str, failure: Any) -> None:
        self.run_id, self.name, self.key, self.failure = run_id, name, key, failure
        super().__init__(f"run {run_id} answered ask {name!r} with an error: {failure.type}: {failure.message}")


class AskTimeoutError(OutliveError, TimeoutError):
    """The run had not answered within the time that the caller gave it; the ask goes on."""

    def __init__(self, run_id: str, name: str, key: str, *, seconds: float, why: str) -> None:
        self.run_id, self.name, self.key, self.seconds, self.why = run_id, name, key, seconds, _summary_of(why)
        asked = {"run_id": run_id, "name": name, "key": key}
        self._advice = (Advice("asks.answer", asked, "waits for its answer"), *_advice_of(why))
        super().__init__(
            f"run {run_id} has not answered ask {name!r} within {seconds:g} s ({self.why}); the ask goes on"
        )


class AskNotFoundError(NotFoundError):
    """This run was never asked that, or another run has its id now."""

    def __init__(self, run_id: str, name: str, key: str) -> None:
        self.run_id, self.name, self.key = run_id, name, key
        self._advice = (Advice("ask", {"run_id": run_id, "name": name, "key": key}, "asks it"),)
        super().__init__(f"run {run_id!r} knows no ask {name!r} with the key {key!r}; look at the key, or ask it")


class AskAnsweredError(MisuseError):
    """An ask gets one answer."""

    def __init__(self, name: str, key: str) -> None:
        self.name, self.key = name, key
        super().__init__(f"ask {name!r} (key {key!r}) is answered already; reply or fail once, and look at is_answered")


class RunContinuedError(ConflictError):
    """This is an earlier generation of a run: it has no result of its own."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.last_id = run_id.rpartition("~gen")[0]
        super().__init__(
            f"run {run_id!r} went on as a new generation and has no result of its own; ask for that of {self.last_id!r}"
        )


class ChildRunError(ConflictError):
    """A child run ends for its own tree only; another run cannot wait for it."""

    def __init__(self, run_id: str, root_id: str) -> None:
        self.run_id, self.root_id = run_id, root_id
        super().__init__(
            f"run {run_id!r} is a child, and only its own tree hears of its end; wait for {root_id!r}, or start it "
            f"with outlive.start(..., detached=True)"
        )


class SelfWaitError(ConflictError):
    """A run would wait for its own end."""

    def __init__(self, run_id: str, root_id: str) -> None:
        self.run_id, self.root_id = run_id, root_id
        own = "itself" if run_id == root_id else f"{root_id!r}, the root of its own tree"
        super().__init__(f"run {run_id!r} would wait for {own}, which cannot end before this wait does")


class RunNotParkedError(ConflictError):
    """Only a parked run can be resumed, or go on without a step."""

    def __init__(self, run_id: str, status: str) -> None:
        self.run_id, self.status = run_id, status
        super().__init__(
            f"run {run_id!r} is {status}, not parked; there is nothing to resume or to skip (retry a run that has "
            f"ended badly)"
        )


class RunNotRetriableError(ConflictError):
    """This run cannot go on at what failed; `reason` says why."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id, self.reason, self._advice = run_id, _summary_of(reason), _advice_of(reason)
        super().__init__(f"run {run_id!r} cannot be retried: {self.reason}")


class RunNotChangeableError(ConflictError):
    """This open run cannot be changed like that; `reason` says why."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id, self.reason = run_id, reason
        super().__init__(f"run {run_id!r} cannot be changed: {reason}")


class RunNotForkableError(ConflictError):
    """This history cannot be the beginning of another run; `reason` says why."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id, self.reason = run_id, reason
        super().__init__(f"run {run_id!r} cannot be forked: {reason}")


class RunParkedError(OutliveError):
    """The run is parked: it has stopped with a reason, has no result, and goes on when a person lets it."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id, self.reason = run_id, reason
        self._advice = (
            Advice("resume", {"run_id": run_id}, "lets it go on when the cause is gone"),
            Advice("skip_step", {"run_id": run_id}, "does so without the step in flight"),
            Advice("cancel", {"run_id": run_id}, "ends it"),
        )
        super().__init__(f"run {run_id} is parked: {reason}")


class RunDamagedError(DamagedError):
    """The row of a run in the store cannot be read; its journal still tells what it should say."""

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id, self.reason = run_id, reason
        super().__init__(f"run {run_id} cannot be read: {reason}")


class InvalidRunIdError(OutliveError, ValueError):
    """A run id must be usable in a URL and a file name."""

    def __init__(self, run_id: object) -> None:
        self.run_id = run_id
        super().__init__(
            f"{shown(run_id)} cannot be a run id: use text of 1 to 128 letters, digits, '_', '.', ':' or '-' that "
            f"begins with a letter or a digit, and not 'count', 'follow' or 'stuck', which are addresses of lists; for "
            f'example id="order-42"'
        )


class SignalTypeError(UnfitValueError):
    """The workflow declares another type for this signal."""

    def __init__(self, workflow: str, signal: str, type_name: str, reason: str) -> None:
        self.workflow, self.signal, self.type_name, self.reason = workflow, signal, type_name, reason
        super().__init__(f"signal {signal!r} of workflow {workflow} takes {type_name}: {reason}")


class QuotaExceededError(LimitError):
    """The namespace has as many as its quota allows; nothing was started."""

    def __init__(self, namespace: str, what: str) -> None:
        self.namespace, self.what = namespace, what
        self._advice = (Advice("quotas.set", {"namespace": namespace}, "is how an operator gives it more"),)
        super().__init__(
            f"namespace {namespace!r} has used up its quota of {what}; nothing was started: try again later, or ask "
            f"an operator for more"
        )


class InboxFullError(LimitError):
    """Too many messages wait for this run already."""

    def __init__(self, run_id: str, limit: int) -> None:
        self.run_id, self.limit = run_id, limit
        super().__init__(
            f"{limit:,} messages wait for run {run_id!r} already (inbox_messages_max); try again when it has taken some"
        )


class RunFailedError(OutliveError):
    """The run ended without a result; says why, with the journaled failure."""

    def __init__(self, run_id: str, message: str, failure: Any = None) -> None:
        self.run_id, self.failure = run_id, failure
        super().__init__(f"run {run_id} {message}")


class RunCancelledError(RunFailedError):
    """The run was cancelled."""


class RunTimedOutError(RunFailedError):
    """The run did not end within its timeout."""


class NotBegunError(OutliveError):
    """Why a run has failed that no worker began within its `begin_within`: no code of it has run."""

    def __init__(self, begin_by: str) -> None:
        self.begin_by = begin_by
        super().__init__(
            f"no worker had begun it by {begin_by} (begin_within), and no code of it has run; retry it to begin it"
        )


class ResultTimeoutError(OutliveError, TimeoutError):
    """The run had not ended, or done what was waited for, when the caller's patience had."""

    def __init__(self, run_id: str, seconds: float, why: str, *, what: str = "ended") -> None:
        self.run_id, self.seconds, self.why, self.what = run_id, seconds, _summary_of(why), what
        self._advice = _advice_of(why)
        super().__init__(f"run {run_id} has not {what} within {seconds:g} s ({self.why}); ask again later")


class StandstillError(OutliveError):
    """A test waits for something that cannot come: nothing moves, and no time that passes will change that."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what}; send what it waits for, or raise patience_seconds if something real is on its way")


class BatchFailedError(OutliveError):
    """More items of a batch failed than were tolerated."""

    def __init__(self, failed: int, failures_max: int, total: int) -> None:
        self.failed, self.failures_max, self.total = failed, failures_max, total
        super().__init__(
            f"{failed} of {total} items failed, and {failures_max} were tolerated; batch.items() has their errors"
        )


class TaskNotFoundError(NotFoundError):
    """No remote step has made a task of this id."""

    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(f"there is no task {task!r}; give the id that its claim has")


class TaskLeaseLostError(ConflictError):
    """The lease of a task is not, or no longer, the caller's; what the caller says of the task does not count."""

    def __init__(self, task: str) -> None:
        self.task = task
        super().__init__(
            f"the lease of task {task} has run out, or was never yours, and the task is for another program now; drop "
            f"what you have done of it, and claim the next task"
        )


class TaskEndedError(ConflictError):
    """The task has ended otherwise: another end came first."""

    def __init__(self, task: str, status: str) -> None:
        self.task, self.status = task, status
        super().__init__(f"task {task} has ended before as {status}, and that counts; claim the next task")


class TaskOutputError(UnfitValueError):
    """The step gives another type of output."""

    def __init__(self, task: str, type_name: str, reason: str) -> None:
        self.task, self.type_name, self.reason = task, type_name, reason
        super().__init__(f"task {task} has an output of type {type_name}: {reason}; complete it with one, or fail it")


class PromiseNotFoundError(NotFoundError):
    """No run has made a promise of this id."""

    def __init__(self, promise: str, reason: str) -> None:
        self.promise, self.reason = promise, reason
        super().__init__(f"there is no promise {promise!r}: {reason}; give the id of a promise as its workflow sent it")


class PromiseTypeError(UnfitValueError):
    """The promise takes another type of value."""

    def __init__(self, promise: str, type_name: str, reason: str) -> None:
        self.promise, self.type_name, self.reason = promise, type_name, reason
        super().__init__(f"promise {promise} takes a value of type {type_name}: {reason}")


class PromiseFailedError(OutliveError):
    """A program outside settled the promise with an error, whose class the workflow does not know."""

    def __init__(self, promise: str, type_name: str, message: str) -> None:
        self.promise, self.type_name = promise, type_name
        super().__init__(f"promise {promise} failed: {type_name}: {message}")


class ApprovalNotFoundError(NotFoundError):
    """The run has asked for no such approval, or several runs of its tree have."""

    def __init__(
        self, run_id: str, name: str, pending: Sequence[str], *, request: str | None = None, are_several: bool = False
    ) -> None:
        self.run_id, self.name, self.pending, self.request = run_id, name, tuple(pending), request
        waiting = f"decide one that waits, by the id of its run and its name: {', '.join(pending)}"
        if are_several:
            what = f"several runs below {run_id!r} ask for approval {name!r}"
        else:
            what = f"run {run_id!r} has not asked for approval {name!r}"
            what += f" with the request {request!r}" if request is not None else ""
        if not pending:
            self._advice = (
                Advice("approvals.list", {"run_id": run_id}, "shows the approvals that the run has asked for"),
            )
        super().__init__(f"{what}; {waiting if pending else 'it waits for none now'}")


class ApprovalClosedError(ConflictError):
    """The run waits for this decision no longer."""

    def __init__(self, run_id: str, name: str, reason: str) -> None:
        self.run_id, self.name, self.reason = run_id, name, reason
        super().__init__(
            f"approval {name!r} of run {run_id!r} is closed: {reason}; nothing was decided, start a new run to ask "
            f"again"
        )


class ApprovalFormError(UnfitValueError, ValueError):
    """The form is not filled in as the workflow asks for."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        self._advice = (Advice("approvals.list", effect="has its JSON Schema"),)
        super().__init__(f"the form of approval {name!r} does not fit: {reason}")


class ApprovalExpiredError(OutliveError, TimeoutError):
    """No person decided before the deadline of the approval."""

    def __init__(self, name: str, assignees: tuple[str, ...] = ()) -> None:
        self.name, self.assignees = name, assignees
        people = f" by {', '.join(assignees)}" if assignees else ""
        super().__init__(f"approval {name!r} was not decided{people} before its deadline")


class QueueNotFoundError(NotFoundError):
    """Neither runs nor code nor `engine.queues.set` have named a queue like this."""

    def __init__(self, name: str, near: str = "") -> None:
        self.name, self.near = name, near
        self._advice = (
            Advice("queues.list", effect="shows all queues"),
            Advice("queues.set", {"queue": name, "concurrency": 5}, "makes one"),
        )
        super().__init__(f"there is no queue {name!r}" + (f"; did you mean {near!r}?" if near else ""))


class ScheduleNotFoundError(NotFoundError):
    """The store has no schedule of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._advice = (Advice("schedules.list", effect="shows all schedules"),)
        super().__init__(f"there is no schedule {name!r}")


class ScheduleOverlapError(ConflictError):
    """A schedule was triggered while a run of it is open, and its overlap policy does not start another one."""

    def __init__(self, name: str, open_runs: Sequence[str]) -> None:
        self.name, self.open_runs = name, tuple(open_runs)
        super().__init__(
            f"schedule {name!r} was not triggered: run {open_runs[-1]} is open; wait for its end, or give "
            "`allow` or `terminate_previous` as the overlap"
        )


class ScheduleTrippedError(ConflictError):
    """A schedule was triggered that has stopped because of its failures."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._advice = (Advice("schedules.resume", {"name": name}, "lets it go on"),)
        super().__init__(
            f"schedule {name!r} was not triggered: it has tripped, because too many of its runs in a row have failed"
        )


def _summary_of(why: str) -> str:
    """A sentence without its advice, which a `Why` has."""
    return str(getattr(why, "summary", why))


def _advice_of(why: str) -> tuple[Advice, ...]:
    advice: tuple[Advice, ...] = getattr(why, "advice", ())
    return advice
