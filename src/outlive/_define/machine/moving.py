"""How a machine says where it is."""

from __future__ import annotations

from outlive._replay.ask import current_execution
from outlive._replay.frame import SCOPE


def move(to: str, *, came_from: str = "", is_written: bool = False) -> None:
    """The machine is in the state of this name now; outside of a run that concerns nobody."""
    execution = current_execution()
    if execution is not None:
        frame = SCOPE.get().frame
        frame.state = to
        if execution.listener is not None:
            execution.listener(frame, came_from, is_written=is_written)
