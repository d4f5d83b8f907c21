"""How the end of a workflow's task becomes the end of a run, and how a parent hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import DetachedEnded, Ending
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of, failure_of, is_rebuilt, rebuild
from outlive._kernel.journal.fold import reason_of_end
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Failure, Payload, RunStatus
from outlive._kernel.model.under_way import timed_out
from outlive._kernel.replay.call import ChildCall
from outlive._kernel.replay.command import EndRun, Successor
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import Frame
from outlive.errors import (
    OutliveError,
    RunCancelledError,
    RunFailedError,
    RunTimedOutError,
    StepFailedError,
    UnserialisableError,
)
from outlive.errors.program import NotDurableError

_FOREIGN = "awaiting an object of another event loop"
_NESTED = "running another event loop"
_UNDURABLE = {
    "attached to a different loop": _FOREIGN,
    "bound to a different event loop": _FOREIGN,
    "got bad yield": _FOREIGN,
    "cannot await on itself": _FOREIGN,
    "cannot be called from a running event loop": _NESTED,
    "while another loop is running": _NESTED,
}
"""The messages of asyncio for things that a workflow does and no journal can replay."""


class ContinueAsNew(BaseException):
    """Unwinds a workflow that goes on as a new generation.

    `except Exception` does not see it. The run ends when it comes out at the top, alone or in the group that a
    `TaskGroup` makes of it.
    """

    def __init__(self, successor: Successor) -> None:
        super().__init__(f"goes on as a new generation of {successor.workflow.name}")
        self.successor = successor


def find_successor(error: BaseException) -> Successor | None:
    """The run as which a workflow wants to continue; None if it just failed, or something else failed while it
    unwound."""
    if isinstance(error, ContinueAsNew):
        return error.successor
    if isinstance(error, BaseExceptionGroup):
        successors = [find_successor(inner) for inner in error.exceptions]
        return successors[0] if all(successor is not None for successor in successors) else None
    return None


def main_done(execution: Execution, frame: Frame) -> None:
    """The workflow has returned or raised: wind up what it left behind, then end the run."""
    if frame.task is None:
        return
    outcome = outcome_of(frame, frame.task)
    if isinstance(outcome, OutliveError):
        execution.park(outcome, frame.number)
        return
    frame.outcome = outcome
    frame.is_closing = True
    execution.closing.append(frame)
    # asyncio.run does so too: tasks that the workflow left running are cancelled and may clean up before the run ends.
    for task in frame.open_tasks():
        task.cancel()
    if frame.children:
        for call in execution.children.values():
            if call.command.parent == frame.number:
                execution.cancel_child(call, "its parent has ended")


def end_closed(execution: Execution) -> None:
    """End the runs of which nothing is left; called when the loop has come to rest."""
    for frame in list(execution.closing):
        if frame.outcome is not None and not (frame.children or frame.unsettled or frame.open_tasks()):
            execution.closing.remove(frame)
            execution.timers.take_all(frame.number)
            frame.ending = frame.outcome
            execution.commands.append(frame.outcome)


def outcome_of(frame: Frame, task: asyncio.Task[Any]) -> EndRun | OutliveError:
    """The end of a run, or the reason why it must be parked instead: failing it would lose it."""
    run = frame.number
    if task.cancelled() and frame.cancel_reason is not None:
        return EndRun(run, RunStatus.CANCELLED, reason=frame.cancel_reason)
    if frame.is_timed_out:
        # A deadline is not a request: what the workflow returns or raises behind it comes too late.
        _look_at(task)
        return EndRun(run, RunStatus.TIMED_OUT)
    if task.cancelled():
        return EndRun(run, RunStatus.CANCELLED, reason="the workflow cancelled itself")
    error = task.exception()
    if error is None:
        return _success(frame, task.result())
    if (successor := find_successor(error)) is not None:
        return EndRun(run, RunStatus.CONTINUED, successor=successor)
    return find_not_durable(error) or EndRun(run, RunStatus.FAILED, failure=failure_of(error))


def find_not_durable(error: BaseException) -> NotDurableError | None:
    """The error of code that no journal can replay, also if a `TaskGroup` wrapped it into a group."""
    if isinstance(error, NotDurableError):
        # One of a task without a line of the user's code: it has come by one on its way here.
        return error if error.where else NotDurableError(error.what, error.__traceback__)
    if isinstance(error, BaseExceptionGroup):
        found = (find_not_durable(inner) for inner in error.exceptions)
        return next((each for each in found if each is not None), None)
    # The loops that a step has trouble with are its own business.
    if isinstance(error, RuntimeError) and not is_rebuilt(error):
        what = next((what for text, what in _UNDURABLE.items() if text in str(error)), None)
        return None if what is None else NotDurableError(f"{what} ({error})", error.__traceback__)
    return None


def _success(frame: Frame, value: Any) -> EndRun | UnserialisableError:
    try:
        result = frame.spec.signature.result.encode(value, f"result of workflow {frame.spec.name}")
    except UnserialisableError as error:
        return error
    return EndRun(frame.number, RunStatus.SUCCEEDED, result=result)


def _look_at(task: asyncio.Future[Any]) -> None:
    """Keep asyncio from complaining that the exception was never looked at."""
    if not task.cancelled():
        task.exception()


def child_outcome(call: ChildCall, event: Ending, frame: Frame, unpack: Callable[[Payload], Stored]) -> None:
    """Give a parent what became of its child."""
    if call.future.done():
        return
    # The end of a child is in its row: a parent that does not look at it need not hear of it in the log.
    call.future.add_done_callback(_look_at)
    match event:
        case journal.RunSucceeded():
            what = f"result of workflow {frame.spec.name}"
            call.future.set_result(frame.spec.signature.result.decode(unpack(event.result), what))
        case journal.RunFailed():
            call.future.set_exception(failed_error(frame.id, event.failure, frame.spec.registered))
        case journal.RunCancelled():
            reason = reason_of_end(event) or "no reason given"
            call.future.set_exception(RunCancelledError(frame.id, f"was cancelled: {reason}"))
        case journal.RunTimedOut():
            call.future.set_exception(RunTimedOutError(frame.id, timed_out(reason_of_end(event))))
        case journal.RunContinued():
            raise AssertionError("only a root run goes on as a new one")


def result_of(ended: DetachedEnded, registered: tuple[type[BaseException], ...] = ()) -> Payload:
    """The result of another run.

    Raises:
        BaseException: it has not succeeded; what is raised says how it ended.
    """
    run_id = ended.run_id
    if ended.is_refusal and ended.failure is not None:
        raise exception_of(ended.failure, registered=(OutliveError,))
    if ended.status is RunStatus.SUCCEEDED:
        assert ended.result is not None
        return ended.result
    if ended.status is RunStatus.FAILED:
        assert ended.failure is not None
        raise failed_error(run_id, ended.failure, registered)
    if ended.status is RunStatus.TIMED_OUT:
        raise RunTimedOutError(run_id, "did not end within its timeout")
    raise RunCancelledError(run_id, "was cancelled")


def failed_error(run_id: str, failure: Failure, registered: tuple[type[BaseException], ...] = ()) -> BaseException:
    """The exception of a failed run: its own class where that is registered or builtin, else `RunFailedError`."""
    error = rebuild(failure, registered)
    if error is None:
        error = RunFailedError(run_id, f"failed: {failure.type}: {failure.message}", failure)
        error.__cause__ = exception_of(failure, registered=(*registered, *OWN_ERRORS, StepFailedError))
    return error
