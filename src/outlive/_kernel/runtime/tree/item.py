"""The outcome of an item of a batch, as readers find it: written with its event."""

from __future__ import annotations

from outlive._kernel.journal.event import (
    AnyEvent,
    RunCancelled,
    RunFailed,
    RunSucceeded,
    RunTimedOut,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.replay.call import StepCall
from outlive._kernel.replay.execution import Execution
from outlive._kernel.store.contract import ItemResult
from outlive.errors import RunCancelledError as Cancelled
from outlive.errors import RunTimedOutError as TimedOut


def item_of(event: AnyEvent, execution: Execution) -> ItemResult | None:
    """The outcome of an item, from an event that has not been fed yet; None if it is about something else."""
    match event:
        case StepSucceeded() | StepFailed():
            step = execution.calls.get((event.run, event.call))
            if not isinstance(step, StepCall) or step.command.item < 0:
                return None
            if isinstance(event, StepSucceeded):
                return ItemResult(run=event.run, index=step.command.item, result=event.result)
            return ItemResult(run=event.run, index=step.command.item, failure=event.failure)
        case RunSucceeded() | RunFailed() | RunCancelled() | RunTimedOut():
            child = execution.children.get(event.run)
            if child is None or child.command.item < 0:
                return None
            run, index = child.command.parent, child.command.item
            if isinstance(event, RunSucceeded):
                return ItemResult(run=run, index=index, result=event.result)
            if isinstance(event, RunFailed):
                return ItemResult(run=run, index=index, failure=event.failure)
            run_id = execution.frames[event.run].id
            error: Cancelled | TimedOut
            if isinstance(event, RunTimedOut):
                error = TimedOut(run_id, "did not end within its timeout")
            else:
                error = Cancelled(run_id, f"was cancelled: {event.reason or 'no reason given'}")
            return ItemResult(run=run, index=index, failure=failure_of(error))
        case _:
            return None
