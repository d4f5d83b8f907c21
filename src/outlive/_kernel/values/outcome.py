"""The outcome of one of many runs, as people and programs see it."""

from __future__ import annotations

import msgspec

from outlive._kernel.values.run import Status


class RunOutcome(msgspec.Struct, frozen=True):
    """The outcome of a verb for many runs for one of them."""

    id: str
    workflow: str
    status: Status
    """The status of the run before."""
    done: bool = False
    """Whether the verb has succeeded; False in a preview."""
    error: str = ""
    """The class of the error, if the run has refused."""
    message: str = ""
    """Why it has."""

    def __repr__(self) -> str:
        became = f"{self.error}: {self.message}" if self.error else "done" if self.done else f"is {self.status}"
        return f"<RunOutcome {self.id}: {became}>"
