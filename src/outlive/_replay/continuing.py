"""How a workflow says that it wants to go on as a new generation.

`continue_as_new` never returns: it raises a control signal that unwinds the workflow, as an exit unwinds a program, and
that `except Exception` does not see. The run ends when the signal comes out at the top, alone or in the group that a
`TaskGroup` makes of it.
"""

from __future__ import annotations

from outlive._model import RunStatus
from outlive._replay.command import EndRun, Heir
from outlive._replay.frame import Frame


class ContinueAsNew(BaseException):
    """Unwinds a workflow that goes on as a new generation."""

    def __init__(self, heir: Heir) -> None:
        super().__init__(f"goes on as a new generation of {heir.workflow.name}")
        self.heir = heir


def find_heir(error: BaseException) -> Heir | None:
    """What a workflow wants to go on as; None if it just failed, or something else failed while it unwound."""
    if isinstance(error, ContinueAsNew):
        return error.heir
    if isinstance(error, BaseExceptionGroup):
        heirs = [find_heir(inner) for inner in error.exceptions]
        return heirs[0] if all(heir is not None for heir in heirs) else None
    return None


def overrule(frame: Frame, ending: EndRun) -> None:
    """A cancel or a deadline reached a run that is being wound up to go on: now it ends."""
    if frame.outcome is not None and frame.outcome.status is RunStatus.CONTINUED and frame.ending is None:
        frame.outcome = ending
