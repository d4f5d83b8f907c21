"""The end of an undo that has used up its attempts, or that was interrupted and may be called only once.

A step that fails for good raises in its workflow. An undo cannot: the workflow has failed already, and half a roll-back
must not end silently. So its last failure goes into the journal as one more failed attempt, and the run is parked with
what was undone and what is left. When a person resumes the run, it makes the next attempt.

A roll-back that has taken too long as a whole ends in the same way, with the undo that is under way: see
`outlive._kernel.replay.undo_deadline`.
"""

from __future__ import annotations

from outlive._kernel.journal.event import AttemptFailed, StepFailed
from outlive._kernel.model import Failure
from outlive._kernel.replay.call import StepCall
from outlive._kernel.replay.command import RunStep
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.undo_deadline import UndoDeadline


def undo_failed(execution: Execution, event: StepFailed) -> tuple[AttemptFailed, str]:
    """The failure of an undo as one of its attempts, and why its roll-back cannot go on."""
    call = execution.calls[event.run, event.call]
    assert isinstance(call, StepCall)
    failed = AttemptFailed(
        at=event.at,
        run=event.run,
        call=event.call,
        failure=event.failure,
        attempt=event.attempt,
        retry_at=event.at,
        digest=event.digest,
    )
    if call.rollback is None:
        return failed, event.failure.message  # It was called inside the attempt of its step: see `unstorable`.
    return failed, str(call.rollback.failed(event.failure, attempts=event.attempt))


def undo_cut_off(command: RunStep, deadline: UndoDeadline, *, at: int) -> AttemptFailed:
    """The attempt of an undo that was under way when the time of its roll-back was over."""
    message = f"the roll-back has not ended within its undo_timeout of {deadline.seconds:g} s"
    return AttemptFailed(
        at=at,
        run=command.run,
        call=command.call,
        failure=Failure(type="builtins.TimeoutError", message=message),
        attempt=command.attempt,
        retry_at=at,
        digest=command.digest,
    )
