"""What becomes of an undo that has used up its attempts, or that was interrupted and may be called only once.

A step that fails for good tells its workflow. An undo has nobody to tell: the workflow has failed already, and half a
roll-back must not end silently. So its last failure goes into the journal as one more failed attempt, and the run is
parked with what was undone and what is left. Whoever resumes the run lets it make the next attempt.
"""

from __future__ import annotations

from outlive._journal.event import AttemptFailed, StepFailed
from outlive._replay.call import StepCall
from outlive._replay.execution import Execution


def undo_failed(execution: Execution, event: StepFailed) -> tuple[AttemptFailed, str]:
    """The failure of an undo as one of its attempts, and why its roll-back cannot go on."""
    call = execution.calls[event.run, event.call]
    assert isinstance(call, StepCall)
    assert call.rollback is not None, "only a roll-back calls steps that park"
    failed = AttemptFailed(
        at=event.at,
        run=event.run,
        call=event.call,
        failure=event.failure,
        attempt=event.attempt,
        retry_at=event.at,
        digest=event.digest,
    )
    return failed, str(call.rollback.failed(event.failure, attempts=event.attempt))
