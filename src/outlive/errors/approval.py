"""What goes wrong between a run that asks and the people who decide."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class ApprovalNotFoundError(OutliveError, LookupError):
    """The run has asked for no such approval, or several runs of its tree have."""

    def __init__(self, run_id: str, name: str, pending: list[str], *, are_several: bool = False) -> None:
        self.run_id, self.name, self.pending = run_id, name, pending
        waiting = f"decide one that waits, by the id of its run and its name: {', '.join(pending)}"
        if are_several:
            told = f"several runs below {run_id!r} ask for approval {name!r}"
        else:
            told = f"run {run_id!r} has not asked for approval {name!r}"
        super().__init__(f"{told}; {waiting if pending else 'it waits for none now: look at engine.approvals(run_id)'}")


class ApprovalClosedError(OutliveError):
    """Nobody waits for this decision any more."""

    def __init__(self, run_id: str, name: str, reason: str) -> None:
        self.run_id, self.name, self.reason = run_id, name, reason
        super().__init__(
            f"approval {name!r} of run {run_id!r} is closed: {reason}; nothing was decided, start a new run to ask "
            f"again"
        )


class ApprovalFormError(OutliveError, ValueError):
    """The form is not filled in as the workflow asks for."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"the form of approval {name!r} does not fit: {reason}; its JSON Schema is in engine.approvals(run_id)"
        )


class ApprovalExpired(OutliveError, TimeoutError):
    """Nobody decided before the deadline of the approval."""

    def __init__(self, name: str, assignees: tuple[str, ...] = ()) -> None:
        self.name, self.assignees = name, assignees
        asked = f" ({', '.join(assignees)})" if assignees else ""
        super().__init__(f"nobody{asked} decided on approval {name!r} before its deadline")
