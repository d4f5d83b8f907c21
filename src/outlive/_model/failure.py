"""An exception as data."""

from __future__ import annotations

from typing import Any

import msgspec


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the journal keeps of an exception: enough to raise it again and to explain it a year later."""

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
    def error(self) -> str:
        """The type of what went wrong: of a `StepFailed` that of the exception that the step raised."""
        name = self.attributes.get("type_name") if self.type == "outlive.errors.StepFailed" else None
        return name if isinstance(name, str) else self.type
