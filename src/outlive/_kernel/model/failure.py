"""An exception as data."""

from __future__ import annotations

from typing import Any

import msgspec

STEP_FAILED = "outlive.errors.StepFailedError"
RENAMED = {
    f"outlive.errors.{old}": f"outlive.errors.{old}Error"
    for old in (
        "ApprovalExpired",
        "AskFailed",
        "PromiseFailed",
        "RunCancelled",
        "RunFailed",
        "RunTimedOut",
        "StepFailed",
        "StepInterrupted",
        "StepSkipped",
    )
}
"""For each name of a class in journals, exports and servers of earlier releases: its name today."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of an exception that the journal keeps: enough to raise it again and to explain it a year later."""

    type: str
    """`module.QualName` of the class."""
    message: str = ""
    args: Any = None
    """The exception's arguments in tagged JSON, or None when they cannot be stored."""
    attributes: dict[str, Any] = {}
    """Public attributes in tagged JSON."""
    cause: Failure | None = None
    notes: tuple[str, ...] = ()
    traceback: str = ""

    @property
    def class_name(self) -> str:
        """The name that the class has today; `type` is what was written."""
        return RENAMED.get(self.type, self.type)

    @property
    def error(self) -> str:
        """The type of what went wrong: of a `StepFailedError` that of the exception that the step raised."""
        name = self.attributes.get("type_name") if self.class_name == STEP_FAILED else None
        return name if isinstance(name, str) else self.class_name
