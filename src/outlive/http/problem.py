"""How an error is answered: RFC 9457, by one table.

A body says which error of ours it is, what happened, and what to do next. It never holds a stack, a statement of SQL or
a path: of an error that is the server's own, only its name is shown, and the rest is in its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

import msgspec

import outlive.errors as e
from outlive._features.flows.document.problems import FlowInputError
from outlive.errors.flow import (
    FlowDamagedError,
    FlowDisabledError,
    FlowHashError,
    FlowInUseError,
    FlowNotFoundError,
    StaleFlowError,
)
from outlive.errors.key import KeyNotFoundError, LinkRefusedError, QueueRefusedError
from outlive.errors.program import ExpressionError, UnknownWorkflowError, WorkflowNotFoundError, shown
from outlive.errors.run import (
    ApprovalClosedError,
    ApprovalFormError,
    ApprovalNotFoundError,
    AskNotFoundError,
    BatchFailedError,
    ChildRunError,
    InboxFullError,
    InvalidRunIdError,
    PromiseNotFoundError,
    PromiseTypeError,
    QueueNotFoundError,
    QuotaExceededError,
    RunContinuedError,
    RunDamagedError,
    RunNotForkableError,
    RunNotParkedError,
    RunNotRetriableError,
    ScheduleNotFoundError,
    ScheduleOverlapError,
    ScheduleTrippedError,
    SignalTypeError,
    TaskEndedError,
    TaskLeaseLostError,
    TaskNotFoundError,
    TaskOutputError,
)
from outlive.errors.store import HistoryFormatError

MEDIA = "application/problem+json"
DETAIL_CHARACTERS_MAX = 2_000
RETRY_SECONDS = 5
_RENAMED = {413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content"}
"""The titles of RFC 9110; Python before 3.13 has older names."""


def title_of(status: int) -> str:
    """The title of a status of HTTP; equal on every Python."""
    return _RENAMED.get(status) or HTTPStatus(status).phrase


class ProblemBody(msgspec.Struct, frozen=True, kw_only=True):
    """The problem, and how to solve it (RFC 9457)."""

    type: str
    """`urn:outlive:error:` and the name of the error."""
    title: str
    """The title of the status."""
    status: int
    detail: str
    """The cause."""
    error: str
    """The name of the error."""
    next: str
    """The advice."""


class Problem(Exception):
    """A request that is refused before it reaches the engine."""

    def __init__(
        self,
        status: int,
        error: str,
        detail: str,
        next: str,  # noqa: A002 (what it is called in the body)
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail, self.next = status, error, detail, next
        self.headers = dict(headers or {})

    @property
    def body(self) -> ProblemBody:
        """The body that is sent."""
        return ProblemBody(
            type=f"urn:outlive:error:{self.error}",
            title=title_of(self.status),
            status=self.status,
            detail=self.detail[:DETAIL_CHARACTERS_MAX],
            error=self.error,
            next=self.next,
        )


class Row(NamedTuple):
    """How one class of errors is answered."""

    status: int
    next: str


_RUNS = "GET /api/v1/runs lists the runs that there are."
_AS_IT_IS = "GET /api/v1/runs/{id} says how the run is now."
_ANOTHER_TASK = "Drop what you have done of the task; POST /api/v1/tasks/claim gives you another one."
_CORRECT = "Correct what `detail` names and send the request again."
_LATER = "Send the same request again in a few seconds; with the same id or key nothing happens twice."

TABLE: dict[type[Exception], Row] = {
    # -- There is no such thing --
    e.NotFoundError: Row(404, _RUNS),
    e.RunNotFoundError: Row(404, _RUNS),
    UnknownWorkflowError: Row(404, "GET /api/v1/workflows lists what workers have described."),
    WorkflowNotFoundError: Row(404, "GET /api/v1/workflows lists what workers have described."),
    KeyNotFoundError: Row(404, "GET /api/v1/keys lists the keys that there are."),
    FlowNotFoundError: Row(404, "GET /api/v1/flows lists the flows that there are."),
    QueueNotFoundError: Row(404, "GET /api/v1/queues lists the queues that there are."),
    ScheduleNotFoundError: Row(404, "GET /api/v1/schedules lists the schedules that there are."),
    PromiseNotFoundError: Row(404, "Give the id of a promise as its workflow has sent it."),
    ApprovalNotFoundError: Row(404, "GET /api/v1/approvals lists what waits for a decision."),
    TaskNotFoundError: Row(404, "Give the id that the claim of the task has."),
    AskNotFoundError: Row(404, "Ask the run: POST /api/v1/runs/{id}/asks/{name}."),
    LinkRefusedError: Row(404, "Ask for another link, or decide with a key."),
    # -- Who asks may not do this --
    QueueRefusedError: Row(403, "Leave out `queue`, or use a key for all runs."),
    # -- It is not in the state for this --
    e.ConflictError: Row(409, _AS_IT_IS),
    e.RunExistsError: Row(409, 'Use another id; "on_conflict": "attach" gets a run of the same workflow that has it.'),
    e.RunFinishedError: Row(409, "Start a new run: POST /api/v1/runs."),
    RunContinuedError: Row(409, "Ask for the newest generation of the run; `detail` names its id."),
    RunNotParkedError: Row(409, _AS_IT_IS),
    RunNotRetriableError: Row(409, _AS_IT_IS),
    RunNotForkableError: Row(409, "GET /api/v1/runs/{id}/history shows at which calls it can be forked."),
    e.RunParkedError: Row(409, "POST /api/v1/runs/{id}/resume lets it go on, /skip without the step in flight."),
    RunDamagedError: Row(409, "Run `outlive fsck --repair` on the store."),
    ChildRunError: Row(409, "Wait for the root of its tree; `detail` names it."),
    ApprovalClosedError: Row(409, "Start a new run to ask again."),
    BatchFailedError: Row(409, "GET /api/v1/batches/{id}/items?status=failed lists what failed."),
    ScheduleOverlapError: Row(409, "Wait for the end of the run that is open, or set another overlap policy."),
    ScheduleTrippedError: Row(409, "POST /api/v1/schedules/{name}/resume lets it go on."),
    StaleFlowError: Row(409, "Read the flow again, and send your change with the revision that it has now."),
    FlowDisabledError: Row(409, "POST /api/v1/flows/{name}/enable lets it start runs again."),
    FlowInUseError: Row(409, "Wait until the runs in `detail` have ended, or cancel them."),
    FlowDamagedError: Row(409, "Publish the flow again, or restore a backup."),
    TaskLeaseLostError: Row(409, _ANOTHER_TASK),
    TaskEndedError: Row(409, _ANOTHER_TASK),
    FlowHashError: Row(409, "Change anything in the document."),
    # -- It cannot work as it was given --
    e.InvalidArgumentError: Row(422, _CORRECT),
    e.ConfigurationError: Row(422, _CORRECT),
    e.DefinitionError: Row(422, _CORRECT),
    FlowInputError: Row(422, _CORRECT),
    ExpressionError: Row(422, _CORRECT),
    e.WrongArgumentsError: Row(422, _CORRECT),
    InvalidRunIdError: Row(422, _CORRECT),
    SignalTypeError: Row(422, _CORRECT),
    PromiseTypeError: Row(422, _CORRECT),
    TaskOutputError: Row(422, "Complete the task with an output that fits its `output_schema`, or fail it."),
    ApprovalFormError: Row(422, "GET /api/v1/runs/{id}/approvals has the JSON Schema of the form."),
    e.UnserialisableError: Row(422, _CORRECT),
    HistoryFormatError: Row(422, "Export the run again."),
    e.PayloadTooLargeError: Row(413, "Send less, or send where the data lies."),
    QuotaExceededError: Row(429, "Send the same request again later, or ask an operator for a larger quota."),
    InboxFullError: Row(429, "Send the same request again when the run has taken some of its messages."),
    # -- Not now --
    e.StoreUnavailableError: Row(503, _LATER),
    e.CommitUnknownError: Row(503, _LATER),
    e.EngineClosedError: Row(503, "Send the same request again when the server is up."),
}
"""The row of a class, or of the nearest class that it derives from, counts."""

_HIDDEN = 500
"""From this status on the message is for the log of the server."""
_INSTEAD = {
    503: "the store of this server cannot be reached now, or the server stops",
}


def row_of(kind: type[BaseException]) -> Row | None:
    """How errors of a class are answered; None if they are ours."""
    for each in kind.__mro__:
        if (row := TABLE.get(each)) is not None:
            return row
    return None


def problem_of(error: Exception) -> Problem:
    """The answer to an error that an operation raised."""
    if isinstance(error, Problem):
        return error
    row, name = row_of(type(error)), type(error).__name__
    if row is None:
        detail = "this server has failed at it; the log of the server says more"
        return Problem(500, name if isinstance(error, e.OutliveError) else "InternalError", detail, _LATER)
    headers = {"retry-after": str(RETRY_SECONDS)} if row.status in (429, 503) else {}
    detail = _INSTEAD[row.status] if row.status >= _HIDDEN else _detail_of(error)
    if isinstance(error, e.CommitUnknownError) and error.run_id:
        detail += f"; it is not known whether run {error.run_id} was started"
    return Problem(row.status, name, detail, row.next, headers)


def _detail_of(error: Exception) -> str:
    if isinstance(error, e.InvalidArgumentError):
        # Values are not repeated: they may hold what is not to be seen, and answers are logged on their way.
        given = "" if isinstance(error.given, dict | list | tuple) else f"={shown(error.given)}"
        return f"{error.name}{given} cannot work: {error.wanted}"
    return str(error)


_NAMES = {400: "Malformed", 401: "Unauthenticated", 408: "TooSlow", 413: "TooLarge", 429: "RateLimited", 503: "TooBusy"}
_SMALLER = "Send less, or send where the data lies."
_AGAIN = "Send the same request again later."


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Problem:
    """A request that is refused by what it is; its status says what to do."""
    is_for_later = status in (408, 429) or status >= 500
    then = _SMALLER if status == 413 else _AGAIN if is_for_later else _CORRECT
    return Problem(status, _NAMES.get(status) or title_of(status).replace(" ", ""), detail, then, headers)


def malformed(detail: str) -> Problem:
    """The request cannot be read."""
    return Problem(400, "Malformed", detail, "Correct the request; GET /api/v1/openapi.json says what is read.")
