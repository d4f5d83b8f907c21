"""The verbs for one run: messages, decisions, and the verbs of operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypedDict

from msgspec.structs import replace

import outlive.errors as e
from outlive._features.runs.operations.runs import MISSING
from outlive._kernel.client.message_start import NamedStart
from outlive._kernel.client.signal_many import OneSignal
from outlive._kernel.client.start_options import MessageConflict
from outlive._kernel.model.approval import AnyApproval
from outlive._kernel.values.failure import failure_of
from outlive.engine.view import view_of
from outlive.errors.program import UnknownWorkflowError, of_item
from outlive.errors.run import (
    ApprovalClosedError,
    ApprovalFormError,
    ApprovalNotFoundError,
    AskNotFoundError,
    AskTimeoutError,
    InboxFullError,
    QuotaExceededError,
    RunDamagedError,
    RunNotChangeableError,
    RunNotForkableError,
    RunNotParkedError,
    RunNotRetriableError,
    SignalsRefusedError,
    SignalTypeError,
)
from outlive.http.asked import check_id, check_workflow, made_id, why_of
from outlive.http.operation import Call, operation
from outlive.http.problem import Problem, problem_of
from outlive.http.wire.page import Done, WaitQuery, seconds_of
from outlive.http.wire.runs import (
    AnswerView,
    AskRun,
    Attributed,
    ChangeRun,
    Decide,
    ForkRun,
    NotAnswered,
    Reasoned,
    SendSignal,
    SendSignals,
    SentSignals,
    SignalOutcome,
    SkipStep,
    Started,
    StartIfAbsent,
)

ENDED = (e.RunNotFoundError, e.RunFinishedError)
STARTS = (UnknownWorkflowError, QuotaExceededError)
TAKES = (*ENDED, InboxFullError, e.PayloadTooLargeError)
DECIDES = (*TAKES, ApprovalNotFoundError, ApprovalClosedError, ApprovalFormError)
ASKS = (*TAKES, e.RunParkedError, RunDamagedError)


class StartOptions(TypedDict, total=False):
    """The part of a message about the run that it creates."""

    start: NamedStart
    headers: dict[str, str]
    on_conflict: MessageConflict


# -- Messages ---------------------------------------------------------------------------------------------------


@operation(
    "runs.signal",
    "POST",
    "/runs/{run_id}/signals/{name}",
    scope="operator",
    reach="run",
    answers=202,
    raises=(*TAKES, *STARTS, SignalTypeError),
)
async def signal(call: Call, run_id: str, name: str, body: SendSignal | None = None) -> Done:
    """Send a signal to a run; it is durable when this answers, and buffered until the run asks for it.

    With `start`, the run is created in the same transaction if there is none.
    """
    sent = body or SendSignal()
    key = sent.key or call.idempotency_key
    await call.engine.signal(run_id, name, sent.payload, key=key, **_started(call, sent.start))
    return Done(run_id)


@operation(
    "runs.signal_many",
    "POST",
    "/bulk/signal",
    scope="operator",
    reach="runs",
    answers=202,
    raises=(e.PayloadTooLargeError, *STARTS, SignalTypeError),
)
async def signal_runs(call: Call, body: SendSignals) -> SentSignals:
    """Send many signals in one transaction, to one run or to many.

    All of them are durable when this answers, and nothing is sent if one of them cannot work; `detail` says which. A
    signal whose run is not there, has ended or is full has a problem in its place. Sent again with the same keys, or
    with the same header `Idempotency-Key`, they are the same signals.
    """
    signals: list[OneSignal] = []
    for index, each in enumerate(body.signals):
        if each.start is not None:
            try:
                check_workflow(call, each.start.workflow)
            except UnknownWorkflowError as error:
                raise of_item(error, index, of="signals") from None
        key = each.key or made_id(call, "signal", each.run_id, each.name, str(index))
        one: OneSignal = {"signal": (each.run_id, each.name, each.payload), "key": key, **_started(call, each.start)}
        signals.append(one)
    refused: dict[int, e.OutliveError] = {}
    try:
        await call.engine.signal_many(signals)
    except SignalsRefusedError as error:
        refused = error.refused
    return SentSignals(
        [
            SignalOutcome(each.run_id, each.name, problem_of(refused[at]).body if at in refused else None)
            for at, each in enumerate(body.signals)
        ]
    )


@operation(
    "runs.ask",
    "POST",
    "/runs/{run_id}/asks/{name}",
    scope="operator",
    reach="run",
    answers={200: AnswerView, 202: NotAnswered},
    raises=(*ASKS, *STARTS),
    waits=True,
)
async def ask(call: Call, run_id: str, name: str, body: AskRun | None = None) -> AnswerView | NotAnswered:
    """Ask a run something, and wait for its answer, which it gives exactly once.

    The same key again is the same ask and has the same answer. If there is none yet when the time is over, the ask goes
    on, and this is answered with 202 and the key. With `start`, the run is created in the same transaction if there is
    none.
    """
    asked = body or AskRun()
    key = asked.key or call.idempotency_key or view_of(call.engine).new_id()
    wait = min(seconds_of(asked.wait), call.limits.wait_seconds_max)
    options = _started(call, asked.start)
    asking = call.engine.ask(run_id, name, asked.body, key=key, timeout=wait, **options)
    return await _answer(call, run_id, name, key, asking)


@operation(
    "asks.answer",
    "GET",
    "/runs/{run_id}/asks/{name}/{key}",
    scope="viewer",
    reach="run",
    answers={200: AnswerView, 202: NotAnswered},
    raises=(*ASKS, AskNotFoundError),
    waits=True,
)
async def answer(call: Call, run_id: str, name: str, key: str, query: WaitQuery) -> AnswerView | NotAnswered:
    """The answer to an ask that was sent before, by any process."""
    wait = min(seconds_of(query.wait), call.limits.wait_seconds_max)
    return await _answer(call, run_id, name, key, call.engine.asks.answer(run_id, name, key, timeout=wait))


def _started(call: Call, start: StartIfAbsent | None) -> StartOptions:
    """The run that a message creates."""
    if start is None:
        return {}
    named = NamedStart(start.workflow, start.arguments, start.version)
    return {"start": named, "headers": call.run_headers(start.headers), "on_conflict": start.on_conflict}


async def _answer(call: Call, run_id: str, name: str, key: str, waiting: Awaitable[Any]) -> AnswerView | NotAnswered:
    try:
        return AnswerView(key, call.view.field(name, await waiting), None)
    except AskTimeoutError:
        found = await why_of(call, run_id)
        return NotAnswered(key, found.summary, found.advice)
    except e.AskFailedError as error:
        failure = await call.view.failure(run_id, error.failure)
        return AnswerView(key, None, failure_of(failure, with_traceback=False))


# -- Decisions --------------------------------------------------------------------------------------------------


@operation(
    "approvals.approve",
    "POST",
    "/runs/{run_id}/approvals/{name}/approve",
    scope="operator",
    reach="run",
    raises=DECIDES,
)
async def approve(call: Call, run_id: str, name: str, body: Decide | None = None) -> AnyApproval:
    """Approve what a run asks for; the decision is durable when this answers.

    The first decision is the only one: a later one gets it back, and `is_first` says whether it is yours.
    """
    return await _decide(call, body or Decide(), name, call.engine.get(run_id).approve, approved=True)


@operation(
    "approvals.reject", "POST", "/runs/{run_id}/approvals/{name}/reject", scope="operator", reach="run", raises=DECIDES
)
async def reject(call: Call, run_id: str, name: str, body: Decide | None = None) -> AnyApproval:
    """Reject what a run asks for. As `approve`, and the form may be left out."""
    return await _decide(call, body or Decide(), name, call.engine.get(run_id).reject, approved=False)


async def _decide(
    call: Call, wanted: Decide, name: str, verb: Callable[..., Awaitable[AnyApproval]], *, approved: bool
) -> AnyApproval:
    by = call.person(wanted.by)
    found = await verb(name, by=by, form=wanted.form, comment=wanted.comment, request=wanted.request)
    # An earlier try of this request may have been the first, and its answer was lost.
    return replace(found, is_first=found.is_first or (found.by, found.approved) == (by, approved))


# -- Operators --------------------------------------------------------------------------------------------------


@operation("runs.cancel", "POST", "/runs/{run_id}/cancel", scope="operator", reach="run", answers=202, raises=TAKES)
async def cancel(call: Call, run_id: str, body: Reasoned | None = None) -> Done:
    """Ask a run to stop; it reaches its steps and children, wherever they run. Asking twice is asking once."""
    if not await call.was_done(run_id):
        await call.engine.cancel(run_id, reason=(body or Reasoned()).reason)
    return Done(run_id)


@operation(
    "runs.retry", "POST", "/runs/{run_id}/retry", scope="operator", reach="run", raises=(*TAKES, RunNotRetriableError)
)
async def retry(call: Call, run_id: str, body: Reasoned | None = None) -> Done:
    """Let a run that has failed, timed out or was cancelled go on at what failed."""
    if not await call.was_done(run_id):
        await call.engine.retry(run_id, reason=(body or Reasoned()).reason)
    return Done(run_id)


@operation(
    "runs.pause",
    "POST",
    "/runs/{run_id}/pause",
    scope="operator",
    reach="run",
    answers=202,
    raises=(*TAKES, e.RunParkedError),
)
async def pause(call: Call, run_id: str, body: Attributed | None = None) -> Done:
    """Let a run, with its tree, begin nothing more; steps that run end, and their results are kept."""
    said = body or Attributed()
    by = call.person(said.by)
    if not await call.was_done(run_id):
        await call.engine.get(run_id).pause(by=by, reason=said.reason)
    return Done(run_id)


@operation(
    "runs.resume",
    "POST",
    "/runs/{run_id}/resume",
    scope="operator",
    reach="run",
    answers=202,
    raises=(*TAKES, RunNotParkedError),
)
async def resume(call: Call, run_id: str) -> Done:
    """Let a run go on that is parked or paused."""
    if not await call.was_done(run_id):
        await call.engine.resume(run_id)
    return Done(run_id)


@operation(
    "runs.change",
    "POST",
    "/runs/{run_id}/change",
    scope="operator",
    reach="run",
    answers=202,
    raises=(*ENDED, RunNotChangeableError, RunDamagedError, InboxFullError),
)
async def change(call: Call, run_id: str, body: ChangeRun) -> Done:
    """Change an open run: its tags and its timeout, and of a run that no worker has begun its queue and its start.

    The change is durable when this answers; a worker that has the run applies it at once.
    """
    if not await call.was_done(run_id):
        await call.engine.change(run_id, reason=body.reason, **body.changes())
    return Done(run_id)


@operation(
    "runs.skip_step",
    "POST",
    "/runs/{run_id}/skip",
    scope="operator",
    reach="run",
    answers=202,
    raises=(*TAKES, RunNotParkedError),
)
async def skip_step(call: Call, run_id: str, body: SkipStep | None = None) -> Done:
    """Let a parked run go on without calling a step that is in flight."""
    wanted = body or SkipStep()
    if not await call.was_done(run_id):
        await call.engine.skip_step(run_id, wanted.call, result=wanted.result)
    return Done(run_id)


@operation(
    "runs.fork",
    "POST",
    "/runs/{run_id}/fork",
    scope="operator",
    reach="run",
    answers=201,
    raises=(*MISSING, e.RunExistsError, RunNotForkableError, UnknownWorkflowError),
)
async def fork(call: Call, run_id: str, body: ForkRun | None = None) -> Started:
    """Start a new run with the history of another one up to some point, edited; that one stays as it is.

    Sent again with the same `id`, or the same header `Idempotency-Key`, it is the same run.
    """
    wanted = body or ForkRun()
    new_id = wanted.id or made_id(call, "fork")
    await check_id(call, new_id)
    try:
        run = await call.engine.fork(
            run_id,
            at=wanted.at,
            set=wanted.set,
            input=wanted.input,
            version=wanted.version,
            id=new_id,
            reason=wanted.reason,
        )
    except e.RunExistsError:
        # An earlier try of the same request may have made it.
        if new_id is None or await call.view.origin_of(new_id) != run_id:
            raise
        return Started(new_id)
    return Started(run.id)


@operation("runs.delete", "DELETE", "/runs/{run_id}", scope="admin", reach="run", raises=(*MISSING, e.RunExistsError))
async def delete_run(call: Call, run_id: str) -> Done:
    """Delete a run that has ended, with its children, its history and everything else of it, for good."""
    if await call.was_done(run_id):
        return Done(run_id)
    run = await call.view.row(run_id)
    if run.number:
        raise Problem(
            409,
            "child_run",
            f"{run_id} is a child of {run.root_id}",
            "Delete the root of its tree.",
            error="ConflictError",
        )
    if not run.status.is_terminal:
        raise Problem(
            409, "run_open", f"{run_id} is {run.status.value}", "Cancel it, or wait for its end.", error="ConflictError"
        )
    if not await call.view.delete(run):
        raise Problem(
            409, "run_needed", f"an open run needs {run_id}", "Wait for the end of that run.", error="ConflictError"
        )
    return Done(run_id)
